//! What tests of tools have in common: a clock, a mint, a sink for events, a scene, and ears for
//! counters and logs.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};
use parking_lot::Mutex;
use serde_json::Value;
use turnwire_event::port::{BoxFuture, Emission, EmitError, Emitter, MessageEnd, Refusal};
use turnwire_event::{
    Clock, ContentBlock, EpisodeId, Epoch, Mint, Owner, Position, Seq, SessionId, TenantId,
    Timestamp, ToolUseId, Trace, TurnId, Ulid,
};

use crate::scene::Scene;
use crate::shelf::Shelf;
use crate::tool::Call;
use crate::workshop::Workshop;

pub(crate) struct At(pub(crate) i64);

impl Clock for At {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0)
    }
}

#[derive(Default)]
pub(crate) struct Count(AtomicU64);

impl Mint for Count {
    fn ulid(&self) -> Ulid {
        Ulid(u128::from(self.0.fetch_add(1, Ordering::Relaxed) + 1))
    }
}

/// Takes `room` events, is full once after every third, and refuses the rest.
#[derive(Default)]
pub(crate) struct Sink {
    room: usize,
    full: Mutex<bool>,
    taken: Mutex<Vec<Emission>>,
}

impl Sink {
    pub(crate) fn with_room(room: usize) -> Arc<Self> {
        Arc::new(Self {
            room,
            ..Self::default()
        })
    }

    pub(crate) fn taken(&self) -> Vec<Emission> {
        self.taken.lock().clone()
    }
}

impl Emitter for Sink {
    fn emit(&self, emission: Emission) -> Result<Position, EmitError> {
        let mut taken = self.taken.lock();
        if taken.len() == self.room {
            return Err(Refusal::Cancelled.into());
        }
        let mut full = self.full.lock();
        if taken.len() % 3 == 2 && !*full {
            *full = true;
            return Err(EmitError::Full(Box::new(emission)));
        }
        *full = false;
        taken.push(emission);
        Ok(Position::persisted(Epoch::FIRST, Seq(taken.len() as u64)))
    }

    fn complete(&self, _: MessageEnd) -> Result<Vec<ContentBlock>, Refusal> {
        Err(Refusal::Ended)
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(tokio::task::yield_now())
    }

    fn committed(&self, _: Position) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async { Ok(()) })
    }
}

/// A scene of the sub-agent `shop` for `user-42`.
pub(crate) fn scene() -> Scene {
    Scene {
        delegate: Arc::new(turnwire_event::port::Nobody),
        wards: Arc::new(turnwire_event::port::Nobody),
        owner: Owner {
            tenant: TenantId(0),
            principal: "user-42".parse().expect("a principal"),
        },
        session_id: SessionId(Ulid(1)),
        turn_id: TurnId(Ulid(2)),
        episode_id: EpisodeId(Ulid(3)),
        locale: "en".to_owned(),
        location: None,
        agent: Some("shop".to_owned()),
        trace: Some(Arc::new(Trace {
            trace_id: "0af7651916cd43dd8448eb211c80319c".to_owned(),
            span_id: "b7ad6b7169203331".to_owned(),
            parent_span_id: None,
        })),
        shelf: Shelf::new(),
        definition: "market@1".to_owned(),
    }
}

/// A workshop without a guard, in which nothing can run.
pub(crate) fn workshop() -> Arc<Workshop> {
    let dir = std::env::temp_dir().join(format!("turnwire-tools-{}", std::process::id()));
    Arc::new(Workshop::new(dir, Vec::new(), Duration::from_secs(5)))
}

/// A use of a tool in a scene of its own.
pub(crate) fn call(input: Value, sink: &Arc<Sink>) -> Call {
    Call {
        tool_use_id: ToolUseId(Ulid(7)),
        input,
        emitter: Arc::clone(sink) as Arc<dyn Emitter>,
        scene: Arc::new(scene()),
    }
}

/// Hears what is counted and logged on this thread while it is kept.
pub(crate) struct Ears {
    recorder: &'static PrometheusRecorder,
    log: Log,
    _counters: metrics::LocalRecorderGuard<'static>,
    _subscriber: tracing::subscriber::DefaultGuard,
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Ears {
    pub(crate) fn open() -> Self {
        // One for each test that listens; a guard wants it to outlive the test.
        let recorder = Box::leak(Box::new(PrometheusBuilder::new().build_recorder()));
        let log = Log::default();
        let to = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_writer(move || to.clone())
            .finish();
        Self {
            _counters: metrics::set_default_local_recorder(recorder),
            _subscriber: tracing::subscriber::set_default(subscriber),
            recorder,
            log,
        }
    }

    /// Every counter and gauge of this name, as `/metrics` prints it.
    pub(crate) fn counted(&self, name: &str) -> Vec<String> {
        let page = self.recorder.handle().render();
        let lines = page.lines().filter(|line| line.starts_with(name));
        lines.map(str::to_owned).collect()
    }

    /// All that was logged.
    pub(crate) fn heard(&self) -> String {
        String::from_utf8_lossy(&self.log.0.lock()).into_owned()
    }
}

//! Support for the tests of tools: a clock, an id generator, an event sink, a context, and a capture
//! of logs and metrics.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};
use parking_lot::Mutex;
use serde_json::Value;
use turnwire_event::port::{BoxFuture, Emission, EmitError, EmitRefusal, EventEmitter, MessageEnd};
use turnwire_event::{
    Clock, ContentBlock, EpisodeId, Epoch, IdGenerator, Owner, Position, Seq, SessionId, TenantId,
    Timestamp, ToolUseId, TraceContext, TurnId, Ulid,
};

use crate::program::runner::ProgramRunner;
use crate::tool::ItemStore;
use crate::tool::ToolContext;
use crate::tool::ToolInvocation;

pub(crate) struct FixedClock(pub(crate) i64);

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0)
    }
}

#[derive(Default)]
pub(crate) struct CountingIdGenerator(AtomicU64);

impl IdGenerator for CountingIdGenerator {
    fn ulid(&self) -> Ulid {
        Ulid(u128::from(self.0.fetch_add(1, Ordering::Relaxed) + 1))
    }
}

/// Accepts `room` events, is full once after every third, and refuses further ones.
#[derive(Default)]
pub(crate) struct EventSink {
    room: usize,
    full: Mutex<bool>,
    emissions: Mutex<Vec<Emission>>,
}

impl EventSink {
    pub(crate) fn with_room(room: usize) -> Arc<Self> {
        Arc::new(Self {
            room,
            ..Self::default()
        })
    }

    pub(crate) fn emissions(&self) -> Vec<Emission> {
        self.emissions.lock().clone()
    }
}

impl EventEmitter for EventSink {
    fn emit(&self, emission: Emission) -> Result<Position, EmitError> {
        let mut emissions = self.emissions.lock();
        if emissions.len() == self.room {
            return Err(EmitRefusal::Cancelled.into());
        }
        let mut full = self.full.lock();
        if emissions.len() % 3 == 2 && !*full {
            *full = true;
            return Err(EmitError::Full(Box::new(emission)));
        }
        *full = false;
        emissions.push(emission);
        Ok(Position::persisted(
            Epoch::FIRST,
            Seq(emissions.len() as u64),
        ))
    }

    fn complete(&self, _: MessageEnd) -> Result<Vec<ContentBlock>, EmitRefusal> {
        Err(EmitRefusal::Ended)
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(tokio::task::yield_now())
    }

    fn committed(&self, _: Position) -> BoxFuture<'_, Result<(), EmitRefusal>> {
        Box::pin(async { Ok(()) })
    }
}

/// The context of the sub-agent `shop` for `user-42`.
pub(crate) fn context() -> ToolContext {
    ToolContext {
        delegate: Arc::new(turnwire_event::port::NoChildTasks),
        child_tasks: Arc::new(turnwire_event::port::NoChildTasks),
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
        trace: Some(Arc::new(TraceContext {
            trace_id: "0af7651916cd43dd8448eb211c80319c".to_owned(),
            span_id: "b7ad6b7169203331".to_owned(),
            parent_span_id: None,
        })),
        propagation: Default::default(),
        items: ItemStore::new(),
        dimensions: turnwire_event::metric::TurnDimensions::of_definition("market@1"),
    }
}

/// A runner without a guard, which cannot run programs.
pub(crate) fn runner() -> Arc<ProgramRunner> {
    let dir = std::env::temp_dir().join(format!("turnwire-tools-{}", std::process::id()));
    Arc::new(ProgramRunner::new(dir, Vec::new(), Duration::from_secs(5)))
}

/// A call of a tool in a new context.
pub(crate) fn call(input: Value, sink: &Arc<EventSink>) -> ToolInvocation {
    ToolInvocation {
        tool_use_id: ToolUseId(Ulid(7)),
        input,
        emitter: Arc::clone(sink) as Arc<dyn EventEmitter>,
        context: Arc::new(context()),
    }
}

/// Captures metrics and logs of this thread until it is dropped.
pub(crate) struct LogCapture {
    recorder: &'static PrometheusRecorder,
    log: LogBuffer,
    _counters: metrics::LocalRecorderGuard<'static>,
    _subscriber: tracing::subscriber::DefaultGuard,
}

#[derive(Clone, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl LogCapture {
    pub(crate) fn start() -> Self {
        // One for each test; the guard needs a recorder that outlives it.
        let recorder = Box::leak(Box::new(PrometheusBuilder::new().build_recorder()));
        let log = LogBuffer::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        Self {
            _counters: metrics::set_default_local_recorder(recorder),
            _subscriber: tracing::subscriber::set_default(subscriber),
            recorder,
            log,
        }
    }

    /// Every counter and gauge of this name, as `/metrics` prints it.
    pub(crate) fn metrics(&self, name: &str) -> Vec<String> {
        let page = self.recorder.handle().render();
        let lines = page.lines().filter(|line| line.starts_with(name));
        lines.map(str::to_owned).collect()
    }

    /// The log so far.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&self.log.0.lock()).into_owned()
    }
}

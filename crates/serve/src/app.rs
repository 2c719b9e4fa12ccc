//! The composition root: the parts of the house, put together in the order data flows.
//!
//! ```text
//! pack ─▶ host (agents, tools, models, policies) ─┐             store ─▶ writer
//! script ─▶ one agent ────────────────────────────┤                        │
//!                    producer ─▶ sessions (gate, order, ring) ─────────────┘ ─▶ routes ─▶ listen
//! ```

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnwire_agent::Agent;
use turnwire_dial::Dialer;
use turnwire_event::port::Producer;
use turnwire_event::{Clock, Mint};
use turnwire_log::Writer;
use turnwire_log::reserve::Reserve;
use turnwire_log::sqlite::{self, Sqlite};
use turnwire_model::{Script, ScriptError, Scripted};
use turnwire_session::sessions::Parts;
use turnwire_session::{Sessions, SystemClock, SystemMint};
use turnwire_tool::Toolbox;

use crate::config::Config;
use crate::config::store::Durability;
use crate::cors::Cors;
use crate::host::{self, Alone, Broken, Host, Variables};
use crate::listen;
use crate::metrics::Handle;
use crate::state::AppState;
use crate::transport::{self, Phase, Streams};
use crate::{routes, shell};

/// Why the server cannot run. Said to the person who started it.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The script cannot be played.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The pack cannot be run.
    #[error(transparent)]
    Pack(#[from] Broken),
    /// There is no way to call others.
    #[error(transparent)]
    Dial(#[from] turnwire_dial::DialError),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] turnwire_log::OpenError),
    /// The turns of the last run could not be ended.
    #[error("the turns of the last run could not be ended: {0}")]
    Sweep(turnwire_session::Error),
    /// The address cannot be listened on.
    #[error(transparent)]
    Listen(#[from] listen::BindError),
    /// The system gave no thread, signal or socket.
    #[error(transparent)]
    System(#[from] std::io::Error),
}

/// A server put together, not yet listening.
pub struct App {
    config: Arc<Config>,
    sessions: Arc<Sessions>,
    streams: Arc<Streams>,
    writer: Arc<Writer>,
    metrics: Handle,
    host: Option<Arc<Host>>,
}

/// How long connections may take to say goodbye when the server ends.
const GOODBYES: Duration = Duration::from_secs(3);

/// Exit status when the disk failed: `EX_IOERR` of sysexits.
const EXIT_DISK: i32 = 74;

/// One agent without a pack: the scripted model with tools for trying.
pub fn agent(script: Option<&Path>) -> Result<Arc<dyn Producer>, RunError> {
    let script = script.map_or_else(|| Ok(Script::builtin()), Script::read)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let mint: Arc<dyn Mint> = Arc::new(SystemMint);
    let tools = Toolbox::trial(clock, mint.clone());
    let options = turnwire_agent::Options::default();
    Ok(Arc::new(Alone(Agent::new(
        options,
        Arc::new(Scripted::new(script)),
        tools,
        mint,
    ))))
}

/// The pack that the settings name, or the one that is built in, ready to answer turns.
pub fn host(config: &Config, variables: Variables) -> Result<Arc<Host>, RunError> {
    let script = config
        .script
        .file
        .as_deref()
        .map(Script::read)
        .transpose()?;
    let means = host::Means {
        clock: Arc::new(SystemClock),
        mint: Arc::new(SystemMint),
        dialer: Arc::new(Dialer::new(turnwire_dial::Options {
            allow: config.dial.allow.clone(),
        })?),
    };
    Ok(Host::open(
        config.pack.dir.clone(),
        variables,
        script,
        means,
    )?)
}

impl App {
    /// Opens the store, ends what the last run left open, and puts the rest around it.
    pub async fn start(config: Config, producer: Arc<dyn Producer>) -> Result<Self, RunError> {
        let metrics = Handle::install();
        let store = Arc::new(Sqlite::open(&store_options(&config))?);
        let reserve = Reserve::new(config.home.join("reserve"), config.store.reserve_bytes);
        let writer = Writer::start(store, reserve, Box::new(fatal))?;
        let parts = Parts {
            options: session_options(&config),
            clock: Arc::new(SystemClock),
            mint: Arc::new(SystemMint),
            writer: writer.clone(),
            producer,
        };
        let sessions = Sessions::start(parts).await.map_err(RunError::Sweep)?;
        let streams = Arc::new(Streams {
            sessions: sessions.clone(),
            options: stream_options(&config),
            phase: Phase::default(),
            sent: ::metrics::counter!(turnwire_event::metric::WS_EVENTS_SENT_TOTAL),
            next: AtomicU64::new(1),
            depth: AtomicU64::new(0),
            tasks: TaskTracker::new(),
            places: transport::chat::Places::new(config.stream.chat_streams_max),
            counted: transport::chat::Counted::default(),
        });
        Ok(Self {
            config: Arc::new(config),
            sessions,
            streams,
            writer,
            metrics,
            host: None,
        })
    }

    /// The same, with what is known of the pack it runs.
    #[must_use]
    pub fn hosting(mut self, host: Arc<Host>) -> Self {
        self.host = Some(host);
        self
    }

    /// Everything a request can reach.
    pub fn router(&self) -> Router {
        let state = AppState {
            sessions: self.sessions.clone(),
            config: self.config.clone(),
            metrics: self.metrics.clone(),
            streams: self.streams.clone(),
            host: self.host.clone(),
        };
        let cors = Cors::new(&self.config.http.cors_origins);
        shell::wrap(routes::router(state), cors)
    }

    /// Listens until `drain` is cancelled, then lets turns end and connections leave.
    pub async fn serve(self, listener: TcpListener, drain: CancellationToken) {
        let stop = CancellationToken::new();
        let upkeep = self.metrics.spawn_upkeep(stop.clone());
        let accepting = {
            let (router, config, stop) = (self.router(), self.config.clone(), stop.clone());
            tokio::spawn(async move { listen::serve(listener, router, &config, stop).await })
        };
        drain.cancelled().await;
        tracing::info!(
            "draining: no new turns, {} ms for those that run",
            self.config.listen.drain_ms
        );
        self.sessions.refuse_turns();
        self.streams.phase.drain();
        self.sessions
            .drain(Duration::from_millis(self.config.listen.drain_ms))
            .await;
        // Connections without a turn have left; the others have their last events by now.
        self.streams.phase.stop();
        stop.cancel();
        self.streams.tasks.close();
        let _ = tokio::time::timeout(GOODBYES, self.streams.tasks.wait()).await;
        let _ = tokio::time::timeout(Duration::from_secs(5), accepting).await;
        let _ = upkeep.await;
        let writer = self.writer.clone();
        let closing = tokio::task::spawn_blocking(move || writer.stop());
        // A disk that is still full must not keep the process from ending.
        let _ = tokio::time::timeout(Duration::from_secs(5), closing).await;
    }
}

/// Runs the server until SIGTERM or SIGINT; a second signal ends it at once.
pub fn run(config: Config) -> Result<(), RunError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let ran = runtime.block_on(async {
        // Before anything counts, so that what counts from 0 is seen to.
        let _ = Handle::install();
        let app = if config.pack.dir.is_none() && config.script.file.is_some() {
            let producer = agent(config.script.file.as_deref())?;
            App::start(config, producer).await?
        } else {
            let demo = tokio::runtime::Handle::current();
            let host = host(&config, Variables::from_env().with_demo(demo))?;
            let every = Duration::from_millis(config.pack.reload_ms);
            tokio::spawn(host.clone().watch((!every.is_zero()).then_some(every))?);
            App::start(config, host.clone()).await?.hosting(host)
        };
        // Only now: nobody is let in before the turns of the last run are ended.
        let listener = listen::bind(&app.config)?;
        let address = listener.local_addr()?;
        let drain = CancellationToken::new();
        tokio::spawn(signals(drain.clone())?);
        announce(address);
        app.serve(listener, drain).await;
        Ok(())
    });
    // A disk that is still full keeps the writer's thread: the process ends without it.
    runtime.shutdown_background();
    ran
}

fn signals(drain: CancellationToken) -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    // Taken even where no pack is there to be read again: it must not end the server.
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        let mut asked = false;
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                _ = hangup.recv() => continue,
            }
            if asked {
                end_process(1);
            }
            asked = true;
            drain.cancel();
        }
    })
}

/// One line that says where, and one that can be pasted.
fn announce(address: SocketAddr) {
    let line = format!(
        "turnwire is at http://{address} — open it, or try: curl -s -X POST http://{address}/sessions"
    );
    // A closed standard output is no reason not to serve.
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// The disk failed: nothing written after this could be trusted, so nothing is.
fn fatal(what: &str) {
    tracing::error!(what, "the disk failed; ending");
    end_process(EXIT_DISK);
}

#[allow(
    clippy::disallowed_methods,
    reason = "the two ends that must not wait: a failed disk, a second signal"
)]
fn end_process(code: i32) -> ! {
    std::process::exit(code)
}

fn store_options(config: &Config) -> sqlite::Options {
    let durability = match config.store.durability {
        Durability::Full => sqlite::Durability::Full,
        Durability::Relaxed => sqlite::Durability::Relaxed,
    };
    sqlite::Options {
        dir: config.home.clone(),
        durability,
    }
}

fn session_options(config: &Config) -> turnwire_session::Options {
    let ms = Duration::from_millis;
    turnwire_session::Options {
        turn_timeout: ms(config.turn.timeout_ms),
        queue_max: config.turn.queue_max,
        dm_types: config.turn.dm_types.clone(),
        idempotency_ttl: Duration::from_secs(config.turn.key_ttl_s),
        token_ttl: ms(config.stream.token_ttl_ms),
        ring_events: config.stream.ring_events,
        ring_bytes: config.stream.ring_bytes,
        idle_unload: ms(config.session.idle_unload_ms),
        open_max: config.session.open_max,
        checkpoint: ms(config.session.checkpoint_ms),
        retention: Duration::from_secs(config.store.retention_s),
        retention_sweep: ms(config.store.retention_sweep_ms),
        ..turnwire_session::Options::default()
    }
}

fn stream_options(config: &Config) -> transport::Options {
    let (stream, ms) = (&config.stream, Duration::from_millis);
    transport::Options {
        queue_max: stream.queue_max as u64,
        snapshot_messages: stream.snapshot_messages,
        replay_max: stream.replay_max,
        ping: ms(stream.ping_ms),
        ping_misses: stream.ping_misses,
        subscribe_wait: ms(stream.subscribe_wait_ms),
        write_deadline: ms(stream.write_deadline_ms),
        frame_in_max: stream.frame_in_max_bytes,
        heartbeat: ms(stream.heartbeat_ms),
        retry_ms: stream.retry_ms,
    }
}

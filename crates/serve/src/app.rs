//! The composition root: the parts of the house, put together in the order data flows.
//!
//! ```text
//! pack ─▶ host (agents, tools, models, policies) ─┐             store ─▶ writer
//! script ─▶ one agent ────────────────────────────┤                        │
//!                    producer ─▶ sessions (gate, order, ring) ─────────────┘ ─▶ routes ─▶ listen
//! ```

mod folders;
mod options;

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
use turnwire_agent::StandaloneAgent;
use turnwire_dial::Dialer;
use turnwire_event::port::TurnProducer;
use turnwire_event::{Clock, IdGenerator};
use turnwire_log::LogWriter;
use turnwire_log::reserve::DiskReserve;
use turnwire_log::sqlite::SqliteStore;
use turnwire_model::cassette::CassetteWriterError;
use turnwire_model::{ModelScript, ScriptError, ScriptedProvider};
use turnwire_session::{ServiceParts, SessionService, SystemClock, SystemMint};
use turnwire_tool::runner::ProgramFolders;
use turnwire_tool::{ProgramRunner, Toolbox};

use crate::access::cors::CorsPolicy;
use crate::config::ServerConfig;
use crate::host::{
    self, BundledService, PackHost, PackLoadError, ServerVariables, SingleAgentHost,
};
use crate::listen;
use crate::metrics::MetricsHandle;
use crate::state::AppState;
use crate::transport::{CountersByVersion, ServerPhase, StreamLimits, Streams};
use crate::{routes, shell};

/// Why the server cannot run. Said to the person who started it.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The script cannot be played.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The pack cannot be run.
    #[error(transparent)]
    Pack(#[from] PackLoadError),
    /// What models stream cannot be recorded.
    #[error(transparent)]
    Record(#[from] CassetteWriterError),
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
    config: Arc<ServerConfig>,
    sessions: SessionService,
    streams: Arc<Streams>,
    writer: Arc<LogWriter>,
    metrics: MetricsHandle,
    host: Option<Arc<PackHost>>,
}

/// How long connections may take to say goodbye when the server ends.
const GOODBYES: Duration = Duration::from_secs(3);

/// Exit status when the disk failed: `EX_IOERR` of sysexits.
const EXIT_DISK: i32 = 74;

/// One agent without a pack: the scripted model with tools for trying.
pub fn agent(script: Option<&Path>) -> Result<Arc<dyn TurnProducer>, RunError> {
    let script = script.map_or_else(|| Ok(ModelScript::builtin()), ModelScript::read)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let mint: Arc<dyn IdGenerator> = Arc::new(SystemMint);
    let tools = Toolbox::trial(clock, mint.clone());
    let options = turnwire_agent::AgentOptions::default();
    Ok(Arc::new(SingleAgentHost(StandaloneAgent::new(
        options,
        Arc::new(ScriptedProvider::new(script)),
        tools,
        mint,
    ))))
}

/// The pack that the settings name, or the one that is built in, ready to answer turns.
pub async fn host(
    config: &ServerConfig,
    variables: ServerVariables,
) -> Result<Arc<PackHost>, RunError> {
    let script = config
        .script
        .file
        .as_deref()
        .map(ModelScript::read)
        .transpose()?;
    let means = host::HostResources {
        bounds: options::bounds(config)?,
        clock: Arc::new(SystemClock),
        mint: Arc::new(SystemMint),
        dialer: Arc::new(Dialer::new(turnwire_dial::DialerOptions {
            allow: config.dial.allow.clone(),
        })?),
        workshop: Arc::new(
            ProgramRunner::new(
                config.home.join("work"),
                ProgramRunner::own_guard(),
                Duration::from_millis(config.tool.grace_ms),
            )
            .with_programs_max(config.tool.programs_max),
        ),
    };
    Ok(PackHost::open(config.pack.dir.clone(), variables, script, means).await?)
}

impl App {
    /// Opens the store, ends what the last run left open, and puts the rest around it.
    pub async fn start(
        config: ServerConfig,
        producer: Arc<dyn TurnProducer>,
    ) -> Result<Self, RunError> {
        let options = options::session(&config);
        Self::with(config, options, producer).await
    }

    /// The same with a pack, whose rules say which model serves which turn.
    pub async fn hosting(config: ServerConfig, host: Arc<PackHost>) -> Result<Self, RunError> {
        let options = turnwire_session::Options {
            // Known before the first session is, so that nobody has to be told.
            routing_policy_version: host.policy().borrow().clone(),
            ..options::session(&config)
        };
        let app = Self::with(config, options, host.clone()).await?;
        Ok(Self {
            host: Some(host),
            ..app
        })
    }

    async fn with(
        config: ServerConfig,
        options: turnwire_session::Options,
        producer: Arc<dyn TurnProducer>,
    ) -> Result<Self, RunError> {
        let metrics = MetricsHandle::install();
        let store = Arc::new(SqliteStore::open(&options::store(&config))?);
        let reserve = DiskReserve::new(config.home.join("reserve"), config.store.reserve_bytes);
        let writer = LogWriter::start(store.clone(), reserve, Box::new(fatal))?;
        let parts = ServiceParts {
            options,
            clock: Arc::new(SystemClock),
            mint: Arc::new(SystemMint),
            store: store.clone(),
            writer: writer.clone(),
            producer,
        };
        let sessions = SessionService::start(parts)
            .await
            .map_err(RunError::Sweep)?;
        let work = ProgramFolders::new(config.home.join("work"));
        let grace = Duration::from_millis(config.tool.grace_ms);
        folders::follow(&sessions, work.clone(), grace);
        folders::sweep(&sessions, store, work);
        let streams = Arc::new(Streams {
            sessions: sessions.live_sessions(),
            canceller: sessions.canceller(),
            options: options::stream(&config),
            phase: ServerPhase::default(),
            events_sent: ::metrics::counter!(turnwire_event::metric::WS_EVENTS_SENT_TOTAL),
            next_connection: AtomicU64::new(1),
            lag_max: AtomicU64::new(0),
            tasks: TaskTracker::new(),
            stream_limits: StreamLimits::new(config.stream.chat_streams_max),
            chat_counters: CountersByVersion::default(),
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

    /// Everything a request can reach.
    pub fn router(&self) -> Router {
        let state = AppState::new(
            &self.sessions,
            self.config.clone(),
            self.metrics.clone(),
            self.streams.clone(),
            self.host.clone(),
        );
        let cors = CorsPolicy::new(&self.config.http.cors_origins);
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
        let host = self.host.clone();
        let policy_task = host.map(|host| tokio::spawn(policies(host, self.sessions.clone())));
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
        if let Some(policy_task) = policy_task {
            policy_task.abort();
        }
        if let Some(host) = &self.host {
            host.close().await;
        }
        let (writer, host) = (self.writer.clone(), self.host.clone());
        let closing = tokio::task::spawn_blocking(move || {
            writer.stop();
            if let Some(host) = host {
                host.flush();
            }
        });
        // A disk that is still full must not keep the process from ending.
        let _ = tokio::time::timeout(Duration::from_secs(5), closing).await;
    }
}

/// Tells sessions whenever other rules say which model serves which turn (S3-104); never ends.
async fn policies(host: Arc<PackHost>, sessions: SessionService) {
    let mut policy = host.policy();
    loop {
        let version = policy.borrow_and_update().clone();
        let announced = sessions.reload_routing_policy(&version);
        tracing::debug!(version, announced, "the routing policy in force");
        if policy.changed().await.is_err() {
            return;
        }
    }
}

/// Runs the server until SIGTERM or SIGINT; a second signal ends it at once. Packs may name the
/// variables of `services`.
pub fn run(config: ServerConfig, services: &[BundledService]) -> Result<(), RunError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let ran = runtime.block_on(async {
        // Before anything counts, so that what counts from 0 is seen to.
        let _ = MetricsHandle::install();
        let app = if config.pack.dir.is_none() && config.script.file.is_some() {
            let producer = agent(config.script.file.as_deref())?;
            App::start(config, producer).await?
        } else {
            let variables =
                services
                    .iter()
                    .fold(ServerVariables::from_env(), |variables, service| {
                        variables.or_service(*service, tokio::runtime::Handle::current())
                    });
            let host = host(&config, variables).await?;
            let every = Duration::from_millis(config.pack.reload_ms);
            tokio::spawn(host.clone().watch((!every.is_zero()).then_some(every))?);
            App::hosting(config, host).await?
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
        let mut has_requested = false;
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                _ = hangup.recv() => continue,
            }
            if has_requested {
                end_process(1);
            }
            has_requested = true;
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

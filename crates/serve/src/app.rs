//! The composition root: the parts of the server, put together in the order of the data flow.
//!
//! ```text
//! pack ─▶ host (agents, tools, models, policies) ─┐             store ─▶ writer
//! script ─▶ one agent ────────────────────────────┤                        │
//!                    producer ─▶ sessions (gate, order, ring) ─────────────┘ ─▶ routes ─▶ listen
//! ```

mod access;
mod confirm;
mod folders;
mod options;
mod traces;

pub use access::AccessError;
pub use confirm::write_confirmation;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnwire_agent::StandaloneAgent;
use turnwire_dial::Dialer;
use turnwire_event::port::{TurnProducer, TurnTracer};
use turnwire_event::{Clock, IdGenerator};
use turnwire_log::LogWriter;
use turnwire_log::reserve::DiskReserve;
use turnwire_log::sqlite::{DATABASE_FILE, SqliteStore};
use turnwire_model::cassette::CassetteWriterError;
use turnwire_model::{ModelScript, ScriptError, ScriptedProvider};
use turnwire_otlp::Exporter;
use turnwire_session::{ServiceParts, SessionService, SystemClock, SystemIdGenerator};
use turnwire_tool::runner::ProgramFolders;
use turnwire_tool::{OrphanReaper, ProgramRunner, Toolbox};

use crate::access::live_identity::LiveIdentities;
use crate::config::ServerConfig;
use crate::host::reload::Reloader;
use crate::host::{
    self, BundledService, PackHost, PackLoadError, PackSource, ServerVariables, SingleAgentHost,
};
use crate::listen;
use crate::metrics::MetricsHandle;
use crate::state::AppState;
use crate::transport::{CountersByVersion, ServerPhase, StreamLimits, Streams};
use crate::{middleware, routes};

/// Why the server cannot run, in words for the person who started it.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The script cannot be played.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The pack cannot be run.
    #[error(transparent)]
    Pack(#[from] PackLoadError),
    /// The cassette of `model.record` cannot be opened.
    #[error(transparent)]
    Record(#[from] CassetteWriterError),
    /// The [`Dialer`] cannot be created.
    #[error(transparent)]
    Dial(#[from] turnwire_dial::DialError),
    /// Callers cannot be authenticated.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The [`SqliteStore`] cannot be opened.
    #[error(transparent)]
    Store(#[from] turnwire_log::OpenError),
    /// Tables or indexes that all sessions share cannot be read.
    #[error(
        "{0} is damaged: a table or an index that all sessions share cannot be read. Restore it from a backup \
         (docs/operations.md, \"A damaged database\"), or move it and its -wal, -shm and -mark files away to start \
         with an empty one"
    )]
    Damaged(String),
    /// The turns that the last run left open could not be ended.
    #[error("the turns of the last run could not be ended: {0}")]
    Sweep(turnwire_session::Error),
    /// The server cannot listen on its address.
    #[error(transparent)]
    Listen(#[from] listen::BindError),
    /// The operating system refused a thread, a signal handler or a socket.
    #[error(transparent)]
    System(#[from] std::io::Error),
}

/// A server that is put together and does not listen yet; [`App::serve`] does.
pub struct App {
    state: AppState,
    writer: Arc<LogWriter>,
    /// Sends the spans of turns; `None` if this server exports none.
    exporter: Option<Exporter>,
}

/// The variable by which a pack names the upstream of `relay.upstream`.
const UPSTREAM_VARIABLE: &str = "TURNWIRE_UPSTREAM";

/// How long connections may take to close when the server stops.
const GOODBYES: Duration = Duration::from_secs(3);

/// How long the last spans may take although the drain is over.
const TRACES_LAST_MIN: Duration = Duration::from_secs(1);
/// How long they may take at most.
const TRACES_LAST: Duration = Duration::from_secs(4);

/// Exit status when the disk failed: `EX_IOERR` of sysexits.
const EXIT_DISK: i32 = 74;

/// A [`SingleAgentHost`] without a pack: the scripted model with the trial tools.
pub fn agent(script: Option<&Path>) -> Result<Arc<dyn TurnProducer>, RunError> {
    let script = script.map_or_else(|| Ok(ModelScript::builtin()), ModelScript::read)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let id_generator: Arc<dyn IdGenerator> = Arc::new(SystemIdGenerator);
    let tools = Toolbox::with_trial_tools(clock, id_generator.clone());
    let options = turnwire_agent::AgentOptions::default();
    Ok(Arc::new(SingleAgentHost(StandaloneAgent::new(
        options,
        Arc::new(ScriptedProvider::new(script)),
        tools,
        id_generator,
    ))))
}

/// The [`PackHost`] of the pack that the settings name, or of the built-in one.
pub async fn host(
    config: &ServerConfig,
    mut variables: ServerVariables,
) -> Result<Arc<PackHost>, RunError> {
    let source = match (&config.pack.dir, &config.relay.upstream) {
        (Some(dir), _) => PackSource::Folder(dir.clone()),
        (None, Some(_)) => PackSource::Relay {
            model: config.relay.model.clone(),
        },
        (None, None) => PackSource::Demo,
    };
    if let Some(upstream) = &config.relay.upstream {
        variables = variables.with(UPSTREAM_VARIABLE, upstream);
    }
    let script = config
        .script
        .file
        .as_deref()
        .map(ModelScript::read)
        .transpose()?;
    let resources = host::HostResources {
        mcp_call_limits: options::mcp_call_limits(config),
        service_call_limits: options::service_call_limits(config),
        bounds: options::bounds(config)?,
        upstream_limits: options::upstream(config),
        clock: Arc::new(SystemClock),
        id_generator: Arc::new(SystemIdGenerator),
        dialer: Arc::new(Dialer::new(turnwire_dial::DialerOptions {
            allow: config.dial.allow.clone(),
        })?),
        runner: Arc::new(
            ProgramRunner::new(
                config.home.join("work"),
                ProgramRunner::own_guard(),
                Duration::from_millis(config.tool.grace_ms),
            )
            .with_call_limits(options::program_limits(config))
            .with_folder_limits(options::folder_limits(config)),
        ),
    };
    Ok(PackHost::open(source, variables, script, resources).await?)
}

impl App {
    /// Opens the store, closes the turns that the last run left open, and assembles the server around
    /// `producer`.
    pub async fn start(
        config: ServerConfig,
        producer: Arc<dyn TurnProducer>,
    ) -> Result<Self, RunError> {
        let options = options::session(&config);
        Self::with(config, options, producer).await
    }

    /// Like [`App::start`] with a pack, whose routing rules select the model of each turn.
    pub async fn hosting(config: ServerConfig, host: Arc<PackHost>) -> Result<Self, RunError> {
        let options = turnwire_session::Options {
            // Set before the first session exists, so that there is nothing to announce.
            routing_policy_version: host.policy().borrow().clone(),
            ..options::session(&config)
        };
        let mut app = Self::with(config, options, host.clone()).await?;
        app.state.host = Some(host);
        Ok(app)
    }

    async fn with(
        config: ServerConfig,
        options: turnwire_session::Options,
        producer: Arc<dyn TurnProducer>,
    ) -> Result<Self, RunError> {
        let metrics = MetricsHandle::install();
        metrics.record_start(&SystemClock);
        let authenticator = Arc::new(access::authenticator(&config).await?);
        let store = Arc::new(SqliteStore::open(&options::store(&config))?);
        store.set_wal_bytes_max(config.store.wal_bytes_max)?;
        let reserve = DiskReserve::new(config.home.join("reserve"), config.store.reserve_bytes);
        let writer = LogWriter::start(store.clone(), reserve, Box::new(fatal))?;
        let (tracer, exporter) = traces::start(Arc::new(SystemClock)).unzip();
        let parts = ServiceParts {
            options,
            clock: Arc::new(SystemClock),
            id_generator: Arc::new(SystemIdGenerator),
            store: store.clone(),
            writer: writer.clone(),
            producer,
            tracer: tracer.clone().map(|tracer| tracer as Arc<dyn TurnTracer>),
        };
        let sessions = SessionService::start(parts).await;
        let sessions = sessions.map_err(|error| match error {
            turnwire_session::Error::DatabaseDamaged => {
                RunError::Damaged(config.home.join(DATABASE_FILE).display().to_string())
            }
            error => RunError::Sweep(error),
        })?;
        let work = ProgramFolders::new(config.home.join("work"));
        let grace = Duration::from_millis(config.tool.grace_ms);
        folders::follow(&sessions, work.clone(), grace);
        folders::sweep(&sessions, store, work);
        confirm::follow(&sessions, config.home.clone());
        let streams = Arc::new(Streams {
            sessions: sessions.live_sessions(),
            canceller: sessions.canceller(),
            quotas: sessions.quotas(),
            settings: config.stream.clone(),
            phase: ServerPhase::default(),
            events_sent: ::metrics::counter!(turnwire_event::metric::WS_EVENTS_SENT_TOTAL),
            next_connection: AtomicU64::new(1),
            lag_max: AtomicU64::new(0),
            tasks: TaskTracker::new(),
            attach_tokens: Arc::new(access::attach_tokens(&config)),
            identities: Arc::new(LiveIdentities::new(authenticator)),
            connections: listen::OwnerShares::new(
                config.http.connections_max,
                config.http.connections_max_per_owner,
            ),
            transfers: listen::OwnerShares::transfers(
                config.http.transfers_max,
                config.http.transfers_max_per_owner,
                config.http.answer_max_bytes,
            ),
            stream_limits: StreamLimits::new(config.stream.chat_streams_max),
            turn_counters: CountersByVersion::default(),
            tracer,
        });
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let state = AppState {
            service: sessions,
            config: Arc::new(config),
            metrics,
            streams,
            parse_slots: listen::ParseSlots::new(cores),
            host: None,
        };
        Ok(Self {
            state,
            writer,
            exporter,
        })
    }

    /// All routes with their middleware.
    pub fn router(&self) -> Router {
        let rules = access::request_rules(&self.state.config, &self.state.streams);
        middleware::wrap(routes::router(self.state.clone()), rules)
    }

    /// Serves `listener` until `drain` is cancelled; then running turns may end and connections close.
    pub async fn serve(self, listener: TcpListener, drain: CancellationToken) {
        let stop = CancellationToken::new();
        let (state, router) = (&self.state, self.router());
        let upkeep = state.metrics.spawn_upkeep(stop.clone());
        let (config, stop_accepting) = (state.config.clone(), stop.clone());
        let accepting =
            async move { listen::serve(listener, router, &config, stop_accepting).await };
        let accepting = tokio::spawn(accepting);
        let host = state.host.clone();
        let policy_task = host.map(|host| tokio::spawn(policies(host, state.service.clone())));
        let identity_task = tokio::spawn(follow_identities(state.streams.clone()));
        drain.cancelled().await;
        let drain_ms = state.config.listen.drain_ms;
        let drain_end = Instant::now() + Duration::from_millis(drain_ms);
        tracing::info!("draining: no new turns, {drain_ms} ms for those that run");
        state.service.refuse_turns();
        state.streams.phase.drain();
        state.service.drain(Duration::from_millis(drain_ms)).await;
        // Connections without a turn have left; the others have their last events by now.
        state.streams.phase.stop();
        stop.cancel();
        state.streams.tasks.close();
        let _ = tokio::time::timeout(GOODBYES, state.streams.tasks.wait()).await;
        let _ = tokio::time::timeout(Duration::from_secs(5), accepting).await;
        let _ = upkeep.await;
        if let Some(policy_task) = policy_task {
            policy_task.abort();
        }
        identity_task.abort();
        if let Some(host) = &state.host {
            host.close().await;
        }
        if let Some(exporter) = self.exporter {
            // The deliveries have ended with their connections, so nothing else follows.
            let least = Instant::now() + TRACES_LAST_MIN;
            exporter
                .shutdown(drain_end.max(least).min(least + TRACES_LAST))
                .await;
        }
        let (writer, host) = (self.writer.clone(), state.host.clone());
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

/// Keeps attach tokens and the identities of connections up to date; never ends.
async fn follow_identities(streams: Arc<Streams>) {
    tokio::join!(
        access::remove_expired_tokens(streams.clone()),
        streams.identities.sweep(),
    );
}

/// Announces every change of the routing policy to the sessions (S3-104); never ends.
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
/// variables of `services`. SIGHUP reloads the parts of `reloader` and those that the server adds to it.
pub fn run(
    mut config: ServerConfig,
    services: &[BundledService],
    reloader: &Reloader,
) -> Result<(), RunError> {
    listen::descriptors::fit(&mut config);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let ran = runtime.block_on(async {
        // Before any metric is counted, so that counters start at 0.
        let _ = MetricsHandle::install();
        // Before any part creates a file in it.
        folders::make_private(&config.home).map_err(|error| turnwire_log::OpenError::Io {
            path: config.home.display().to_string(),
            cause: error.to_string(),
        })?;
        let has_pack = config.pack.dir.is_some() || config.relay.upstream.is_some();
        let app = if !has_pack && config.script.file.is_some() {
            let producer = agent(config.script.file.as_deref())?;
            App::start(config, producer).await?
        } else {
            // Before the first program of an MCP server.
            let reaper = OrphanReaper::adopt()?;
            let mut variables = ServerVariables::from_env();
            for service in services {
                variables = variables.or_service(*service, Handle::current());
            }
            let host = host(&config, variables).await?;
            tokio::spawn(host.end_orphans(reaper));
            let every = Duration::from_millis(config.pack.reload_ms);
            let every = (!every.is_zero()).then_some(every);
            tokio::spawn(host.clone().watch(every, reloader.subscribe()));
            App::hosting(config, host).await?
        };
        tokio::spawn(access::follow_credentials(
            app.state.config.clone(),
            app.state.streams.clone(),
            reloader.subscribe(),
        ));
        // Only now: no client may connect before the turns of the last run are closed.
        let listener = listen::bind(&app.state.config)?;
        let address = listener.local_addr()?;
        let drain = CancellationToken::new();
        tokio::spawn(signals(drain.clone(), reloader.clone())?);
        announce(address);
        app.serve(listener, drain).await;
        Ok(())
    });
    // A disk that is still full keeps the writer's thread: the process ends without it.
    runtime.shutdown_background();
    ran
}

fn signals(
    drain: CancellationToken,
    reloader: Reloader,
) -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    // Taken from here on: it must not end the server.
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        let mut has_requested = false;
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                _ = hangup.recv() => {
                    // A task of its own: a file that hangs must not keep the server from ending.
                    let reloader = reloader.clone();
                    tokio::spawn(async move { reloader.reload().await });
                    continue;
                }
            }
            if has_requested {
                end_process(1);
            }
            has_requested = true;
            drain.cancel();
        }
    })
}

/// Prints the URL of the server and a command to try.
fn announce(address: SocketAddr) {
    let line = format!(
        "turnwire is at http://{address} — open it, or try: curl -s -X POST http://{address}/sessions"
    );
    // A closed standard output is no reason not to serve.
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Ends the process after a disk failure: later writes could not be trusted.
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

//! The service that owns all sessions: it starts and drains them, and creates the handles.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use turnwire_event::port::{TurnProducer, TurnTracer};
use turnwire_event::{Clock, IdGenerator, Timestamp};
use turnwire_hub::{RingBudget, WakePump};
use turnwire_log::{LogWriter, Store};

use super::approvals::TurnApprovals;
use super::audit::AuditReader;
use super::canceller::TurnCanceller;
use super::jobs::JobController;
use super::live_sessions::LiveSessions;
use super::quotas::SessionQuotas;
use super::reader::SessionReader;
use super::status::ServiceStatus;
use super::submitter::TurnSubmitter;
use super::writer::SessionWriter;
use crate::clock::trusted::TrustedClock;
use crate::error::Error;
use crate::history::budget::HistoryCacheBudget;
use crate::lifecycle::session_core::SessionCore;
use crate::live::routing_policy::ActiveRoutingPolicy;
use crate::live::session::{DeletedCallback, SessionServices};
use crate::live::turn_runner::TurnRunner;
use crate::metering::quota::Quotas;
use crate::options::{Options, PRODUCER_STOP_WAIT};
use crate::registry::recovery::end_open_turns;
use crate::registry::resume_queues::resume_queues;
use crate::registry::retention;
use crate::registry::upkeep::{announce_routing_policy, start_timers};
use crate::store_read::ReadSlots;
use crate::submit::write_slots::WriteSlots;
use crate::turn::cancel::early_cancel::EarlyCancels;
use crate::worker::delegate::delegate_factory;

/// How long the terminals of turns may take beyond the waits that a drain adds up.
const TERMINAL_WAIT: Duration = Duration::from_secs(4);
/// How long a drain waits for the last commits: a full disk must not block the shutdown.
const COMMIT_WAIT: Duration = Duration::from_secs(5);

/// What the service is built from.
pub struct ServiceParts {
    /// The settings of all sessions.
    pub options: Options,
    /// The clock of timestamps.
    pub clock: Arc<dyn Clock>,
    /// The source of ids.
    pub id_generator: Arc<dyn IdGenerator>,
    /// The [`Store`] that `writer` appends to.
    pub store: Arc<dyn Store>,
    /// The [`LogWriter`] over `store`.
    pub writer: Arc<LogWriter>,
    /// The [`TurnProducer`] that runs the work of turns.
    pub producer: Arc<dyn TurnProducer>,
    /// Records the spans of turns; `None` if this server exports none.
    pub tracer: Option<Arc<dyn TurnTracer>>,
}

/// The owner of all sessions of a server. Its timers and its workers end when it and all its
/// handles are dropped.
#[derive(Clone)]
pub struct SessionService {
    core: Arc<SessionCore>,
}

/// A reference to a [`SessionService`] that does not keep it alive.
#[derive(Clone)]
pub struct WeakSessionService(Weak<SessionCore>);

impl WeakSessionService {
    /// Whether the service or one of its handles still exists.
    pub fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// The service, if it or one of its handles still exists.
    pub fn upgrade(&self) -> Option<SessionService> {
        self.0.upgrade().map(|core| SessionService { core })
    }
}

impl SessionService {
    /// Starts the service: finishes the deletions and ends the turns that a dead process left open,
    /// resumes the queues, and starts the timers.
    pub async fn start(parts: ServiceParts) -> Result<Self, Error> {
        let policy = ActiveRoutingPolicy::new(&parts.options.routing_policy_version);
        let trusted_clock = TrustedClock::load(
            parts.clock.clone(),
            parts.store.as_ref(),
            parts.options.retention,
        )?;
        trusted_clock.check();
        let services = Arc::new(SessionServices {
            trusted_clock,
            routing_policy: Mutex::new(policy),
            ring_budget: RingBudget::start(parts.options.rings_bytes),
            history_budget: HistoryCacheBudget::new(parts.options.history_cache_bytes),
            runner: TurnRunner::new(parts.producer, Handle::current(), &parts.options),
            reads: ReadSlots::new(&parts.options),
            writes: WriteSlots::new(&parts.options),
            quotas: Quotas::new(parts.options.principal_quota, parts.options.tenant_quota),
            options: parts.options,
            clock: parts.clock,
            id_generator: parts.id_generator,
            store: parts.store,
            writer: parts.writer,
            tracer: parts.tracer,
            pump: WakePump::start(),
            on_deleted: OnceLock::new(),
            delegates: OnceLock::new(),
            response_claims: Arc::default(),
            quarantined: Mutex::default(),
        });
        let core = Arc::new(SessionCore {
            services,
            registry: Arc::default(),
            idempotency: Arc::default(),
            early_cancels: EarlyCancels::default(),
            deletions: Arc::default(),
        });
        core.finish_deletions().await?;
        core.delete_unnamed_workers().await?;
        let ended = end_open_turns(&core.services, &core.registry).await?;
        if ended > 0 {
            tracing::info!(turns = ended, "ended turns of the last run");
        }
        let _ = core.services.delegates.set(delegate_factory(&core));
        resume_queues(&core.services, &core.registry).await?;
        start_timers(&core.services, &core.registry);
        Ok(Self { core })
    }

    /// Trusts `time`, which the operator has confirmed, for the expiry of stored data. The wall clock
    /// must have reached it.
    pub fn confirm_time(&self, time: Timestamp) {
        retention::confirm_time(&self.core.services, time);
    }

    /// The [`SessionReader`], which reads rows, messages and events.
    pub fn reader(&self) -> SessionReader {
        SessionReader::new(&self.core)
    }

    /// The [`SessionWriter`], which creates, deletes and annotates sessions.
    pub fn writer(&self) -> SessionWriter {
        SessionWriter::new(&self.core)
    }

    /// The [`LiveSessions`], which opens sessions for streams.
    pub fn live_sessions(&self) -> LiveSessions {
        LiveSessions::new(&self.core)
    }

    /// The [`SessionQuotas`], which count streams and replays.
    pub fn quotas(&self) -> SessionQuotas {
        SessionQuotas::new(&self.core)
    }

    /// The [`TurnSubmitter`], which submits turns.
    pub fn submitter(&self) -> TurnSubmitter {
        TurnSubmitter::new(&self.core)
    }

    /// The [`TurnCanceller`], which cancels turns.
    pub fn canceller(&self) -> TurnCanceller {
        TurnCanceller::new(&self.core)
    }

    /// The [`TurnApprovals`], which reads and decides the approvals of paused turns.
    pub fn approvals(&self) -> TurnApprovals {
        TurnApprovals::new(&self.core)
    }

    /// The [`JobController`], which lists, pauses and resumes the jobs of schedulers.
    pub fn jobs(&self) -> JobController {
        JobController::new(&self.core)
    }

    /// The [`AuditReader`], which reads what was recorded of acts.
    pub fn audit(&self) -> AuditReader {
        AuditReader::new(&self.core)
    }

    /// The [`ServiceStatus`], for health checks.
    pub fn status(&self) -> ServiceStatus {
        ServiceStatus::new(&self.core)
    }

    /// A reference that does not keep the service alive.
    pub fn downgrade(&self) -> WeakSessionService {
        WeakSessionService(Arc::downgrade(&self.core))
    }

    /// Calls the [`DeletedCallback`] for each session that is deleted from now on, workers included, once its
    /// rows are removed. Only the first callback is used.
    pub fn on_deleted(&self, callback: DeletedCallback) {
        let _ = self.core.services.on_deleted.set(callback);
    }

    /// Puts another routing policy in force (S3-104). New sessions start with it, and sessions with
    /// a running turn or a watcher get one event, after the disk has space again if it is full.
    /// Other sessions read it when their next turn is routed. Returns the number of events.
    pub fn reload_routing_policy(&self, version: &str) -> usize {
        version.clone_into(&mut self.core.services.routing_policy.lock().version);
        if self.core.services.is_storage_full() {
            tracing::warn!("the disk is full: the routing policy is announced to sessions later");
        }
        announce_routing_policy(&self.core.services, &self.core.registry)
    }

    /// Refuses new turns from now on. Queued turns stay in the store and run after the next start.
    pub fn refuse_turns(&self) {
        self.core.services.runner.start_draining();
    }

    /// Shuts down: refuses new turns, lets running ones end by themselves within `window`, then
    /// ends them. Everything is written on return.
    pub async fn drain(&self, window: Duration) {
        self.refuse_turns();
        let tasks = &self.core.services.runner.turn_tasks;
        tasks.close();
        if tokio::time::timeout(window, tasks.wait()).await.is_err() {
            for live in self.core.registry.running() {
                if let Some(running) = live.slot.lock().running.as_ref() {
                    running.stop.cancel();
                }
            }
            let options = &self.core.services.options;
            let stop_wait = options.stop_wait + options.extra_worker_wait(0) + PRODUCER_STOP_WAIT;
            let _ = tokio::time::timeout(stop_wait + TERMINAL_WAIT, tasks.wait()).await;
        }
        let all_committed = async {
            for live in self.core.registry.all() {
                let _ = live.sequencer.all_committed().await;
            }
        };
        let _ = tokio::time::timeout(COMMIT_WAIT, all_committed).await;
    }
}

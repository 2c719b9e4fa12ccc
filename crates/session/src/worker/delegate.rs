//! Workers: sessions that a turn gives work to.
//!
//! ```text
//!   parent's turn                                      worker's session
//!   reserve ─▶ delegate.started (durable) ─▶ run ──▶ session.created, turn.started   seq from 1
//!      the future is dropped, or takes too long ───▶ turn.cancel_requested{system}
//!      ward: the parent's terminal waits ◀───────── terminal, durable ──▶ WorkerEnd
//! ```
//! A worker is a session like any other: its own lock, log and agent, open to whoever owns it. It
//! does not outlive the turn that gave it its work, whatever becomes of that turn.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use turnwire_event::code::{FailureMode, OnBusy, OnDisconnect, Origin, ReceiptKind};
use turnwire_event::port::{BoxFuture, Delegate, NoWorker, Task, Ward, Wards, WorkerEnd};
use turnwire_event::row::SessionRow;
use turnwire_event::{ContentBlock, EpisodeId, SessionId, ToolUseId, TurnId};

use crate::cancel::request::CancelOutcome;
use crate::lifecycle::core::Sessions;
use crate::live::session::{DelegateFactory, LiveSession};
use crate::submit::request::{DisconnectScope, SubmitRequest};
use crate::worker::worker_run::{WorkerGuard, WorkerRun, watched};

/// Why a worker is cancelled that takes too long.
const DELEGATE_TIMEOUT: &str = "delegate_timeout";

impl DelegateFactory for Sessions {
    fn delegate(
        self: Arc<Self>,
        live: &Arc<LiveSession>,
        turn: TurnId,
        submit: &SubmitRequest,
        wards: Arc<dyn Wards>,
    ) -> Arc<dyn Delegate> {
        Arc::new(TurnDelegate(Arc::new(WorkerContext {
            sessions: Arc::downgrade(&self),
            parent: live.clone(),
            turn,
            submit: SubmitRequest {
                content: Vec::new(),
                on_disconnect: OnDisconnect::Continue,
                disconnect_grace_ms: 0,
                on_busy: OnBusy::Reject,
                metadata: serde_json::Map::new(),
                bound: DisconnectScope::Session,
                origin: Origin::Chat,
                dm_type: None,
                ..submit.clone()
            },
            wards,
            crowd: live.crowd.lock().take().unwrap_or_default(),
            reserved: Mutex::default(),
        })))
    }
}

/// How a turn delegates.
struct TurnDelegate(Arc<WorkerContext>);

/// On what terms workers work for a turn.
struct WorkerContext {
    sessions: Weak<Sessions>,
    parent: Arc<LiveSession>,
    turn: TurnId,
    /// What a worker's turn is submitted with, but for its task.
    submit: SubmitRequest,
    wards: Arc<dyn Wards>,
    /// How many workers there were in all, at every level, under the turn at the top.
    crowd: Arc<AtomicUsize>,
    reserved: Mutex<WorkerReservations>,
}

/// The ids that were given out, and what became of them.
#[derive(Default)]
struct WorkerReservations {
    /// How many there were.
    count: usize,
    /// Those that are not used yet: an id makes one session.
    unused: HashSet<SessionId>,
    /// The workers that are waited for, or should have been.
    jobs: HashMap<SessionId, WorkerRun>,
}

impl Delegate for TurnDelegate {
    fn reserve(&self) -> Result<SessionId, NoWorker> {
        let terms = &self.0;
        let house = &terms.parent.house;
        if terms.parent.depth >= house.options.worker_depth_max {
            return Err(NoWorker::TooDeep);
        }
        let sessions = terms.sessions.upgrade().ok_or(NoWorker::Unavailable)?;
        if sessions.storage_full() {
            return Err(NoWorker::Unavailable);
        }
        let mut reserved = terms.reserved.lock();
        if reserved.count >= house.options.workers_max {
            return Err(NoWorker::TooMany);
        }
        let most = house.options.workers_all_max;
        let more = |count| (count < most).then_some(count + 1);
        let counted = terms.crowd.fetch_update(Relaxed, Relaxed, more);
        counted.map_err(|_| NoWorker::TooMany)?;
        reserved.count += 1;
        let id = SessionId(house.mint.ulid());
        reserved.unused.insert(id);
        Ok(id)
    }

    fn run(&self, task: Task) -> BoxFuture<'static, WorkerEnd> {
        let terms = self.0.clone();
        Box::pin(async move { terms.employ(task).await })
    }

    fn left(&self, tool_use_id: ToolUseId) -> BoxFuture<'static, Vec<SessionId>> {
        let terms = self.0.clone();
        Box::pin(async move { terms.left(tool_use_id).await })
    }
}

impl WorkerContext {
    async fn employ(&self, task: Task) -> WorkerEnd {
        let (id, limit) = (task.worker_session_id, task.limit);
        let (begun, job) = oneshot::channel::<WorkerRun>();
        // Before it begins: a turn that is to stop takes nobody on.
        let taken = self.stop().and_then(|stop| {
            let ward = Ward {
                kind: ReceiptKind::Worker,
                id: id.to_string().into(),
                tool_use_id: task.tool_use_id,
                ended: Box::pin(watched(job, stop)),
            };
            self.wards.take(ward).ok()
        });
        if taken.is_none() {
            return WorkerEnd::Failed(FailureMode::CancelledByUser);
        }
        let job = match self.begin_once(task) {
            Ok(job) => job,
            Err(mode) => return WorkerEnd::Failed(mode),
        };
        let watch = WorkerGuard(job.clone());
        let _ = begun.send(job);
        let job = &watch.0;
        let mut late = false;
        if timeout(limit, job.over.cancelled()).await.is_err() {
            late = matches!(job.stop(DELEGATE_TIMEOUT), CancelOutcome::At(_));
        }
        let end = job.ended(late).await;
        self.reserved.lock().jobs.remove(&id);
        end
    }

    /// Told when the turn must stop; none if it has ended or must stop already.
    fn stop(&self) -> Option<CancellationToken> {
        let slot = self.parent.slot.lock();
        let running = slot.running.as_ref().filter(|turn| turn.id == self.turn)?;
        (!running.stop.is_cancelled()).then(|| running.stop.clone())
    }

    /// Makes the session of an id that was given out. In one step: whoever looks for it finds
    /// either that it can never be, or what there is to wait for.
    fn begin_once(&self, task: Task) -> Result<WorkerRun, FailureMode> {
        let id = task.worker_session_id;
        let mut reserved = self.reserved.lock();
        if !reserved.unused.remove(&id) {
            tracing::error!(session = %id, "a worker was to run that was not reserved");
            return Err(FailureMode::Error);
        }
        let job = self.begin(task)?;
        reserved.jobs.insert(id, job.clone());
        Ok(job)
    }

    async fn left(&self, tool_use_id: ToolUseId) -> Vec<SessionId> {
        let open = self.parent.open_turn(self.turn);
        let open = open.into_iter().flat_map(|open| open.delegates);
        let left = open.filter(|worker| worker.tool_use_id == tool_use_id);
        let left: Vec<_> = left.map(|worker| worker.worker_session_id).collect();
        for id in &left {
            let job = {
                let mut reserved = self.reserved.lock();
                // Taken out, it can never begin.
                reserved.unused.remove(id);
                reserved.jobs.remove(id)
            };
            if let Some(job) = job {
                let _ = job.settled().await;
            }
        }
        left
    }

    /// Makes the session with its turn.
    fn begin(&self, task: Task) -> Result<WorkerRun, FailureMode> {
        let sessions = self.sessions.upgrade().ok_or(FailureMode::Error)?;
        if self.stop().is_none() {
            return Err(FailureMode::CancelledByUser);
        }
        let submit = SubmitRequest {
            content: vec![ContentBlock::text(&task.task)],
            trace: task.trace.as_deref().cloned(),
            ..self.submit.clone()
        };
        let row = self.row(task);
        let founded = sessions
            .unwritten(row, self.parent.depth + 1)
            .and_then(|blank| {
                *blank.0.crowd.lock() = Some(self.crowd.clone());
                sessions.found_in(blank, submit, Box::new(|_| Vec::new()))
            });
        let (live, taken) = founded.map_err(|error| {
            tracing::warn!(session = %self.parent.id, %error, "a worker could not be made");
            FailureMode::Error
        })?;
        // Its parent was deleted while it was made: whoever did that may not have found it.
        if self.parent.ring.closed().is_some() {
            drop(sessions.erase(live));
            return Err(FailureMode::Error);
        }
        let over = live.over(taken.turn);
        Ok(WorkerRun {
            live,
            turn: taken.turn,
            over,
        })
    }

    fn row(&self, task: Task) -> SessionRow {
        let house = &self.parent.house;
        let now = house.clock.now();
        let workspace_path = |transcript: &crate::live::transcript::Transcript, _, _| {
            transcript.row.workspace_path.clone()
        };
        SessionRow {
            id: task.worker_session_id,
            owner: self.parent.owner.clone(),
            parent: Some(self.parent.id),
            agent: Some(task.agent),
            workspace_path: self.parent.ring.look(workspace_path),
            metadata: serde_json::Map::new(),
            episode_id: EpisodeId(house.mint.ulid()),
            active_model: house.options.default_model.clone(),
            routing_policy_version: house.policy.lock().version().to_owned(),
            cost_usd: 0.0,
            turn_count: 0,
            created_at: now,
            updated_at: now,
        }
    }
}

//! The [`WorkerLauncher`] of a turn: it starts workers, sessions that the turn gives a task to.
//!
//! ```text
//!   parent's turn                                      worker's session
//!   reserve ─▶ delegate.started (durable) ─▶ run ──▶ session.created, turn.started   seq from 1
//!      the future is dropped, or times out ────────▶ turn.cancel_requested{system}
//!      child task: the parent's terminal waits ◀──── terminal, durable ──▶ WorkerEnd
//! ```
//! A worker is a session like any other: its own slot, log and agent, open to its owner. It never
//! outlives the turn that delegated to it.

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use turnwire_event::code::{FailureMode, ReceiptKind};
use turnwire_event::port::{
    BoxFuture, ChildTask, ChildTaskRegistry, WorkerEnd, WorkerLauncher, WorkerRefusal, WorkerTask,
};
use turnwire_event::row::SessionRow;
use turnwire_event::{ContentBlock, Owner, SessionId, ToolUseId, TurnId};
use turnwire_fair::FairSlot;

use super::worker_run::{WorkerGuard, WorkerRun, watch_worker};
use crate::lifecycle::session_core::SessionCore;
use crate::live::session::{DelegateFactory, LiveSession};
use crate::submit::request::SubmitRequest;
use crate::turn::cancel::request::CancelOutcome;

/// The cancel reason of a worker that takes too long.
const DELEGATE_TIMEOUT: &str = "delegate_timeout";

/// The factory of the service behind `core`.
pub(crate) fn delegate_factory(core: &Arc<SessionCore>) -> DelegateFactory {
    let core = Arc::downgrade(core);
    Box::new(move |parent, turn, request, children| {
        let worker_count = parent.shared_worker_count.lock().take();
        Arc::new(TurnDelegate(Arc::new(WorkerContext {
            core: core.clone(),
            parent: parent.clone(),
            turn,
            request: SubmitRequest {
                wire_version: request.wire_version.clone(),
                location: request.location.clone(),
                ..SubmitRequest::unattended(request.locale.clone())
            },
            children,
            worker_count: worker_count.unwrap_or_default(),
            reservations: Mutex::default(),
        })))
    })
}

/// The [`WorkerLauncher`] of one turn.
struct TurnDelegate(Arc<WorkerContext>);

/// What the workers of one turn share.
struct WorkerContext {
    core: Weak<SessionCore>,
    parent: Arc<LiveSession>,
    turn: TurnId,
    /// The request of a worker's turn, without its content.
    request: SubmitRequest,
    children: Arc<dyn ChildTaskRegistry>,
    /// Workers started at every level under the turn of a person.
    worker_count: Arc<AtomicUsize>,
    reservations: Mutex<WorkerReservations>,
}

/// The session ids that the turn reserved for workers.
#[derive(Default)]
struct WorkerReservations {
    /// All reservations so far.
    count: usize,
    /// Ids that no worker was started with, each with the permit of its worker's turn: an id starts
    /// one worker.
    unused: HashMap<SessionId, FairSlot<Owner>>,
    /// The workers whose end nobody has read yet.
    running: HashMap<SessionId, WorkerRun>,
}

impl WorkerLauncher for TurnDelegate {
    fn reserve(&self) -> Result<SessionId, WorkerRefusal> {
        let context = &self.0;
        let services = &context.parent.services;
        if context.parent.depth >= services.options.worker_depth_max {
            return Err(WorkerRefusal::TooDeep);
        }
        let core = context.core.upgrade().ok_or(WorkerRefusal::Unavailable)?;
        if core.services.check_storage().is_err() {
            return Err(WorkerRefusal::Unavailable);
        }
        let mut reservations = context.reservations.lock();
        if reservations.count >= services.options.workers_max {
            return Err(WorkerRefusal::TooMany);
        }
        let permit = services.runner.workers.try_acquire(&context.parent.owner);
        let permit = permit.map_err(|_| WorkerRefusal::Unavailable)?;
        let max = services.options.workers_all_max;
        let increment = |count| (count < max).then_some(count + 1);
        let counted = context
            .worker_count
            .fetch_update(Relaxed, Relaxed, increment);
        counted.map_err(|_| WorkerRefusal::TooMany)?;
        reservations.count += 1;
        let id = SessionId(services.id_generator.ulid());
        reservations.unused.insert(id, permit);
        Ok(id)
    }

    fn run(&self, task: WorkerTask) -> BoxFuture<'static, WorkerEnd> {
        let context = self.0.clone();
        Box::pin(async move { context.run_worker(task).await })
    }

    fn left(&self, tool_use_id: ToolUseId) -> BoxFuture<'static, Vec<SessionId>> {
        let context = self.0.clone();
        Box::pin(async move { context.settle_workers(tool_use_id).await })
    }
}

impl WorkerContext {
    async fn run_worker(&self, task: WorkerTask) -> WorkerEnd {
        let (id, limit) = (task.worker_session_id, task.limit);
        let (started, worker) = oneshot::channel::<WorkerRun>();
        // Registered before it starts: a turn that stops starts no worker.
        let registered = self.parent_stop().and_then(|parent_stop| {
            let child = ChildTask {
                kind: ReceiptKind::Worker,
                id: id.to_string().into(),
                tool_use_id: task.tool_use_id,
                ended: Box::pin(watch_worker(worker, parent_stop)),
            };
            self.children.track(child).ok()
        });
        if registered.is_none() {
            return WorkerEnd::Failed(FailureMode::CancelledByUser);
        }
        let worker = match self.start_reserved(task) {
            Ok(worker) => worker,
            Err(mode) => return WorkerEnd::Failed(mode),
        };
        let guard = WorkerGuard(worker.clone());
        let _ = started.send(worker);
        let worker = &guard.0;
        let mut timed_out = false;
        if timeout(limit, worker.ended.cancelled()).await.is_err() {
            let outcome = worker.stop(DELEGATE_TIMEOUT);
            timed_out = matches!(outcome, CancelOutcome::Requested(_));
        }
        let end = worker.end(timed_out).await;
        self.reservations.lock().running.remove(&id);
        end
    }

    /// The stop token of the parent's turn; `None` if the turn has ended or is stopping.
    fn parent_stop(&self) -> Option<CancellationToken> {
        let slot = self.parent.slot.lock();
        let running = slot.running_turn(self.turn)?;
        (!running.stop.is_cancelled()).then(|| running.stop.clone())
    }

    /// Starts the worker of a reserved id, under the lock of the reservations: a caller of
    /// [`settle_workers`](Self::settle_workers) finds either an id that can never start, or a
    /// worker to wait for.
    fn start_reserved(&self, task: WorkerTask) -> Result<WorkerRun, FailureMode> {
        let id = task.worker_session_id;
        let mut reservations = self.reservations.lock();
        let Some(permit) = reservations.unused.remove(&id) else {
            tracing::error!(session = %id, "a worker was started whose id is not reserved");
            return Err(FailureMode::Error);
        };
        let worker = self.start(task, permit)?;
        reservations.running.insert(id, worker.clone());
        Ok(worker)
    }

    /// Waits for the open workers of a tool call that was dropped, and returns their ids.
    async fn settle_workers(&self, tool_use_id: ToolUseId) -> Vec<SessionId> {
        let open = self.parent.open_turn(self.turn);
        let open = open.into_iter().flat_map(|open| open.delegates);
        let of_tool = open.filter(|worker| worker.tool_use_id == tool_use_id);
        let ids: Vec<_> = of_tool.map(|worker| worker.worker_session_id).collect();
        for id in &ids {
            let worker = {
                let mut reservations = self.reservations.lock();
                // Removed from `unused`, the worker can never start.
                reservations.unused.remove(id);
                reservations.running.remove(id)
            };
            if let Some(worker) = worker {
                let _ = worker.wait_until_durable().await;
            }
        }
        ids
    }

    /// Creates the worker's session with its turn.
    fn start(&self, task: WorkerTask, permit: FairSlot<Owner>) -> Result<WorkerRun, FailureMode> {
        let core = self.core.upgrade().ok_or(FailureMode::Error)?;
        if self.parent_stop().is_none() {
            return Err(FailureMode::CancelledByUser);
        }
        let request = SubmitRequest {
            content: vec![ContentBlock::text(&task.task)],
            trace: task.trace.as_deref().cloned(),
            ..self.request.clone()
        };
        let row = self.session_row(task);
        let created = core
            .prepare(row, self.parent.depth + 1)
            .and_then(|prepared| {
                *prepared.0.shared_worker_count.lock() = Some(self.worker_count.clone());
                core.start_prepared(prepared, request, None, permit.into())
            });
        let (live, accepted) = created.map_err(|error| {
            tracing::warn!(session = %self.parent.id, %error, "could not create a worker");
            FailureMode::Error
        })?;
        // The parent was deleted meanwhile, and its deletion may not have found this worker.
        if self.parent.ring.close_reason().is_some() {
            drop(core.start_deletion(live));
            return Err(FailureMode::Error);
        }
        let ended = live.turn_ended(accepted.turn);
        Ok(WorkerRun {
            live,
            turn: accepted.turn,
            ended,
        })
    }

    fn session_row(&self, task: WorkerTask) -> SessionRow {
        let parent = &self.parent;
        SessionRow {
            parent: Some(parent.id),
            agent: Some(task.agent),
            workspace_path: parent.with_row(|row| row.workspace_path.clone()),
            ..parent
                .services
                .new_session(task.worker_session_id, &parent.owner)
        }
    }
}

//! The [`WorkerLauncher`] of a turn: it starts workers, sessions that the turn gives a task to.
//!
//! ```text
//!   parent's turn                                      worker's session
//!   create ────────────────────────────────────────▶ session.created, durable       seq from 1
//!   delegate.started, durable ─▶ run ──────────────▶ turn.started
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
use turnwire_event::body::delegate::{DelegateEnd, DelegateFailed};
use turnwire_event::code::{FailureMode, ReceiptKind};
use turnwire_event::port::{
    BoxFuture, ChildTask, ChildTaskRegistry, WorkerEnd, WorkerLauncher, WorkerRefusal, WorkerTask,
};
use turnwire_event::row::SessionRow;
use turnwire_event::{ContentBlock, Owner, Seq, SessionId, ToolUseId, TurnId};
use turnwire_fair::FairSlot;

use super::worker_run::{WorkerGuard, WorkerRun, watch_worker};
use crate::lifecycle::session_core::SessionCore;
use crate::live::child_tasks::ChildTasks;
use crate::live::session::{DelegateFactory, LiveSession};
use crate::read::worker_result::DELEGATE_TIMEOUT;
use crate::submit::request::SubmitRequest;
use crate::turn::queue::accept::{AcceptanceRows, accept_first_turn};

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
    children: Arc<ChildTasks>,
    /// Workers started at every level under the turn of a person.
    worker_count: Arc<AtomicUsize>,
    reservations: Mutex<WorkerReservations>,
}

/// The workers that the turn created.
#[derive(Default)]
struct WorkerReservations {
    /// All workers so far.
    count: usize,
    /// Workers whose task has not begun: each id starts one task.
    unused: HashMap<SessionId, CreatedWorker>,
    /// The workers whose end nobody has read yet.
    running: HashMap<SessionId, WorkerRun>,
}

/// The session of a worker whose task has not begun. When dropped, turns of others may start in it.
struct CreatedWorker {
    live: Arc<LiveSession>,
    /// The permit of the worker's turn; `None` once the turn has it.
    permit: Option<FairSlot<Owner>>,
}

impl Drop for CreatedWorker {
    fn drop(&mut self) {
        if self.live.slot.lock().first_turn.take().is_some() {
            self.live.start_next_turn();
        }
    }
}

/// Discards a worker unless it is disarmed: the future of its creation was dropped, or the session
/// could not be written.
struct CreationGuard<'a>(Option<(&'a WorkerContext, SessionId)>);

impl Drop for CreationGuard<'_> {
    fn drop(&mut self) {
        if let Some((context, id)) = self.0 {
            context.discard(id);
        }
    }
}

impl WorkerLauncher for TurnDelegate {
    fn create(&self, agent: &str) -> BoxFuture<'static, Result<SessionId, WorkerRefusal>> {
        let (context, agent) = (self.0.clone(), agent.to_owned());
        Box::pin(async move {
            let (live, created) = context.create_session(agent)?;
            let mut guard = CreationGuard(Some((&context, live.id)));
            let durable = live.committed(created).await;
            durable.map_err(|_| WorkerRefusal::Unavailable)?;
            guard.0 = None;
            Ok(live.id)
        })
    }

    fn discard(&self, worker: SessionId) {
        self.0.discard(worker);
    }

    fn run(&self, task: WorkerTask) -> BoxFuture<'static, WorkerEnd> {
        let context = self.0.clone();
        Box::pin(async move { context.run_worker(task).await })
    }

    fn left(
        &self,
        tool_use_id: ToolUseId,
        stopped: FailureMode,
    ) -> BoxFuture<'static, Vec<DelegateEnd>> {
        let context = self.0.clone();
        Box::pin(async move { context.settle_workers(tool_use_id, stopped).await })
    }
}

impl WorkerContext {
    /// Creates the session of a worker, within the limits. Returns it with the number of the event
    /// that creates it.
    fn create_session(&self, agent: String) -> Result<(Arc<LiveSession>, Seq), WorkerRefusal> {
        let services = &self.parent.services;
        if self.parent.depth >= services.options.worker_depth_max {
            return Err(WorkerRefusal::TooDeep);
        }
        let core = self.core.upgrade().ok_or(WorkerRefusal::Unavailable)?;
        if core.services.check_storage().is_err() {
            return Err(WorkerRefusal::Unavailable);
        }
        let mut reservations = self.reservations.lock();
        if reservations.count >= services.options.workers_max {
            return Err(WorkerRefusal::TooMany);
        }
        let permit = services.runner.workers.try_acquire(&self.parent.owner);
        let permit = permit.map_err(|_| WorkerRefusal::Unavailable)?;
        let max = services.options.workers_all_max;
        let increment = |count| (count < max).then_some(count + 1);
        let counted = self.worker_count.fetch_update(Relaxed, Relaxed, increment);
        counted.map_err(|_| WorkerRefusal::TooMany)?;
        let created = core.create_worker(self.session_row(agent), self.parent.depth + 1);
        let (live, created) = created.map_err(|error| {
            tracing::warn!(session = %self.parent.id, %error, "could not create a worker");
            WorkerRefusal::Unavailable
        })?;
        // The parent was deleted meanwhile, and its deletion may not have found this worker.
        if self.parent.ring.close_reason().is_some() {
            drop(core.start_deletion(live));
            return Err(WorkerRefusal::Unavailable);
        }
        reservations.count += 1;
        let worker = CreatedWorker {
            live: live.clone(),
            permit: Some(permit),
        };
        reservations.unused.insert(live.id, worker);
        Ok((live, created))
    }

    /// Deletes a worker whose task has not begun.
    fn discard(&self, id: SessionId) {
        let discarded = self.reservations.lock().unused.remove(&id);
        if let (Some(worker), Some(core)) = (discarded, self.core.upgrade()) {
            drop(core.start_deletion(worker.live.clone()));
        }
    }

    async fn run_worker(&self, task: WorkerTask) -> WorkerEnd {
        let (id, limit) = (task.worker_session_id, task.limit);
        let (started, worker) = oneshot::channel::<WorkerRun>();
        // Registered before it starts: a turn that stops starts no worker.
        let registered = self.parent_stop().and_then(|parent_stop| {
            let child = ChildTask {
                kind: ReceiptKind::Worker,
                id: id.to_string().into(),
                tool_use_id: task.tool_use_id,
                ended: Box::pin(watch_worker(worker, parent_stop, self.children.clone())),
            };
            self.children.track(child).ok()
        });
        if registered.is_none() {
            return WorkerEnd::Failed(FailureMode::CancelledByUser);
        }
        let worker = match self.start_created(task) {
            Ok(worker) => worker,
            Err(mode) => return WorkerEnd::Failed(mode),
        };
        let guard = WorkerGuard(worker.clone());
        let _ = started.send(worker);
        let worker = &guard.0;
        if timeout(limit, worker.ended.cancelled()).await.is_err() {
            worker.stop(DELEGATE_TIMEOUT);
        }
        // Recorded first: a caller that does not find the worker below finds its end.
        let end = worker.end(&self.children).await;
        self.reservations.lock().running.remove(&id);
        end
    }

    /// The stop token of the parent's turn; `None` if the turn has ended or is stopping.
    fn parent_stop(&self) -> Option<CancellationToken> {
        let slot = self.parent.slot.lock();
        let running = slot.running_turn(self.turn)?;
        (!running.stop.is_cancelled()).then(|| running.stop.clone())
    }

    /// Starts the task of a created worker, under the lock of the reservations: a caller of
    /// [`settle_workers`](Self::settle_workers) finds either a worker that can never start, or one
    /// to wait for.
    fn start_created(&self, task: WorkerTask) -> Result<WorkerRun, FailureMode> {
        let id = task.worker_session_id;
        let mut reservations = self.reservations.lock();
        let Some(created) = reservations.unused.remove(&id) else {
            tracing::error!(session = %id, "a task was started in a session that is no new worker");
            return Err(FailureMode::Error);
        };
        let worker = self.start(task, created)?;
        reservations.running.insert(id, worker.clone());
        Ok(worker)
    }

    /// Waits for the open workers of a tool call that was dropped, and returns their ends; those
    /// that did not end by themselves have failed with `stopped`.
    async fn settle_workers(
        &self,
        tool_use_id: ToolUseId,
        stopped: FailureMode,
    ) -> Vec<DelegateEnd> {
        let open = self.parent.open_turn(self.turn);
        let open = open.into_iter().flat_map(|open| open.delegates);
        let of_tool = open.filter(|worker| worker.tool_use_id == tool_use_id);
        let ids: Vec<_> = of_tool.map(|worker| worker.worker_session_id).collect();
        for id in &ids {
            let worker = {
                let mut reservations = self.reservations.lock();
                // Removed from `unused`, the task can never start.
                reservations.unused.remove(id);
                reservations.running.remove(id)
            };
            if let Some(worker) = worker {
                worker.end(&self.children).await;
            }
        }
        let ends = self.children.worker_ends();
        let end_of = |id| {
            let end = ends.iter().find(|end| end.worker() == id).cloned();
            end.unwrap_or(DelegateEnd::Failed(DelegateFailed {
                worker_session_id: id,
                failure_mode: stopped,
            }))
        };
        ids.into_iter().map(end_of).collect()
    }

    /// Starts the turn of a created worker.
    fn start(
        &self,
        task: WorkerTask,
        mut created: CreatedWorker,
    ) -> Result<WorkerRun, FailureMode> {
        if self.parent_stop().is_none() {
            return Err(FailureMode::CancelledByUser);
        }
        let request = SubmitRequest {
            content: vec![ContentBlock::text(&task.task)],
            trace: task.trace.clone(),
            propagation: task.propagation.clone(),
            ..self.request.clone()
        };
        let live = created.live.clone();
        let permit = created.permit.take().ok_or(FailureMode::Error)?;
        *live.shared_worker_count.lock() = Some(self.worker_count.clone());
        let accepted = accept_first_turn(
            &live,
            request,
            AcceptanceRows::default(),
            (None, permit.into()),
            || {},
        );
        let accepted = accepted.map_err(|error| {
            tracing::warn!(session = %live.id, %error, "could not start a worker");
            FailureMode::Error
        })?;
        let ended = live.turn_ended(accepted.turn);
        Ok(WorkerRun {
            live,
            turn: accepted.turn,
            detail: task.detail,
            ended,
        })
    }

    fn session_row(&self, agent: String) -> SessionRow {
        let parent = &self.parent;
        let id = SessionId(parent.services.id_generator.ulid());
        SessionRow {
            parent: Some(parent.id),
            agent: Some(agent),
            workspace_path: parent.with_row(|row| row.workspace_path.clone()),
            ..parent.services.new_session(id, &parent.owner)
        }
    }
}

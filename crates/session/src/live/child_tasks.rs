//! The child tasks of a turn: processes and workers, which do not end when the producer's future is
//! dropped; and the parts of the producer's own work that run on tasks of their own.
//!
//! ```text
//!   take ──▶ running ──ends by itself──▶ forgotten            before a cancel
//!              │
//!              ├──ends──▶ recorded, with outcome and time     after the cancel request
//!              └──still running when the turn ends──▶ recorded as discarded
//! ```
//! A task of its own watches each child, so a turn without children pays nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::TaskTracker;
use turnwire_event::body::delegate::DelegateEnd;
use turnwire_event::body::turn::ReceiptLine;
use turnwire_event::code::{ReceiptKind, StopOutcome};
use turnwire_event::fold::{OpenTurn, StopSummary, StoppedTask};
use turnwire_event::port::{ChildTask, ChildTaskId, ChildTaskRegistry, EmitRefusal, TaskPermit};
use turnwire_event::{Clock, Timestamp, ToolUseId, metric};

/// Children of one turn at once: far more than its tools may start, and each is a small task.
const CHILDREN_MAX: usize = 1_024;

/// The [`ChildTaskRegistry`] of one turn: its processes and workers, and its producer's parts.
pub(crate) struct ChildTasks {
    state: Mutex<ChildTaskState>,
    /// Notified whenever a child has ended.
    child_ended: Notify,
    /// The parts of the producer's work that run on tasks of their own.
    parts: TaskTracker,
    runtime: Handle,
    clock: Arc<dyn Clock>,
    this: Weak<Self>,
}

#[derive(Default)]
struct ChildTaskState {
    next_number: u64,
    running: BTreeMap<u64, RunningChild>,
    finished: Vec<FinishedChild>,
    /// The ends of the workers that ended by themselves, reported or not. At most one for each
    /// worker of the turn.
    worker_ends: Vec<DelegateEnd>,
    /// A cancel is being requested: every end is recorded, and no child is accepted.
    recording: bool,
    /// The producer is done: no child is accepted.
    closed: bool,
}

struct RunningChild {
    kind: ReceiptKind,
    id: ChildTaskId,
    tool_use_id: ToolUseId,
    /// The task that watches the child; `None` until it is spawned.
    watch_task: Option<AbortHandle>,
}

impl RunningChild {
    /// The record for a receipt; `None` if the child never started.
    fn finish(self, outcome: StopOutcome, at: Timestamp) -> Option<FinishedChild> {
        Some(FinishedChild {
            kind: self.kind,
            id: self.id.get()?.to_owned(),
            tool_use_id: self.tool_use_id,
            outcome,
            at,
        })
    }
}

/// How and when a child ended.
pub(crate) struct FinishedChild {
    kind: ReceiptKind,
    id: String,
    tool_use_id: ToolUseId,
    outcome: StopOutcome,
    at: Timestamp,
}

impl FinishedChild {
    /// True if the child's end is in an event before the cancel request: only the task that watches
    /// the child ended later.
    fn was_reported_before_cancel(&self, open: &OpenTurn) -> bool {
        match self.kind {
            ReceiptKind::Worker => {
                let mut running = open.delegates.iter();
                !running.any(|worker| worker.worker_session_id.to_string() == self.id)
            }
            // The tool that ran it has ended.
            _ => {
                self.outcome == StopOutcome::Finished && open.tool_name(self.tool_use_id).is_empty()
            }
        }
    }
}

/// How the producer of a turn and its children ended.
pub(crate) struct StopReport {
    pub(crate) producer_ended: Timestamp,
    /// True if the producer did not end within its time, and may still run.
    pub(crate) producer_left_behind: bool,
    pub(crate) children: Vec<FinishedChild>,
}

impl StopReport {
    /// The [`ReceiptLine`]s of a cancel, with times since `requested`.
    pub(crate) fn stops(&self, open: &OpenTurn, requested: Timestamp) -> StopSummary {
        // The receipt already has the ends that the producer emitted after the request.
        let is_in_receipt = |child: &FinishedChild| {
            let mut lines = open.finished.iter();
            lines.any(|line| line.kind == child.kind && line.id == child.id)
        };
        let children = self.children.iter();
        let children = children
            .filter(|child| !is_in_receipt(child) && !child.was_reported_before_cancel(open));
        StopSummary {
            let_go_ms: self.producer_ended.ms_since(requested),
            left_behind: self.producer_left_behind,
            child_tasks: children
                .map(|child| StoppedTask {
                    tool_use_id: child.tool_use_id,
                    line: ReceiptLine {
                        kind: child.kind,
                        id: child.id.clone(),
                        name: open.tool_name(child.tool_use_id),
                        outcome: child.outcome,
                        ms: child.at.ms_since(requested),
                    },
                })
                .collect(),
        }
    }
}

impl ChildTasks {
    pub(crate) fn new(runtime: Handle, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            state: Mutex::default(),
            child_ended: Notify::new(),
            parts: TaskTracker::new(),
            runtime,
            clock,
            this: this.clone(),
        })
    }

    /// Starts recording ends for the receipt, and refuses new children. Called before the cancel
    /// request has its position.
    pub(crate) fn start_recording(&self) {
        self.state.lock().recording = true;
    }

    /// Refuses new children: the producer is done, although a part of it may not know that yet.
    pub(crate) fn refuse_new(&self) {
        self.state.lock().closed = true;
    }

    /// Waits until every part of the producer's work has ended, after the producer was dropped.
    /// False if that takes until `deadline`.
    pub(crate) async fn wait_for_parts(&self, deadline: Instant) -> bool {
        self.parts.close();
        timeout_at(deadline, self.parts.wait()).await.is_ok()
    }

    /// Waits until all children have ended: at most `timeout`, and `worker_extra` longer for
    /// workers.
    pub(crate) async fn wait_for_children(&self, timeout: Duration, worker_extra: Duration) {
        let any = |_: &RunningChild| true;
        if !self.wait_for(any, timeout).await {
            let is_worker = |child: &RunningChild| child.kind == ReceiptKind::Worker;
            self.wait_for(is_worker, worker_extra).await;
        }
    }

    /// Waits until no child matches. False if that takes longer than `timeout`.
    async fn wait_for(&self, matches: impl Fn(&RunningChild) -> bool, timeout: Duration) -> bool {
        let all_ended = async {
            loop {
                // Registered before the check: an end in between is not missed.
                let child_ended = self.child_ended.notified();
                if !self.state.lock().running.values().any(&matches) {
                    return;
                }
                child_ended.await;
            }
        };
        tokio::time::timeout(timeout, all_ended).await.is_ok()
    }

    /// Ends the turn's children: returns how each ended that was running at the cancel. A child
    /// that is still running may go on, and is recorded as [`StopOutcome::Discarded`].
    pub(crate) fn finish(&self) -> Vec<FinishedChild> {
        let now = self.clock.now();
        let (running, mut finished) = {
            let mut state = self.state.lock();
            state.closed = true;
            (
                std::mem::take(&mut state.running),
                std::mem::take(&mut state.finished),
            )
        };
        if !running.is_empty() {
            let count = running.len() as u64;
            metrics::counter!(metric::TURN_LEFT_BEHIND_TOTAL).increment(count);
            tracing::error!(count, "processes or workers of a turn did not end in time");
        }
        for mut child in running.into_values() {
            if let Some(watch_task) = child.watch_task.take() {
                watch_task.abort();
            }
            finished.extend(child.finish(StopOutcome::Discarded, now));
        }
        finished
    }

    /// Records how a worker of the turn ended, so that the turn can report it even if the tool call
    /// that waited for the worker is dropped.
    pub(crate) fn record_worker_end(&self, end: DelegateEnd) {
        let mut state = self.state.lock();
        let is_recorded = |other: &DelegateEnd| other.worker() == end.worker();
        if !state.worker_ends.iter().any(is_recorded) {
            state.worker_ends.push(end);
        }
    }

    /// The ends of the workers that have ended by themselves so far.
    pub(crate) fn worker_ends(&self) -> Vec<DelegateEnd> {
        self.state.lock().worker_ends.clone()
    }

    fn on_child_ended(&self, number: u64, outcome: StopOutcome) {
        let mut state = self.state.lock();
        let Some(child) = state.running.remove(&number) else {
            return;
        };
        if state.recording {
            let finished = child.finish(outcome, self.clock.now());
            state.finished.extend(finished);
        }
        drop(state);
        self.child_ended.notify_waiters();
    }
}

/// Reports the end of one child when dropped, whatever happens to the task that watches it.
struct ChildGuard {
    tasks: Arc<ChildTasks>,
    number: u64,
    outcome: StopOutcome,
}

impl ChildGuard {
    fn end(mut self, outcome: StopOutcome) {
        self.outcome = outcome;
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        self.tasks.on_child_ended(self.number, self.outcome);
    }
}

impl ChildTaskState {
    /// Refuses a new child or part once the turn is cancelled or its producer done.
    fn check_accepting(&self) -> Result<(), EmitRefusal> {
        match (self.recording, self.closed) {
            (true, _) => Err(EmitRefusal::Cancelled),
            (false, true) => Err(EmitRefusal::Ended),
            (false, false) => Ok(()),
        }
    }
}

impl ChildTaskRegistry for ChildTasks {
    fn enter(&self) -> Result<TaskPermit, EmitRefusal> {
        let state = self.state.lock();
        state.check_accepting()?;
        Ok(Box::new(self.parts.token()))
    }

    fn track(&self, task: ChildTask) -> Result<(), EmitRefusal> {
        let tasks = self.this.upgrade().ok_or(EmitRefusal::Ended)?;
        let number = {
            let mut state = self.state.lock();
            state.check_accepting()?;
            if state.running.len() >= CHILDREN_MAX {
                tracing::error!(
                    limit = CHILDREN_MAX,
                    "too many processes and workers in one turn: refusing another"
                );
                return Err(EmitRefusal::Unavailable);
            }
            let number = state.next_number;
            state.next_number += 1;
            let child = RunningChild {
                kind: task.kind,
                id: task.id,
                tool_use_id: task.tool_use_id,
                watch_task: None,
            };
            state.running.insert(number, child);
            number
        };
        // The child may still run until its future says otherwise, also when that panics.
        let guard = ChildGuard {
            tasks,
            number,
            outcome: StopOutcome::Discarded,
        };
        let ended = task.ended;
        // Not under the lock: a runtime that shuts down drops the future inside `spawn`.
        let watch_task = self.runtime.spawn(async move { guard.end(ended.await) });
        if let Some(child) = self.state.lock().running.get_mut(&number) {
            child.watch_task = Some(watch_task.abort_handle());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

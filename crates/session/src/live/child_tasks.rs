//! What of a turn does not end with its future: processes and workers, kept while they live; and
//! the parts of its own work that end with it, but each on a task of its own.
//!
//! ```text
//!   take ──▶ alive ──ended by itself──▶ forgotten        before a cancel
//!              │
//!              ├──ended──▶ noted, with outcome and time  after it was asked for
//!              └──still there when the turn ends──▶ noted as discarded: it may still go on
//! ```
//! Each is watched by a task of its own, so a turn that waits for nothing pays nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::TaskTracker;
use turnwire_event::body::turn::ReceiptLine;
use turnwire_event::code::{ReceiptKind, StopOutcome};
use turnwire_event::fold::{OpenTurn, Stopped, Stops};
use turnwire_event::port::{Part, Refusal, Ward, WardId, Wards};
use turnwire_event::{Clock, Timestamp, ToolUseId, metric};

/// Wards of one turn at once: far more than its tools may start, and each is a small task.
const WARDS_MAX: usize = 1_024;

/// Who has charge of the wards of one turn.
pub(crate) struct ChildTasks {
    desk: Mutex<ChildTaskState>,
    /// Told whenever one is gone.
    left: Notify,
    /// The parts of the turn's own work that have tasks of their own.
    parts: TaskTracker,
    runtime: Handle,
    clock: Arc<dyn Clock>,
    this: Weak<Self>,
}

#[derive(Default)]
struct ChildTaskState {
    next: u64,
    alive: BTreeMap<u64, RunningChild>,
    noted: Vec<FinishedChild>,
    /// A cancel is being asked for: from here on every end is noted, and nothing more is taken.
    noting: bool,
    /// The turn's work is done: nothing more is taken.
    shut: bool,
}

struct RunningChild {
    kind: ReceiptKind,
    id: WardId,
    tool_use_id: ToolUseId,
    /// The task that watches it; none for the moment before it has begun.
    watch: Option<AbortHandle>,
}

impl RunningChild {
    /// What a receipt says of it; none if it never began to be.
    fn gone(self, outcome: StopOutcome, at: Timestamp) -> Option<FinishedChild> {
        Some(FinishedChild {
            kind: self.kind,
            id: self.id.get()?.to_owned(),
            tool_use_id: self.tool_use_id,
            outcome,
            at,
        })
    }
}

/// What became of a ward, and when.
pub(crate) struct FinishedChild {
    kind: ReceiptKind,
    id: String,
    tool_use_id: ToolUseId,
    outcome: StopOutcome,
    at: Timestamp,
}

/// How the work of a turn came to rest.
pub(crate) struct StopReport {
    /// When its producer was gone.
    pub(crate) let_go: Timestamp,
    /// Whether it was not gone even then.
    pub(crate) left_behind: bool,
    /// What did not end with it.
    pub(crate) wards: Vec<FinishedChild>,
}

impl StopReport {
    /// The same as a receipt tells it, by the time of the request.
    pub(crate) fn stops(&self, open: &OpenTurn, asked: Timestamp) -> Stops {
        let ms = |at: Timestamp| at.as_millis().saturating_sub(asked.as_millis()).max(0) as u64;
        // An end that the producer told after the request is in the receipt already.
        let told = |gone: &&FinishedChild| {
            let mut lines = open.finished.iter();
            lines.any(|line| line.kind == gone.kind && line.id == gone.id)
        };
        let wards = self.wards.iter().filter(|gone| !told(gone));
        Stops {
            let_go_ms: ms(self.let_go),
            left_behind: self.left_behind,
            wards: wards
                .map(|gone| Stopped {
                    tool_use_id: gone.tool_use_id,
                    line: ReceiptLine {
                        kind: gone.kind,
                        id: gone.id.clone(),
                        outcome: gone.outcome,
                        ms: ms(gone.at),
                    },
                })
                .collect(),
        }
    }
}

impl ChildTasks {
    pub(crate) fn new(runtime: Handle, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            desk: Mutex::default(),
            left: Notify::new(),
            parts: TaskTracker::new(),
            runtime,
            clock,
            this: this.clone(),
        })
    }

    /// A cancel is about to be asked for: nothing begins any more, and whatever ends after it
    /// belongs into the receipt.
    pub(crate) fn note(&self) {
        self.desk.lock().noting = true;
    }

    /// The turn's work is done, however: nothing of it begins any more, also where a part of it
    /// has not seen yet that it was stopped.
    pub(crate) fn shut(&self) {
        self.desk.lock().shut = true;
    }

    /// Waits until every part of the turn's own work is gone, which was dropped with the whole.
    /// False if that takes too long.
    pub(crate) async fn let_go(&self, until: Instant) -> bool {
        self.parts.close();
        timeout_at(until, self.parts.wait()).await.is_ok()
    }

    /// Waits until all are gone: no longer than `within`, and for workers `more`.
    pub(crate) async fn gone(&self, within: Duration, more: Duration) {
        let any = |_: &RunningChild| true;
        if !self.gone_of(any, within).await {
            let worker = |kept: &RunningChild| kept.kind == ReceiptKind::Worker;
            self.gone_of(worker, more).await;
        }
    }

    /// Waits until none of these is there. False if that takes too long.
    async fn gone_of(&self, these: impl Fn(&RunningChild) -> bool, within: Duration) -> bool {
        let all = async {
            loop {
                let told = self.left.notified();
                if !self.desk.lock().alive.values().any(&these) {
                    return;
                }
                told.await;
            }
        };
        tokio::time::timeout(within, all).await.is_ok()
    }

    /// The turn ends: what became of all that was there after the cancel. Nothing is taken any
    /// more; what is still there may go on, and is told as such.
    pub(crate) fn close(&self) -> Vec<FinishedChild> {
        let now = self.clock.now();
        let (alive, mut noted) = {
            let mut desk = self.desk.lock();
            desk.shut = true;
            (
                std::mem::take(&mut desk.alive),
                std::mem::take(&mut desk.noted),
            )
        };
        if !alive.is_empty() {
            let left = alive.len() as u64;
            metrics::counter!(metric::TURN_LEFT_BEHIND_TOTAL).increment(left);
            tracing::error!(left, "processes or workers of a turn did not end in time");
        }
        for mut kept in alive.into_values() {
            if let Some(watch) = kept.watch.take() {
                watch.abort();
            }
            noted.extend(kept.gone(StopOutcome::Discarded, now));
        }
        noted
    }

    /// One is gone.
    fn left(&self, number: u64, outcome: StopOutcome) {
        let mut desk = self.desk.lock();
        let Some(kept) = desk.alive.remove(&number) else {
            return;
        };
        if desk.noting {
            let gone = kept.gone(outcome, self.clock.now());
            desk.noted.extend(gone);
        }
        drop(desk);
        self.left.notify_waiters();
    }
}

/// The place of one ward; whatever becomes of the task that watches it, it is left.
struct ChildGuard {
    care: Arc<ChildTasks>,
    number: u64,
    outcome: StopOutcome,
}

impl ChildGuard {
    fn leave(mut self, outcome: StopOutcome) {
        self.outcome = outcome;
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        self.care.left(self.number, self.outcome);
    }
}

impl ChildTaskState {
    /// Whether anything may still begin.
    fn is_open(&self) -> Result<(), Refusal> {
        match (self.noting, self.shut) {
            (true, _) => Err(Refusal::Cancelled),
            (false, true) => Err(Refusal::Ended),
            (false, false) => Ok(()),
        }
    }
}

impl Wards for ChildTasks {
    fn enter(&self) -> Result<Part, Refusal> {
        let desk = self.desk.lock();
        desk.is_open()?;
        Ok(Box::new(self.parts.token()))
    }

    fn take(&self, ward: Ward) -> Result<(), Refusal> {
        let care = self.this.upgrade().ok_or(Refusal::Ended)?;
        let number = {
            let mut desk = self.desk.lock();
            desk.is_open()?;
            if desk.alive.len() >= WARDS_MAX {
                tracing::error!("a turn cannot wait for more: no more may begin");
                return Err(Refusal::Unavailable);
            }
            let number = desk.next;
            desk.next += 1;
            let kept = RunningChild {
                kind: ward.kind,
                id: ward.id,
                tool_use_id: ward.tool_use_id,
                watch: None,
            };
            desk.alive.insert(number, kept);
            number
        };
        // Until it says otherwise, as when its word breaks, it may still be there.
        let seat = ChildGuard {
            care,
            number,
            outcome: StopOutcome::Discarded,
        };
        let ended = ward.ended;
        // Not under the lock: a runtime that goes away drops what it is given at once.
        let watch = self.runtime.spawn(async move { seat.leave(ended.await) });
        if let Some(kept) = self.desk.lock().alive.get_mut(&number) {
            kept.watch = Some(watch.abort_handle());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

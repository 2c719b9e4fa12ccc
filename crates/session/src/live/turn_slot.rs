//! The turn slot of a session: the running turn and the queued ones under one mutex, so that no
//! submit can come between the end of a turn and the start of the next.
//!
//! ```text
//!   submit ──▶ running? ──no──▶ turn.started, running
//!                 │ yes
//!                 ▼
//!   front ─▶ [ q ][ q ][ q ] ◀─ back     each a durable row; at most `queue_max`
//!     │ interrupt       enqueue
//!     ▼
//!   started when nothing runs, or withdrawn by a cancel: under the lock, so one of the two
//! ```

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use tokio_util::sync::CancellationToken;
use turnwire_event::code::OnBusy;
use turnwire_event::row::QueuedRow;
use turnwire_event::{Owner, TraceContext, TurnId, metric};
use turnwire_fair::FairSlot;

use super::child_tasks::ChildTasks;
use crate::submit::input_bytes::InputPermit;
use crate::submit::request::{DisconnectScope, SubmitRequest};

/// A queued turn that cancels the running one instead of waiting for its end.
pub(crate) struct TurnInterrupt {
    pub(crate) queued: TurnId,
    pub(crate) running: TurnId,
}

/// The streams of one turn, counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StreamPresence {
    pub(crate) streams: usize,
    /// How often the last stream has left: a grace period belongs to one departure.
    pub(crate) departures: u64,
}

/// The part of a turn's [`EventEmitter`](turnwire_event::port::EventEmitter) that a cancel uses.
pub(crate) trait StoppableEmitter: Send + Sync {
    /// Emits the events held back by the gate, then calls `request` before any later event of the
    /// turn is accepted.
    fn stop(&self, request: &mut dyn FnMut());
}

/// The turn that occupies the slot: its start has a position, its terminal has not.
pub(crate) struct RunningTurn {
    pub(crate) id: TurnId,
    /// Cancelled when the turn must stop.
    pub(crate) stop: CancellationToken,
    pub(crate) end_guard: Arc<TurnEndGuard>,
    /// The processes and workers of the turn.
    pub(crate) children: Arc<ChildTasks>,
    pub(crate) emitter: Weak<dyn StoppableEmitter>,
    /// When a turn without clients is cancelled, as [`SubmitRequest::cancel_grace`] says.
    pub(crate) cancel_grace: Option<(DisconnectScope, u64)>,
    /// The trace context of the caller, for events that the session emits in the turn.
    pub(crate) trace: Option<Arc<TraceContext>>,
    pub(crate) presence: StreamPresence,
    /// Whether no message of another turn stands between the messages of this one.
    pub(crate) contiguous: bool,
}

/// Cancels its token when dropped. The slot and the task of a turn each hold one reference, so the
/// token says that the turn has left the slot and its task has ended: the turn of a deleted
/// session leaves the slot at once, while its processes may still be stopping.
#[derive(Default)]
pub(crate) struct TurnEndGuard(CancellationToken);

impl TurnEndGuard {
    /// The token that is cancelled at the end of the turn.
    pub(crate) fn token(&self) -> CancellationToken {
        self.0.clone()
    }
}

impl Drop for TurnEndGuard {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// A turn in the queue.
#[derive(Clone, Debug)]
pub(crate) struct QueuedTurn {
    pub(crate) id: TurnId,
    /// The sort key of the queue, ascending.
    pub(crate) order: i64,
    pub(crate) request: SubmitRequest,
    pub(crate) presence: StreamPresence,
    /// Departures of the session's last watcher before the turn was accepted.
    pub(crate) departures: usize,
    /// How often the turn could not be started because the store could not be read.
    pub(crate) start_attempts: u8,
    /// Whether the stored request is invalid: the turn fails when it is next.
    pub(crate) unreadable: bool,
    /// Counts the turn for its owner; `None` for a turn of the last run, which is accepted whatever
    /// its owner has now.
    pub(crate) _permit: Option<Arc<FairSlot<Owner>>>,
    /// Counts the input of the turn for its owner; empty for a turn of the last run.
    pub(crate) input_permit: InputPermit,
}

impl QueuedTurn {
    /// The queued turn of a stored row.
    pub(crate) fn from_row(row: QueuedRow, permit: Option<FairSlot<Owner>>) -> Self {
        let request = serde_json::from_str(&row.input);
        if let Err(error) = &request {
            tracing::error!(turn = %row.turn_id, %error, "the stored request of a queued turn is invalid");
        }
        Self {
            id: row.turn_id,
            order: row.place,
            unreadable: request.is_err(),
            request: request.unwrap_or_else(|_| SubmitRequest::unattended("en".into())),
            presence: StreamPresence::default(),
            departures: 0,
            start_attempts: 0,
            _permit: permit.map(Arc::new),
            input_permit: InputPermit::default(),
        }
    }
}

/// The [`RunningTurn`] and the [`QueuedTurn`]s of one session.
#[derive(Default)]
pub(crate) struct TurnSlot {
    pub(crate) running: Option<RunningTurn>,
    /// The first turn of a worker whose session is created and whose task has not begun: no other
    /// turn comes before it.
    pub(crate) first_turn: Option<TurnId>,
    /// The queued turns, the next to start first.
    pub(crate) queue: VecDeque<QueuedTurn>,
    /// Whether a task is starting the next queued turn.
    pub(crate) starting: bool,
    /// Whether an approval may be open: then the next turn reads the open ones first.
    pub(crate) may_have_open_approvals: bool,
    /// Changes when a turn starts or ends and when an approval is decided: a caller that read the
    /// history at another version must read it again.
    pub(crate) version: u64,
}

impl TurnSlot {
    /// The turn that keeps a new one from starting: the running one, the first one of a worker, or
    /// the first queued one.
    pub(crate) fn blocking_turn(&self) -> Option<TurnId> {
        let running = self.running.as_ref().map(|running| running.id);
        let running = running.or(self.first_turn);
        running.or_else(|| self.queue.front().map(|queued| queued.id))
    }

    /// The running turn, if it is `turn`.
    pub(crate) fn running_turn(&self, turn: TurnId) -> Option<&RunningTurn> {
        self.running.as_ref().filter(|running| running.id == turn)
    }

    pub(crate) fn queued(&self, turn: TurnId) -> Option<&QueuedTurn> {
        self.queue.iter().find(|queued| queued.id == turn)
    }

    /// Counts a failed attempt to start a queued turn, and returns the number of attempts.
    pub(crate) fn count_start_attempt(&mut self, turn: TurnId) -> u8 {
        let queued = self.queue.iter_mut().find(|queued| queued.id == turn);
        queued.map_or(0, |queued| {
            queued.start_attempts = queued.start_attempts.saturating_add(1);
            queued.start_attempts
        })
    }

    /// The order of a new queued turn: before all others, or after them.
    pub(crate) fn next_order(&self, on_busy: OnBusy) -> i64 {
        match on_busy {
            OnBusy::Interrupt => self.queue.front().map_or(0, |first| first.order - 1),
            OnBusy::Enqueue | OnBusy::Reject => self.queue.back().map_or(0, |last| last.order + 1),
        }
    }

    /// Inserts a turn by its [`order`](QueuedTurn::order).
    pub(crate) fn enqueue(&mut self, turn: QueuedTurn) {
        let index = self.queue.partition_point(|other| other.order < turn.order);
        self.queue.insert(index, turn);
        metrics::gauge!(metric::TURN_QUEUED).increment(1.0);
    }

    /// Inserts the queued turns of the store; `permit` counts each for its owner.
    pub(crate) fn restore_queue(
        &mut self,
        rows: Vec<QueuedRow>,
        permit: impl Fn() -> Option<FairSlot<Owner>>,
    ) {
        for row in rows {
            self.enqueue(QueuedTurn::from_row(row, permit()));
        }
    }

    /// Removes a queued turn.
    pub(crate) fn dequeue(&mut self, turn: TurnId) -> Option<QueuedTurn> {
        let index = self.queue.iter().position(|queued| queued.id == turn)?;
        metrics::gauge!(metric::TURN_QUEUED).decrement(1.0);
        self.queue.remove(index)
    }

    /// Frees the slot after the end of `turn`.
    pub(crate) fn release(&mut self, turn: TurnId) {
        if self.running.take_if(|running| running.id == turn).is_some() {
            self.version += 1;
        }
    }

    /// Stops the running turn and removes the queued ones: the session is closed.
    pub(crate) fn clear(&mut self) {
        if let Some(running) = self.running.take() {
            running.children.refuse_new();
            running.stop.cancel();
        }
        metrics::gauge!(metric::TURN_QUEUED).decrement(self.queue.len() as f64);
        self.queue.clear();
        self.first_turn = None;
        self.version += 1;
    }

    /// The streams of a running or queued turn.
    pub(crate) fn presence_mut(&mut self, turn: TurnId) -> Option<&mut StreamPresence> {
        if let Some(running) = self.running.as_mut().filter(|r| r.id == turn) {
            return Some(&mut running.presence);
        }
        let queued = self.queue.iter_mut().find(|queued| queued.id == turn)?;
        Some(&mut queued.presence)
    }

    /// The grace period after the last stream of `turn` has left; `None` if the turn goes on
    /// without streams.
    pub(crate) fn stream_grace_ms(&self, turn: TurnId) -> Option<u64> {
        let (scope, grace_ms) = match self.running_turn(turn) {
            Some(running) => running.cancel_grace?,
            None => self.queued(turn)?.request.cancel_grace()?,
        };
        (scope == DisconnectScope::Stream).then_some(grace_ms)
    }
}

impl Drop for TurnSlot {
    fn drop(&mut self) {
        metrics::gauge!(metric::TURN_QUEUED).decrement(self.queue.len() as f64);
    }
}

//! The lock of a session: the turn that holds it and those that wait, under one mutex, so that
//! nobody can come between a turn's end and the start of the next.
//!
//! ```text
//!   submit ──▶ running? ──no──▶ turn.started, running
//!                 │ yes
//!                 ▼
//!   front ─▶ [ w ][ w ][ w ] ◀─ back     each a durable row; at most `queue_max`
//!     │ interrupt       enqueue
//!     ▼
//!   started when nothing runs, or withdrawn by a cancel: under the lock, so one of the two
//! ```

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use tokio_util::sync::CancellationToken;
use turnwire_event::code::{OnBusy, OnDisconnect};
use turnwire_event::row::QueuedRow;
use turnwire_event::{Trace, TurnId, metric};

use crate::live::child_tasks::ChildTasks;
use crate::submit::request::{DisconnectScope, SubmitRequest};

/// A turn in line that does not wait for the end of the one that runs.
pub(crate) struct TurnInterrupt {
    pub(crate) by: TurnId,
    pub(crate) running: TurnId,
}

/// The streams of a turn.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StreamPresence {
    /// How many there are now.
    pub(crate) streams: usize,
    /// How often the last has left: a grace counts from its own leaving.
    pub(crate) departures: u64,
}

/// The emitter of a turn, as far as a cancel needs it.
pub(crate) trait StoppableEmitter: Send + Sync {
    /// Lets go of what is held back, then asks, before anything else of the turn is taken. From
    /// here on nothing more of it is shown.
    fn stop(&self, ask: &mut dyn FnMut());
}

/// The turn that holds a session's lock: its start is in the order, its terminal is not.
pub(crate) struct RunningTurn {
    pub(crate) id: TurnId,
    /// Told when the turn must stop.
    pub(crate) stop: CancellationToken,
    /// Told when all is over: its terminal is placed or its session is gone, and its task is done.
    pub(crate) over: Arc<TurnEndGuard>,
    /// What does not end with its producer.
    pub(crate) wards: Arc<ChildTasks>,
    /// Where its events pass.
    pub(crate) emitter: Weak<dyn StoppableEmitter>,
    pub(crate) on_disconnect: OnDisconnect,
    pub(crate) grace_ms: u64,
    pub(crate) bound: DisconnectScope,
    /// The caller's trace, for events that the session itself makes of the turn.
    pub(crate) trace: Option<Arc<Trace>>,
    pub(crate) presence: StreamPresence,
    /// Whether no other turn's message came between its own.
    pub(crate) alone: bool,
}

/// The end of a turn, for those who wait for it. Held by the turn's place and by its task, and
/// told when both are gone: one whose session was deleted has lost its place at once, and may
/// still have programs that are on their way out.
#[derive(Default)]
pub(crate) struct TurnEndGuard(CancellationToken);

impl TurnEndGuard {
    /// What is told.
    pub(crate) fn token(&self) -> CancellationToken {
        self.0.clone()
    }
}

impl Drop for TurnEndGuard {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// A turn that waits.
#[derive(Clone, Debug)]
pub(crate) struct QueuedTurn {
    pub(crate) id: TurnId,
    pub(crate) place: i64,
    pub(crate) submit: SubmitRequest,
    pub(crate) presence: StreamPresence,
    /// How often the last watcher of the session had left when it was accepted.
    pub(crate) departures: usize,
    /// How often its start was tried and the store could not be read.
    pub(crate) tries: u8,
    /// Whether what was kept of it cannot be read: it fails when its time comes.
    pub(crate) broken: bool,
}

impl QueuedTurn {
    /// A turn as it was stored.
    pub(crate) fn read(row: QueuedRow) -> Self {
        let read = serde_json::from_str(&row.input);
        if let Err(error) = &read {
            tracing::error!(turn = %row.turn_id, %error, "a turn that waits cannot be read");
        }
        Self {
            id: row.turn_id,
            place: row.place,
            broken: read.is_err(),
            submit: read.unwrap_or_else(|_| lost()),
            presence: StreamPresence::default(),
            departures: 0,
            tries: 0,
        }
    }
}

/// Stands for a submit that cannot be read any more.
fn lost() -> SubmitRequest {
    SubmitRequest {
        content: Vec::new(),
        locale: "en".into(),
        on_disconnect: OnDisconnect::Continue,
        disconnect_grace_ms: 0,
        trace: None,
        on_busy: OnBusy::Enqueue,
        wire_version: String::new(),
        metadata: serde_json::Map::new(),
        location: None,
        bound: DisconnectScope::Session,
        origin: turnwire_event::code::Origin::Chat,
        dm_type: None,
    }
}

/// What the lock protects.
#[derive(Default)]
pub(crate) struct TurnSlot {
    pub(crate) running: Option<RunningTurn>,
    queue: VecDeque<QueuedTurn>,
    /// Whether a task is about to start the next that waits.
    pub(crate) starting: bool,
    /// Whether a question may be open: then the next turn looks for it first.
    pub(crate) asked: bool,
    /// How often a turn has started or ended, or a question was answered: whoever read the past
    /// before must read it again.
    pub(crate) moves: u64,
}

impl TurnSlot {
    /// What keeps a new turn from starting: the turn that runs, or the first that waits.
    pub(crate) fn busy(&self) -> Option<TurnId> {
        let running = self.running.as_ref().map(|running| running.id);
        running.or_else(|| self.front().map(|waiting| waiting.id))
    }

    /// The next to start.
    pub(crate) fn front(&self) -> Option<&QueuedTurn> {
        self.queue.front()
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// A turn that waits.
    pub(crate) fn find(&self, turn: TurnId) -> Option<&QueuedTurn> {
        self.queue.iter().find(|waiting| waiting.id == turn)
    }

    /// Counts a try to start a turn that waits. Gives back how many there were.
    pub(crate) fn tried(&mut self, turn: TurnId) -> u8 {
        let waiting = self.queue.iter_mut().find(|waiting| waiting.id == turn);
        waiting.map_or(0, |waiting| {
            waiting.tries = waiting.tries.saturating_add(1);
            waiting.tries
        })
    }

    /// The place of one more: before all others, or behind them.
    pub(crate) fn next_place(&self, on_busy: OnBusy) -> i64 {
        match on_busy {
            OnBusy::Interrupt => self.queue.front().map_or(0, |first| first.place - 1),
            OnBusy::Enqueue | OnBusy::Reject => self.queue.back().map_or(0, |last| last.place + 1),
        }
    }

    /// Puts one in, in the order of places.
    pub(crate) fn put(&mut self, waiting: QueuedTurn) {
        let at = self
            .queue
            .partition_point(|other| other.place < waiting.place);
        self.queue.insert(at, waiting);
        metrics::gauge!(metric::TURN_QUEUED).increment(1.0);
    }

    /// Takes one out.
    pub(crate) fn take(&mut self, turn: TurnId) -> Option<QueuedTurn> {
        let at = self.queue.iter().position(|waiting| waiting.id == turn)?;
        metrics::gauge!(metric::TURN_QUEUED).decrement(1.0);
        self.queue.remove(at)
    }

    /// The turn that runs is over.
    pub(crate) fn free(&mut self, turn: TurnId) {
        if self.running.take_if(|running| running.id == turn).is_some() {
            self.moves += 1;
        }
    }

    /// The session ends: nothing runs or waits any more.
    pub(crate) fn clear(&mut self) {
        if let Some(running) = self.running.take() {
            running.wards.shut();
            running.stop.cancel();
        }
        metrics::gauge!(metric::TURN_QUEUED).decrement(self.queue.len() as f64);
        self.queue.clear();
        self.moves += 1;
    }

    /// The streams of a turn that runs or waits.
    pub(crate) fn presence(&mut self, turn: TurnId) -> Option<&mut StreamPresence> {
        if let Some(running) = self.running.as_mut().filter(|r| r.id == turn) {
            return Some(&mut running.presence);
        }
        let waiting = self.queue.iter_mut().find(|waiting| waiting.id == turn)?;
        Some(&mut waiting.presence)
    }

    /// How long the streams of a turn may be away before it is cancelled; none if it goes on.
    pub(crate) fn stream_grace_ms(&self, turn: TurnId) -> Option<u64> {
        let (on_disconnect, bound, grace_ms) = match &self.running {
            Some(r) if r.id == turn => (r.on_disconnect, r.bound, r.grace_ms),
            _ => {
                let submit = &self.find(turn)?.submit;
                (
                    submit.on_disconnect,
                    submit.bound,
                    submit.disconnect_grace_ms,
                )
            }
        };
        (on_disconnect == OnDisconnect::Cancel && bound == DisconnectScope::Stream)
            .then_some(grace_ms)
    }
}

impl Drop for TurnSlot {
    fn drop(&mut self) {
        metrics::gauge!(metric::TURN_QUEUED).decrement(self.queue.len() as f64);
    }
}

//! A session in memory: its sequencer, its ring, its turn slot and its watchers; and the services
//! that it shares with all others.

use std::collections::HashSet;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use turnwire_event::fold::{OpenTurn, rows};
use turnwire_event::port::{ChildTaskRegistry, NoChildTasks, WorkerLauncher};
use turnwire_event::row::SessionRow;
use turnwire_event::{
    Actor, Body, Clock, EventFilter, IdGenerator, Owner, Position, Seq, SessionId, TurnId,
};
use turnwire_hub::{Ring, RingClosed, WakePump};
use turnwire_log::{EventDraft, LogTail, LogWriter, OutboxRoom, Sequencer, SequencerError, Store};

use super::bus::{BusAction, BusCoalescer, BusNotice};
use super::presence::SessionPresence;
use super::routing_policy::ActiveRoutingPolicy;
use super::transcript::Transcript;
use super::turn_runner::TurnRunner;
use super::turn_slot::TurnSlot;
use crate::history::cache::HistoryCache;
use crate::options::Options;
use crate::submit::request::SubmitRequest;

/// Creates the [`Delegate`] of a turn, through which the turn starts workers. Implemented by the
/// service that owns all sessions.
pub(crate) trait DelegateFactory: Send + Sync {
    /// The delegate of `turn`. Its workers are children of the turn, and inherit locale and trace
    /// from `request`.
    fn delegate(
        self: Arc<Self>,
        parent: &Arc<LiveSession>,
        turn: TurnId,
        request: &SubmitRequest,
        children: Arc<dyn ChildTaskRegistry>,
    ) -> Arc<dyn WorkerLauncher>;
}

/// Receives the id of each deleted session, on the writer's thread: it must not block.
pub type DeletedCallback = Arc<dyn Fn(SessionId) + Send + Sync>;

/// What all sessions of a server share.
pub(crate) struct SessionServices {
    pub(crate) options: Options,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) mint: Arc<dyn IdGenerator>,
    /// The log and the records that the writer appends to.
    pub(crate) store: Arc<dyn Store>,
    /// The writer behind every sequencer.
    pub(crate) writer: Arc<LogWriter>,
    /// Wakes the readers of rings.
    pub(crate) pump: WakePump,
    pub(crate) runner: TurnRunner,
    /// Permits to read a chunk of a replay: one for each core, in FIFO order, so that every late
    /// reader gets its first events soon.
    pub(crate) replay_permits: Semaphore,
    pub(crate) routing_policy: Mutex<ActiveRoutingPolicy>,
    pub(crate) on_deleted: OnceLock<DeletedCallback>,
    /// Weak, because the factory owns these services; unset until it exists.
    pub(crate) delegates: OnceLock<Weak<dyn DelegateFactory>>,
    /// Sessions with a damaged log; they are refused until the process ends.
    pub(crate) quarantined: Mutex<HashSet<SessionId>>,
}

impl SessionServices {
    /// A handle of the store, for a read on another thread.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    /// The delegate of `turn`, which starts no workers if there is no factory.
    pub(crate) fn delegate(
        &self,
        parent: &Arc<LiveSession>,
        turn: TurnId,
        request: &SubmitRequest,
        children: Arc<dyn ChildTaskRegistry>,
    ) -> Arc<dyn WorkerLauncher> {
        match self.delegates.get().and_then(Weak::upgrade) {
            Some(factory) => factory.delegate(parent, turn, request, children),
            None => Arc::new(NoChildTasks),
        }
    }
}

/// The number of events between two positions that pass a filter.
#[derive(Clone, Debug)]
pub(crate) struct ReplayCount {
    pub(crate) filter: EventFilter,
    pub(crate) since: Seq,
    pub(crate) upto: Seq,
    pub(crate) count: u64,
}

/// A session in memory. The `sequencer` orders everything that is written, and clients read
/// everything from the `ring`.
pub struct LiveSession {
    /// The id of the session.
    pub id: SessionId,
    /// The owner that every request is checked against.
    pub owner: Owner,
    /// The number of ancestors: 0 unless the session is a worker.
    pub(crate) depth: usize,
    /// The number of workers under the turn that this worker's first turn is part of. That turn
    /// takes the counter: later ones are not part of the same work.
    pub(crate) shared_worker_count: Mutex<Option<Arc<AtomicUsize>>>,
    /// Gives events their positions and hands them to the writer.
    pub sequencer: Arc<Sequencer>,
    /// The newest released events, and the [`Transcript`] at their tail.
    pub ring: Arc<Ring<Transcript>>,
    pub(crate) services: Arc<SessionServices>,
    pub(crate) slot: Mutex<TurnSlot>,
    pub(crate) presence: SessionPresence,
    bus: BusCoalescer,
    pub(crate) history: Arc<Mutex<HistoryCache>>,
    /// The last count of a replay: many clients reconnect from one position with one filter.
    pub(crate) last_replay_count: Mutex<Option<ReplayCount>>,
}

impl LiveSession {
    /// Loads a session at the tail of its log; `open` is the turn that a crash left open.
    pub(crate) fn load(
        services: Arc<SessionServices>,
        (row, depth): (SessionRow, usize),
        tail: LogTail,
        open: Option<OpenTurn>,
    ) -> Arc<Self> {
        let (id, owner) = (row.id, row.owner.clone());
        let bounds = turnwire_hub::ring::RingBounds {
            events: services.options.ring_events,
            bytes: services.options.ring_bytes,
        };
        let ring = Ring::new(
            tail.position(),
            Transcript::new(row, open),
            bounds,
            services.pump.clone(),
        );
        let sequencer = Sequencer::open(
            id,
            tail,
            turnwire_log::sequencer::OutboxBounds::default(),
            services.clock.clone(),
            services.writer.clone(),
            ring.clone(),
        );
        Arc::new(Self {
            id,
            owner,
            depth,
            shared_worker_count: Mutex::new(None),
            sequencer,
            ring,
            services,
            slot: Mutex::default(),
            presence: SessionPresence::new(),
            bus: BusCoalescer::default(),
            history: Arc::default(),
            last_replay_count: Mutex::new(None),
        })
    }

    /// What `turn` has open after every emitted event, released or not.
    pub(crate) fn open_turn(&self, turn: TurnId) -> Option<OpenTurn> {
        // Under the sequencer's lock no event is released meanwhile.
        self.sequencer.with_unreleased(|unreleased| {
            let mut open = self
                .ring
                .with_state(|transcript, _, _| transcript.open.clone())
                .filter(|open| open.id == turn);
            for event in unreleased {
                if event.head.turn != Some(turn) {
                    continue;
                }
                match (&mut open, &event.body) {
                    (_, Body::TurnStarted(_)) => {
                        let mut fresh = OpenTurn::new(turn);
                        fresh.apply(
                            event.head.position,
                            event.time,
                            &event.head.actor,
                            &event.body,
                        );
                        open = Some(fresh);
                    }
                    (Some(open), body) => {
                        open.apply(event.head.position, event.time, &event.head.actor, body);
                    }
                    (None, _) => {}
                }
            }
            open
        })
    }

    /// The id of the running turn.
    pub fn current_turn(&self) -> Option<TurnId> {
        self.slot.lock().running.as_ref().map(|running| running.id)
    }

    /// Cancelled when `turn` is not running: it has left the slot and its task has ended.
    pub(crate) fn turn_ended(&self, turn: TurnId) -> CancellationToken {
        let slot = self.slot.lock();
        let running = slot.running.as_ref().filter(|running| running.id == turn);
        running.map_or_else(
            || {
                let ended = CancellationToken::new();
                ended.cancel();
                ended
            },
            |running| running.end_guard.token(),
        )
    }

    /// Emits an event that belongs to no turn.
    pub fn emit(&self, actor: Actor, body: Body) -> Result<Position, SequencerError> {
        let mut draft = EventDraft::new(None, actor, body);
        draft.rows = rows(None, &draft.actor, &draft.body);
        let (position, _) = self.sequencer.emit_one(draft, OutboxRoom::Reserved)?;
        Ok(position)
    }

    /// Emits an event that belongs to no turn if a turn runs or a client watches. Takes the slot's
    /// lock, so that the event does not come between the binding of a turn and its start.
    pub(crate) fn emit_if_followed(&self, actor: Actor, body: Body) -> bool {
        let slot = self.slot.lock();
        let followed = self.presence.is_watched() || slot.running.is_some();
        followed && self.emit(actor, body).is_ok()
    }

    /// Emits a notice on the bus, coalesced with others of its kind. Never blocks and never fails.
    pub fn emit_notice(self: &Arc<Self>, notice: BusNotice) {
        if self.services.writer.health().is_full() {
            return; // the remaining space is for the terminals of turns
        }
        match self.bus.record(notice, Instant::now()) {
            BusAction::Counted => {}
            BusAction::Emit(body) => drop(self.emit(Actor::SYSTEM, *body)),
            BusAction::Flush(kind, delay) => {
                let live = self.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(delay).await;
                    if let Some(body) = live.bus.flush(kind, Instant::now()) {
                        let _ = live.emit(Actor::SYSTEM, body);
                    }
                });
            }
        }
    }

    /// Whether no turn runs or is queued, and every event is written. Queued turns of a damaged
    /// session never run.
    pub(crate) fn is_free(&self) -> bool {
        let slot = self.slot.lock();
        let is_quarantined = || self.services.quarantined.lock().contains(&self.id);
        let queue_done =
            slot.queue_len() == 0 || self.ring.close_reason().is_some() || is_quarantined();
        slot.running.is_none() && queue_done && self.sequencer.is_settled()
    }

    /// Whether the session may be unloaded: it is free, and nobody has watched it for a while.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_free()
            && !self.presence.is_watched()
            && self.presence.idle_time() >= self.services.options.idle_unload
    }

    /// Closes a deleted session: stops its turn, refuses events, ends its connections.
    pub(crate) fn close(&self) {
        self.slot.lock().clear();
        self.sequencer.close();
        self.ring.close(RingClosed::Deleted);
    }

    /// Closes a session whose log is damaged, for every caller.
    pub fn quarantine(&self) {
        self.services.quarantined.lock().insert(self.id);
        self.slot.lock().clear();
        self.sequencer.close();
        self.ring.close(RingClosed::Quarantined);
    }
}

impl std::fmt::Debug for LiveSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveSession")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

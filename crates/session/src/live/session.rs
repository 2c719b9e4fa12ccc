//! A session in memory: its order, its ring, the turn that holds its lock, those who watch it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use turnwire_event::code::TurnKind;
use turnwire_event::fold::{OpenTurn, rows};
use turnwire_event::port::{Delegate, Nobody, Producer, Wards};
use turnwire_event::row::{QueuedRow, SessionRow};
use turnwire_event::{Actor, Body, Clock, Filter, Owner, Position, Seq, SessionId, TurnId};
use turnwire_hub::{Closed, Pump, Ring};
use turnwire_log::{Draft, Refused, Room, Sequencer, Store, Tail, Writer};

use crate::history::cache::HistoryCache;
use crate::live::bus::{BusAction, BusCoalescer, BusNotice};
use crate::live::routing_policy::ActiveRoutingPolicy;
use crate::live::transcript::Transcript;
use crate::live::turn_slot::{QueuedTurn, TurnSlot};
use crate::options::Options;
use crate::submit::request::SubmitRequest;

/// What runs turns.
pub struct TurnRunner {
    /// What answers turns.
    pub producer: Arc<dyn Producer>,
    /// The version of the agent's definition that the newest turn was bound to.
    pub definition: Mutex<String>,
    /// The turns at work.
    pub turns: TaskTracker,
    /// Where tasks go that are started outside of one, as when a guard is dropped.
    pub runtime: Handle,
    /// Set when the server goes away: no turn starts any more.
    pub draining: AtomicBool,
}

impl TurnRunner {
    /// Whether no turn starts any more.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }
}

/// Who has workers for the turns of sessions: the service that all of them are part of.
pub(crate) trait DelegateFactory: Send + Sync {
    /// What the turn `turn` of `live` delegates through; its workers are wards of the turn, and
    /// are told what `submit` says of the person.
    fn delegate(
        self: Arc<Self>,
        live: &Arc<LiveSession>,
        turn: TurnId,
        submit: &SubmitRequest,
        wards: Arc<dyn Wards>,
    ) -> Arc<dyn Delegate>;
}

/// Is told the id of a session that is no more, on the writing thread: it must not wait.
pub type DeletedCallback = Arc<dyn Fn(SessionId) + Send + Sync>;

/// What every session of a server shares.
pub struct SessionServices {
    /// Settings.
    pub options: Options,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Where ids come from.
    pub mint: Arc<dyn turnwire_event::Mint>,
    /// The writer behind every sequencer.
    pub writer: Arc<Writer>,
    /// What wakes viewers.
    pub pump: Pump,
    /// What runs turns.
    pub runner: TurnRunner,
    /// Leave to read a chunk of a replay: as many at once as there are cores, in the order they
    /// ask, so that every late reader gets its first events soon.
    pub replays: Semaphore,
    /// The routing policy in force.
    pub policy: Mutex<ActiveRoutingPolicy>,
    /// Who is told of sessions that are no more; unset where nobody is.
    pub(crate) erased: OnceLock<DeletedCallback>,
    /// Who has workers. Not held, because it holds everyone here; unset until it is there.
    pub(crate) employer: OnceLock<Weak<dyn DelegateFactory>>,
    /// Sessions found damaged; they answer nothing else until the process ends.
    pub quarantined: Mutex<HashSet<SessionId>>,
}

impl SessionServices {
    /// The store behind the writer.
    pub fn store(&self) -> Arc<dyn Store> {
        self.writer.store().clone()
    }
}

/// How many events of a stretch pass a filter.
#[derive(Clone, Debug)]
pub(crate) struct ReplayCount {
    pub(crate) filter: Filter,
    pub(crate) since: Seq,
    pub(crate) upto: Seq,
    pub(crate) count: u64,
}

/// An open session. Everything about its order goes through `sequencer`, everything that a
/// client can see comes from `ring`.
pub struct LiveSession {
    /// Its id.
    pub id: SessionId,
    /// Whose it is.
    pub owner: Owner,
    /// How many sessions stand above it: none unless it is a worker.
    pub(crate) depth: usize,
    /// How many workers there were under the turn that it works for. For its own first turn, which
    /// takes it: later ones are not part of that work.
    pub(crate) crowd: Mutex<Option<Arc<AtomicUsize>>>,
    /// Where its order is made.
    pub sequencer: Arc<Sequencer>,
    /// Where its events are read.
    pub ring: Arc<Ring<Transcript>>,
    /// What all sessions share.
    pub house: Arc<SessionServices>,
    /// The lock: one turn at a time, the others in line.
    pub(crate) slot: Mutex<TurnSlot>,
    pub(crate) watchers: AtomicUsize,
    /// How often the last watcher has left: a grace counts from its own leaving.
    pub(crate) departures: AtomicUsize,
    /// The newest of those leavings that was not a quiet one.
    pub(crate) heard: AtomicUsize,
    pub(crate) idle_since: Mutex<Instant>,
    bus: BusCoalescer,
    pub(crate) memory: Arc<Mutex<HistoryCache>>,
    /// The last count of a replay: readers come back in crowds, from one place with one filter.
    pub(crate) counted: Mutex<Option<ReplayCount>>,
}

impl LiveSession {
    /// Takes a session into memory where the store left it.
    pub(crate) fn open(
        house: Arc<SessionServices>,
        (row, depth): (SessionRow, usize),
        tail: Tail,
        open: Option<OpenTurn>,
    ) -> Arc<Self> {
        let (id, owner) = (row.id, row.owner.clone());
        let bounds = turnwire_hub::ring::Bounds {
            events: house.options.ring_events,
            bytes: house.options.ring_bytes,
        };
        let ring = Ring::new(
            tail.position(),
            Transcript::new(row, open),
            bounds,
            house.pump.clone(),
        );
        let sequencer = Sequencer::open(
            id,
            tail,
            turnwire_log::sequencer::Bounds::default(),
            house.clock.clone(),
            house.writer.clone(),
            ring.clone(),
        );
        Arc::new(Self {
            id,
            owner,
            depth,
            crowd: Mutex::new(None),
            sequencer,
            ring,
            house,
            slot: Mutex::default(),
            watchers: AtomicUsize::new(0),
            departures: AtomicUsize::new(0),
            heard: AtomicUsize::new(0),
            idle_since: Mutex::new(Instant::now()),
            bus: BusCoalescer::default(),
            memory: Arc::default(),
            counted: Mutex::new(None),
        })
    }

    /// Puts in line what waited when the session was last in memory.
    pub(crate) fn line_up(&self, rows: Vec<QueuedRow>) {
        let mut slot = self.slot.lock();
        rows.into_iter()
            .for_each(|row| slot.put(QueuedTurn::read(row)));
    }

    /// What a turn of it is for.
    pub(crate) fn kind(&self, submit: &SubmitRequest) -> TurnKind {
        if self.depth > 0 {
            TurnKind::Worker
        } else {
            submit.kind()
        }
    }

    /// What the turn `turn` delegates through.
    pub(crate) fn delegate(
        self: &Arc<Self>,
        turn: TurnId,
        submit: &SubmitRequest,
        wards: Arc<dyn Wards>,
    ) -> Arc<dyn Delegate> {
        match self.house.employer.get().and_then(Weak::upgrade) {
            Some(employer) => employer.delegate(self, turn, submit, wards),
            None => Arc::new(Nobody),
        }
    }

    /// What the turn `id` has open, counting everything emitted, released or not.
    pub(crate) fn open_turn(&self, id: TurnId) -> Option<OpenTurn> {
        // Under the sequencer's lock nothing can be released meanwhile.
        self.sequencer.with_unreleased(|waiting| {
            let mut open = self
                .ring
                .look(|transcript, _, _| transcript.open.clone())
                .filter(|open| open.id == id);
            for event in waiting {
                if event.head.turn != Some(id) {
                    continue;
                }
                match (&mut open, &event.body) {
                    (_, Body::TurnStarted(_)) => {
                        let mut fresh = OpenTurn::new(id);
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

    /// The turn in flight.
    pub fn current_turn(&self) -> Option<TurnId> {
        self.slot.lock().running.as_ref().map(|running| running.id)
    }

    /// Records an event that belongs to no turn.
    pub fn emit(&self, actor: Actor, body: Body) -> Result<Position, Refused> {
        let mut draft = Draft::new(None, actor, body);
        draft.rows = rows(None, &draft.actor, &draft.body);
        let (position, _) = self.sequencer.emit_one(draft, Room::Reserved)?;
        Ok(position)
    }

    /// Records an event that belongs to no turn where someone would see it now: a turn runs, or a
    /// client is there. Under the session's lock, so that it does not come between the moment in
    /// which a turn is bound and its start.
    pub(crate) fn tell(&self, actor: Actor, body: Body) -> bool {
        let slot = self.slot.lock();
        let followed = self.watchers.load(Ordering::Acquire) > 0 || slot.running.is_some();
        followed && self.emit(actor, body).is_ok()
    }

    /// Takes a note for the bus; never waited for, never a reason to fail.
    pub fn note(self: &Arc<Self>, note: BusNotice) {
        if self.house.writer.health().is_full() {
            return; // what room is left is for the endings of turns
        }
        match self.bus.note(note, Instant::now()) {
            BusAction::Counted => {}
            BusAction::Emit(body) => drop(self.emit(Actor::SYSTEM, *body)),
            BusAction::Flush(key, after) => {
                let live = self.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(after).await;
                    if let Some(body) = live.bus.flush(key, Instant::now()) {
                        let _ = live.emit(Actor::SYSTEM, body);
                    }
                });
            }
        }
    }

    /// Whether nothing of it runs or waits, and everything is written. What waits in a damaged
    /// session never runs.
    pub(crate) fn is_free(&self) -> bool {
        let slot = self.slot.lock();
        let never = || self.house.quarantined.lock().contains(&self.id);
        let queue = slot.waiting() == 0 || self.ring.closed().is_some() || never();
        slot.running.is_none() && queue && self.sequencer.is_settled()
    }

    /// Whether it may leave memory: nobody watches, nothing runs, nothing waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_free()
            && self.watchers.load(Ordering::Acquire) == 0
            && self.idle_since.lock().elapsed() >= self.house.options.idle_unload
    }

    /// Ends the session for everyone: running turn, connections, log.
    pub(crate) fn shut(&self) {
        self.slot.lock().clear();
        self.sequencer.close();
        self.ring.close(Closed::Deleted);
    }

    /// The log of this session cannot be trusted: nothing more is taken or told.
    pub fn quarantine(&self) {
        self.house.quarantined.lock().insert(self.id);
        self.slot.lock().clear();
        self.sequencer.close();
        self.ring.close(Closed::Quarantined);
    }
}

impl std::fmt::Debug for LiveSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveSession")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

//! A session in memory: its sequencer, its ring, its turn slot and its watchers; and the services
//! that it shares with all others.

use std::collections::HashSet;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use turnwire_event::body::session::SessionClosed;
use turnwire_event::fold::OpenTurn;
use turnwire_event::port::{NoChildTasks, TurnTracer, WorkerLauncher};
use turnwire_event::row::{AuditEntry, RowChange, SessionRow};
use turnwire_event::{
    Actor, Body, Clock, EpisodeId, EventFilter, IdGenerator, Owner, Position, Seq, SessionId,
    TurnId,
};
use turnwire_hub::ring::RingBounds;
use turnwire_hub::{Ring, RingBudget, RingClosed, WakePump};
use turnwire_log::sequencer::OutboxBounds;
use turnwire_log::{
    AppendError, BatchTicket, EventDraft, EventSelection, LogTail, LogWriter, OutboxRoom,
    ReadError, Sequencer, SequencerError, Store, StoreFault,
};

use super::bus::{BusAction, BusCoalescer, BusNotice};
use super::bus_budget::{BusBudget, BusClass, BusDecision};
use super::child_tasks::ChildTasks;
use super::presence::SessionPresence;
use super::response_claim::ResponseClaims;
use super::routing_policy::ActiveRoutingPolicy;
use super::traced_sink::traced_sink;
use super::transcript::{Transcript, apply_released};
use super::turn_runner::TurnRunner;
use super::turn_slot::{TurnEndGuard, TurnSlot};
use crate::clock::trusted::TrustedClock;
use crate::error::Error;
use crate::history::budget::HistoryCacheBudget;
use crate::history::cache::HistoryCache;
use crate::metering::quota::Quotas;
use crate::options::Options;
use crate::store_read::{ReadShare, ReadSlots, Reader, read_with};
use crate::submit::request::SubmitRequest;
use crate::submit::write_slots::{WriteSlot, WriteSlots};

/// Creates the [`WorkerLauncher`] of a turn, through which the turn starts workers: children of the
/// turn, which inherit locale, location and wire version from its request.
pub(crate) type DelegateFactory = Box<
    dyn Fn(&Arc<LiveSession>, TurnId, &SubmitRequest, Arc<ChildTasks>) -> Arc<dyn WorkerLauncher>
        + Send
        + Sync,
>;

/// Receives the id of each deleted session, on the writer's thread: it must not block.
pub type DeletedCallback = Arc<dyn Fn(SessionId) + Send + Sync>;

/// What all [`LiveSession`]s of a server share.
pub(crate) struct SessionServices {
    pub(crate) options: Options,
    pub(crate) clock: Arc<dyn Clock>,
    /// The time by which stored data expires.
    pub(crate) trusted_clock: TrustedClock,
    pub(crate) id_generator: Arc<dyn IdGenerator>,
    /// The log and the records that the writer appends to.
    pub(crate) store: Arc<dyn Store>,
    /// The writer behind every sequencer.
    pub(crate) writer: Arc<LogWriter>,
    /// Records the spans of turns; `None` if this server exports none.
    pub(crate) tracer: Option<Arc<dyn TurnTracer>>,
    /// Wakes the readers of rings.
    pub(crate) pump: WakePump,
    /// The memory of all rings together.
    pub(crate) ring_budget: Arc<RingBudget>,
    /// The memory of all history caches together.
    pub(crate) history_budget: Arc<HistoryCacheBudget>,
    pub(crate) runner: TurnRunner,
    /// The slots of reads of the store.
    pub(crate) reads: ReadSlots,
    /// The slots of writes that requests wait for.
    pub(crate) writes: WriteSlots,
    /// What principals and tenants may use.
    pub(crate) quotas: Quotas,
    pub(crate) routing_policy: Mutex<ActiveRoutingPolicy>,
    pub(crate) on_deleted: OnceLock<DeletedCallback>,
    /// Refers weakly to the service, which owns these services; unset until the service exists.
    pub(crate) delegates: OnceLock<DelegateFactory>,
    /// The response ids that running turns have from their upstreams.
    pub(crate) response_claims: Arc<ResponseClaims>,
    /// Sessions with a damaged log; they are refused until the process ends.
    pub(crate) quarantined: Mutex<HashSet<SessionId>>,
}

impl SessionServices {
    /// Runs a `read` of the server itself on a blocking thread; see [`ReadShare::read`].
    pub(crate) async fn read<T, E>(
        &self,
        read: impl FnOnce(&dyn Store) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        self.read_for(Reader::Server, read).await
    }

    /// Runs a `read` for `reader` on a blocking thread; see [`ReadShare::read`].
    pub(crate) async fn read_for<T, E>(
        &self,
        reader: Reader,
        read: impl FnOnce(&dyn Store) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let share = self.reads.share(reader);
        share.read(self.store.clone(), read).await
    }

    /// As [`read_for`](Self::read_for) an owner, for one call of the store.
    pub(crate) async fn read_rows_for<T: Send + 'static>(
        &self,
        owner: &Owner,
        read: impl FnOnce(&dyn Store) -> Result<T, ReadError> + Send + 'static,
    ) -> Result<T, Error> {
        let reader = Reader::Owner(owner.clone());
        self.read_for(reader, |store| Ok(read(store)?)).await
    }

    /// As [`read`](Self::read), for one call of the store.
    pub(crate) async fn read_rows<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Store) -> Result<T, ReadError> + Send + 'static,
    ) -> Result<T, Error> {
        self.read(|store| Ok(read(store)?)).await
    }

    /// Waits for the slot of a small write that a request of `owner` waits for; see [`WriteSlots`].
    pub(crate) async fn write_slot(&self, owner: &Owner) -> Result<WriteSlot, Error> {
        self.write_slot_for(owner, 0).await
    }

    /// Like [`write_slot`](Self::write_slot), for a write of `bytes`.
    pub(crate) async fn write_slot_for(
        &self,
        owner: &Owner,
        bytes: usize,
    ) -> Result<WriteSlot, Error> {
        let slot = self.writes.acquire(owner, bytes).await;
        // The disk may have become full meanwhile: the write would wait for space.
        match self.is_storage_full() {
            true => Err(Error::StorageFull),
            false => slot,
        }
    }

    /// Runs a small write that a request of `owner` waits for, on the writer's thread behind all that
    /// was emitted before. It is not repeated: on an error nothing is written.
    pub(crate) async fn write_for<T: Send + 'static>(
        &self,
        owner: &Owner,
        write: impl Fn(&dyn Store) -> Result<T, AppendError> + Send + 'static,
    ) -> Result<T, Error> {
        self.check_storage()?;
        let slot = self.write_slot(owner).await?;
        let (answer, written) = oneshot::channel();
        let (store, mut waiting) = (self.store.clone(), Some((answer, slot)));
        self.writer.run(Box::new(move || {
            // Answered already: the writer only wanted to know whether the disk is full.
            let Some((answer, _slot)) = waiting.take() else {
                return Ok(());
            };
            let (result, outcome) = match write(store.as_ref()) {
                Ok(value) => (Ok(value), Ok(())),
                Err(error) => (Err(Error::from(&error)), Err(error)),
            };
            let _ = answer.send(result);
            outcome
        }));
        written.await.unwrap_or(Err(Error::Internal))
    }

    /// The row of a new session of `owner`.
    pub(crate) fn new_session(&self, id: SessionId, owner: &Owner) -> SessionRow {
        let now = self.clock.now();
        SessionRow {
            id,
            owner: owner.clone(),
            parent: None,
            agent: None,
            workspace_path: None,
            metadata: turnwire_event::JsonObject::default(),
            episode_id: EpisodeId(self.id_generator.ulid()),
            active_model: self.options.default_model.clone(),
            routing_policy_version: self.routing_policy.lock().version.clone(),
            cost_usd: 0.0,
            turn_count: 0,
            created_at: now,
            updated_at: now,
        }
    }

    /// True if the disk is full: what space remains is for the terminals of turns.
    pub(crate) fn is_storage_full(&self) -> bool {
        self.writer.health().is_full()
    }

    /// Fails if the disk is full or the store has a fault: no new turn should start.
    pub(crate) fn check_storage(&self) -> Result<(), Error> {
        if self.is_storage_full() {
            return Err(Error::StorageFull);
        }
        self.store.fault().map_or(Ok(()), |fault| Err(fault.into()))
    }

    /// The error of a request for a quarantined session. Sessions that a damaged database cannot write
    /// are not damaged themselves.
    pub(crate) fn quarantine_error(&self) -> Error {
        match self.store.fault() {
            Some(StoreFault::Damaged) => Error::DatabaseDamaged,
            _ => Error::Quarantined,
        }
    }

    /// The [`WorkerLauncher`] of `turn`; [`NoChildTasks`] if there is no factory.
    pub(crate) fn delegate(
        &self,
        parent: &Arc<LiveSession>,
        turn: TurnId,
        request: &SubmitRequest,
        children: Arc<ChildTasks>,
    ) -> Arc<dyn WorkerLauncher> {
        match self.delegates.get() {
            Some(delegate) => delegate(parent, turn, request, children),
            None => Arc::new(NoChildTasks),
        }
    }
}

/// The number of events between two positions that pass a filter.
#[derive(Clone, Debug)]
pub(crate) struct ReplayCount {
    pub(crate) filter: EventFilter,
    pub(crate) since: Position,
    pub(crate) upto: Position,
    /// The persisted events that pass the filter.
    pub(crate) persisted: u64,
    /// Starts and ends of the messages that completed in between.
    pub(crate) ends: u64,
}

/// A session in memory. The [`Sequencer`] orders everything that is written, and clients read
/// everything from the [`Ring`].
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
    bus_budget: BusBudget,
    /// Locked by blocking threads while they read the store; elsewhere only tried.
    pub(crate) history: Arc<Mutex<HistoryCache>>,
    /// The last count of a replay: many clients reconnect from one position with one filter.
    pub(crate) last_replay_count: Mutex<Option<ReplayCount>>,
}

impl LiveSession {
    /// The share of the owner's requests in the reads of the store.
    pub(crate) fn read_share(&self) -> ReadShare {
        let reader = Reader::Owner(self.owner.clone());
        self.services.reads.share(reader)
    }

    /// The share of the owner's turns in the reads of the store.
    pub(crate) fn turn_read_share(&self) -> ReadShare {
        let reader = Reader::Turn(self.owner.clone());
        self.services.reads.share(reader)
    }

    /// Runs a `read` for a request of the owner on a blocking thread; see [`ReadShare::read`].
    pub(crate) async fn read<T, E>(
        &self,
        read: impl FnOnce(&dyn Store) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let store = self.services.store.clone();
        self.read_share().read(store, read).await
    }

    /// Resolves when every event up to `seq` is durable.
    pub(crate) async fn committed(&self, seq: Seq) -> Result<(), Error> {
        let durable = self.sequencer.committed(seq).await;
        durable.map_err(|refused| self.refusal(refused))
    }

    /// As [`committed`](Self::committed), for a request whose event takes `slot`: the slot is held
    /// until the event is durable, also if the caller goes away.
    pub(crate) async fn committed_in(
        self: &Arc<Self>,
        slot: WriteSlot,
        seq: Seq,
    ) -> Result<(), Error> {
        let live = self.clone();
        let task = self.services.runner.runtime.spawn(async move {
            let durable = live.committed(seq).await;
            drop(slot);
            durable
        });
        task.await.unwrap_or(Err(Error::Internal))
    }

    /// Resolves when every event that was emitted so far is durable.
    pub(crate) async fn all_committed(&self) -> Result<(), Error> {
        let durable = self.sequencer.all_committed().await;
        durable.map_err(|refused| self.refusal(refused))
    }

    /// Resolves when the batch of a [`BatchTicket`] is durable.
    pub(crate) async fn stored(&self, ticket: BatchTicket) -> Result<(), Error> {
        let durable = self.sequencer.stored(ticket).await;
        durable.map_err(|refused| self.refusal(refused))
    }

    /// The error of a call that the sequencer refused: a session closed for damage still exists.
    pub(crate) fn refusal(&self, refused: SequencerError) -> Error {
        let is_quarantined = || match self.ring.close_reason() {
            Some(reason) => reason == RingClosed::Quarantined,
            None => self.services.quarantined.lock().contains(&self.id),
        };
        match refused {
            SequencerError::Closed if is_quarantined() => self.services.quarantine_error(),
            refused => refused.into(),
        }
    }

    /// As [`read`](Self::read), for a chunk of a replay.
    pub(crate) async fn read_replay<T, E>(
        &self,
        read: impl FnOnce(&dyn Store) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let slot = self.services.reads.replay_slot(&self.owner).await?;
        read_with(slot, self.services.store.clone(), read).await
    }

    /// Bytes of frames that wait for the socket of one connection; a single frame may be larger.
    pub fn pending_bytes_max(&self) -> usize {
        self.services.options.replay_bytes
    }

    /// Loads a session at the tail of its log; `open` is the turn that a crash left open.
    pub(crate) fn load(
        services: Arc<SessionServices>,
        (row, depth): (SessionRow, usize),
        tail: LogTail,
        open: Option<OpenTurn>,
    ) -> Arc<Self> {
        let (id, owner) = (row.id, row.owner.clone());
        let bounds = RingBounds {
            events: services.options.ring_events,
            bytes: services.options.ring_bytes,
        };
        let bus_budget = match tail.seq {
            Seq(0) => BusBudget::full(services.options.bus_events_max),
            _ => BusBudget::unknown(),
        };
        let transcript = Transcript::new(row, open);
        let (pump, budget) = (services.pump.clone(), services.ring_budget.clone());
        let ring = Ring::new(tail.position(), transcript, bounds, pump, budget);
        let sequencer = Sequencer::open(
            id,
            tail,
            OutboxBounds::default(),
            services.clock.clone(),
            services.writer.clone(),
            traced_sink(&ring, services.tracer.as_ref()),
        );
        let history = HistoryCache::new(services.history_budget.reservation(owner.clone()));
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
            bus_budget,
            history: Arc::new(Mutex::new(history)),
            last_replay_count: Mutex::new(None),
        })
    }

    /// Reads the session's row at the ring's tail.
    pub(crate) fn with_row<T>(&self, read: impl FnOnce(&SessionRow) -> T) -> T {
        self.ring
            .with_state(|transcript, _, _| read(&transcript.row))
    }

    /// What `turn` has open after every emitted event, released or not.
    pub(crate) fn open_turn(&self, turn: TurnId) -> Option<OpenTurn> {
        // Under the sequencer's lock no event is released meanwhile.
        self.sequencer.with_unreleased(|unreleased| {
            let mut open = self
                .ring
                .with_state(|transcript, _, _| transcript.open.clone())
                .filter(|open| open.id == turn);
            for event in unreleased.filter(|event| event.head.turn == Some(turn)) {
                if matches!(event.body, Body::TurnStarted(_)) {
                    open = Some(OpenTurn::new(turn));
                }
                if let Some(open) = &mut open {
                    apply_released(open, event);
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
        match self.slot.lock().running_turn(turn) {
            Some(running) => running.end_guard.token(),
            // The token of a guard that is dropped at once.
            None => TurnEndGuard::default().token(),
        }
    }

    /// Emits an event that belongs to no turn.
    pub fn emit(&self, actor: Actor, body: Body) -> Result<Position, SequencerError> {
        let draft = EventDraft::with_rows(None, actor, body);
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

    /// Emits a [`BusNotice`], coalesced with others of its kind. Never blocks and never fails.
    pub fn emit_notice(self: &Arc<Self>, notice: BusNotice) {
        if self.services.is_storage_full() {
            return;
        }
        match self.bus.record(notice, Instant::now()) {
            BusAction::Counted => {}
            BusAction::Emit(body) => self.emit_bounded(*body),
            BusAction::Flush(kind, delay) => {
                let live = self.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(delay).await;
                    if let Some(body) = live.bus.flush(kind, Instant::now()) {
                        live.emit_bounded(body);
                    }
                });
            }
        }
    }

    /// Emits a `bus.*` event within the bound of the session.
    fn emit_bounded(self: &Arc<Self>, body: Body) {
        match self.bus_budget.take(body) {
            BusDecision::Nothing => {}
            BusDecision::Emit(body) => drop(self.emit(Actor::SYSTEM, *body)),
            BusDecision::Count(class) => {
                let live = self.clone();
                tokio::spawn(async move {
                    let stored = live.count_bus_events(class).await;
                    let max = live.services.options.bus_events_max;
                    for body in live.bus_budget.set_stored(class, stored, max) {
                        let _ = live.emit(Actor::SYSTEM, body);
                    }
                });
            }
        }
    }

    /// The number of stored events of a class, counted up to the bound; `None` if it cannot be read.
    async fn count_bus_events(&self, class: BusClass) -> Option<u64> {
        let (id, upto) = (self.id, self.sequencer.last().seq);
        let max = self.services.options.bus_events_max;
        let selection = EventSelection::all().with_types(class.types());
        let read = self.services.read_rows(move |store| {
            let Some(tail) = store.tail(id)? else {
                return Ok(0);
            };
            let counted = store.count(id, tail.low, upto, &selection, max as usize)?;
            Ok(counted.events)
        });
        let stored = read.await.inspect_err(|error| {
            tracing::debug!(session = %id, %error, "could not count the events of clients");
        });
        stored.ok()
    }

    /// Whether no turn runs or is queued, and every event is written. Queued turns of a damaged
    /// session never run.
    pub(crate) fn is_free(&self) -> bool {
        let slot = self.slot.lock();
        let is_quarantined = || self.services.quarantined.lock().contains(&self.id);
        let queue_done =
            slot.queue.is_empty() || self.ring.close_reason().is_some() || is_quarantined();
        slot.running.is_none() && queue_done && self.sequencer.is_settled()
    }

    /// Whether the session may be unloaded: it is free, and nobody has watched it for a while.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_free()
            && !self.presence.is_watched()
            && self.presence.idle_time() >= self.services.options.idle_unload
    }

    /// Tells the clients of a session that is being deleted, by its last event, and stops its turn.
    /// False if there is nobody to tell, or it is told already. `audit` commits with the event: a
    /// deletion that was told goes on after a crash, when nobody knows any more who asked for it.
    pub(crate) fn announce_deletion(&self, audit: Option<&AuditEntry>) -> bool {
        let closed = SessionClosed {
            reason: SessionClosed::DELETED.to_owned(),
        };
        let mut draft = EventDraft::with_rows(None, Actor::SYSTEM, Body::SessionClosed(closed));
        let audit = audit.cloned().map(Box::new);
        draft.rows.extend(audit.map(RowChange::AuditAdded));
        let is_told = self.presence.is_delivered()
            && self.sequencer.emit_one(draft, OutboxRoom::Reserved).is_ok();
        if is_told {
            self.slot.lock().clear();
        }
        is_told
    }

    /// Closes a deleted session: stops its turn, refuses events, ends its connections.
    pub(crate) fn close(&self) {
        self.close_for(RingClosed::Deleted);
    }

    /// As [`close`](Self::close), if that ends nothing: no turn, no connection, no event that is yet
    /// to be written. Then the session can be loaded again should it not be deleted. Returns whether
    /// this call has closed the session: false if another has.
    pub(crate) fn close_if_unused(&self) -> bool {
        let mut slot = self.slot.lock();
        let is_used = self.ring.close_reason().is_some()
            || slot.running.is_some()
            || !slot.queue.is_empty()
            || self.presence.is_delivered()
            || !self.sequencer.is_settled();
        if !is_used {
            // Under the lock: no turn starts in between.
            slot.clear();
            self.sequencer.close();
            self.ring.close(RingClosed::Deleted);
        }
        !is_used
    }

    /// Closes a session whose log is damaged, for every caller.
    pub fn quarantine(&self) {
        self.services.quarantined.lock().insert(self.id);
        self.close_for(RingClosed::Quarantined);
    }

    fn close_for(&self, reason: RingClosed) {
        self.slot.lock().clear();
        self.sequencer.close();
        self.ring.close(reason);
    }
}

impl std::fmt::Debug for LiveSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveSession")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

//! The sequencer: the one place where a session's order is made.
//!
//! `emit` gives numbers under the lock and returns; the writer thread makes them durable; what
//! is at the front of the outbox with its gate committed is released to the sink, in order,
//! under the same lock. See the picture in `lib.rs`.

mod outbox;
mod state;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;
use turnwire_event::row::RowChange;
use turnwire_event::{
    Actor, Body, Clock, Head, Position, Render, Seq, SessionId, Sub, Timestamp, Trace, TurnId,
};

use crate::record::{Append, Tail};
use crate::sequencer::state::State;
use crate::writer::{Source, Writer};

/// An event on its way in: everything but its place and time.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Its turn.
    pub turn: Option<TurnId>,
    /// Who did it.
    pub actor: Actor,
    /// What happened; carried along, never looked into.
    pub body: Body,
    /// The JSON of `body`.
    pub payload: Vec<u8>,
    /// Its trace.
    pub trace: Option<Arc<Trace>>,
    /// The interceptor's stamp.
    pub render: Option<Render>,
    /// Rows that commit with it. A transient event with rows is a barrier: it is released with
    /// the commit of the next persisted event of the same `emit`.
    pub rows: Vec<RowChange>,
}

impl Draft {
    /// A draft with nothing beside the event.
    pub fn new(turn: Option<TurnId>, actor: Actor, body: Body) -> Self {
        let mut payload = Vec::with_capacity(192);
        body.write(&mut payload);
        Self {
            turn,
            actor,
            body,
            payload,
            trace: None,
            render: None,
            rows: Vec::new(),
        }
    }
}

/// An event on its way out: durable as far as it will be, and in its place.
#[derive(Debug)]
pub struct Released {
    /// Place, type, actor.
    pub head: Head,
    /// When.
    pub time: Timestamp,
    /// The event.
    pub bytes: Bytes,
    /// What happened.
    pub body: Body,
}

/// What to wait for until rows that ride with no event are durable: the batch that holds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u64);

/// Where released events go. Called under the sequencer's lock: must not block, must not emit.
pub trait Sink: Send + Sync {
    /// Takes events in order.
    fn publish(&self, events: &mut Vec<Released>);
    /// The session was found damaged; nothing more will come.
    fn quarantined(&self);
}

/// Why events were not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The outbox is full.
    #[error("the outbox is full")]
    Full,
    /// The turn has its terminal, or never started.
    #[error("the turn has ended")]
    Ended,
    /// The turn was asked to stop, and this would start something or end it otherwise.
    #[error("the turn was asked to stop")]
    Cancelled,
    /// The session takes no events any more.
    #[error("the session is closed")]
    Closed,
}

/// Whether an emit may go beyond the outbox's bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// It may not: the producer has to wait.
    Bounded,
    /// It may: an ending, a cancel, a barrier. Few, and never waiting.
    Reserved,
}

/// Bounds of the outbox.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Events.
    pub events: usize,
    /// Bytes.
    pub bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            events: 4096,
            bytes: 4 << 20,
        }
    }
}

/// One session's order.
pub struct Sequencer {
    session: SessionId,
    bounds: Bounds,
    clock: Arc<dyn Clock>,
    writer: Arc<Writer>,
    sink: Arc<dyn Sink>,
    state: Mutex<State>,
    /// Whether the outbox is full, for a look without the lock.
    full: AtomicBool,
    /// Told on every commit and on closing; those who wait look at the state again.
    moved: Notify,
}

impl Sequencer {
    /// Opens the order of a session where the store left it.
    pub fn open(
        session: SessionId,
        tail: Tail,
        bounds: Bounds,
        clock: Arc<dyn Clock>,
        writer: Arc<Writer>,
        sink: Arc<dyn Sink>,
    ) -> Arc<Self> {
        let state = Mutex::new(State::new(tail));
        Arc::new(Self {
            session,
            bounds,
            clock,
            writer,
            sink,
            state,
            full: AtomicBool::new(false),
            moved: Notify::new(),
        })
    }

    /// Takes up a turn that was open when the process before ended. Transient events from here
    /// on are placed last, so that none a client can have seen comes after them; `transients`
    /// says how many there will be.
    pub fn resume_turn(&self, turn: TurnId, cancelled: bool, transients: u32) {
        let mut state = self.state.lock();
        state.open_turn(turn, cancelled);
        state.sub = Sub(Sub::LAST.0 - transients);
    }

    /// Hands over events, all or none, in order. Gives the place of each.
    pub fn emit(
        self: &Arc<Self>,
        drafts: Vec<Draft>,
        room: Room,
    ) -> Result<Vec<(Position, Timestamp)>, Refused> {
        let mut state = self.state.lock();
        if room == Room::Bounded && state.outbox.is_full(self.bounds) {
            return Err(Refused::Full);
        }
        state.admit(&drafts)?;
        let now = self.clock.now();
        let places = drafts
            .into_iter()
            .map(|draft| state.place(self.session, now, draft))
            .collect();
        self.after_emit(&mut state);
        Ok(places)
    }

    /// Hands over one event: the path of every token.
    pub fn emit_one(
        self: &Arc<Self>,
        draft: Draft,
        room: Room,
    ) -> Result<(Position, Timestamp), Refused> {
        let mut state = self.state.lock();
        if room == Room::Bounded && state.outbox.is_full(self.bounds) {
            return Err(Refused::Full);
        }
        state.admit(std::slice::from_ref(&draft))?;
        let now = self.clock.now();
        let place = state.place(self.session, now, draft);
        self.after_emit(&mut state);
        Ok(place)
    }

    /// Writes rows that belong to no event, checkpoints of messages in flight, of many sessions
    /// in one commit.
    pub fn checkpoint(writer: &Writer, parts: Vec<(Arc<Self>, Vec<RowChange>)>) {
        let mut due: Vec<Arc<dyn Source>> = Vec::with_capacity(parts.len());
        for (sequencer, rows) in parts {
            let mut state = sequencer.state.lock();
            if state.is_closed() {
                continue;
            }
            let now = sequencer.clock.now();
            state.put_rows(now, rows);
            if !std::mem::replace(&mut state.queued, true) {
                drop(state);
                due.push(sequencer);
            }
        }
        writer.enqueue_all(due);
    }

    /// Hands over rows that ride with no event, in order with the events. Gives back the tail at
    /// which they stand, and what to wait for until they are durable.
    pub fn put(self: &Arc<Self>, rows: Vec<RowChange>) -> Result<(Position, Ticket), Refused> {
        let mut state = self.state.lock();
        if state.is_closed() {
            return Err(Refused::Closed);
        }
        let (at, batch) = state.put_rows(self.clock.now(), rows);
        self.enqueue(&mut state);
        Ok((at, Ticket(batch)))
    }

    /// Resolves when the rows of `ticket` are durable.
    pub async fn stored(&self, ticket: Ticket) -> Result<(), Refused> {
        self.wait(|state| (state.batches_committed >= ticket.0).then_some(()))
            .await
    }

    /// Whether nothing waits for the writer or for release.
    pub fn is_settled(&self) -> bool {
        self.state.lock().is_settled()
    }

    /// Whether a producer should wait before it emits.
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    fn after_emit(self: &Arc<Self>, state: &mut State) {
        self.enqueue(state);
        self.release(state);
    }

    fn enqueue(self: &Arc<Self>, state: &mut State) {
        if state.wants_writer() {
            state.queued = true;
            self.writer.enqueue(self.clone());
        }
    }

    fn release(&self, state: &mut State) {
        let mut released = state.outbox.release(state.committed);
        if !released.is_empty() {
            self.sink.publish(&mut released);
        }
        self.full
            .store(state.outbox.is_full(self.bounds), Ordering::Relaxed);
    }

    /// Runs `look` on the events that are placed but not released, in order, under the lock:
    /// with what was released it is everything that was ever emitted.
    pub fn with_unreleased<T>(
        &self,
        look: impl FnOnce(&mut dyn Iterator<Item = &Released>) -> T,
    ) -> T {
        let state = self.state.lock();
        look(&mut state.outbox.iter())
    }

    /// The place of the last event given, and the epoch.
    pub fn last(&self) -> Position {
        self.state.lock().last()
    }

    /// Resolves when everything up to `seq` is durable.
    pub async fn committed(&self, seq: Seq) -> Result<(), Refused> {
        self.wait(|state| (state.committed >= seq).then_some(()))
            .await
    }

    /// Resolves when the outbox has room.
    pub async fn ready(&self) -> Result<(), Refused> {
        let bounds = self.bounds;
        self.wait(|state| (!state.outbox.is_full(bounds)).then_some(()))
            .await
    }

    async fn wait<T>(&self, look: impl Fn(&State) -> Option<T>) -> Result<T, Refused> {
        loop {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            {
                let state = self.state.lock();
                if let Some(value) = look(&state) {
                    return Ok(value);
                }
                if state.is_closed() {
                    return Err(Refused::Closed);
                }
            }
            moved.await;
        }
    }

    /// Takes no events any more; what waits is dropped. For a session that is deleted.
    pub fn close(&self) {
        self.shut();
        self.moved.notify_waiters();
    }

    fn shut(&self) {
        let mut state = self.state.lock();
        state.close();
        // A producer that waits for room must find out that there is nothing to wait for.
        self.full.store(false, Ordering::Relaxed);
    }
}

impl Source for Sequencer {
    fn take(&self) -> Option<Append> {
        self.state.lock().take(self.session)
    }

    fn committed(&self, batch: &Append) {
        let mut state = self.state.lock();
        if let Some(last) = batch.records.last() {
            state.committed = last.seq;
        }
        state.batches_committed += 1;
        self.release(&mut state);
        drop(state);
        self.moved.notify_waiters();
    }

    fn quarantined(&self) {
        self.shut();
        self.sink.quarantined();
        self.moved.notify_waiters();
    }
}

impl std::fmt::Debug for Sequencer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sequencer")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

//! The sequencer: gives every event of a session its position.
//!
//! [`Sequencer::emit`] gives positions under the lock and returns; the writer thread makes the
//! events durable; events at the front of the outbox whose gate is committed are released to the
//! [`EventSink`], in order, under the same lock. See the picture in `lib.rs`.

mod outbox;
mod state;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use turnwire_event::fold::rows;
use turnwire_event::row::RowChange;
use turnwire_event::{
    Actor, Body, Clock, EventHead, Position, RenderDecision, Seq, SessionId, Sub, Timestamp,
    TraceContext, TurnId, UpstreamId,
};

use crate::record::{LogTail, SessionAppend};
use crate::sequencer::state::SequencerState;
use crate::writer::{BatchSource, LogWriter};

/// An event to emit: everything but its position and time.
#[derive(Clone, Debug)]
pub struct EventDraft {
    /// The turn that the event belongs to; `None` for events of the session itself.
    pub turn: Option<TurnId>,
    /// The actor in the event's head.
    pub actor: Actor,
    /// The body; the sequencer reads its type only.
    pub body: Body,
    /// The JSON of `body`; see [`Body::write`].
    pub payload: Vec<u8>,
    /// The trace context, written with persisted events only.
    pub trace: Option<Arc<TraceContext>>,
    /// The decision of the rendering policy.
    pub render: Option<RenderDecision>,
    /// The sub-agent whose tool is the actor.
    pub sub_agent_id: Option<Arc<str>>,
    /// Row changes that commit with the event. A transient event with rows is a barrier: it is
    /// released with the commit of the next persisted event of the same [`Sequencer::emit`].
    pub rows: Vec<RowChange>,
}

impl EventDraft {
    /// A draft without trace, rendering decision and rows.
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
            sub_agent_id: None,
            rows: Vec::new(),
        }
    }

    /// A draft with the [`rows()`] that follow from the event alone.
    pub fn with_rows(turn: Option<TurnId>, actor: Actor, body: Body) -> Self {
        Self {
            rows: rows(turn, &actor, &body),
            ..Self::new(turn, actor, body)
        }
    }
}

/// An event that was released: every persisted event up to it is durable.
#[derive(Debug)]
pub struct ReleasedEvent {
    /// Position, type, turn, actor and visibility.
    pub head: EventHead,
    /// The timestamp in `bytes`.
    pub time: Timestamp,
    /// The event as JSON, as it is stored and sent.
    pub bytes: Bytes,
    /// The same event's body, for folds.
    pub body: Body,
    /// The trace context, also of transient events.
    pub trace: Option<Arc<TraceContext>>,
}

/// The batch that holds the rows of a [`Sequencer::put`]; see [`Sequencer::stored`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchTicket(u64);

/// The receiver of released events. Called under the sequencer's lock: must not block, must not
/// emit.
pub trait EventSink: Send + Sync {
    /// Takes events out of `events`, which are in order.
    fn publish(&self, events: &mut Vec<ReleasedEvent>);
    /// The records of `batch` are on disk, which the writer began to write at `began`. Called before
    /// their events are published.
    fn committed(&self, batch: &SessionAppend, began: Instant) {
        let _ = (batch, began);
    }
    /// The session's log is damaged; no event will follow.
    fn quarantined(&self);
}

/// Why the sequencer did not accept events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SequencerError {
    /// The outbox is full; wait for [`Sequencer::ready`].
    #[error("the outbox is full")]
    Full,
    /// The turn has ended or has not started.
    #[error("the turn has ended")]
    Ended,
    /// The turn is being cancelled; the event would start work or end the turn differently.
    #[error("the turn is being cancelled")]
    Cancelled,
    /// The session is deleted or quarantined.
    #[error("the session is closed")]
    Closed,
}

/// Whether an emit is subject to the [`OutboxBounds`] of the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutboxRoom {
    /// Rejected while the outbox is full; the producer waits.
    Bounded,
    /// Accepted beyond the bounds: terminals, cancels, barriers. There are few of them.
    Reserved,
}

/// The bounds of a session's outbox.
#[derive(Clone, Copy, Debug)]
pub struct OutboxBounds {
    pub events: usize,
    /// Sum of the events' JSON.
    pub bytes: usize,
}

impl Default for OutboxBounds {
    fn default() -> Self {
        Self {
            events: 4096,
            bytes: 4 << 20,
        }
    }
}

/// Gives positions to the events of one session and releases them to its [`EventSink`] in order.
pub struct Sequencer {
    session: SessionId,
    bounds: OutboxBounds,
    clock: Arc<dyn Clock>,
    writer: Arc<LogWriter>,
    sink: Arc<dyn EventSink>,
    state: Mutex<SequencerState>,
    /// A copy of the outbox's state that is read without the lock.
    full: AtomicBool,
    /// Notified on every commit and on closing; waiters then check the state again.
    progress: Notify,
}

impl Sequencer {
    /// Continues the log of a session at its [`LogTail`].
    pub fn open(
        session: SessionId,
        tail: LogTail,
        bounds: OutboxBounds,
        clock: Arc<dyn Clock>,
        writer: Arc<LogWriter>,
        sink: Arc<dyn EventSink>,
    ) -> Arc<Self> {
        let state = Mutex::new(SequencerState::new(tail));
        Arc::new(Self {
            session,
            bounds,
            clock,
            writer,
            sink,
            state,
            full: AtomicBool::new(false),
            progress: Notify::new(),
        })
    }

    /// Opens a turn that the previous process left open. The `transients` transient events that
    /// follow get the last sub-positions, after any that a client may have seen.
    pub fn resume_turn(&self, turn: TurnId, cancelled: bool, transients: u32) {
        let mut state = self.state.lock();
        state.open_turn(turn, cancelled);
        state.sub = Sub(Sub::LAST.0 - transients);
    }

    /// Sets the id that its upstream gave to the response of a resumed turn.
    pub fn set_response_id(&self, turn: TurnId, id: UpstreamId) {
        self.state.lock().set_response_id(turn, id);
    }

    /// The id that an upstream gave to the response of an open turn, or of the turn that ended last.
    pub fn response_id(&self, turn: TurnId) -> Option<UpstreamId> {
        self.state.lock().response_id(turn).cloned()
    }

    /// Hands over events, all or none, in order. Returns the position and time of each.
    pub fn emit(
        self: &Arc<Self>,
        drafts: Vec<EventDraft>,
        room: OutboxRoom,
    ) -> Result<Vec<(Position, Timestamp)>, SequencerError> {
        let (mut state, now) = self.admit(&drafts, room)?;
        let drafts = drafts.into_iter();
        let positions = drafts.map(|draft| state.place(self.session, now, draft));
        let positions = positions.collect();
        self.after_emit(&mut state);
        Ok(positions)
    }

    /// As [`emit`](Self::emit), for one event: the path of every token.
    pub fn emit_one(
        self: &Arc<Self>,
        draft: EventDraft,
        room: OutboxRoom,
    ) -> Result<(Position, Timestamp), SequencerError> {
        let (mut state, now) = self.admit(std::slice::from_ref(&draft), room)?;
        let position = state.place(self.session, now, draft);
        self.after_emit(&mut state);
        Ok(position)
    }

    /// Locks the state for events that may be emitted now; returns it with the time of the clock.
    fn admit(
        &self,
        drafts: &[EventDraft],
        room: OutboxRoom,
    ) -> Result<(MutexGuard<'_, SequencerState>, Timestamp), SequencerError> {
        let state = self.state.lock();
        if room == OutboxRoom::Bounded && state.outbox.is_full(self.bounds) {
            return Err(SequencerError::Full);
        }
        state.admit(drafts)?;
        Ok((state, self.clock.now()))
    }

    /// Writes row changes without an event, for several sessions in one commit: checkpoints of
    /// messages that stream. Closed sessions are left out.
    pub fn checkpoint(writer: &LogWriter, parts: Vec<(Arc<Self>, Vec<RowChange>)>) {
        let mut sources: Vec<Arc<dyn BatchSource>> = Vec::with_capacity(parts.len());
        for (sequencer, rows) in parts {
            let mut state = sequencer.state.lock();
            if state.is_sealed() {
                continue;
            }
            let now = sequencer.clock.now();
            state.put_rows(now, rows);
            if !std::mem::replace(&mut state.queued, true) {
                drop(state);
                sources.push(sequencer);
            }
        }
        writer.enqueue_all(sources);
    }

    /// Hands over row changes without an event, in order with the events. Returns the position that
    /// the rows get, and the ticket to wait for with [`stored`](Self::stored).
    pub fn put(
        self: &Arc<Self>,
        rows: Vec<RowChange>,
    ) -> Result<(Position, BatchTicket), SequencerError> {
        let mut state = self.state.lock();
        if state.is_sealed() {
            return Err(SequencerError::Closed);
        }
        let (at, batch) = state.put_rows(self.clock.now(), rows);
        self.enqueue(&mut state);
        Ok((at, BatchTicket(batch)))
    }

    /// Resolves when the batch of a [`BatchTicket`] is durable.
    pub async fn stored(&self, ticket: BatchTicket) -> Result<(), SequencerError> {
        self.wait(|state| state.batches_committed >= ticket.0).await
    }

    /// True if nothing waits for the writer or for release.
    pub fn is_settled(&self) -> bool {
        self.state.lock().is_settled()
    }

    /// True while a producer should wait for [`ready`](Self::ready) before it emits.
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    fn after_emit(self: &Arc<Self>, state: &mut SequencerState) {
        self.enqueue(state);
        self.release(state);
    }

    fn enqueue(self: &Arc<Self>, state: &mut SequencerState) {
        if state.wants_writer() {
            state.queued = true;
            self.writer.enqueue(self.clone());
        }
    }

    fn release(&self, state: &mut SequencerState) {
        let mut released = state.outbox.release(state.committed);
        if !released.is_empty() {
            self.sink.publish(&mut released);
        }
        self.full
            .store(state.outbox.is_full(self.bounds), Ordering::Relaxed);
    }

    /// Runs `read` on the events that are not released, in order, under the lock: together with the
    /// released events they are all that was emitted.
    pub fn with_unreleased<T>(
        &self,
        read: impl FnOnce(&mut dyn Iterator<Item = &ReleasedEvent>) -> T,
    ) -> T {
        let state = self.state.lock();
        read(&mut state.outbox.iter())
    }

    /// The last position that was given.
    pub fn last(&self) -> Position {
        self.state.lock().last()
    }

    /// Resolves when every event up to `seq` is durable.
    pub async fn committed(&self, seq: Seq) -> Result<(), SequencerError> {
        self.wait(|state| state.committed >= seq).await
    }

    /// Resolves when every event that was emitted so far is durable.
    pub async fn all_committed(&self) -> Result<(), SequencerError> {
        self.committed(self.last().seq).await
    }

    /// Resolves when the session is closed.
    pub async fn closed(&self) {
        let _ = self.wait(|_| false).await;
    }

    /// Resolves when the outbox is below its [`OutboxBounds`].
    pub async fn ready(&self) -> Result<(), SequencerError> {
        self.wait(|state| !state.outbox.is_full(self.bounds)).await
    }

    /// Resolves when `check` is true; fails once the session is closed.
    async fn wait(&self, check: impl Fn(&SequencerState) -> bool) -> Result<(), SequencerError> {
        loop {
            // Registered before the check, so that no progress in between is missed.
            let progress = self.progress.notified();
            tokio::pin!(progress);
            progress.as_mut().enable();
            {
                let state = self.state.lock();
                if check(&state) {
                    return Ok(());
                }
                if state.is_closed() {
                    return Err(SequencerError::Closed);
                }
            }
            progress.await;
        }
    }

    /// Closes the session, which is deleted: drops what waits, accepts no more events.
    pub fn close(&self) {
        self.shut();
        self.progress.notify_waiters();
    }

    fn shut(&self) {
        let mut state = self.state.lock();
        state.close();
        // A producer that waits for the outbox must see that the session is closed.
        self.full.store(false, Ordering::Relaxed);
    }
}

impl BatchSource for Sequencer {
    fn take(&self) -> Option<SessionAppend> {
        self.state.lock().take(self.session)
    }

    fn committed(&self, batch: &SessionAppend, began: Instant) {
        let mut state = self.state.lock();
        self.sink.committed(batch, began);
        if let Some(last) = batch.records.last() {
            state.committed = last.seq;
        }
        state.batches_committed += 1;
        self.release(&mut state);
        drop(state);
        self.progress.notify_waiters();
    }

    fn quarantined(&self) {
        // The reason first: a caller that finds the session closed asks for it.
        self.sink.quarantined();
        self.shut();
        self.progress.notify_waiters();
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

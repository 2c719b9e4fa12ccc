//! What the sequencer keeps under its lock: numbers, the chain, the latches of open turns, the
//! batch for the writer and the outbox.

use std::collections::HashMap;

use bytes::Bytes;
use turnwire_event::envelope::Envelope;
use turnwire_event::row::{Placed, RowChange};
use turnwire_event::{
    Epoch, EventType, Head, Position, RenderPolicy, Seq, SessionId, Sub, Timestamp, TurnId,
};

use crate::chain::Hash;
use crate::record::{Append, Record, Tail, Term};
use crate::sequencer::outbox::Outbox;
use crate::sequencer::{Draft, Refused, Released};

/// An open turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Latch {
    Running,
    Cancelling,
}

pub(crate) struct State {
    epoch: Epoch,
    seq: Seq,
    pub(crate) sub: Sub,
    hash: Hash,
    time: Timestamp,
    time_text: String,
    turns: HashMap<TurnId, Latch>,
    pub(crate) committed: Seq,
    /// The last seq the writer has taken.
    taken: Seq,
    /// How many batches the writer has taken, and how many of them are durable.
    batches_taken: u64,
    pub(crate) batches_committed: u64,
    records: Vec<Record>,
    rows: Vec<Placed>,
    pub(crate) queued: bool,
    pub(crate) outbox: Outbox,
    closed: bool,
}

impl State {
    pub(crate) fn new(tail: Tail) -> Self {
        Self {
            epoch: tail.epoch,
            seq: tail.seq,
            sub: Sub(0),
            hash: tail.hash,
            time: tail.time,
            time_text: tail.time.to_string(),
            turns: HashMap::new(),
            committed: tail.seq,
            taken: tail.seq,
            batches_taken: 0,
            batches_committed: 0,
            records: Vec::new(),
            rows: Vec::new(),
            queued: false,
            outbox: Outbox::default(),
            closed: false,
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.records = Vec::new();
        self.rows = Vec::new();
        self.outbox.clear();
    }

    pub(crate) fn open_turn(&mut self, turn: TurnId, cancelled: bool) {
        self.turns.insert(
            turn,
            if cancelled {
                Latch::Cancelling
            } else {
                Latch::Running
            },
        );
    }

    pub(crate) fn last(&self) -> Position {
        Position {
            epoch: self.epoch,
            seq: self.seq,
            sub: self.sub,
        }
    }

    /// Whether the events may be given places, one after the other. Nothing is changed.
    pub(crate) fn admit(&self, drafts: &[Draft]) -> Result<(), Refused> {
        if self.closed {
            return Err(Refused::Closed);
        }
        // What the events of this very call do to the latch of their turn.
        let mut moved: Option<(TurnId, Option<Latch>)> = None;
        for draft in drafts {
            let Some(turn) = draft.turn else { continue };
            let kind = draft.body.kind();
            let latch = match moved {
                Some((id, latch)) if id == turn => latch,
                _ => self.turns.get(&turn).copied(),
            };
            let next = match (kind, latch) {
                (EventType::TurnStarted, None) => Some(Latch::Running),
                (_, None) => return Err(Refused::Ended),
                (EventType::TurnCancelRequested, Some(Latch::Running)) => Some(Latch::Cancelling),
                (
                    EventType::TurnCancelRequested | EventType::TurnCompleted,
                    Some(Latch::Cancelling),
                ) => {
                    return Err(Refused::Cancelled);
                }
                (kind, Some(Latch::Cancelling)) if kind.is_start() => {
                    return Err(Refused::Cancelled);
                }
                (kind, Some(_)) if kind.is_terminal() => None,
                (_, latch) => latch,
            };
            moved = Some((turn, next));
        }
        Ok(())
    }

    fn latch(&mut self, turn: TurnId, kind: EventType) {
        match kind {
            EventType::TurnStarted => self.open_turn(turn, false),
            EventType::TurnCancelRequested => self.open_turn(turn, true),
            kind if kind.is_terminal() => drop(self.turns.remove(&turn)),
            _ => {}
        }
    }

    fn tick(&mut self, now: Timestamp) -> Timestamp {
        // Labels never run backwards, whatever the clock does.
        if now > self.time {
            self.time = now;
            self.time_text = now.to_string();
        }
        self.time
    }

    /// Gives an admitted event its place, and puts it where it belongs.
    pub(crate) fn place(
        &mut self,
        session: SessionId,
        now: Timestamp,
        draft: Draft,
    ) -> (Position, Timestamp) {
        let time = self.tick(now);
        let kind = draft.body.kind();
        if let Some(turn) = draft.turn {
            self.latch(turn, kind);
        }
        let persisted = kind.is_persisted();
        if persisted {
            self.seq = self.seq.next();
            self.sub = Sub(0);
        } else {
            self.sub = self.sub.next();
        }
        let at = self.last();
        let mut bytes = Vec::new();
        Envelope {
            id: at,
            kind,
            session_id: session,
            turn_id: draft.turn,
            actor: &draft.actor,
            timestamp: &self.time_text,
            // Transient events are told again from the message row, which knows no trace.
            trace: draft.trace.as_deref().filter(|_| persisted),
            render: draft.render.as_ref(),
        }
        .write(&draft.payload, &mut bytes);
        let bytes = Bytes::from(bytes);
        let hidden = draft
            .render
            .as_ref()
            .is_some_and(|r| r.policy == RenderPolicy::Suppress);
        // A barrier waits for the persisted event that comes with it.
        let gate = if !persisted && !draft.rows.is_empty() {
            self.seq.next()
        } else {
            self.seq
        };
        self.rows.extend(
            draft
                .rows
                .into_iter()
                .map(|change| Placed { at, time, change }),
        );
        if persisted {
            self.hash = self.hash.next(&bytes);
            self.records.push(Record {
                seq: self.seq,
                kind,
                turn: draft.turn,
                actor: draft.actor.clone(),
                time,
                hidden,
                hash: self.hash,
                bytes: bytes.clone(),
            });
        }
        let head = Head {
            position: at,
            kind,
            turn: draft.turn,
            actor: draft.actor,
            suppressed: hidden,
        };
        self.outbox.push(
            gate,
            Released {
                head,
                time,
                bytes,
                body: draft.body,
            },
        );
        (at, time)
    }

    /// Takes rows without an event. Gives back the tail they stand at, and the batch that will
    /// hold them.
    pub(crate) fn put_rows(&mut self, now: Timestamp, rows: Vec<RowChange>) -> (Position, u64) {
        let time = self.tick(now);
        let at = self.last();
        self.rows
            .extend(rows.into_iter().map(|change| Placed { at, time, change }));
        (at, self.batches_taken + 1)
    }

    /// Whether there is something for the writer and it does not know yet. Rows of a barrier go
    /// with the persisted event that follows in the same call, so they are never taken alone.
    pub(crate) fn wants_writer(&self) -> bool {
        !self.queued && (!self.records.is_empty() || !self.rows.is_empty())
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.closed
            || (!self.queued
                && self.committed == self.seq
                && self.batches_committed == self.batches_taken
                && self.outbox.iter().next().is_none())
    }

    pub(crate) fn take(&mut self, session: SessionId) -> Option<Append> {
        self.queued = false;
        if self.records.is_empty() && self.rows.is_empty() {
            return None;
        }
        let prev = self.taken;
        self.batches_taken += 1;
        if let Some(last) = self.records.last() {
            self.taken = last.seq;
        }
        Some(Append {
            session,
            term: Term::default(),
            prev,
            records: std::mem::take(&mut self.records),
            rows: std::mem::take(&mut self.rows),
        })
    }
}

//! The state under the sequencer's lock: the last position, the hash chain, the open turns, the
//! batch for the writer and the outbox.

use std::collections::HashMap;

use bytes::Bytes;
use turnwire_event::envelope::EventEnvelope;
use turnwire_event::row::{PlacedChange, RowChange};
use turnwire_event::{
    Body, Epoch, EventHead, EventType, Position, RenderDecision, Seq, SessionId, Sub, Timestamp,
    TurnId, UpstreamId,
};

use crate::chain::ChainHash;
use crate::record::{EventRecord, LeaseTerm, LogTail, SessionAppend};
use crate::sequencer::outbox::Outbox;
use crate::sequencer::{EventDraft, ReleasedEvent, SequencerError};

/// The state of a turn that has not ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenTurnState {
    Running,
    Cancelling,
}

pub(crate) struct SequencerState {
    epoch: Epoch,
    seq: Seq,
    pub(crate) sub: Sub,
    hash: ChainHash,
    time: Timestamp,
    /// `time` as it is written into events.
    time_text: String,
    turns: HashMap<TurnId, OpenTurnState>,
    /// The ids that upstreams gave to the responses of open turns.
    response_ids: HashMap<TurnId, UpstreamId>,
    /// That of the turn that ended last, which clients may still read.
    last_response: Option<(TurnId, UpstreamId)>,
    pub(crate) committed: Seq,
    /// The last seq the writer has taken.
    taken: Seq,
    /// Batches that the writer has taken, and those of them that are durable.
    batches_taken: u64,
    pub(crate) batches_committed: u64,
    records: Vec<EventRecord>,
    rows: Vec<PlacedChange>,
    /// True while the sequencer is in the writer's queue.
    pub(crate) queued: bool,
    pub(crate) outbox: Outbox,
    /// True after `session.closed`, the last event of a session.
    is_last_placed: bool,
    closed: bool,
}

impl SequencerState {
    pub(crate) fn new(tail: LogTail) -> Self {
        Self {
            epoch: tail.epoch,
            seq: tail.seq,
            sub: Sub(0),
            hash: tail.hash,
            time: tail.time,
            time_text: tail.time.to_string(),
            turns: HashMap::new(),
            response_ids: HashMap::new(),
            last_response: None,
            committed: tail.seq,
            taken: tail.seq,
            batches_taken: 0,
            batches_committed: 0,
            records: Vec::new(),
            rows: Vec::new(),
            queued: false,
            outbox: Outbox::default(),
            is_last_placed: false,
            closed: false,
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// True if the session takes no more events and rows.
    pub(crate) fn is_sealed(&self) -> bool {
        self.closed || self.is_last_placed
    }

    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.records = Vec::new();
        self.rows = Vec::new();
        self.outbox.clear();
    }

    pub(crate) fn open_turn(&mut self, turn: TurnId, cancelled: bool) {
        let state = match cancelled {
            true => OpenTurnState::Cancelling,
            false => OpenTurnState::Running,
        };
        self.turns.insert(turn, state);
    }

    /// From now on the events of an open turn have the response id that its upstream gave.
    pub(crate) fn set_response_id(&mut self, turn: TurnId, id: UpstreamId) {
        self.response_ids.insert(turn, id);
    }

    /// The id that an upstream gave to the response of an open turn, or of the last one.
    pub(crate) fn response_id(&self, turn: TurnId) -> Option<&UpstreamId> {
        let last = self.last_response.as_ref();
        let last = last.filter(|(ended, _)| *ended == turn);
        (self.response_ids.get(&turn)).or(last.map(|(_, id)| id))
    }

    pub(crate) fn last(&self) -> Position {
        Position {
            epoch: self.epoch,
            seq: self.seq,
            sub: self.sub,
        }
    }

    /// Checks that the turns of the events allow them, one after the other. Changes nothing.
    pub(crate) fn admit(&self, drafts: &[EventDraft]) -> Result<(), SequencerError> {
        if self.is_sealed() {
            return Err(SequencerError::Closed);
        }
        // The states of turns that the events of this call change; most events change none.
        let mut changed: Vec<(TurnId, Option<OpenTurnState>)> = Vec::new();
        for draft in drafts {
            let Some(turn) = draft.turn else { continue };
            let kind = draft.body.kind();
            let current = match changed.iter().rev().find(|(id, _)| *id == turn) {
                Some((_, state)) => *state,
                None => self.turns.get(&turn).copied(),
            };
            let next = match (kind, current) {
                (EventType::TurnStarted, None) => Some(OpenTurnState::Running),
                (_, None) => return Err(SequencerError::Ended),
                (EventType::TurnCancelRequested, Some(OpenTurnState::Running)) => {
                    Some(OpenTurnState::Cancelling)
                }
                (
                    EventType::TurnCancelRequested | EventType::TurnCompleted,
                    Some(OpenTurnState::Cancelling),
                ) => {
                    return Err(SequencerError::Cancelled);
                }
                (kind, Some(OpenTurnState::Cancelling)) if kind.is_start() => {
                    return Err(SequencerError::Cancelled);
                }
                (kind, Some(_)) if kind.is_terminal() => None,
                (_, current) => current,
            };
            if next != current {
                changed.push((turn, next));
            }
        }
        Ok(())
    }

    /// Follows the state of a turn by an event that was admitted. Returns the response id of the
    /// event, if an upstream gave one.
    fn update_turn(&mut self, turn: TurnId, body: &Body) -> Option<UpstreamId> {
        match body.kind() {
            EventType::TurnStarted => self.open_turn(turn, false),
            EventType::TurnCancelRequested => self.open_turn(turn, true),
            kind if kind.is_terminal() => {
                self.turns.remove(&turn);
                let id = self.response_ids.remove(&turn);
                if let Some(id) = &id {
                    self.last_response = Some((turn, id.clone()));
                }
                return id;
            }
            _ => {}
        }
        if let Body::RouteDecided(route) = body
            && let Some(id) = route.relayed.as_ref().and_then(|r| r.response_id.clone())
        {
            self.set_response_id(turn, id);
        }
        match self.response_ids.is_empty() {
            true => None,
            false => self.response_ids.get(&turn).cloned(),
        }
    }

    /// The time of the next event: `now`, or the last time if the clock ran backwards.
    fn advance_time(&mut self, now: Timestamp) -> Timestamp {
        if now > self.time {
            self.time = now;
            self.time_text = now.to_string();
        }
        self.time
    }

    /// Gives an admitted event its position, and adds it to the batch and to the outbox.
    pub(crate) fn place(
        &mut self,
        session: SessionId,
        now: Timestamp,
        draft: EventDraft,
    ) -> (Position, Timestamp) {
        let time = self.advance_time(now);
        let kind = draft.body.kind();
        let turn = draft.turn;
        let response_id = turn.and_then(|turn| self.update_turn(turn, &draft.body));
        self.is_last_placed |= kind == EventType::SessionClosed;
        let persisted = kind.is_persisted();
        if persisted {
            self.seq = self.seq.next();
            self.sub = Sub(0);
        } else {
            self.sub = self.sub.next();
        }
        let at = self.last();
        let mut bytes = Vec::new();
        EventEnvelope {
            id: at,
            kind,
            session_id: session,
            turn_id: draft.turn,
            response_id: response_id.as_ref(),
            actor: &draft.actor,
            timestamp: &self.time_text,
            // Transient events are replayed from the message row, which has no trace.
            trace: draft.trace.as_deref().filter(|_| persisted),
            render: draft.render.as_ref(),
            sub_agent_id: draft.sub_agent_id.as_deref(),
        }
        .write(&draft.payload, &mut bytes);
        let bytes = Bytes::from(bytes);
        let render = draft.render.as_ref();
        let hidden = render.is_some_and(RenderDecision::is_suppressed);
        // A barrier waits for the persisted event that comes with it.
        let gate = match !persisted && !draft.rows.is_empty() {
            true => self.seq.next(),
            false => self.seq,
        };
        self.push_rows(at, time, draft.rows);
        if persisted {
            self.hash = self.hash.next(&bytes);
            self.records.push(EventRecord {
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
        let head = EventHead {
            position: at,
            kind,
            turn: draft.turn,
            actor: draft.actor,
            suppressed: hidden,
        };
        let event = ReleasedEvent {
            head,
            time,
            bytes,
            body: draft.body,
            trace: draft.trace,
        };
        self.outbox.push(gate, event);
        (at, time)
    }

    /// Adds rows without an event to the batch. Returns their position and the number of the batch.
    pub(crate) fn put_rows(&mut self, now: Timestamp, rows: Vec<RowChange>) -> (Position, u64) {
        let time = self.advance_time(now);
        let at = self.last();
        self.push_rows(at, time, rows);
        (at, self.batches_taken + 1)
    }

    fn push_rows(&mut self, at: Position, time: Timestamp, rows: Vec<RowChange>) {
        let rows = rows.into_iter();
        let placed = rows.map(|change| PlacedChange { at, time, change });
        self.rows.extend(placed);
    }

    /// True if there is something to write and the sequencer is not queued. The rows of a barrier go
    /// with the persisted event that follows in the same call, so they are never written alone.
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

    pub(crate) fn take(&mut self, session: SessionId) -> Option<SessionAppend> {
        self.queued = false;
        if self.records.is_empty() && self.rows.is_empty() {
            return None;
        }
        let prev = self.taken;
        self.batches_taken += 1;
        if let Some(last) = self.records.last() {
            self.taken = last.seq;
        }
        Some(SessionAppend {
            session,
            term: LeaseTerm::default(),
            prev,
            records: std::mem::take(&mut self.records),
            rows: std::mem::take(&mut self.rows),
        })
    }
}

//! What is appended to a log and what is read from it: an event is bytes, with columns beside them
//! that only serve to select it.

use bytes::Bytes;
use turnwire_event::row::PlacedChange;
use turnwire_event::{
    Actor, Epoch, EventHead, EventType, Position, Seq, SessionId, Timestamp, TurnId,
};

use crate::chain::ChainHash;

/// The number of the lease under which a process owns a session: 0 where one process owns all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseTerm(pub u64);

/// A persisted event for [`Log::append`](crate::Log::append).
#[derive(Clone, Debug)]
pub struct EventRecord {
    /// The next number of the session.
    pub seq: Seq,
    /// The type, a column for [`EventSelection`](crate::EventSelection).
    pub kind: EventType,
    /// The turn, a column for selection.
    pub turn: Option<TurnId>,
    /// The actor, a column for selection.
    pub actor: Actor,
    /// The time by which [`Log::trim`](crate::Log::trim) decides.
    pub time: Timestamp,
    /// True if the rendering policy hides the event, a column for selection.
    pub hidden: bool,
    /// The hash over `bytes` and every event before.
    pub hash: ChainHash,
    /// The event as JSON, exactly as clients are sent it.
    pub bytes: Bytes,
}

/// One session's part of a batch: [`EventRecord`]s and row changes, written together or not at all.
#[derive(Clone, Debug)]
pub struct SessionAppend {
    /// The session to append to.
    pub session: SessionId,
    /// The lease of the writing process.
    pub term: LeaseTerm,
    /// The last event that must be in the log before the append.
    pub prev: Seq,
    /// The events, dense from `prev`; may be empty.
    pub records: Vec<EventRecord>,
    /// The changes to the [`Records`](crate::Records), each with the position of its event.
    pub rows: Vec<PlacedChange>,
}

/// An event as [`Log::read`](crate::Log::read) returns it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredEvent {
    /// The number within the session.
    pub seq: Seq,
    /// Position, type, turn, actor and visibility.
    pub head: EventHead,
    /// The stored hash, which matches `bytes`.
    pub hash: [u8; 32],
    /// The event, byte for byte as it was appended.
    pub bytes: Bytes,
}

/// The events that one [`Log::read`](crate::Log::read) returned.
#[derive(Clone, Debug, PartialEq)]
pub struct EventBatch {
    /// The selected events, oldest first.
    pub events: Vec<StoredEvent>,
    /// Every selected event up to here is in `events`; the next read begins after it. At the end of
    /// the range this is the end of the range.
    pub end: Seq,
}

/// What one [`Log::count`](crate::Log::count) counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedEvents {
    /// The number of selected events up to `end`.
    pub events: u64,
    /// The next count begins after this event. At the end of the range this is the end of the range.
    pub end: Seq,
}

/// Where a session's log begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogTail {
    /// The epoch of the next event.
    pub epoch: Epoch,
    /// The number of the last event; 0 if there is none.
    pub seq: Seq,
    /// The hash at `seq`.
    pub hash: ChainHash,
    /// The time of the last event.
    pub time: Timestamp,
    /// The low-water mark: events up to and including this number are trimmed.
    pub low: Seq,
    /// The hash at `low`.
    pub low_hash: ChainHash,
}

impl LogTail {
    /// The tail of a new session, which has no event.
    pub fn first(session: SessionId, time: Timestamp) -> Self {
        let hash = ChainHash::seed(session);
        Self {
            epoch: Epoch::FIRST,
            seq: Seq(0),
            hash,
            time,
            low: Seq(0),
            low_hash: hash,
        }
    }

    /// The position of the last event.
    pub fn position(&self) -> Position {
        Position::persisted(self.epoch, self.seq)
    }
}

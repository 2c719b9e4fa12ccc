//! What goes into a store and what comes out: events as bytes, with columns for selection only.

use bytes::Bytes;
use turnwire_event::row::Placed;
use turnwire_event::{Actor, Epoch, EventType, Head, Position, Seq, SessionId, Timestamp, TurnId};

use crate::chain::Hash;

/// The lease number of a session's owner; one process alone is always term 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term(pub u64);

/// A persisted event on its way to the store.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its number.
    pub seq: Seq,
    /// Its type.
    pub kind: EventType,
    /// Its turn.
    pub turn: Option<TurnId>,
    /// Who did it.
    pub actor: Actor,
    /// When.
    pub time: Timestamp,
    /// Whether the rendering policy hides it.
    pub hidden: bool,
    /// Its link in the chain.
    pub hash: Hash,
    /// The event.
    pub bytes: Bytes,
}

/// One session's part of a commit: events and row changes, all or none.
#[derive(Clone, Debug)]
pub struct Append {
    /// Whose log.
    pub session: SessionId,
    /// The writer's term.
    pub term: Term,
    /// What the last event must be.
    pub prev: Seq,
    /// The events, dense from `prev`.
    pub records: Vec<Record>,
    /// The rows.
    pub rows: Vec<Placed>,
}

/// A persisted event read back.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredEvent {
    /// Its number.
    pub seq: Seq,
    /// Its place, type, turn, actor and whether it is hidden.
    pub head: Head,
    /// Its link in the chain.
    pub hash: [u8; 32],
    /// The event, as it was written.
    pub bytes: Bytes,
}

/// Where a session's log stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The epoch.
    pub epoch: Epoch,
    /// The last event.
    pub seq: Seq,
    /// Its hash.
    pub hash: Hash,
    /// Its time.
    pub time: Timestamp,
    /// Events up to here have been trimmed.
    pub low: Seq,
    /// The hash at the low-water mark.
    pub low_hash: Hash,
}

impl Tail {
    /// The log of a session that is made now: no event yet.
    pub fn first(session: SessionId, time: Timestamp) -> Self {
        let hash = Hash::seed(session);
        Self {
            epoch: Epoch::FIRST,
            seq: Seq(0),
            hash,
            time,
            low: Seq(0),
            low_hash: hash,
        }
    }

    /// The place of the last event.
    pub fn position(&self) -> Position {
        Position::persisted(self.epoch, self.seq)
    }
}

//! The contract of the event log: one dense, hash-chained sequence of events per session.
//!
//! ```text
//!            trimmed            │            retained
//!   1   2   3   4   5   6   7   │   8   9   10   11   12   13   14
//!                           ▲       └────────────┬─────────────┘
//!                  low = 7 ─┘                    │           ▲
//!                  low_hash = hash(7)            │           └─ tail.seq = 14, tail.hash = hash(14)
//!                                                │
//!   read(after = 9, upto = 12)           10 ≤ seq ≤ 12, checked from hash(9) on
//! ```
//!
//! - Sequence numbers of a session are 1, 2, 3, … without a gap; a number is never reused.
//! - `hash(n) = SHA-256(hash(n-1) ‖ bytes(n))`; `hash(0)` is [`ChainHash::seed`](crate::chain::ChainHash::seed).
//! - An event is returned exactly as it was appended, byte for byte.
//! - A read sees every append, trim and delete that returned before the read began, and one state
//!   of the database: never half of a batch.
//! - Calls block. The [`LogWriter`](crate::LogWriter) calls from its own thread, readers from a blocking
//!   pool.

use turnwire_event::row::AuditEntry;
use turnwire_event::{Seq, SessionId, Timestamp};

use crate::chain::ChainHash;
use crate::error::{AppendError, ReadError, StoreFault};
use crate::maintenance::{PieceBudget, TrimCursor, TrimPiece};
use crate::record::{CountedEvents, EventBatch, LogTail, SessionAppend};
use crate::selection::{EventSelection, ReadLimits};

/// A durable log of events, one sequence per session. `tests::log_conformance` is the
/// test suite of this contract.
pub trait Log: Send + Sync + 'static {
    /// Writes a batch in one transaction: the events and the row changes of every [`SessionAppend`].
    ///
    /// - Durable on return; on an error nothing of the batch is written.
    /// - [`AppendError::Refused`] if an append does not continue its session's log: `prev` must be
    ///   the last event, the events must be dense from there.
    /// - [`AppendError::Damaged`] if a page is damaged; from then on [`fault`](Self::fault) says so.
    /// - A batch that failed with [`AppendError::Full`] or [`AppendError::Busy`] may be appended
    ///   again unchanged.
    fn append(&self, batch: &[SessionAppend]) -> Result<(), AppendError>;

    /// Returns the selected events with `after < seq <= upto`, oldest first, within `limits`.
    ///
    /// - [`EventBatch::end`] is where the next read begins. A read that looked at as many events as
    ///   it may can return an empty batch before the end of the range. A read moves on by one event
    ///   at least, unless it may return none.
    /// - Each returned event is checked: its bytes and the stored hash of the event before it must
    ///   give its own stored hash. A mismatch or a missing predecessor is [`ReadError::Damaged`].
    /// - With [`EventSelection::all`] the returned events are dense, and a gap is
    ///   [`ReadError::Damaged`] with the first missing number.
    /// - Events that the selection skips are not checked; `turnwire verify` checks every event.
    /// - [`ReadError::Trimmed`] if `after` is below the low-water mark: never a silent jump.
    fn read(
        &self,
        session: SessionId,
        after: Seq,
        upto: Seq,
        selection: &EventSelection,
        limits: ReadLimits,
    ) -> Result<EventBatch, ReadError>;

    /// Returns where the log of a session ends, or `None` if there is no such session.
    fn tail(&self, session: SessionId) -> Result<Option<LogTail>, ReadError>;

    /// Returns the stored hash at `seq`; at the low-water mark this is the hash kept by the trim.
    /// [`ReadError::Trimmed`] below the mark, [`ReadError::Damaged`] if there is no event `seq`.
    fn hash_at(&self, session: SessionId, seq: Seq) -> Result<ChainHash, ReadError>;

    /// Counts the selected events with `after < seq <= upto`, by their columns; checks no hash.
    /// Stops at [`CountedEvents::end`] after `scanned_max` events that were looked at.
    /// [`ReadError::Trimmed`] if `after` is below the low-water mark.
    fn count(
        &self,
        session: SessionId,
        after: Seq,
        upto: Seq,
        selection: &EventSelection,
        scanned_max: usize,
    ) -> Result<CountedEvents, ReadError>;

    /// Removes events older than `before`, one piece of a sweep: begins after `after`, and stops when
    /// `budget` is spent.
    ///
    /// - One transaction, durable on return; the oldest events go first.
    /// - The hash at the mark is kept, so that the events after it can still be checked.
    /// - A turn that has started and not ended keeps its events and those after them.
    fn trim(
        &self,
        before: Timestamp,
        after: TrimCursor,
        budget: &PieceBudget,
    ) -> Result<TrimPiece, AppendError>;

    /// Deletes sessions in one small transaction, durable on return: no read finds them or their
    /// records any more, and their ids are never accepted again. Their rows are removed by
    /// [`Maintenance::remove_deleted`](crate::Maintenance::remove_deleted). A session that does not
    /// exist is no error. `audit` is recorded in the same transaction, but for deletions of sessions
    /// that are recorded already.
    fn delete(&self, sessions: &[SessionId], audit: &[AuditEntry]) -> Result<(), AppendError>;

    /// Why the store should get no new work, if it has a fault. Looks at the files of the store: some
    /// microseconds. A log that is not on disk has none.
    fn fault(&self) -> Option<StoreFault> {
        None
    }

    /// Records that the process shuts down cleanly. Called once, after the last append.
    fn close(&self);
}

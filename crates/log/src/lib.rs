//! The order of events: made in one place, durable before it is visible.
//!
//! ```text
//!   emit ──▶ Sequencer ──────────── outbox (FIFO) ────────────▶ release ──▶ EventSink (the hub)
//!            lock: seq, sub,          ▲   p5 t t p6 t b p7         only input of the hub
//!            time, hash, turns        │   │         │ │
//!                 │                   │   gate 5    │ gate 7: a barrier waits for the next commit
//!                 ▼                   │             gate 6
//!              batch ──▶ writer thread: one transaction for all sessions, fsync ──▶ committed
//! ```
//!
//! Promises:
//! - a persisted event gets the next dense `seq`, a transient one `(last seq, next sub)`; events are
//!   released in the order of these positions;
//! - no event is released before every persisted event ahead of it is on disk;
//! - a `seq` is never given twice: a batch that cannot be written is retried with the same numbers,
//!   or the process ends;
//! - a turn has one terminal, decided under the lock that gives the `seq`, and no event after it.
//!
//! The contract of a database has three parts: [`Log`], the events, [`Records`], the rows that the same
//! appends write, and [`Maintenance`], their removal in pieces. Neither the sequencer nor a database reads an event's body.

pub mod chain;
pub mod error;
pub mod private;
pub mod record;
pub mod reserve;
pub mod selection;
pub mod maintenance;
pub mod log;
pub mod records;
pub mod store;
pub mod sqlite;
pub mod writer;
pub mod sequencer;
#[cfg(test)]
mod tests;

pub use error::{AppendError, OpenError, ReadError, StoreFault};
pub use log::Log;
pub use maintenance::{
    ClockMark, Maintenance, PieceBudget, Progress, TrimCursor, TrimPiece, Uptime,
};
pub use record::{
    CountedEvents, EventBatch, EventRecord, LeaseTerm, LogTail, SessionAppend, StoredEvent,
};
pub use records::audit::{AuditPage, AuditRecords, AuditSelection, JobRecords};
pub use records::{
    ApprovalRecords, CallRecords, DailyUsage, LISTED_PATH_BYTES_MAX, MessageRecords, MessageView,
    PageBounds, Records, RowPage, SessionRecords, SessionsOf, StatusCount, TurnRecords, UsageOn,
    UsageSum, is_display_only,
};
pub use selection::{EventSelection, ReadLimits};
pub use sequencer::{
    BatchTicket, EventDraft, EventSink, OutboxRoom, ReleasedEvent, Sequencer, SequencerError,
};
pub use store::Store;
pub use writer::{BackgroundTask, DiskHealth, LogWriter};

//! One order, made in one place, durable before it is visible.
//!
//! ```text
//!   emit ──▶ Sequencer ──────────── outbox (FIFO) ────────────▶ release ──▶ Sink (the hub)
//!            lock: seq, sub,          ▲   p5 t t p6 t b p7         only input of the hub
//!            time, hash, latch        │   │         │ │
//!                 │                   │   gate 5    │ gate 7: a barrier waits for the next commit
//!                 ▼                   │             gate 6
//!              batch ──▶ writer thread: one transaction for all sessions, fsync ──▶ ack
//! ```
//!
//! What is promised:
//! - a persisted event gets the next dense `seq`, a transient one `(last seq, next sub)`; both
//!   leave in the order they were given;
//! - nothing is released before every persisted event ahead of it is on disk;
//! - a `seq` once given is never given again: a batch that cannot be written is tried again with
//!   the same numbers, or the process ends;
//! - a turn has one terminal, taken under the lock that gives the `seq`, and nothing after it.
//!
//! Neither the sequencer nor a store looks inside an event's body.

pub mod chain;
pub mod error;
pub mod record;
pub mod reserve;
pub mod store;
pub mod sqlite;
pub mod writer;
pub mod sequencer;

pub use error::{AppendError, OpenError, ReadError};
pub use record::{Append, Record, StoredEvent, Tail, Term};
pub use sequencer::{Draft, Refused, Released, Room, Sequencer, Sink, Ticket};
pub use store::{StatusCount, Store, UsageDay, View, is_display};
pub use writer::{Health, Writer};

//! Released events in memory: one [`Ring`] per session, shared by all connections.
//!
//! ```text
//!   release ──▶ Ring ───────────────────────────────┐
//!               [ 917 918 919 920 ]  ◀ entries       │ one lock: append, fold the state, move the tail
//!               state at 920         ◀ folded with   ┘
//!                    │ projected on first read, shared by all readers
//!               Track (one per wire): [ 917..918 | 919..920 ]  ◀ runs of frame bytes
//!                    ▲        ▲
//!                 cursor   cursor     a thousand readers cost one serialisation
//! ```
//!
//! A connection holds a cursor and no queue of its own. Publishing takes O(1) time for any number
//! of connections: the task behind [`WakePump`] wakes them. All rings together stay within a
//! [`RingBudget`]: what left a ring is read from the log. This crate never parses an event; the
//! frames of a wire are bytes that the reader's [`ProjectFn`] function writes.

pub mod waker_set;
pub mod entry;
pub mod track;
pub mod pump;
pub mod budget;
pub mod ring;

pub use budget::RingBudget;
pub use entry::RingEntry;
pub use pump::WakePump;
pub use ring::{PassingCount, Ring, RingClosed, RingRead, RingState};
pub use track::{FrameRun, ProjectFn, TRACK_COUNT};
pub use waker_set::{WakerGuard, WakerSet};

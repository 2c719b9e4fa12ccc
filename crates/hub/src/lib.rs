//! Released events, shared: one ring a session, and connections that are nothing but cursors.
//!
//! ```text
//!   release ──▶ Ring ───────────────────────────────┐
//!               [ 917 918 919 920 ]  ◀ entries       │ one lock: push, fold the state, move the tail
//!               state at 920         ◀ folded with   ┘
//!                    │ filled on first wish, shared by all
//!               Track (one a wire): [ 917..918 | 919..920 ]  ◀ runs of frame bytes
//!                    ▲        ▲
//!                 cursor   cursor     a thousand of them cost one serialisation
//! ```
//!
//! Publishing is O(1) whatever the number of viewers: waking them is the pump's work. The hub
//! never looks inside an event; frames are bytes that the caller's projector made.

pub mod bell;
pub mod entry;
pub mod track;
pub mod pump;
pub mod ring;

pub use bell::{Bell, Seat};
pub use entry::Entry;
pub use pump::Pump;
pub use ring::{Closed, Fold, Read, Ring};
pub use track::{Project, Run, TRACKS};

//! The life of a session: who may open it, one turn at a time, exactly one ending each, what a
//! client that comes late is told.
//!
//! ```text
//!      ┌─ queue ─┐
//!   submit ──▶ turn.started ──▶ producer task ──▶ TurnEmitter ──▶ Sequencer ──▶ Ring(Transcript)
//!                                   ▲ aborted by        │ sealed before         │
//!                   cancel ─────────┘                   ▼                       ▼
//!                   panic, timeout, shutdown ──▶ ending from the open set   snapshot, catch-up
//! ```
//!
//! A turn that is ended from outside is ended from what it has open, by the same pure function
//! whether a person pressed stop, a producer panicked, or the process died and came back.

pub mod clock;
pub mod error;
pub mod options;
mod reads;
pub mod attach;
pub mod submit;
mod keys;
mod early;
pub mod transcript;
pub mod bus;
pub mod history;
pub mod past;
mod bind;
mod tally;
mod calls;
mod said;
mod wards;
mod slot;
pub mod policy;
pub mod live;
pub mod replay;
pub mod ending;
mod approvals;
pub mod emitter;
pub mod cancel;
mod run;
pub mod turn;
pub mod watch;
mod queue;
pub mod registry;
mod start;
pub mod sweep;
pub mod upkeep;
pub mod sessions;
pub mod kin;
mod found;
mod erase;
mod job;
mod worker;
mod accept;
mod stop;
mod answer;
mod reload;
pub mod query;

pub use answer::{Answered, Word};
pub use clock::{SystemClock, SystemMint};
pub use error::Error;
pub use live::Live;
pub use options::Options;
pub use query::{EventPage, EventsQuery};
pub use replay::{CatchUp, ReplayError};
pub use sessions::{NewSession, Sessions, Ticket};
pub use submit::{Accepted, Bound, Key, Place, Submit};
pub use transcript::{Snapshot, Transcript};
pub use turnwire_log::{DailyUsage, StatusCount, StoredEvent};
pub use watch::Attendance;

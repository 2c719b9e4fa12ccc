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
mod store_read;
pub mod attach_token;
pub mod submit;
mod metering;
pub mod history;
pub mod live;
pub mod read;
mod approval;
pub mod turn;
pub mod cancel;
pub mod run;
mod queue;
pub mod registry;
pub mod lifecycle;
mod worker;
pub mod handle;

pub use cancel::disconnect::{StreamGuard, WatchGuard};
pub use cancel::request::{CancelOutcome, request as request_cancel};
pub use clock::{SystemClock, SystemMint};
pub use error::Error;
pub use handle::approvals::{ApprovalDecision, ApprovalOutcome};
pub use handle::family::DEPTH_MAX;
pub use handle::reader::{EventPage, EventsQuery};
pub use lifecycle::core::{AttachTicket, NewSession, ServiceParts, Sessions};
pub use live::bus::BusNotice;
pub use live::session::LiveSession;
pub use live::transcript::{SessionSnapshot, Transcript};
pub use options::Options;
pub use read::replay::{CatchUp, ReplayError, chunk};
pub use submit::request::{
    DisconnectScope, IdempotencyKey, SubmitRequest, SubmitTarget, SubmittedTurn,
};
pub use turnwire_log::{StatusCount, StoredEvent, UsageDay};

//! The life of a session: one turn at a time, exactly one ending for each, and the replay for clients
//! that reconnect.
//!
//! ```text
//!      ┌─ queue ─┐
//!   submit ──▶ turn.started ──▶ producer task ──▶ TurnEmitter ──▶ Sequencer ──▶ Ring(Transcript)
//!                                   ▲ aborted by        │ sealed before         │
//!                   cancel ─────────┘                   ▼                       ▼
//!                   panic, timeout, shutdown ──▶ ending from the open set   snapshot, catch-up
//! ```
//!
//! A turn that does not end by itself is ended from what it has open, by the same pure function
//! after a cancel, after a panic of its producer, and after a crash of the process.
//!
//! A server starts a [`SessionService`] and gives its parts the handles that they need, such as
//! [`SessionReader`] or [`TurnSubmitter`].

mod clock;
mod metering;
mod error;
mod options;
mod store_read;
mod submit;
mod history;
mod live;
mod read;
mod turn;
mod registry;
mod lifecycle;
mod worker;
mod handle;

pub use clock::{SystemClock, SystemIdGenerator};
pub use error::{Error, SharedResource};
pub use handle::approvals::{ApprovalOutcome, TurnApprovals};
pub use handle::audit::AuditReader;
pub use handle::canceller::TurnCanceller;
pub use handle::jobs::{JobController, JobSwitch};
pub use handle::live_sessions::LiveSessions;
pub use handle::quotas::SessionQuotas;
pub use handle::reader::{EventLogQuery, EventPage, SessionReader};
pub use handle::service::{ServiceParts, SessionService, WeakSessionService};
pub use handle::status::ServiceStatus;
pub use handle::submitter::TurnSubmitter;
pub use handle::writer::SessionWriter;
pub use live::bus::BusNotice;
pub use live::session::{DeletedCallback, LiveSession};
pub use live::transcript::{SessionSnapshot, Transcript};
pub use metering::quota::{QuotaExceeded, QuotaKind, QuotaLimits, QuotaScope, QuotaState};
pub use options::Options;
pub use read::family::WORKER_DEPTH_MAX;
pub use read::replay::{CatchUp, InFlight, ReplayChunk, ReplayError, read_chunk};
pub use read::viewer::Viewer;
pub use submit::request::{
    DisconnectScope, IdempotencyKey, NewSession, SubmitRequest, SubmitTarget, SubmittedTurn,
};
pub use turn::approval::paused_turn::ApprovalDecision;
pub use turn::cancel::disconnect::{DeliveryGuard, StreamGuard, WatchGuard};
pub use turn::cancel::request::CancelOutcome;
pub use turnwire_log::{
    AuditPage, AuditSelection, DailyUsage, LISTED_PATH_BYTES_MAX, PageBounds, PieceBudget,
    SessionsOf, StatusCount, StoredEvent,
};

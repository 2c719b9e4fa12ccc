//! The session wire: JSON text frames over one WebSocket per client and session (S3).
//!
//! ```text
//! client  subscribe · cancel · renew · ping · pong                          → parsed strictly
//! server  subscribe_ack | subscribe_error, snapshot?, event*,
//!         cancel_ack | cancel_error, renew_ack | renew_error, ping · pong   → written
//! end     a close code with a JSON reason
//! ```

pub mod close;
pub mod summary;
pub mod open_work;
pub mod subscribe;
pub mod cancel;
pub mod renew;
pub mod server;
pub mod client;
#[cfg(feature = "schema")]
pub mod schema;

pub use cancel::{CancelAck, CancelError, CancelErrorCode};
pub use client::{ClientFrame, ClientFrameError};
pub use close::{ReconnectAdvice, SessionCloseReason};
pub use open_work::SnapshotWork;
pub use renew::{RenewAck, RenewError, RenewErrorCode};
pub use server::{
    SESSION_WIRE_VERSION, SessionPositions, SnapshotFrame, SubscribeAck, write_ack,
    write_cancel_ack, write_cancel_error, write_event, write_ping, write_pong, write_renew_ack,
    write_renew_error, write_snapshot, write_subscribe_error,
};
pub use subscribe::{
    SINCE_SESSIONS_MAX, SinceCursor, SubscribeCode, SubscribeError, SubscribeFrame,
};
pub use summary::SessionSummary;

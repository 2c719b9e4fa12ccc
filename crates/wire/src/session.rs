//! The session wire: JSON text frames over one WebSocket per client and session (S3).
//!
//! ```text
//! client  subscribe · cancel · ping · pong                                  → parsed strictly
//! server  subscribe_ack | subscribe_error, snapshot?, event*, ping · pong   → written
//! end     a close code with a JSON reason
//! ```

pub mod close;
pub mod summary;
pub mod subscribe;
pub mod server;
pub mod client;

pub use client::{ClientFrame, ClientFrameError};
pub use close::{ReconnectAdvice, SessionCloseReason};
pub use server::{
    SessionPositions, SnapshotFrame, SubscribeAck, write_ack, write_event, write_ping, write_pong,
    write_snapshot, write_subscribe_error,
};
pub use subscribe::{
    SINCE_SESSIONS_MAX, SinceCursor, SubscribeCode, SubscribeError, SubscribeFrame,
};
pub use summary::SessionSummary;

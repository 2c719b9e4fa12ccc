//! The Rust client of a Turnwire server.
//!
//! [`Client`] sends REST requests and returns typed responses. [`SessionWatch`] follows a session
//! without end: it attaches, subscribes, reconnects after any loss with the last id it has
//! received, and falls back to a snapshot when the server no longer stores that position. Unknown
//! event types and fields are skipped, so that an old client works with a new server.

pub mod error;
pub mod address;
mod tls;
pub mod key;
mod http;
mod rest;
pub mod frame;
pub mod records;
pub mod client;
mod operations;
pub mod cancel;
mod approval;
mod socket;
pub mod watch;

pub use address::ServerAddress;
pub use cancel::CancelOutcome;
pub use client::Client;
pub use error::Error;
pub use frame::{ReceivedEvent, SnapshotFrame};
pub use key::SubmitKey;
pub use operations::AuditQuery;
pub use records::{EventPageQuery, MessagePage, SessionRecords};
pub use tls::ExtraAuthorities;
pub use watch::{SessionWatch, WatchItem, WatchStart};

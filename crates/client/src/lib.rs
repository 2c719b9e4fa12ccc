//! The Rust client of a Turnwire server.
//!
//! [`Client`] makes the REST calls and gives typed answers; [`Watch`] follows a session for ever:
//! it attaches, subscribes, comes back after any loss with the last id it has seen, and falls
//! back to a snapshot when the server no longer keeps that far. What it does not know (event
//! types, fields) it passes over, so that an old client survives a new server.

pub mod error;
pub mod address;
mod backoff;
pub mod key;
mod http;
pub mod frame;
pub mod api;
pub mod stop;
mod approve;
mod socket;
pub mod watch;

pub use address::Address;
pub use api::{Client, EventsQuery, Messages};
pub use error::Error;
pub use frame::{Received, Snapshot};
pub use key::Key;
pub use stop::Stopped;
pub use watch::{Item, Start, Watch};

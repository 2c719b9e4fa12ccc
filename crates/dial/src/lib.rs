//! Guarded outbound HTTP: the one door to the network.
//!
//! A request is checked before it leaves (scheme, credentials, address), the address again when a
//! name is resolved, both again wherever a redirect leads, and the answer while it arrives (time, bytes, encoding). What goes wrong is
//! a [`DialError`] that carries no text of the other side: causes are in the server's log at
//! `debug`, hosts nowhere else. [`SseReader`] reads answers that are server-sent events.

mod error;
mod address;
mod allow;
mod resolver;
mod connect;
mod headers;
mod request;
mod redirect;
mod incoming;
mod dialer;
mod sse;

pub use allow::{Allow, BadAllow};
pub use dialer::{Answer, Dialer, Limits, Options, Outgoing};
pub use error::DialError;
pub use headers::{BadHeader, Headers};
pub use incoming::Incoming;
pub use request::{Method, REDIRECTS_MAX, Reply, Request};
pub use reqwest::Url;
pub use sse::{SseBlock, SseError, SseEvent, SseLimits, SseReader};

//! Outbound HTTP with guards. All outgoing requests of the server go through [`Dialer`].
//!
//! The dialer checks the URL before a request is sent, the address when a host name is resolved,
//! both again for every redirect, and time, size and encoding while the response arrives. Failures
//! are [`DialError`]s without any text of the remote side: the server logs causes at `debug`, and
//! no error names a host. [`SseReader`] parses responses that are server-sent events.

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

pub use allow::{AllowRule, InvalidAllowRule};
pub use dialer::{Dialer, DialerOptions, JsonResponse, ResponseLimits};
pub use error::DialError;
pub use headers::{InvalidHeader, RequestHeaders};
pub use incoming::StreamingResponse;
pub use request::{HttpMethod, HttpRequest, HttpResponse, REDIRECTS_MAX};
pub use reqwest::Url;
pub use sse::{SseBlock, SseError, SseEvent, SseLimits, SseReader};

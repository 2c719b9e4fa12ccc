//! Why an upstream gave no answer, or not all of it: what clients are told, and the name in the
//! server's log. Nothing that the upstream wrote is in either.

use turnwire_dial::{DialError, SseError};
use turnwire_event::body::turn::TurnCompleted;
use turnwire_event::code::ErrorCode;

/// Why an upstream did not answer as it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamFault {
    /// It could not be reached: refused, reset, a TLS error, an address that is not allowed.
    Unreachable,
    /// It could not be reached in time.
    ConnectTimeout,
    /// It answered with this status, redirects included.
    Status(u16),
    /// It asked to come later (429).
    RateLimited,
    /// Its answer is no event stream.
    NoEventStream,
    /// The stream broke off or ended without saying that the answer is complete.
    Incomplete,
    /// An event is larger than allowed, or the whole stream is.
    TooLarge,
    /// What it sent is not an event of the inner vocabulary.
    Malformed,
    /// Nothing was sent within the idle window.
    Idle,
}

impl UpstreamFault {
    /// The code that clients get.
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::Unreachable | Self::ConnectTimeout | Self::Status(_) | Self::NoEventStream => {
                ErrorCode::ModelUnavailable
            }
            Self::RateLimited => ErrorCode::RateLimitError,
            Self::Incomplete | Self::TooLarge | Self::Malformed | Self::Idle => {
                ErrorCode::InternalError
            }
        }
    }

    /// The `reason` of the failed turn.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Unreachable
            | Self::ConnectTimeout
            | Self::Status(_)
            | Self::RateLimited
            | Self::NoEventStream => TurnCompleted::UPSTREAM_UNAVAILABLE,
            Self::Incomplete | Self::Idle => TurnCompleted::UPSTREAM_INCOMPLETE,
            Self::TooLarge | Self::Malformed => TurnCompleted::UPSTREAM_MALFORMED,
        }
    }

    /// The name in the server's log and in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::ConnectTimeout => "connect_timeout",
            Self::Status(_) => "status",
            Self::RateLimited => "rate_limited",
            Self::NoEventStream => "no_event_stream",
            Self::Incomplete => "incomplete",
            Self::TooLarge => "too_large",
            Self::Malformed => "malformed",
            Self::Idle => "idle",
        }
    }

    /// The fault of a request that got no response.
    pub(crate) const fn of_request(error: DialError) -> Self {
        match error {
            DialError::ConnectTimeout | DialError::Timeout => Self::ConnectTimeout,
            DialError::Refused
            | DialError::Unreachable
            | DialError::TooLarge { .. }
            | DialError::UnexpectedEncoding
            | DialError::TooManyRedirects
            | DialError::Setup => Self::Unreachable,
        }
    }

    /// The fault of a body that broke off.
    pub(crate) const fn of_body(error: DialError) -> Self {
        match error {
            DialError::TooLarge { .. } => Self::TooLarge,
            _ => Self::Incomplete,
        }
    }
}

impl From<SseError> for UpstreamFault {
    fn from(error: SseError) -> Self {
        match error {
            SseError::LineTooLarge { .. }
            | SseError::EventTooLarge { .. }
            | SseError::StreamTooLarge { .. } => Self::TooLarge,
            SseError::Utf8 => Self::Malformed,
        }
    }
}

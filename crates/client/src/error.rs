//! The errors of calls and watches, distinguished by what the caller can do about them.

use std::time::Duration;

use turnwire_wire::problem::{Code, Problem};
use turnwire_wire::session::SessionCloseReason;

/// The result of a call or watch.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failed call or watch.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server address or a header value is invalid.
    #[error("{0}")]
    Address(String),
    /// No server listens at the address, or the connection broke.
    #[error("no connection to the server: {0}")]
    Connection(String),
    /// The certificate of the server was rejected; it would be again.
    #[error("the certificate of {server} is not trusted: {reason}")]
    Certificate {
        /// The address of the server.
        server: String,
        /// What is wrong with the certificate.
        reason: String,
    },
    /// The server sent nothing within this time.
    #[error("no response within {0:?}")]
    Timeout(Duration),
    /// The server rejected the request with a problem document.
    #[error("{} ({}): {}", .0.title, .0.code, .0.detail)]
    Problem(Box<Problem>),
    /// The server rejected the request without a readable problem document.
    #[error("the server responded with status {0}")]
    Status(u16),
    /// The response has a format that this client does not know.
    #[error("the response cannot be read: {0}")]
    InvalidResponse(String),
    /// The server rejected the subscription.
    #[error("the subscription was rejected ({code}): {message}")]
    SubscribeRejected {
        /// The stable code of the session wire, such as `invalid_filter`.
        code: String,
        /// The sentence that the server sent with the code.
        message: String,
    },
    /// The server closed the connection for a reason that a reconnect does not resolve.
    #[error("the server closed the connection: {}", .0.message())]
    Closed(SessionCloseReason),
}

impl Error {
    /// The code of [`Error::Problem`], if this client knows it.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Problem(problem) => problem.code(),
            _ => None,
        }
    }

    /// True if the same call may succeed a little later: [`Error::Connection`], [`Error::Timeout`]
    /// and the statuses that mean overload or a restart.
    pub fn is_transient(&self) -> bool {
        let status = match self {
            Self::Connection(_) | Self::Timeout(_) => return true,
            Self::Problem(problem) => problem.status,
            Self::Status(status) => *status,
            Self::Address(_)
            | Self::Certificate { .. }
            | Self::InvalidResponse(_)
            | Self::SubscribeRejected { .. }
            | Self::Closed(_) => return false,
        };
        let needs_operator = matches!(
            self.code(),
            Some(Code::SessionQuarantined | Code::DatabaseDamaged | Code::FolderLost)
        );
        matches!(status, 408 | 429 | 500..=599) && !needs_operator
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Connection(error.to_string())
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::InvalidResponse(error.to_string())
    }
}

impl From<hyper::Error> for Error {
    fn from(error: hyper::Error) -> Self {
        Self::Connection(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_transient_errors_are_retried() {
        let problem = |code| Error::Problem(Box::new(Problem::new(code, "", "")));
        assert!(problem(Code::Draining).is_transient());
        assert!(problem(Code::TooManyRequests).is_transient());
        assert!(problem(Code::StorageFull).is_transient());
        assert!(!problem(Code::SessionQuarantined).is_transient());
        assert!(!problem(Code::SessionNotFound).is_transient());
        assert!(Error::Connection("refused".into()).is_transient());
        assert!(!Error::Status(404).is_transient());
        let certificate = Error::Certificate {
            server: String::new(),
            reason: String::new(),
        };
        assert!(!certificate.is_transient());
    }
}

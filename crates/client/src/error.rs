//! Why a call or a watch did not work, told apart by what the caller can do about it.

use std::time::Duration;

use turnwire_wire::problem::{Code, Problem};
use turnwire_wire::session::Close;

/// A failed call.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be used.
    #[error("{0}")]
    Address(String),
    /// Nothing answers at the address, or the connection broke.
    #[error("no connection to the server: {0}")]
    Connection(String),
    /// The server was silent for too long.
    #[error("no answer within {0:?}")]
    Silence(Duration),
    /// The server refused, and said why.
    #[error("{} ({}): {}", .0.title, .0.code, .0.detail)]
    Problem(Box<Problem>),
    /// The server answered with a status and no reason that can be read.
    #[error("the server answered with status {0}")]
    Status(u16),
    /// The server answered with something this client cannot read.
    #[error("the answer cannot be read: {0}")]
    Answer(String),
    /// The server refused the subscription.
    #[error("the subscription was refused ({code}): {message}")]
    Subscribe {
        /// The code.
        code: String,
        /// The sentence.
        message: String,
    },
    /// The server ended the connection, and coming back would not help.
    #[error("the server closed the connection: {}", .0.message())]
    Closed(Close),
}

impl Error {
    /// The problem's code, where the server named one that is known here.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Problem(problem) => problem.code(),
            _ => None,
        }
    }

    /// Whether the same call may work a little later.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Connection(_) | Self::Silence(_) => true,
            Self::Problem(problem) => {
                let damaged = problem.code() == Some(Code::SessionQuarantined);
                is_passing_status(problem.status) && !damaged
            }
            Self::Status(status) => is_passing_status(*status),
            Self::Address(_) | Self::Answer(_) | Self::Subscribe { .. } | Self::Closed(_) => false,
        }
    }
}

fn is_passing_status(status: u16) -> bool {
    matches!(status, 408 | 429 | 500..=599)
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Connection(error.to_string())
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
    fn only_what_may_pass_is_tried_again() {
        let problem = |code| Error::Problem(Box::new(Problem::new(code, "", "")));
        assert!(problem(Code::Draining).is_passing());
        assert!(problem(Code::TooManyRequests).is_passing());
        assert!(problem(Code::StorageFull).is_passing());
        assert!(!problem(Code::SessionQuarantined).is_passing());
        assert!(!problem(Code::SessionNotFound).is_passing());
        assert!(Error::Connection("refused".into()).is_passing());
        assert!(!Error::Status(404).is_passing());
    }
}

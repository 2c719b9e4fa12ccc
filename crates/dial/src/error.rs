//! Why there is no answer. Words only: no host, no path, no text that came over the network, so
//! that an error can be shown anywhere by mistake and tells nothing.

/// No answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DialError {
    /// The guard does not let the request out: not HTTP, credentials in the address, or a place
    /// that nobody allowed.
    #[error("the request was not let out")]
    Refused,
    /// Not all of the answer came in time.
    #[error("no whole answer came in time")]
    Timeout,
    /// No connection came about in the time that a stream's request has for it.
    #[error("no connection came about in time")]
    Unconnected,
    /// Nobody answered, or the connection broke.
    #[error("the other side could not be reached")]
    Unreachable,
    /// The answer is longer than it may be.
    #[error("the answer is larger than {max_bytes} bytes")]
    TooLarge {
        /// What it may be.
        max_bytes: usize,
    },
    /// The answer is compressed, though nobody asked for that.
    #[error("the answer is in an encoding that was not asked for")]
    Encoded,
    /// The request was sent on more often than it may be, or in a circle.
    #[error("the request was sent on too often")]
    Redirects,
    /// The client could not be set up: no roots of trust on this machine.
    #[error("the HTTP client could not be set up")]
    Setup,
}

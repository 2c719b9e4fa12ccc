//! The error of outbound requests. An error contains no host, no path and no text from the
//! network, so that showing it to a client by mistake reveals nothing.

/// The reason why a request has no usable response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DialError {
    /// The guard rejected the URL: not HTTP, credentials in the URL, or an address that is not
    /// allowed.
    #[error("the request was rejected: its address is not allowed")]
    Refused,
    /// The timeout passed before the response was complete.
    #[error("the response was not complete in time")]
    Timeout,
    /// [`HttpRequest::connect`](crate::HttpRequest::connect) passed before the connection was
    /// established.
    #[error("the connection was not established in time")]
    ConnectTimeout,
    /// The connection was refused or broke off, or the remote side does not speak HTTP.
    #[error("the remote server could not be reached")]
    Unreachable,
    /// The body is larger than [`HttpRequest::max_bytes`](crate::HttpRequest::max_bytes).
    #[error("the response is larger than {max_bytes} bytes")]
    TooLarge {
        /// The limit of the request.
        max_bytes: usize,
    },
    /// The response has a content encoding although the request accepts none.
    #[error("the response has a content encoding that was not requested")]
    UnexpectedEncoding,
    /// There are more hops than [`redirects_max`](crate::HttpRequest::redirects_max) allows.
    #[error("too many redirects")]
    TooManyRedirects,
    /// The HTTP client could not be created, for example without root certificates on the machine.
    #[error("the HTTP client could not be created")]
    Setup,
}

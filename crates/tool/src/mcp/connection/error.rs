//! Why a connection could not be opened, and what became of a message that could not be sent.

use std::time::Duration;

use rmcp::service::ClientInitializeError;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use turnwire_dial::{DialError, InvalidHeader};

use super::health::ConnectionFault;
use super::http::HttpFailure;
use crate::mcp::error::one_line;

/// Why there is no connection to a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("its program cannot be started ({0}); install it, or write another `command`")]
    Program(String),
    #[error("its program ended before it answered{0}; run its `command` by hand to see why")]
    Ended(String),
    #[error(
        "it did not answer within {} ms; run its `command` by hand, or set a longer `start_timeout_ms`",
        .0.as_millis()
    )]
    Timeout(Duration),
    #[error(
        "it writes text that is not MCP to its standard output, and does not answer; its logs belong on standard error"
    )]
    StrayOutput,
    #[error("{0}; an MCP server must not do that")]
    Fault(ConnectionFault),
    #[error("it rejected the handshake: {0}")]
    Rejected(String),
    #[error("its answer is not MCP; check its `url` or `command`")]
    NotMcp,
    #[error(transparent)]
    Header(#[from] InvalidHeader),
    #[error("no server answers at its `url`; start it, or write another `url`")]
    Unreachable,
    #[error("its `url` redirects to another address; write that one as its `url`")]
    Redirected,
    #[error("its response has a content encoding that was not requested; check its `url`")]
    Encoded,
    #[error(
        "its `url` has a private address, which is not allowed; allow its host with the setting `dial.allow`, or write another `url`"
    )]
    AddressNotAllowed,
    #[error("it answered HTTP {0}; check its `url` and `headers`")]
    Status(u16),
}

impl From<ClientInitializeError> for ConnectError {
    fn from(error: ClientInitializeError) -> Self {
        match error {
            ClientInitializeError::JsonRpcError(error) => Self::Rejected(one_line(&error.message)),
            ClientInitializeError::ConnectionClosed(_) => Self::Ended(String::new()),
            ClientInitializeError::TransportError { error, .. } => {
                let http = error
                    .error
                    .downcast_ref::<StreamableHttpError<HttpFailure>>();
                // A closed pipe: the program has ended.
                http.map_or_else(|| Self::Ended(String::new()), Self::from_http)
            }
            _ => Self::NotMcp,
        }
    }
}

impl ConnectError {
    fn from_http(error: &StreamableHttpError<HttpFailure>) -> Self {
        match error {
            StreamableHttpError::Client(HttpFailure::Dial(error)) => match error {
                DialError::Refused => Self::AddressNotAllowed,
                DialError::TooManyRedirects => Self::Redirected,
                DialError::UnexpectedEncoding => Self::Encoded,
                _ => Self::Unreachable,
            },
            StreamableHttpError::Client(HttpFailure::Fault(fault)) => Self::Fault(*fault),
            StreamableHttpError::HttpStatus(status) => Self::Status(status.status),
            _ => Self::NotMcp,
        }
    }
}

/// What became of a message that could not be sent, or whose response is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SendFailure {
    /// The transport is closed.
    Closed,
    /// The server was not reached this time, or does not know the session.
    Missed,
    /// The response to this one message is not valid; the text is for the model.
    BadResponse(String),
}

impl From<&DynamicTransportError> for SendFailure {
    /// Over HTTP each message has a response of its own: a bad one says nothing about the others.
    fn from(error: &DynamicTransportError) -> Self {
        let http = error
            .error
            .downcast_ref::<StreamableHttpError<HttpFailure>>();
        match http {
            None | Some(StreamableHttpError::TransportChannelClosed) => Self::Closed,
            Some(StreamableHttpError::Client(HttpFailure::Dial(
                DialError::UnexpectedEncoding | DialError::TooManyRedirects,
            ))) => Self::BadResponse(UNREADABLE.to_owned()),
            Some(
                StreamableHttpError::SessionExpired
                | StreamableHttpError::SessionRecoveryTimeout
                | StreamableHttpError::Client(_),
            ) => Self::Missed,
            Some(StreamableHttpError::HttpStatus(status)) => {
                let status = status.status;
                Self::BadResponse(format!("The tool's server answered HTTP {status}."))
            }
            Some(_) => Self::BadResponse(UNREADABLE.to_owned()),
        }
    }
}

const UNREADABLE: &str = "The tool's server sent a response that cannot be read.";

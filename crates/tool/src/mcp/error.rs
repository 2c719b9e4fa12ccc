//! Why a server cannot be used, in words for the person who wrote the pack or runs the server. None
//! of them is ever on a wire or told to a model.

use std::time::Duration;

use rmcp::service::ClientInitializeError;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use turnwire_dial::DialError;

use crate::mcp::http::Trouble;
use crate::mcp::meter::Flood;

/// Of words that a server says of itself.
const SAID_CHARS_MAX: usize = 300;

/// A tool server of a pack that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the MCP server `{server}` cannot be used: {why}")]
pub struct BadServer {
    /// Its name in the pack.
    pub server: String,
    /// What is wrong and what to do.
    pub why: String,
}

impl BadServer {
    pub(crate) fn new(server: &str, why: impl ToString) -> Self {
        Self {
            server: server.to_owned(),
            why: why.to_string(),
        }
    }
}

/// Why there is no connection to a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoConnection {
    #[error("its program cannot be started ({0}); install it, or write another `command`")]
    Program(String),
    #[error("its program ended before it answered{0}; run its `command` by hand to see why")]
    Ended(String),
    #[error(
        "it did not answer within {} ms; run its `command` by hand, or give it a longer `start_timeout_ms`",
        .0.as_millis()
    )]
    Silent(Duration),
    #[error(
        "it writes to its standard output what are no MCP messages, and does not answer; its logs belong on standard error"
    )]
    Stray,
    #[error("{0}; an MCP server does not do that")]
    Flood(Flood),
    #[error("it refused to begin: {0}")]
    Refused(String),
    #[error("what it answers is not MCP; look at what it is, and at its `url` or `command`")]
    Nonsense,
    #[error("nobody answers at its `url`; start it, or write another `url`")]
    Unreachable,
    #[error("its `url` sends on to another address; write that one as its `url`")]
    SentOn,
    #[error("what it answers at its `url` is too large, or in an encoding that nobody asked for")]
    Unreadable,
    #[error(
        "its `url` is not let out: the address is private; allow its host with the setting `dial.allow`, or write another `url`"
    )]
    NotLetOut,
    #[error("it answered HTTP {0}; look at its `url` and `headers`")]
    Status(u16),
}

impl NoConnection {
    pub(crate) fn from_start(error: ClientInitializeError) -> Self {
        match error {
            ClientInitializeError::JsonRpcError(refused) => Self::Refused(said(&refused.message)),
            ClientInitializeError::ConnectionClosed(_) => Self::Ended(String::new()),
            ClientInitializeError::TransportError { error, .. } => Self::from_transport(&error),
            _ => Self::Nonsense,
        }
    }

    fn from_transport(error: &DynamicTransportError) -> Self {
        let inner = error.error.downcast_ref::<StreamableHttpError<Trouble>>();
        match inner {
            // A pipe that is closed: the program is gone.
            None => Self::Ended(String::new()),
            Some(StreamableHttpError::Client(Trouble::Dial(DialError::Refused))) => Self::NotLetOut,
            Some(StreamableHttpError::Client(Trouble::Flood(flood))) => Self::Flood(*flood),
            Some(StreamableHttpError::Client(Trouble::Dial(DialError::Redirects))) => Self::SentOn,
            Some(StreamableHttpError::Client(Trouble::Dial(
                DialError::TooLarge { .. } | DialError::Encoded,
            ))) => Self::Unreadable,
            Some(StreamableHttpError::Client(Trouble::Dial(_))) => Self::Unreachable,
            Some(StreamableHttpError::HttpStatus(status)) => Self::Status(status.status),
            Some(_) => Self::Nonsense,
        }
    }
}

/// What became of a message that could not be sent or was not answered as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unsent {
    /// The way to the server is gone.
    Gone,
    /// The server was not reached this time, or does not know the session.
    Missed,
    /// The server answered this one message with something that is no answer, told in these words.
    Bad(String),
}

/// Over HTTP each message has an answer of its own: what is wrong with one says nothing of the
/// others.
pub(crate) fn unsent(error: &DynamicTransportError) -> Unsent {
    let Some(inner) = error.error.downcast_ref::<StreamableHttpError<Trouble>>() else {
        return Unsent::Gone;
    };
    match inner {
        StreamableHttpError::TransportChannelClosed => Unsent::Gone,
        StreamableHttpError::SessionExpired | StreamableHttpError::SessionRecoveryTimeout => {
            Unsent::Missed
        }
        StreamableHttpError::Client(Trouble::Dial(DialError::TooLarge { .. })) => {
            Unsent::Bad("The tool's result is too large to be read; ask for less.".to_owned())
        }
        StreamableHttpError::Client(Trouble::Dial(DialError::Encoded | DialError::Redirects)) => {
            Unsent::Bad(UNREADABLE.to_owned())
        }
        StreamableHttpError::Client(_) => Unsent::Missed,
        StreamableHttpError::HttpStatus(status) => Unsent::Bad(format!(
            "The tool's server answered HTTP {}.",
            status.status
        )),
        _ => Unsent::Bad(UNREADABLE.to_owned()),
    }
}

const UNREADABLE: &str = "The tool's server answered something that cannot be read.";

/// A server's own words, on one line and not too many.
pub(crate) fn said(words: &str) -> String {
    let clean = words.chars().map(|c| if c.is_control() { ' ' } else { c });
    clean.take(SAID_CHARS_MAX).collect()
}

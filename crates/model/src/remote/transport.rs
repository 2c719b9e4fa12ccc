//! Carries a request to a provider and the response back: over the network, or from a cassette. API
//! keys and addresses do not pass through here, so a recorder cannot store them.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use turnwire_event::port::BoxFuture;

use crate::delta::ModelError;

/// One request in a vendor's format, as [`ModelTransport::open`] sends it.
#[derive(Clone, PartialEq, Eq)]
pub struct TransportRequest {
    /// Name of the provider, as the operator configured it.
    pub provider: String,
    /// Model name of the vendor.
    pub model: String,
    /// Id of the calling agent.
    pub agent: String,
    /// Number of this call within the agent's invocation, from 1.
    pub call: u32,
    /// SHA-256 of the newest user message, in lower-case hex; cassettes identify calls by it. The
    /// text can be guessed from the hash, so cassettes store it only with a salt.
    pub user_text_sha: String,
    /// Path and query that follow the provider's base URL.
    pub path: String,
    /// Headers of this request besides those of every request, in lower case. The API key is not
    /// among them.
    pub headers: Vec<(&'static str, String)>,
    /// JSON body of the request.
    pub body: Bytes,
}

/// Shows the fields that identify a call and none of its content.
impl fmt::Debug for TransportRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransportRequest")
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("agent", &self.agent)
            .field("call", &self.call)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// The head of a response to an [`TransportRequest`], and its body as a stream.
pub struct TransportResponse {
    /// HTTP status code of the response.
    pub status: u16,
    /// Retry delay from the headers; `None` if they name none.
    pub retry_after: Option<Duration>,
    /// True if the content type is that of server-sent events.
    pub is_event_stream: bool,
    /// The body in chunks of any size. Nothing is read before a consumer polls; dropping the stream
    /// ends the call.
    pub chunks: ChunkStream,
}

impl fmt::Debug for TransportResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransportResponse")
            .field("status", &self.status)
            .field("retry_after", &self.retry_after)
            .field("is_event_stream", &self.is_event_stream)
            .finish_non_exhaustive()
    }
}

/// The response to a [`TransportRequest`].
pub type ResponseFuture = BoxFuture<'static, Result<TransportResponse, ModelError>>;

/// The body of a response in chunks of any size.
pub type ChunkStream = BoxStream<'static, Result<Bytes, ModelError>>;

/// Sends requests to a provider.
pub trait ModelTransport: Send + Sync {
    /// Sends a request and waits for the head of the response. The request is sent when the future
    /// is polled; dropping the future ends the call. The caller applies the timeouts.
    fn open(&self, request: TransportRequest) -> ResponseFuture;

    /// The address of a request with this path, without a query; empty if there is no network.
    fn address(&self, _path: &str) -> String {
        String::new()
    }

    /// Hides the keys that the transport sends, wherever they are in `text`.
    fn hide_keys(&self, text: &str) -> String {
        text.to_owned()
    }
}

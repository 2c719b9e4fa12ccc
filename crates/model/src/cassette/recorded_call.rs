//! One recorded call: digests of the request, and the response as it was received.
//! [`super::RecordingTransport`] fills it and [`super::CassettePlayback`] plays it.

use std::time::Duration;

use bytes::Bytes;

use super::salt::CassetteSalt;
use crate::delta::ModelError;

/// One recorded model call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedCall {
    /// Name of the called provider.
    pub provider: String,
    /// Name of the provider's [`crate::VendorDialect`].
    pub dialect: String,
    /// Model name of the provider.
    pub model: String,
    /// Id of the calling agent.
    pub agent: String,
    /// Number of the call within the agent's invocation, from 1.
    pub call: u32,
    /// Salt of the two digests.
    pub salt: CassetteSalt,
    /// Salted digest of the newest user message, lower-case hex.
    pub words_sha256: String,
    /// Salted digest of the request body, lower-case hex.
    pub body_sha256: String,
    /// Head of the response; `None` if there was no response.
    pub answer: Option<ResponseHead>,
    /// Chunks of the body, oldest first.
    pub chunks: Vec<RecordedChunk>,
    /// End of the call, measured from its start.
    pub ended_after: Duration,
    /// How the recorded call ended.
    pub ending: CallEnding,
}

/// The head of a recorded response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// Arrival, measured from the start of the call.
    pub after: Duration,
    /// HTTP status code of the response.
    pub status: u16,
    /// Retry delay from the headers; `None` if they name none.
    pub retry_after: Option<Duration>,
    /// True if the content type is that of server-sent events.
    pub events: bool,
}

/// Bytes of one read from the socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedChunk {
    /// Arrival, measured from the start of the call.
    pub after: Duration,
    /// The received bytes, unchanged.
    pub bytes: Bytes,
}

/// How a recorded call ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CallEnding {
    /// The provider sent the complete response.
    End,
    /// The call failed before or during the response.
    Cut(ModelError),
    /// The consumer dropped the response.
    #[default]
    Closed,
}

//! One call as it is on a cassette: what was asked, in digests, and what came, as it came.

use std::time::Duration;

use bytes::Bytes;

use super::salt::Salt;
use crate::delta::ModelError;

/// One call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The provider that was asked.
    pub provider: String,
    /// How it speaks.
    pub dialect: String,
    /// The provider's name of the model.
    pub model: String,
    /// The agent that asked.
    pub agent: String,
    /// Which call of the agent's invocation it was, from 1.
    pub call: u32,
    /// What the digests are mixed with.
    pub salt: Salt,
    /// Digest of what the person had said last, lower-case hex.
    pub words_sha256: String,
    /// Digest of the request's body, lower-case hex.
    pub body_sha256: String,
    /// What the provider answered before anything else; none if it did not answer.
    pub answer: Option<Head>,
    /// What came, oldest first.
    pub chunks: Vec<Chunk>,
    /// When it was over, since the call began.
    pub ended_after: Duration,
    /// How.
    pub ending: Ending,
}

/// The head of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// When it came, since the call began.
    pub after: Duration,
    /// The HTTP status.
    pub status: u16,
    /// When to try again, by the headers.
    pub retry_after: Option<Duration>,
    /// Whether the body says of itself that it is a stream of events.
    pub events: bool,
}

/// Bytes as they came from the socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// When, since the call began.
    pub after: Duration,
    /// What.
    pub bytes: Bytes,
}

/// How a call was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The provider had sent all it had to send.
    End,
    /// It broke: no answer, or none to the end.
    Cut(ModelError),
    /// Whoever listened wanted no more.
    Closed,
}

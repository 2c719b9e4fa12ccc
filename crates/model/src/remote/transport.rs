//! The way a request takes to a provider and its answer back: over the network, or out of a
//! cassette. No key and no address passes here, so that whoever records cannot keep one.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use turnwire_event::port::BoxFuture;

use crate::delta::ModelError;

/// One request, in a vendor's words.
#[derive(Clone, PartialEq, Eq)]
pub struct Ask {
    /// The provider's name, as the operator gave it.
    pub provider: String,
    /// The vendor's name of the model.
    pub model: String,
    /// The agent that asks.
    pub agent: String,
    /// Which call of this agent's invocation it is, from 1.
    pub call: u32,
    /// SHA-256 of what the person said last, in lower-case hex: calls are told apart by it. Whoever
    /// guesses the words can check the guess, so it is kept nowhere as it is: a cassette mixes it
    /// with a salt.
    pub user_text_sha: String,
    /// What is put behind the base address, with its query.
    pub path: String,
    /// Headers that this request has besides those of every request, in lower case. The key's is
    /// none of them.
    pub headers: Vec<(&'static str, String)>,
    /// The JSON.
    pub body: Bytes,
}

/// Shows what tells calls apart and not what was said in them.
impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ask")
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("agent", &self.agent)
            .field("call", &self.call)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// The answer, as far as its head.
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// When to try again, by the headers.
    pub retry_after: Option<Duration>,
    /// Whether the body says of itself that it is a stream of events.
    pub events: bool,
    /// The body, in whatever pieces it comes; nothing is read that nobody asks for, and dropping
    /// it ends the call.
    pub chunks: BoxStream<'static, Result<Bytes, ModelError>>,
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("status", &self.status)
            .field("retry_after", &self.retry_after)
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}

/// A way to a provider.
pub trait Transport: Send + Sync {
    /// Sends a request and waits for the head of the answer. Nothing happens before the future is
    /// polled, and dropping it ends the call. Whoever asks keeps the time.
    fn open(&self, ask: Ask) -> BoxFuture<'static, Result<Reply, ModelError>>;
}

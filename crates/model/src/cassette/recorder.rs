//! Recording: a transport like any other, which remembers what passes through it.
//!
//! Nothing waits for it and nothing fails by it. A call is handed to the deck when it is over,
//! however that came about, in the middle of a word too.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _};
use tokio::time::Instant;
use turnwire_event::port::BoxFuture;

use super::call::{Call, Chunk, Ending, Head};
use super::deck::{Deck, Hold};
use super::salt::Salt;
use crate::delta::ModelError;
use crate::remote::{Ask, Reply, Transport};

/// A transport whose calls are recorded.
pub struct Recorder {
    inner: Arc<dyn Transport>,
    dialect: String,
    deck: Arc<Deck>,
}

impl Recorder {
    /// Records what passes through `inner`, which speaks `dialect`.
    pub fn new(inner: Arc<dyn Transport>, dialect: &str, deck: Arc<Deck>) -> Self {
        Self {
            inner,
            dialect: dialect.to_owned(),
            deck,
        }
    }
}

impl Transport for Recorder {
    fn open(&self, ask: Ask) -> BoxFuture<'static, Result<Reply, ModelError>> {
        let deck = Arc::clone(&self.deck);
        let dialect = self.dialect.clone();
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let mut take = Take::new(deck, dialect, &ask);
            match inner.open(ask).await {
                Ok(reply) => {
                    take.head(&reply);
                    let chunks = reply.chunks;
                    Ok(Reply {
                        chunks: Taken { chunks, take }.boxed(),
                        ..reply
                    })
                }
                Err(error) => {
                    take.end(Ending::Cut(error));
                    Err(error)
                }
            }
        })
    }
}

/// A call while it is recorded. Dropped before its end, it was closed by whoever listened.
struct Take {
    deck: Arc<Deck>,
    begun: Instant,
    /// None once it was handed over or left out.
    call: Option<(Box<Call>, Bytes, Hold)>,
}

impl Take {
    fn new(deck: Arc<Deck>, dialect: String, ask: &Ask) -> Self {
        let call = Box::new(Call {
            provider: ask.provider.clone(),
            dialect,
            model: ask.model.clone(),
            agent: ask.agent.clone(),
            call: ask.call,
            // These are worked out where nobody waits for them.
            salt: Salt::default(),
            words_sha256: ask.user_text_sha.clone(),
            body_sha256: String::new(),
            answer: None,
            chunks: Vec::new(),
            ended_after: std::time::Duration::ZERO,
            ending: Ending::Closed,
        });
        let hold = deck.hold();
        let mut take = Self {
            call: hold.map(|hold| (call, ask.body.clone(), hold)),
            begun: Instant::now(),
            deck,
        };
        take.room(ask.body.len());
        take
    }

    /// Takes room for so many bytes; without room the call is left out.
    fn room(&mut self, bytes: usize) {
        if let Some((call, _, hold)) = &mut self.call
            && !hold.grow(bytes)
        {
            let (provider, agent) = (&call.provider, &call.agent);
            tracing::warn!(%provider, %agent, "a call is not recorded: too much is in memory");
            self.call = None;
        }
    }

    fn head(&mut self, reply: &Reply) {
        if let Some((call, ..)) = &mut self.call {
            call.answer = Some(Head {
                after: self.begun.elapsed(),
                status: reply.status,
                retry_after: reply.retry_after,
                events: reply.events,
            });
        }
    }

    fn chunk(&mut self, bytes: &Bytes) {
        if self.unsaid() {
            return;
        }
        self.room(bytes.len());
        if let Some((call, ..)) = &mut self.call {
            call.chunks.push(Chunk {
                after: self.begun.elapsed(),
                // A copy: what comes from a socket may hold on to all that was read with it.
                bytes: Bytes::copy_from_slice(bytes),
            });
        }
    }

    /// Whether the answer refuses the key: some servers quote it back in such a body. Its status
    /// says all that is needed of it.
    fn unsaid(&self) -> bool {
        let call = self.call.as_ref();
        let head = call.and_then(|(call, ..)| call.answer);
        matches!(head, Some(head) if matches!(head.status, 401 | 403))
    }

    fn end(&mut self, ending: Ending) {
        if let Some((mut call, body, hold)) = self.call.take() {
            call.ended_after = self.begun.elapsed();
            call.ending = ending;
            self.deck.put(call, body, hold);
        }
    }
}

impl Drop for Take {
    fn drop(&mut self) {
        self.end(Ending::Closed);
    }
}

/// The answer's body while it is recorded.
struct Taken {
    chunks: BoxStream<'static, Result<Bytes, ModelError>>,
    take: Take,
}

impl Stream for Taken {
    type Item = Result<Bytes, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.chunks.as_mut().poll_next(cx));
        match &next {
            Some(Ok(bytes)) => self.take.chunk(bytes),
            Some(Err(error)) => self.take.end(Ending::Cut(*error)),
            None => self.take.end(Ending::End),
        }
        Poll::Ready(next)
    }
}

#[cfg(test)]
mod tests;

//! A [`Transport`] that records the calls of another transport.
//!
//! Recording never delays a call and never makes one fail. A call is handed to the [`Deck`] when it
//! ends, also if it ends in the middle of a frame.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _};
use tokio::time::Instant;
use turnwire_event::port::BoxFuture;

use super::recorded_call::{CallEnding, RecordedCall, RecordedChunk, ResponseHead};
use super::salt::CassetteSalt;
use super::writer::{CassetteWriter, MemoryReservation};
use crate::delta::ModelError;
use crate::remote::{ModelTransport, TransportRequest, TransportResponse};

/// Records every call of an inner [`Transport`] to a [`Deck`].
pub struct RecordingTransport {
    inner: Arc<dyn ModelTransport>,
    dialect: String,
    writer: Arc<CassetteWriter>,
}

impl RecordingTransport {
    /// Records the calls of `inner`, whose provider uses `dialect`.
    pub fn new(inner: Arc<dyn ModelTransport>, dialect: &str, writer: Arc<CassetteWriter>) -> Self {
        Self {
            inner,
            dialect: dialect.to_owned(),
            writer,
        }
    }
}

impl ModelTransport for RecordingTransport {
    fn open(
        &self,
        ask: TransportRequest,
    ) -> BoxFuture<'static, Result<TransportResponse, ModelError>> {
        let writer = Arc::clone(&self.writer);
        let dialect = self.dialect.clone();
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let mut recording = CallRecording::new(writer, dialect, &ask);
            match inner.open(ask).await {
                Ok(reply) => {
                    recording.set_head(&reply);
                    let chunks = reply.chunks;
                    Ok(TransportResponse {
                        chunks: RecordedBody { chunks, recording }.boxed(),
                        ..reply
                    })
                }
                Err(error) => {
                    recording.finish(CallEnding::Cut(error));
                    Err(error)
                }
            }
        })
    }
}

/// A call that is being recorded. Dropped before its end, it counts as closed by the consumer.
struct CallRecording {
    writer: Arc<CassetteWriter>,
    started: Instant,
    /// The call, its request body and its memory; `None` once it was queued or dropped.
    call: Option<(Box<RecordedCall>, Bytes, MemoryReservation)>,
}

impl CallRecording {
    fn new(writer: Arc<CassetteWriter>, dialect: String, ask: &TransportRequest) -> Self {
        let call = Box::new(RecordedCall {
            provider: ask.provider.clone(),
            dialect,
            model: ask.model.clone(),
            agent: ask.agent.clone(),
            call: ask.call,
            // The writer thread computes the digests.
            salt: CassetteSalt::default(),
            words_sha256: ask.user_text_sha.clone(),
            body_sha256: String::new(),
            answer: None,
            chunks: Vec::new(),
            ended_after: std::time::Duration::ZERO,
            ending: CallEnding::Closed,
        });
        let reservation = writer.reserve();
        let mut recording = Self {
            call: reservation.map(|reservation| (call, ask.body.clone(), reservation)),
            started: Instant::now(),
            writer,
        };
        recording.reserve(ask.body.len());
        recording
    }

    /// Reserves memory; drops the recording if the limit is reached.
    fn reserve(&mut self, bytes: usize) {
        if let Some((call, _, reservation)) = &mut self.call
            && !reservation.grow(bytes)
        {
            let (provider, agent) = (&call.provider, &call.agent);
            tracing::warn!(%provider, %agent, "a model call was not recorded: the memory limit is reached");
            self.call = None;
        }
    }

    fn set_head(&mut self, reply: &TransportResponse) {
        if let Some((call, ..)) = &mut self.call {
            call.answer = Some(ResponseHead {
                after: self.started.elapsed(),
                status: reply.status,
                retry_after: reply.retry_after,
                events: reply.is_event_stream,
            });
        }
    }

    fn push_chunk(&mut self, bytes: &Bytes) {
        if self.is_key_rejected() {
            return;
        }
        self.reserve(bytes.len());
        if let Some((call, ..)) = &mut self.call {
            call.chunks.push(RecordedChunk {
                after: self.started.elapsed(),
                // A copy: the chunk may share a larger buffer of the socket.
                bytes: Bytes::copy_from_slice(bytes),
            });
        }
    }

    /// True if the response rejects the key: some servers quote the key in such a body. The status
    /// suffices.
    fn is_key_rejected(&self) -> bool {
        let call = self.call.as_ref();
        let head = call.and_then(|(call, ..)| call.answer);
        matches!(head, Some(head) if matches!(head.status, 401 | 403))
    }

    fn finish(&mut self, ending: CallEnding) {
        if let Some((mut call, body, reservation)) = self.call.take() {
            call.ended_after = self.started.elapsed();
            call.ending = ending;
            self.writer.enqueue(call, body, reservation);
        }
    }
}

impl Drop for CallRecording {
    fn drop(&mut self) {
        self.finish(CallEnding::Closed);
    }
}

/// A response body that is being recorded by a [`CallRecording`].
struct RecordedBody {
    chunks: BoxStream<'static, Result<Bytes, ModelError>>,
    recording: CallRecording,
}

impl Stream for RecordedBody {
    type Item = Result<Bytes, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.chunks.as_mut().poll_next(cx));
        match &next {
            Some(Ok(bytes)) => self.recording.push_chunk(bytes),
            Some(Err(error)) => self.recording.finish(CallEnding::Cut(*error)),
            None => self.recording.finish(CallEnding::End),
        }
        Poll::Ready(next)
    }
}

#[cfg(test)]
mod tests;

//! A [`ModelTransport`] that records the calls of another transport.
//!
//! Recording never delays a call and never makes one fail. A call is handed to the
//! [`CassetteWriter`] when it ends, also if it ends in the middle of a frame.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use tokio::time::Instant;

use super::recorded_call::{CallEnding, RecordedCall, RecordedChunk, ResponseHead};
use super::writer::{CassetteWriter, MemoryReservation};
use crate::delta::ModelError;
use crate::remote::{
    ChunkStream, ModelTransport, ResponseFuture, TransportRequest, TransportResponse,
};

/// Records every call of an inner [`ModelTransport`] to a [`CassetteWriter`].
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
    fn open(&self, request: TransportRequest) -> ResponseFuture {
        let writer = Arc::clone(&self.writer);
        let dialect = self.dialect.clone();
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let mut recording = CallRecording::new(writer, dialect, &request);
            match inner.open(request).await {
                Ok(reply) => {
                    recording.set_head(&reply);
                    let chunks = reply.chunks;
                    Ok(TransportResponse {
                        chunks: RecordedBody { chunks, recording }.boxed(),
                        ..reply
                    })
                }
                Err(error) => {
                    recording.finish(CallEnding::Cut(error.clone()));
                    Err(error)
                }
            }
        })
    }

    fn address(&self, path: &str) -> String {
        self.inner.address(path)
    }

    fn hide_keys(&self, text: &str) -> String {
        self.inner.hide_keys(text)
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
    fn new(writer: Arc<CassetteWriter>, dialect: String, request: &TransportRequest) -> Self {
        let call = Box::new(RecordedCall {
            provider: request.provider.clone(),
            dialect,
            model: request.model.clone(),
            agent: request.agent.clone(),
            call: request.call,
            // The writer thread computes the digests.
            words_sha256: request.user_text_sha.clone(),
            ..RecordedCall::default()
        });
        let reservation = writer.reserve();
        let mut recording = Self {
            call: reservation.map(|reservation| (call, request.body.clone(), reservation)),
            started: Instant::now(),
            writer,
        };
        recording.reserve(request.body.len());
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
        head.is_some_and(|head| [401, 403].contains(&head.status))
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
    chunks: ChunkStream,
    recording: CallRecording,
}

impl Stream for RecordedBody {
    type Item = Result<Bytes, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.chunks.as_mut().poll_next(cx));
        match &next {
            Some(Ok(bytes)) => self.recording.push_chunk(bytes),
            Some(Err(error)) => self.recording.finish(CallEnding::Cut(error.clone())),
            None => self.recording.finish(CallEnding::End),
        }
        Poll::Ready(next)
    }
}

#[cfg(test)]
mod tests;

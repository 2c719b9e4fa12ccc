//! The spans that wait for their export: encoded, bounded in number and in bytes.

use std::collections::VecDeque;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::drops::{DropReason, count_dropped};

/// The most bytes of waiting spans: those of the default queue are 1 MB, at 500 bytes each.
const QUEUE_BYTES_MAX: usize = 8 << 20;
/// The most bytes of the spans of one request; common collectors accept 4 MiB or more.
const BATCH_BYTES_MAX: usize = 1 << 20;

#[derive(Default)]
struct QueueState {
    spans: VecDeque<Bytes>,
    bytes: usize,
    closed: bool,
}

/// A queue of encoded spans, from any thread to the exporter.
pub(crate) struct SpanQueue {
    state: Mutex<QueueState>,
    /// Notified when a batch is full and when the queue is closed; the exporter waits.
    wake: Notify,
    spans_max: usize,
    batch_spans: usize,
}

impl SpanQueue {
    pub(crate) fn new(spans_max: usize, batch_spans: usize) -> Self {
        Self {
            state: Mutex::default(),
            wake: Notify::new(),
            spans_max,
            batch_spans: batch_spans.min(spans_max),
        }
    }

    /// Adds a span, or drops and counts it if there is no room. Never waits.
    pub(crate) fn push(&self, span: Vec<u8>) {
        let mut state = self.state.lock();
        let is_full =
            state.spans.len() >= self.spans_max || state.bytes + span.len() > QUEUE_BYTES_MAX;
        if state.closed || is_full {
            let reason = match state.closed {
                true => DropReason::Shutdown,
                false => DropReason::QueueFull,
            };
            drop(state);
            return count_dropped(reason, 1);
        }
        state.bytes += span.len();
        state.spans.push_back(span.into());
        let is_batch = state.spans.len() == self.batch_spans;
        drop(state);
        if is_batch {
            self.wake.notify_one();
        }
    }

    /// Takes the oldest spans, up to the size of a batch.
    pub(crate) fn take_batch(&self) -> Vec<Bytes> {
        let mut state = self.state.lock();
        let mut batch = Vec::new();
        let mut bytes = 0;
        while batch.len() < self.batch_spans
            && let Some(span) = state.spans.front()
            && (batch.is_empty() || bytes + span.len() <= BATCH_BYTES_MAX)
        {
            bytes += span.len();
            batch.extend(state.spans.pop_front());
        }
        state.bytes -= bytes;
        batch
    }

    /// True if a whole batch waits.
    pub(crate) fn has_batch(&self) -> bool {
        self.state.lock().spans.len() >= self.batch_spans
    }

    /// Resolves when a batch became full, or the queue was closed, since the last call.
    pub(crate) async fn batch_ready(&self) {
        self.wake.notified().await;
    }

    /// Drops and counts every span that comes from now on.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.wake.notify_one();
    }

    /// Whether [`close`](Self::close) was called.
    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// The number of spans that wait.
    pub(crate) fn len(&self) -> usize {
        self.state.lock().spans.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_is_bounded_in_spans_and_in_bytes() {
        let queue = SpanQueue::new(3, 2);
        for _ in 0..5 {
            queue.push(vec![1]);
        }
        assert_eq!(queue.len(), 3);
        assert_eq!(queue.take_batch().len(), 2);
        assert_eq!(queue.take_batch().len(), 1);
        assert!(queue.take_batch().is_empty());
        let queue = SpanQueue::new(1_000, 1_000);
        for _ in 0..100 {
            queue.push(vec![1; 1 << 18]);
        }
        assert_eq!(queue.len(), QUEUE_BYTES_MAX >> 18);
        assert_eq!(queue.take_batch().len(), BATCH_BYTES_MAX >> 18);
        queue.push(vec![1; 1 << 18]);
        queue.close();
        queue.push(vec![1]);
        assert_eq!(queue.len(), ((QUEUE_BYTES_MAX - BATCH_BYTES_MAX) >> 18) + 1);
    }
}

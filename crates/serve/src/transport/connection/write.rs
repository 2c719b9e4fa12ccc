//! Writing: what is due goes out in as few writes as can be, and never in between the library's.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Sink as _;
use tokio::time::Instant;

use super::{Connection, Step, frame};

impl Connection {
    /// Writes what is due. Ready when something changed that the loop should look at.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        if self.socket.get_ref().touched && !self.out.is_partial() {
            match Pin::new(&mut self.socket).poll_flush(cx) {
                Poll::Ready(Ok(())) => {
                    self.socket.get_mut().touched = false;
                    self.blocked = None;
                }
                Poll::Ready(Err(_)) => return Poll::Ready(Step::Failed),
                Poll::Pending => return self.block(),
            }
        }
        if self.out.is_empty() {
            return Poll::Pending;
        }
        let mut was_blocked = false;
        loop {
            let result = self.socket.get_mut().poll_raw(cx, &self.out.slices());
            match result {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Step::Failed),
                Poll::Ready(Ok(n)) => {
                    let events = self.out.advance(n);
                    if events > 0 {
                        self.streams.sent.increment(events as u64);
                    }
                    self.socket.get_mut().held = self.out.is_partial();
                    was_blocked |= self.blocked.take().is_some();
                    self.sent = Instant::now();
                    if self.out.is_empty() {
                        // Not worth a round of the loop, as the bell tells if more is due; unless
                        // the library has waited for this, or the timer stands at a deadline.
                        let round = was_blocked || self.socket.get_ref().touched;
                        return if round {
                            Poll::Ready(Step::Look)
                        } else {
                            Poll::Pending
                        };
                    }
                }
                Poll::Pending => return self.block(),
            }
        }
    }

    /// The socket takes nothing. The loop must know at once, to watch the deadline and the queue.
    fn block(&mut self) -> Poll<Step> {
        match self.blocked {
            Some(_) => Poll::Pending,
            None => {
                self.blocked = Some(Instant::now());
                Poll::Ready(Step::Look)
            }
        }
    }

    /// Queues a frame of the server's own.
    pub(super) fn send(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut payload = Vec::new();
        write(&mut payload);
        let mut framed = Vec::with_capacity(payload.len() + 10);
        frame::text(&payload, &mut framed);
        self.out.answer(Bytes::from(framed));
        self.sent = Instant::now();
    }
}

//! The end of a stream: its last bytes, and what is counted of it.

use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use turnwire_event::Clock as _;
use turnwire_session::SystemClock;
use turnwire_wire::pc3;

use super::super::due::{Tally, word};
use super::{Connection, End};

/// How long the last bytes may take to be taken by the client after the stream has ended.
const GOODBYE: Duration = Duration::from_secs(2);

impl Connection {
    /// Says that there is nothing more to come, which no event says.
    pub(super) fn say_lost(&mut self) {
        let (version, turn) = (self.stream.feed.version(), self.stream.turn);
        let mut frame = Vec::new();
        let marks = pc3::lost(version, turn.into(), SystemClock.now(), &mut frame);
        let mut tally = Tally::default();
        tally.add(word(marks, frame.len()), 0);
        self.due.push(frame.into(), tally);
    }

    /// The last bytes: what is due, the end, and then what the client may still send is read, so
    /// that its kernel does not throw the ending away.
    pub(super) async fn goodbye(&mut self) {
        let last = async {
            poll_fn(|cx| match self.poll_write(cx) {
                _ if self.due.is_empty() => Poll::Ready(Ok(())),
                // Blocked for the first time: asked again, so that the socket wakes us.
                Poll::Ready(Ok(())) => match self.poll_write(cx) {
                    Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                    _ => Poll::Pending,
                },
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                Poll::Pending => Poll::Pending,
            })
            .await?;
            self.io.shutdown().await?;
            poll_fn(|cx| self.poll_left(cx)).await;
            Ok::<_, io::Error>(())
        };
        let _ = tokio::time::timeout(GOODBYE, last).await;
    }

    /// Counts what was still under way: frames that are out, and, of a client that was cut, those
    /// that it will not get (D-75).
    pub(super) fn settle(&mut self, end: End) {
        let (out, mut left) = self.due.give_up();
        self.stream.counters.add(&out);
        if end != End::Slow {
            return;
        }
        left += self.stream.feed.left(&self.stream.live);
        self.stream.counters.dropped.increment(left);
        tracing::info!(
            session = %self.stream.live.id,
            frames = left,
            "a chat stream was too slow and was cut"
        );
    }
}

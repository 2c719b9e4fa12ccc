//! Server-sent events on a socket of their own: text blocks out, nothing in. The end of the
//! stream is the end of the connection.

use std::convert::Infallible;
use std::future::poll_fn;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncWriteExt as _, ReadBuf};

use super::close::CloseReason;
use super::framing::{ByteStream, FinalWrites, Framing};

/// How long the client may take to read the last bytes after the stream has ended.
const CLOSING: Duration = Duration::from_secs(2);

/// The socket of one event stream.
#[derive(Debug)]
pub(crate) struct EventStream<S> {
    io: S,
}

impl<S: ByteStream> EventStream<S> {
    pub(crate) fn new(io: S) -> Self {
        Self { io }
    }
}

impl<S: ByteStream> Framing for EventStream<S> {
    type Inbound = Infallible;
    type Io = S;

    fn io(&mut self) -> &mut S {
        &mut self.io
    }

    /// Ready when the client has left. Bytes that it sends are read and discarded.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<Infallible, CloseReason>> {
        let mut discarded = [MaybeUninit::uninit(); 512];
        loop {
            let mut buffer = ReadBuf::uninit(&mut discarded);
            match Pin::new(&mut self.io).poll_read(cx, &mut buffer) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
                Poll::Ready(Ok(()) | Err(_)) => return Poll::Ready(Err(CloseReason::PeerGone)),
            }
        }
    }

    fn begin_close(&mut self, reason: CloseReason, _: Duration) -> FinalWrites {
        match reason {
            CloseReason::PeerGone | CloseReason::PeerClosed => FinalWrites::Nothing,
            CloseReason::TooSlow => {
                self.io.discard_unsent();
                FinalWrites::Nothing
            }
            _ => FinalWrites::Pending(CLOSING),
        }
    }

    async fn close(&mut self, _: CloseReason) {
        if self.io.shutdown().await.is_ok() {
            let _ = poll_fn(|cx| self.poll_read(cx)).await;
        }
    }
}

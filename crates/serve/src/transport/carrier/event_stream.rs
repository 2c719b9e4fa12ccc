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

/// The end of a block.
const BLOCK_END: &[u8] = b"\n\n";

/// The offset in `blocks` behind the first `skip` of them.
pub(crate) fn skip_blocks(blocks: &[u8], skip: usize) -> usize {
    let Some(last) = skip.checked_sub(1) else {
        return 0;
    };
    let pairs = blocks.windows(BLOCK_END.len()).enumerate();
    let mut ends = pairs.filter(|(_, pair)| *pair == BLOCK_END);
    let end = ends.nth(last);
    end.map_or(blocks.len(), |(at, _)| at + BLOCK_END.len())
}

/// The complete blocks at the beginning of `bytes`: those after the last end are no block yet.
pub(crate) fn complete_blocks(bytes: &[u8]) -> impl Iterator<Item = &str> {
    let mut pairs = bytes.windows(BLOCK_END.len());
    let end = pairs.rposition(|pair| pair == BLOCK_END).unwrap_or(0);
    let text = std::str::from_utf8(&bytes[..end]).unwrap_or_default();
    text.split("\n\n")
}

/// The [`Framing`] of server-sent events.
#[derive(Debug)]
pub(crate) struct EventStream<S>(pub(crate) S);

impl<S: ByteStream> Framing for EventStream<S> {
    type Inbound = Infallible;
    type Io = S;

    fn frame_end(frames: &[u8], offset: usize) -> usize {
        // The first byte of the end may be written already.
        let begin = offset.saturating_sub(1);
        let mut pairs = frames[begin..].windows(BLOCK_END.len());
        let end = pairs.position(|pair| pair == BLOCK_END);
        end.map_or(frames.len(), |at| begin + at + BLOCK_END.len())
    }

    fn io(&mut self) -> &mut S {
        &mut self.0
    }

    /// Ready when the client has disconnected. Received bytes are discarded.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<Infallible, CloseReason>> {
        let mut discarded = [MaybeUninit::uninit(); 512];
        loop {
            let mut buffer = ReadBuf::uninit(&mut discarded);
            match Pin::new(&mut self.0).poll_read(cx, &mut buffer) {
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
                self.0.discard_unsent();
                FinalWrites::Nothing
            }
            CloseReason::IdentityExpired | CloseReason::IdentityRevoked => {
                FinalWrites::PartialFrame(CLOSING)
            }
            _ => FinalWrites::Pending(CLOSING),
        }
    }

    async fn close(&mut self, _: CloseReason) {
        if self.0.shutdown().await.is_ok() {
            let _ = poll_fn(|cx| self.poll_read(cx)).await;
        }
    }
}

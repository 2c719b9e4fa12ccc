//! The protocol below the frames of a wire: [`Framing`] reads, closes, and has control frames that may
//! have to be written first. Frames of the wire are written to its socket as they are.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::close::CloseReason;

/// The byte stream below a [`Framing`]: a TCP socket, or a pipe in tests.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {
    /// Writes one or several slices.
    fn poll_write_slices(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match slices {
            [one] => Pin::new(self).poll_write(cx, one),
            many => Pin::new(self).poll_write_vectored(cx, many),
        }
    }

    /// Ready when there may be something to read.
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Makes the kernel discard unsent bytes once the socket is dropped.
    fn discard_unsent(&self);
}

impl ByteStream for TcpStream {
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_read_ready(cx)
    }

    fn discard_unsent(&self) {
        let _ = SockRef::from(self).set_linger(Some(Duration::ZERO));
    }
}

/// The writes that a closing connection still makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinalWrites {
    Nothing,
    /// All pending writes and the end of the stream, within this time.
    Pending(Duration),
    /// The rest of a frame that is written in part and the end of the stream, within this time.
    PartialFrame(Duration),
}

/// A protocol on its socket. The defaults are those of a protocol without control frames.
pub(crate) trait Framing: Send {
    /// A frame from the client.
    type Inbound: Send;
    type Io: ByteStream;

    /// Ready when frames may be written: `Ok(true)` after control frames of the protocol were
    /// flushed. `mid_frame` says that a frame is written in part; its rest goes first.
    fn poll_ready(&mut self, _: &mut Context<'_>, _mid_frame: bool) -> Poll<io::Result<bool>> {
        Poll::Ready(Ok(false))
    }

    /// True while control frames of the protocol wait for [`Framing::poll_ready`].
    fn has_control(&self) -> bool {
        false
    }

    /// Tells whether the last write ended inside a slice.
    fn set_mid_frame(&mut self, _mid_frame: bool) {}

    /// The end of the frame at `offset` of `frames`, which begin with a frame.
    fn frame_end(frames: &[u8], _offset: usize) -> usize {
        frames.len()
    }

    /// The socket, which frames are written to as they are.
    fn io(&mut self) -> &mut Self::Io;

    /// The next frame of the client, or how the client ended the connection.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<Self::Inbound, CloseReason>>;

    /// Prepares the end of the connection; returns the [`FinalWrites`].
    fn begin_close(&mut self, reason: CloseReason, write_deadline: Duration) -> FinalWrites;

    /// Ends the stream and reads on until the client has closed too, so that its kernel does not
    /// discard the last frames.
    fn close(&mut self, reason: CloseReason) -> impl Future<Output = ()> + Send;
}

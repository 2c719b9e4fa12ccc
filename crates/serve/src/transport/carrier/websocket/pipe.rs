//! The socket of a WebSocket, shared by the protocol library and the writer of frames so that
//! their frames never interleave.
//!
//! While a frame is written in part (`mid_frame`) the library's writes wait; while the library has
//! something unflushed (`has_control`) the writer of frames waits.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::super::framing::ByteStream;

/// The socket below the library.
#[derive(Debug)]
pub(crate) struct Pipe<S> {
    pub(super) io: S,
    pub(super) mid_frame: bool,
    /// The library wrote, or wanted to, since it was last flushed.
    pub(super) has_control: bool,
}

impl<S: ByteStream> AsyncRead for Pipe<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<S: ByteStream> AsyncWrite for Pipe<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.has_control = true;
        if self.mid_frame {
            // The writer of frames flushes the library as soon as its frame is out.
            return Poll::Pending;
        }
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

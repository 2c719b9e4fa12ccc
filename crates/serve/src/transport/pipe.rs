//! The socket, shared by the library and the raw writer so that frames never interleave.
//!
//! While a raw frame is half written the library's writes wait; while the library has something
//! unflushed (`touched`) the raw writer waits.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The socket of one connection.
pub(super) struct Pipe {
    io: TcpStream,
    /// A raw frame is half written.
    pub(super) held: bool,
    /// The library wrote, or wanted to, since it was last flushed.
    pub(super) touched: bool,
}

impl Pipe {
    pub(super) fn new(io: TcpStream) -> Self {
        Self {
            io,
            held: false,
            touched: false,
        }
    }

    /// Ready when the socket has something to read.
    pub(super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.poll_read_ready(cx)
    }

    /// Writes whole frames past the library.
    pub(super) fn poll_raw(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match slices {
            [one] => Pin::new(&mut self.io).poll_write(cx, one),
            many => Pin::new(&mut self.io).poll_write_vectored(cx, many),
        }
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.touched = true;
        if self.held {
            // Woken by the raw writer: it flushes the library as soon as its frame is out.
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

//! A TCP stream that ends after a number of read bytes: in the middle of a frame, of a header or of
//! a character.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

#[derive(Debug)]
pub(crate) struct ByteLimitedStream {
    inner: TcpStream,
    limit: Option<u64>,
}

impl ByteLimitedStream {
    pub(crate) fn new(inner: TcpStream) -> Self {
        Self { inner, limit: None }
    }

    /// Ends the stream after `bytes` more bytes.
    pub(crate) fn end_after(&mut self, bytes: u64) {
        self.limit = Some(bytes);
    }

    /// True if the byte limit is reached.
    pub(crate) fn is_at_limit(&self) -> bool {
        self.limit == Some(0)
    }
}

impl AsyncRead for ByteLimitedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(left) = self.limit else {
            return Pin::new(&mut self.inner).poll_read(cx, buf);
        };
        if left == 0 {
            return Poll::Ready(Ok(()));
        }
        let most = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(buf.remaining());
        let mut part = ReadBuf::new(buf.initialize_unfilled_to(most));
        let done = Pin::new(&mut self.inner).poll_read(cx, &mut part);
        let read = part.filled().len();
        buf.advance(read);
        self.limit = Some(left - read as u64);
        done
    }
}

impl AsyncWrite for ByteLimitedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn byte_budget_reader_stops_at_its_limit() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("an address");
        let writer = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a client");
            stream.write_all(b"0123456789").await.expect("written");
            stream
        });
        let mut stream = ByteLimitedStream::new(TcpStream::connect(addr).await.expect("a server"));
        let mut first = [0; 2];
        stream.read_exact(&mut first).await.expect("two bytes");
        stream.end_after(5);
        let mut remaining = Vec::new();
        stream.read_to_end(&mut remaining).await.expect("an end");
        assert_eq!((&first, remaining.as_slice()), (b"01", b"23456".as_slice()));
        assert!(stream.is_at_limit());
        drop(writer.await);
    }
}

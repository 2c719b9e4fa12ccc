//! A socket that outlives its request: WebSockets and event streams write their own bytes.
//!
//! A route responds with a head and puts a [`SocketTakeover`] into its extensions. The listener writes no
//! byte of that response: it takes the socket back from the HTTP library and hands both over, so a
//! stream holds none of the library's buffers and its first frames leave with its head.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::http::{HeaderValue, Response, header};
use bytes::Bytes;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpStream;

use super::ConnectionPermit;

/// A socket that was taken from the HTTP library.
#[derive(Debug)]
pub struct TakenSocket {
    /// The connection, with nothing of the response written yet.
    pub io: TcpStream,
    /// Bytes that the client sent after its request.
    pub read: Bytes,
    /// The head of the response, still to be written.
    pub head: Vec<u8>,
    /// Counts the connection as open; to be held as long as `io`.
    pub permit: ConnectionPermit,
}

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;
type Runs = Box<dyn FnOnce(TakenSocket) -> Running + Send>;

/// Takes over a socket once its request is answered.
#[derive(Clone)]
pub struct SocketTakeover(Arc<Mutex<Option<Runs>>>);

impl SocketTakeover {
    /// `run` gets the socket; it must write the head first.
    pub fn new<F>(run: impl FnOnce(TakenSocket) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let run: Runs = Box::new(move |taken| Box::pin(run(taken)));
        Self(Arc::new(Mutex::new(Some(run))))
    }

    /// Hands the socket over and returns the future to run. A second call returns `None` and drops the
    /// socket.
    pub(super) fn hand(self, taken: TakenSocket) -> Option<Running> {
        let run = self.0.lock().take()?;
        Some(run(taken))
    }
}

/// The head of a response as bytes. The end of the connection delimits the body, so the head has
/// `connection: close` unless the response sets another value.
pub(super) fn head<B>(response: &Response<B>, date: HeaderValue) -> Vec<u8> {
    let status = response.status();
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    let close = HeaderValue::from_static("close");
    let own = [(header::CONNECTION, close), (header::DATE, date)];
    let own = own
        .iter()
        .filter(|(name, _)| !response.headers().contains_key(name))
        .map(|(name, value)| (name, value));
    // The length of the body that the response seems to have says nothing about what follows.
    let headers = response
        .headers()
        .iter()
        .filter(|(name, _)| **name != header::CONTENT_LENGTH);
    for (name, value) in headers.chain(own) {
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
    }
    out.extend_from_slice(b"\r\n\r\n");
    out
}

/// The socket while the HTTP library owns it. It cannot be taken back while the library still has
/// bytes to write.
pub(super) struct LentSocket {
    pub(super) io: TokioIo<TcpStream>,
    /// True while the last write found the socket full.
    pub(super) blocked: Arc<AtomicBool>,
}

impl Read for LentSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl Write for LentSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, buf);
        self.blocked.store(written.is_pending(), Ordering::Relaxed);
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, bufs);
        self.blocked.store(written.is_pending(), Ordering::Relaxed);
        written
    }
}

//! A socket that outlives its request: WebSockets and event streams write their own bytes.
//!
//! A route responds with a head and puts a [`SocketTakeover`] into its extensions. The listener writes no
//! byte of that response: it takes the socket back from the HTTP library and hands both over, so a
//! stream holds none of the library's buffers and its first frames leave with its head.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::task::{Context, Poll};

use axum::http::{HeaderValue, Response, header};
use bytes::Bytes;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpStream;

use super::ConnectionPermit;
use super::connections::ConnectionState;
use super::refusal::own_error_status;

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

/// What the listener must know about a [`LentSocket`].
#[derive(Default)]
pub(super) struct SocketFlags {
    /// True while the last write found the socket full.
    blocked: AtomicBool,
    /// The status of an error that the library wrote by itself and that was withheld, or 0.
    withheld: AtomicU16,
}

impl SocketFlags {
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::Relaxed)
    }

    /// The status of the library's own error response, which was not written to the socket.
    pub(super) fn withheld_status(&self) -> Option<u16> {
        Some(self.withheld.load(Ordering::Relaxed)).filter(|status| *status > 0)
    }
}

/// The socket while the HTTP library owns it. It cannot be taken back while the library still has
/// bytes to write. The library's own error responses have no body: they are withheld, and the
/// listener writes a problem instead.
pub(super) struct LentSocket {
    pub(super) io: TokioIo<TcpStream>,
    pub(super) flags: Arc<SocketFlags>,
    pub(super) connection: Arc<ConnectionState>,
}

impl LentSocket {
    /// Whether `written` is an error response of the library, which is then withheld. While a
    /// request is answered, the routes write.
    fn withholds(&self, written: &[u8]) -> bool {
        if self.connection.is_busy() {
            return false;
        }
        let status = own_error_status(written);
        self.flags
            .withheld
            .fetch_max(status.unwrap_or(0), Ordering::Relaxed);
        status.is_some()
    }

    fn note_blocked<T>(&self, written: &Poll<T>) {
        let is_blocked = written.is_pending();
        self.flags.blocked.store(is_blocked, Ordering::Relaxed);
    }
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
        if self.withholds(buf) {
            return Poll::Ready(Ok(buf.len()));
        }
        let written = Pin::new(&mut self.io).poll_write(cx, buf);
        self.note_blocked(&written);
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.flags.withheld_status().is_some() {
            return Poll::Ready(Ok(())); // the listener has something to write
        }
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
        if let [only] = bufs
            && self.withholds(only)
        {
            return Poll::Ready(Ok(only.len()));
        }
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, bufs);
        self.note_blocked(&written);
        written
    }
}

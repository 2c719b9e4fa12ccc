//! The standard streams of a server's program, with limits: [`BoundedReader`] counts its output and
//! reduces its messages, [`BoundedWriter`] fails when the program reads nothing of its input
//! for too long, because unread messages would be held in memory.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::health::{ConnectionFault, ConnectionHealth, MESSAGE_BYTES_MAX, WRITE_STALL_MAX};
use super::intake::MessageIntake;

/// Bytes read from a program at once.
const CHUNK_BYTES: usize = 16 << 10;
/// Bytes of the line buffer that are kept for the next line.
const LINE_BYTES_KEPT: usize = 64 << 10;

/// Reads lines from `inner`, and passes on what [`MessageIntake`] leaves of each. Fails at the first
/// byte beyond a limit.
pub(super) struct BoundedReader<R> {
    inner: R,
    /// The beginning of a line.
    line: Vec<u8>,
    /// Whole lines that are not passed on yet: those of one chunk.
    reduced: BytesMut,
    intake: Arc<MessageIntake>,
    health: Arc<ConnectionHealth>,
}

impl<R> BoundedReader<R> {
    pub(super) fn new(
        inner: R,
        intake: &Arc<MessageIntake>,
        health: &Arc<ConnectionHealth>,
    ) -> Self {
        Self {
            inner,
            line: Vec::new(),
            reduced: BytesMut::new(),
            intake: Arc::clone(intake),
            health: Arc::clone(health),
        }
    }

    fn observe(&mut self, bytes: &[u8]) -> Result<(), ConnectionFault> {
        self.health.receive(bytes.len())?;
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let line_end = piece.strip_suffix(b"\n");
            let text = line_end.unwrap_or(piece);
            // A log line on standard output, for example. The transport skips it; the error of a
            // server that does not answer mentions it.
            let is_stray = |byte: &u8| !b"{[ \t\r".contains(byte);
            if self.line.is_empty() && text.first().is_some_and(is_stray) {
                self.health.stray_output.store(true, Ordering::Relaxed);
            }
            if self.line.len() + text.len() > MESSAGE_BYTES_MAX {
                return Err(self.health.fail(ConnectionFault::MessageTooLarge));
            }
            self.line.extend_from_slice(text);
            if line_end.is_some() {
                if let Some(reduced) = self.intake.reduce(&self.line) {
                    self.reduced.extend_from_slice(&reduced);
                    self.reduced.extend_from_slice(b"\n");
                }
                self.line.clear();
                self.line.shrink_to(LINE_BYTES_KEPT);
            }
        }
        Ok(())
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedReader<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.reduced.is_empty() {
            let mut chunk = [MaybeUninit::uninit(); CHUNK_BYTES];
            let mut chunk = ReadBuf::uninit(&mut chunk);
            ready!(Pin::new(&mut this.inner).poll_read(context, &mut chunk))?;
            if chunk.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.observe(chunk.filled()).map_err(io::Error::other)?;
        }
        let passed = this.reduced.len().min(buffer.remaining());
        buffer.put_slice(&this.reduced.split_to(passed));
        Poll::Ready(Ok(()))
    }
}

/// Writes to `inner` and fails when a write makes no progress for [`WRITE_STALL_MAX`].
pub(super) struct BoundedWriter<W> {
    inner: W,
    health: Arc<ConnectionHealth>,
    /// Runs while a write waits.
    stall: Option<Pin<Box<Sleep>>>,
}

impl<W> BoundedWriter<W> {
    pub(super) fn new(inner: W, health: &Arc<ConnectionHealth>) -> Self {
        Self {
            inner,
            health: Arc::clone(health),
            stall: None,
        }
    }

    /// `polled`, or the fault if the write has waited too long.
    fn check_stall<T>(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.stall = None;
            return polled;
        }
        let stall = self
            .stall
            .get_or_insert_with(|| Box::pin(sleep(WRITE_STALL_MAX)));
        ready!(stall.as_mut().poll(context));
        let fault = self.health.fail(ConnectionFault::InputStalled);
        Poll::Ready(Err(io::Error::other(fault)))
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for BoundedWriter<W> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.inner).poll_write(context, bytes);
        this.check_stall(context, polled)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.inner).poll_flush(context);
        this.check_stall(context, polled)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.inner).poll_shutdown(context);
        this.check_stall(context, polled)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;
    use crate::mcp::connection::intake::PLAIN_BYTES_MAX;

    fn reader<R>(inner: R, health: &Arc<ConnectionHealth>) -> BoundedReader<R> {
        BoundedReader::new(inner, &MessageIntake::new(&"small".into()), health)
    }

    #[tokio::test]
    async fn lines_are_passed_on_whole_and_large_ones_dropped() {
        let health = Arc::<ConnectionHealth>::default();
        let large = format!("{{\"method\":\"{}\"}}\n", "x".repeat(2 * PLAIN_BYTES_MAX));
        let ping = "{\"id\":1,\"method\":\"ping\"}\n";
        let pings = ping.repeat(5_000);
        let input = format!("{ping}{large}{pings}{large}{ping}unfinished");
        let mut read = String::new();
        let mut reader = reader(input.as_bytes(), &health);
        reader.read_to_string(&mut read).await.expect("read");
        assert_eq!(read, format!("{ping}{pings}{ping}"));
        assert!(reader.line.capacity() <= LINE_BYTES_KEPT);
        assert_eq!(health.fault(), None);
    }

    #[tokio::test]
    async fn line_without_end_is_a_fault_and_many_lines_are_not() {
        let health = Arc::<ConnectionHealth>::default();
        let mut reader = reader(tokio::io::empty(), &health);
        let half = vec![b'x'; MESSAGE_BYTES_MAX / 2];
        for _ in 0..3 {
            assert_eq!(reader.observe(&half), Ok(()));
            assert_eq!(reader.observe(b"\n"), Ok(()));
        }
        assert_eq!(reader.observe(&half), Ok(()));
        assert_eq!(reader.observe(&half), Ok(()));
        assert_eq!(health.fault(), None);
        let fault = ConnectionFault::MessageTooLarge;
        assert_eq!(reader.observe(b"x"), Err(fault));
        assert_eq!(health.failed().await, fault);
    }

    #[test]
    fn output_that_is_no_message_is_noted() {
        let health = Arc::<ConnectionHealth>::default();
        let mut reader = reader(tokio::io::empty(), &health);
        assert_eq!(reader.observe(b"{\"a\": \"x\"}\r\n\n [1]\n"), Ok(()));
        assert!(!health.stray_output.load(Ordering::Relaxed));
        assert_eq!(reader.observe(b"listening\n"), Ok(()));
        assert!(health.stray_output.load(Ordering::Relaxed));
    }
}

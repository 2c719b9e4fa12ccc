//! How much a server may send: bytes without an end, bytes in a while, messages in a second. A
//! server that sends more is not slowed down but left, because what it sends has to be held.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Of one message. A result is 1 MiB at most; base64 of a picture that is only described is more.
pub(crate) const MESSAGE_BYTES_MAX: usize = 8 << 20;
/// Of all messages in a [`WHILE`]: eight of the largest, and more than a pipe that works carries.
const WHILE_BYTES_MAX: usize = 64 << 20;
const WHILE: Duration = Duration::from_secs(10);
/// Notifications and requests of a server in a second; the rest is dropped. A person is told of
/// two steps in a second.
const UNASKED_MAX: u32 = 200;

/// Without a byte taken of what a server is sent: one that reads takes it at once.
pub(crate) const TAKE_MAX: Duration = Duration::from_secs(10);

/// More than a server may send, or less than it must take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Flood {
    #[error("it wrote more than {MESSAGE_BYTES_MAX} bytes without the end of a message")]
    Endless,
    #[error("it wrote more than {WHILE_BYTES_MAX} bytes in {} s", WHILE.as_secs())]
    Many,
    #[error("it took nothing of what it was sent for {} s", TAKE_MAX.as_secs())]
    Deaf,
}

/// Counts within a while, then from nothing again.
#[derive(Debug)]
struct Window {
    from: Instant,
    count: usize,
}

impl Window {
    fn add(&mut self, count: usize, length: Duration) -> usize {
        let now = Instant::now();
        if now.duration_since(self.from) >= length {
            *self = Self {
                from: now,
                count: 0,
            };
        }
        self.count = self.count.saturating_add(count);
        self.count
    }
}

/// What one connection has sent, and what was wrong with it.
#[derive(Debug)]
pub(crate) struct Meter {
    bytes: Mutex<Window>,
    unasked: Mutex<Window>,
    stray: AtomicBool,
    flood: OnceLock<Flood>,
    flooded: Notify,
    doubted: Notify,
    heard: AtomicU64,
}

impl Meter {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        let window = || {
            Mutex::new(Window {
                from: now,
                count: 0,
            })
        };
        Self {
            bytes: window(),
            unasked: window(),
            stray: AtomicBool::new(false),
            flood: OnceLock::new(),
            flooded: Notify::new(),
            doubted: Notify::new(),
            heard: AtomicU64::new(0),
        }
    }

    /// Counts bytes that came.
    fn take(&self, bytes: usize) -> Result<(), Flood> {
        self.heard.fetch_add(bytes as u64, Ordering::Relaxed);
        if self.bytes.lock().add(bytes, WHILE) > WHILE_BYTES_MAX {
            return Err(self.end(Flood::Many));
        }
        Ok(())
    }

    pub(crate) fn end(&self, flood: Flood) -> Flood {
        let _ = self.flood.set(flood);
        self.flooded.notify_one();
        flood
    }

    /// Tells that the other side may not be well, and is to be asked.
    pub(crate) fn doubt(&self) {
        self.doubted.notify_one();
    }

    /// Waits until somebody doubts.
    pub(crate) async fn doubted(&self) {
        self.doubted.notified().await;
    }

    /// Bytes that came in all.
    pub(crate) fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }

    /// Whether one more message that nobody asked for may pass.
    pub(crate) fn passes(&self) -> bool {
        self.unasked.lock().add(1, Duration::from_secs(1)) <= UNASKED_MAX as usize
    }

    /// Why the connection had to end, if it had to.
    pub(crate) fn flood(&self) -> Option<Flood> {
        self.flood.get().copied()
    }

    /// Waits until it has to end.
    pub(crate) async fn flooded(&self) {
        if self.flood().is_none() {
            self.flooded.notified().await;
        }
    }

    /// Whether something came that is not even the beginning of a message.
    pub(crate) fn has_stray(&self) -> bool {
        self.stray.load(Ordering::Relaxed)
    }
}

/// Where a message ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// With its line.
    Line,
    /// With an empty line.
    EmptyLine,
}

/// Measures one stream of bytes of a connection.
#[derive(Debug)]
pub(crate) struct Gauge {
    ends: Ends,
    message: usize,
    line: usize,
}

impl Gauge {
    pub(crate) fn new(ends: Ends) -> Self {
        Self {
            ends,
            message: 0,
            line: 0,
        }
    }

    /// Looks at the next bytes of the stream.
    pub(crate) fn take(&mut self, piece: &[u8], meter: &Meter) -> Result<(), Flood> {
        meter.take(piece.len())?;
        for &byte in piece {
            match byte {
                b'\n' => {
                    if self.ends == Ends::Line || self.line == 0 {
                        self.message = 0;
                    }
                    self.line = 0;
                    continue;
                }
                b'\r' => {}
                _ => {
                    // A log line on standard output, say; it is passed over, and told to whoever
                    // asks why the server did not answer.
                    if self.ends == Ends::Line && self.line == 0 && !b"{[ \t".contains(&byte) {
                        meter.stray.store(true, Ordering::Relaxed);
                    }
                    self.line += 1;
                }
            }
            self.message += 1;
            if self.message > MESSAGE_BYTES_MAX {
                return Err(meter.end(Flood::Endless));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_message_without_end_is_a_flood_and_many_messages_are_not() {
        let meter = Meter::new();
        let mut gauge = Gauge::new(Ends::Line);
        let half = vec![b'x'; MESSAGE_BYTES_MAX / 2];
        for _ in 0..3 {
            assert_eq!(gauge.take(&half, &meter), Ok(()));
            assert_eq!(gauge.take(b"\n", &meter), Ok(()));
        }
        assert_eq!(meter.flood(), None);
        assert_eq!(gauge.take(&half, &meter), Ok(()));
        assert_eq!(gauge.take(&half, &meter), Ok(()));
        assert_eq!(gauge.take(b"x", &meter), Err(Flood::Endless));
        assert_eq!(meter.flood(), Some(Flood::Endless));
        meter.flooded().await;
    }

    #[test]
    fn an_event_ends_with_an_empty_line() {
        let meter = Meter::new();
        let mut gauge = Gauge::new(Ends::EmptyLine);
        let half = vec![b'x'; MESSAGE_BYTES_MAX / 2];
        assert_eq!(gauge.take(&half, &meter), Ok(()));
        assert_eq!(gauge.take(b"\r\n\r\n", &meter), Ok(()));
        assert_eq!(gauge.take(&half, &meter), Ok(()));
        assert_eq!(gauge.take(b"\n", &meter), Ok(()));
        assert_eq!(gauge.take(&half, &meter), Ok(()));
        assert_eq!(gauge.take(b"x", &meter), Err(Flood::Endless));
    }

    #[tokio::test(start_paused = true)]
    async fn many_bytes_in_a_while_are_a_flood_and_in_two_they_are_not() {
        let meter = Meter::new();
        let mut gauge = Gauge::new(Ends::Line);
        let line = vec![b'\n'; 1 << 20];
        for round in 0..2 {
            for _ in 0..WHILE_BYTES_MAX >> 20 {
                assert_eq!(gauge.take(&line, &meter), Ok(()), "{round}");
            }
            tokio::time::advance(WHILE).await;
        }
        for _ in 0..WHILE_BYTES_MAX >> 20 {
            assert_eq!(gauge.take(&line, &meter), Ok(()));
        }
        assert_eq!(gauge.take(b"\n", &meter), Err(Flood::Many));
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_asked_for_passes_so_often_in_a_second() {
        let meter = Meter::new();
        let passed = |n: u32| (0..n).filter(|_| meter.passes()).count();
        assert_eq!(passed(500), UNASKED_MAX as usize);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(passed(500), UNASKED_MAX as usize);
    }

    #[test]
    fn words_that_are_no_message_are_remembered() {
        let meter = Meter::new();
        let mut gauge = Gauge::new(Ends::Line);
        assert_eq!(gauge.take(b"{\"a\": \"x\"}\r\n\n [1]\n", &meter), Ok(()));
        assert!(!meter.has_stray());
        assert_eq!(gauge.take(b"listening\n", &meter), Ok(()));
        assert!(meter.has_stray());
    }
}

//! The window: at most so many events outstanding between a producer and the slowest client.
//!
//! ```text
//!   producer ──event n──▶ server ──▶ N clients          n ≤ mark + window, always
//!       ▲                                │
//!       └───────── mark: every client has event `mark` ──┘   (8 bytes on a socket of its own)
//! ```
//! The client side counts what every connection has; the producer side reads the mark and says
//! how many events may go. Window 1 is the dearest case: nothing can be sent together.

use std::io;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// The widest window that can be tallied.
pub const WINDOW_MAX: u64 = 64;

/// What the client asks of the producer: the window, and how many events in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowOrder {
    /// At most so many outstanding.
    pub window: u64,
    /// So many in all.
    pub total: u64,
}

impl WindowOrder {
    /// The first 16 bytes on the side channel.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.window.to_le_bytes());
        bytes[8..].copy_from_slice(&self.total.to_le_bytes());
        bytes
    }
}

/// The producer's side: reads marks, gives permits.
#[derive(Debug)]
pub struct WindowPermits {
    side: TcpStream,
    order: WindowOrder,
    sent: u64,
    mark: u64,
    partial: [u8; 8],
    have: usize,
}

impl WindowPermits {
    /// Reads the order from a side channel just accepted.
    pub async fn open(mut side: TcpStream) -> io::Result<Self> {
        let order = WindowOrder {
            window: side.read_u64_le().await?.clamp(1, WINDOW_MAX),
            total: side.read_u64_le().await?,
        };
        Ok(Self {
            side,
            order,
            sent: 0,
            mark: 0,
            partial: [0; 8],
            have: 0,
        })
    }

    /// How many events may be sent now, waiting until it is at least one; 0 once all are sent.
    pub async fn permits(&mut self) -> io::Result<u64> {
        loop {
            let allowed = self.order.total.min(self.mark + self.order.window);
            let now = allowed - self.sent;
            if now > 0 || self.sent == self.order.total {
                self.sent = allowed;
                return Ok(now);
            }
            self.read_marks().await?;
        }
    }

    /// Waits until every client has everything.
    pub async fn drained(&mut self) -> io::Result<()> {
        while self.mark < self.order.total {
            self.read_marks().await?;
        }
        Ok(())
    }

    async fn read_marks(&mut self) -> io::Result<()> {
        let mut bytes = [0; 512];
        let len = self.side.read(&mut bytes).await?;
        if len == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for &byte in &bytes[..len] {
            self.partial[self.have] = byte;
            self.have += 1;
            if self.have == 8 {
                self.mark = u64::from_le_bytes(self.partial).min(self.sent);
                self.have = 0;
            }
        }
        Ok(())
    }
}

/// The client's side: how many connections have each outstanding event.
#[derive(Debug)]
pub struct WindowTally {
    clients: u32,
    have: [u32; WINDOW_MAX as usize],
    mark: u64,
}

impl WindowTally {
    /// Nothing received yet, by `clients` connections.
    pub fn new(clients: u32) -> Self {
        Self {
            clients,
            have: [0; WINDOW_MAX as usize],
            mark: 0,
        }
    }

    /// A connection that had `before` events now has `after`; true if the mark moved.
    pub fn advance(&mut self, before: u64, after: u64) -> bool {
        for event in before..after {
            self.have[(event % WINDOW_MAX) as usize] += 1;
        }
        let old = self.mark;
        while self.have[(self.mark % WINDOW_MAX) as usize] == self.clients {
            self.have[(self.mark % WINDOW_MAX) as usize] = 0;
            self.mark += 1;
        }
        self.mark > old
    }

    /// Every connection has so many events.
    pub fn mark(&self) -> u64 {
        self.mark
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    #[test]
    fn low_mark_is_the_slowest_connection() {
        let mut tally = WindowTally::new(3);
        assert!(!tally.advance(0, 16));
        assert!(!tally.advance(0, 4));
        assert!(tally.advance(0, 9));
        assert_eq!(tally.mark(), 4);
        assert!(tally.advance(4, 16));
        assert_eq!(tally.mark(), 9);
        for turn in 0..20 {
            let base = 16 + turn * 16;
            if turn == 0 {
                assert!(tally.advance(9, 16));
            }
            assert!(!tally.advance(base, base + 16));
            assert!(!tally.advance(base, base + 16));
            assert!(tally.advance(base, base + 16));
            assert_eq!(tally.mark(), base + 16);
        }
    }

    #[tokio::test]
    async fn permits_never_exceed_the_window() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let mut client = TcpStream::connect(listener.local_addr().expect("bound"))
            .await
            .expect("listening");
        let order = WindowOrder {
            window: 4,
            total: 10,
        };
        client.write_all(&order.to_bytes()).await.expect("open");
        let (side, _) = listener.accept().await.expect("a client");
        let mut pace = WindowPermits::open(side).await.expect("an order");
        assert_eq!(pace.permits().await.expect("open"), 4);
        for (mark, permits) in [(3_u64, 3), (4, 1), (8, 2)] {
            client.write_all(&mark.to_le_bytes()).await.expect("open");
            assert_eq!(pace.permits().await.expect("open"), permits);
        }
        assert_eq!(pace.permits().await.expect("open"), 0);
        client.write_all(&10_u64.to_le_bytes()).await.expect("open");
        pace.drained().await.expect("all there");
    }
}

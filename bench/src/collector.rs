//! A collector that takes every batch of spans and reads none of them: what it needs is not counted for
//! the server.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const ACCEPTED: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// A collector in this process, on threads of its own until the process ends.
#[derive(Debug)]
pub struct SpanSink {
    addr: SocketAddr,
    bytes: Arc<AtomicU64>,
}

impl SpanSink {
    /// Starts to listen on the loopback.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let addr = listener.local_addr()?;
        let bytes = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&bytes);
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let counted = Arc::clone(&counted);
                std::thread::spawn(move || drain(socket, &counted));
            }
        });
        Ok(Self { addr, bytes })
    }

    /// The endpoint for the server's environment.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The bytes of all batches so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// Answers the requests of one connection. `None` when it ends.
fn drain(mut socket: TcpStream, counted: &AtomicU64) -> Option<()> {
    let mut unread = Vec::new();
    let mut chunk = vec![0; 65_536];
    loop {
        let head_len = loop {
            if let Some(at) = unread.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break at + 4;
            }
            let read = socket.read(&mut chunk).ok().filter(|read| *read > 0)?;
            unread.extend_from_slice(&chunk[..read]);
        };
        let head = String::from_utf8_lossy(&unread[..head_len]).to_ascii_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length?.trim().parse().ok()?;
        while unread.len() < head_len + length {
            let read = socket.read(&mut chunk).ok().filter(|read| *read > 0)?;
            unread.extend_from_slice(&chunk[..read]);
        }
        unread.drain(..head_len + length);
        counted.fetch_add(length as u64, Ordering::Relaxed);
        socket.write_all(ACCEPTED).ok()?;
    }
}

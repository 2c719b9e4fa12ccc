//! A provider made of parts: bytes to send and what to do between them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// What an upstream does next.
#[derive(Clone)]
pub(super) enum Part {
    /// Sends bytes as they are.
    Raw(Vec<u8>),
    /// Sends bytes as one chunk of the body.
    Chunk(Vec<u8>),
    /// Sends the same chunk for ever.
    Flood(Vec<u8>),
    /// Does nothing for a while.
    Pause(Duration),
    /// Does nothing until the client is gone.
    Hang,
}

/// The head of a stream of events.
pub(super) fn head() -> Part {
    raw(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
         transfer-encoding: chunked\r\n\r\n",
    )
}

pub(super) fn raw(text: &str) -> Part {
    Part::Raw(text.as_bytes().to_vec())
}

pub(super) fn chunk(text: &str) -> Part {
    Part::Chunk(text.as_bytes().to_vec())
}

/// The end of the body.
pub(super) fn end() -> Part {
    raw("0\r\n\r\n")
}

/// A running upstream; every connection gets the same parts for each request.
pub(super) struct Upstream {
    pub(super) base: String,
    pub(super) connections: Arc<AtomicUsize>,
    /// Bytes written so far.
    pub(super) written: Arc<AtomicUsize>,
    /// What was asked, whole.
    pub(super) asked: mpsc::UnboundedReceiver<String>,
    /// One for every connection that the client closed.
    pub(super) closed: mpsc::UnboundedReceiver<()>,
}

/// The server's side of it.
struct Served {
    parts: Vec<Part>,
    written: Arc<AtomicUsize>,
    asked: mpsc::UnboundedSender<String>,
    closed: mpsc::UnboundedSender<()>,
}

impl Upstream {
    pub(super) async fn start(parts: Vec<Part>) -> Self {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.set_send_buffer_size(65_536).expect("a small buffer");
        socket
            .bind("127.0.0.1:0".parse().expect("an address"))
            .expect("a port");
        let listener = socket.listen(16).expect("a listener");
        let base = format!("http://{}/v1/", listener.local_addr().expect("bound"));
        let connections = Arc::new(AtomicUsize::new(0));
        let written = Arc::new(AtomicUsize::new(0));
        let (asked_in, asked) = mpsc::unbounded_channel();
        let (closed_in, closed) = mpsc::unbounded_channel();
        let served = Arc::new(Served {
            parts,
            written: Arc::clone(&written),
            asked: asked_in,
            closed: closed_in,
        });
        tokio::spawn(accept(listener, Arc::clone(&connections), served));
        Self {
            base,
            connections,
            written,
            asked,
            closed,
        }
    }
}

async fn accept(listener: TcpListener, connections: Arc<AtomicUsize>, served: Arc<Served>) {
    while let Ok((mut socket, _)) = listener.accept().await {
        connections.fetch_add(1, Ordering::SeqCst);
        let served = Arc::clone(&served);
        tokio::spawn(async move {
            while let Some(asked) = request(&mut socket).await {
                let _ = served.asked.send(asked);
                if served.play(&mut socket).await.is_none() {
                    let _ = served.closed.send(());
                    return;
                }
                if !matches!(served.parts.last(), Some(Part::Raw(raw)) if raw == b"0\r\n\r\n") {
                    return;
                }
            }
        });
    }
}

impl Served {
    /// None when the client is gone.
    async fn play(&self, socket: &mut TcpStream) -> Option<()> {
        for part in &self.parts {
            match part {
                Part::Raw(bytes) => self.write(socket, bytes).await?,
                Part::Chunk(bytes) => self.write(socket, &framed(bytes)).await?,
                Part::Flood(bytes) => loop {
                    self.write(socket, &framed(bytes)).await?;
                },
                Part::Pause(time) => tokio::time::sleep(*time).await,
                Part::Hang => {
                    let mut buffer = [0; 64];
                    while !matches!(socket.read(&mut buffer).await, Ok(0) | Err(_)) {}
                    return None;
                }
            }
        }
        Some(())
    }

    async fn write(&self, socket: &mut TcpStream, bytes: &[u8]) -> Option<()> {
        socket.write_all(bytes).await.ok()?;
        self.written.fetch_add(bytes.len(), Ordering::SeqCst);
        Some(())
    }
}

fn framed(bytes: &[u8]) -> Vec<u8> {
    let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
    framed.extend_from_slice(bytes);
    framed.extend_from_slice(b"\r\n");
    framed
}

/// One request with its body; none when the client is gone.
async fn request(socket: &mut TcpStream) -> Option<String> {
    let mut seen = Vec::new();
    loop {
        let mut buffer = [0; 4_096];
        let n = socket.read(&mut buffer).await.ok().filter(|&n| n > 0)?;
        seen.extend_from_slice(&buffer[..n]);
        let text = String::from_utf8_lossy(&seen);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let line = line.to_ascii_lowercase();
                line.strip_prefix("content-length: ")?.parse::<usize>().ok()
            });
            if body.len() >= length.unwrap_or(0) {
                return Some(text.into_owned());
            }
        }
    }
}

//! A test server that performs a list of steps: bytes to send and pauses between them. It reports
//! requests, written bytes and closed connections to the test.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// One step of the test server.
#[derive(Clone)]
pub(super) enum ServerStep {
    /// Sends bytes without chunk framing.
    Raw(Vec<u8>),
    /// Sends bytes as one chunk of the body.
    Chunk(Vec<u8>),
    /// Sends the same chunk forever.
    Flood(Vec<u8>),
    /// Waits for a fixed time.
    Pause(Duration),
    /// Waits until the client disconnects.
    Hang,
}

/// A response head for an event stream.
pub(super) fn head() -> ServerStep {
    raw(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
         transfer-encoding: chunked\r\n\r\n",
    )
}

pub(super) fn raw(text: &str) -> ServerStep {
    ServerStep::Raw(text.as_bytes().to_vec())
}

pub(super) fn chunk(text: &str) -> ServerStep {
    ServerStep::Chunk(text.as_bytes().to_vec())
}

/// Ends the body of a chunked response.
pub(super) fn end() -> ServerStep {
    raw("0\r\n\r\n")
}

/// A running test server; every request gets the same steps.
pub(super) struct TestServer {
    pub(super) base: String,
    pub(super) connections: Arc<AtomicUsize>,
    /// Bytes written so far.
    pub(super) written: Arc<AtomicUsize>,
    /// Requests received, head and body.
    pub(super) requests: mpsc::UnboundedReceiver<String>,
    /// One item per connection that the client closed.
    pub(super) closed: mpsc::UnboundedReceiver<()>,
}

/// The state shared by the server's tasks.
struct ServerState {
    steps: Vec<ServerStep>,
    written: Arc<AtomicUsize>,
    requests: mpsc::UnboundedSender<String>,
    closed: mpsc::UnboundedSender<()>,
}

impl TestServer {
    pub(super) async fn start(steps: Vec<ServerStep>) -> Self {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.set_send_buffer_size(65_536).expect("a small buffer");
        socket
            .bind("127.0.0.1:0".parse().expect("an address"))
            .expect("a port");
        let listener = socket.listen(16).expect("a listener");
        let base = format!("http://{}/v1/", listener.local_addr().expect("bound"));
        let connections = Arc::new(AtomicUsize::new(0));
        let written = Arc::new(AtomicUsize::new(0));
        let (requests_sender, requests) = mpsc::unbounded_channel();
        let (closed_sender, closed) = mpsc::unbounded_channel();
        let state = Arc::new(ServerState {
            steps,
            written: Arc::clone(&written),
            requests: requests_sender,
            closed: closed_sender,
        });
        tokio::spawn(accept(listener, Arc::clone(&connections), state));
        Self {
            base,
            connections,
            written,
            requests,
            closed,
        }
    }
}

async fn accept(listener: TcpListener, connections: Arc<AtomicUsize>, state: Arc<ServerState>) {
    while let Ok((mut socket, _)) = listener.accept().await {
        connections.fetch_add(1, Ordering::SeqCst);
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            while let Some(requests) = request(&mut socket).await {
                let _ = state.requests.send(requests);
                if state.perform(&mut socket).await.is_none() {
                    let _ = state.closed.send(());
                    return;
                }
                if !matches!(state.steps.last(), Some(ServerStep::Raw(raw)) if raw == b"0\r\n\r\n")
                {
                    return;
                }
            }
        });
    }
}

impl ServerState {
    /// Performs the steps; `None` if the client disconnected.
    async fn perform(&self, socket: &mut TcpStream) -> Option<()> {
        for part in &self.steps {
            match part {
                ServerStep::Raw(bytes) => self.write(socket, bytes).await?,
                ServerStep::Chunk(bytes) => self.write(socket, &framed(bytes)).await?,
                ServerStep::Flood(bytes) => loop {
                    self.write(socket, &framed(bytes)).await?;
                },
                ServerStep::Pause(time) => tokio::time::sleep(*time).await,
                ServerStep::Hang => {
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

/// Reads one request with its body; `None` if the client disconnected.
async fn request(socket: &mut TcpStream) -> Option<String> {
    let mut received = Vec::new();
    loop {
        let mut buffer = [0; 4_096];
        let n = socket.read(&mut buffer).await.ok().filter(|&n| n > 0)?;
        received.extend_from_slice(&buffer[..n]);
        let text = String::from_utf8_lossy(&received);
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

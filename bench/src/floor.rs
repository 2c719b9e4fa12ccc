//! The floor: a minimal server of the same interface that only writes bytes made beforehand.
//!
//! One ring a session, a cursor a connection, one write of all that is due per wake, the bytes
//! shared by all. No durability, no filter, no JSON, no order to make: what is left is the
//! socket, the runtime and the reader, which no server can do without. It has both faces: frames
//! on a WebSocket, blocks on a stream of a turn, which here is named as its session is. Three
//! answers matter: a feedback publishes one frame, a turn publishes what its message says
//! (`turn`, `paced`, `stall`), a chat is answered with a whole turn at once.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};

use crate::frame;
use crate::http::WEBSOCKET_ACCEPT;
use crate::sample::{SampleFormat, SampleRing};
use crate::sse;
use crate::window::WindowPermits;

/// How many frames a turn publishes that is not paced: 200 deltas and what is around them.
pub const TURN_FRAMES: u64 = 207;

/// How many blocks a stream has before the first delta: the turn's name, its episode, and that the
/// model thinks.
pub const CHAT_OPENING: u64 = 3;

/// How many blocks a chat is answered with before the sentinel: 200 deltas, what is before them, and
/// usage and terminal.
pub const CHAT_BLOCKS: u64 = 205;

/// At most so many frames in one write, so that one late reader does not keep the others waiting.
const CHUNK_FRAMES: u64 = 256;

/// What a session has published, as a count: the bytes are the block's.
#[derive(Debug, Default)]
struct FloorRing {
    head: AtomicU64,
    wake: Notify,
}

impl FloorRing {
    fn publish(&self, frames: u64) {
        self.head.fetch_add(frames, Ordering::Release);
        self.wake.notify_waiters();
    }
}

#[derive(Debug)]
struct FloorServer {
    frames: SampleRing,
    blocks: SampleRing,
    /// The answer to a chat, from its head to its sentinel.
    chat: Vec<u8>,
    rings: Mutex<HashMap<String, Arc<FloorRing>>>,
    next: AtomicU64,
    address: SocketAddr,
    /// Side channels that wait for a paced turn; the listener holds the other end.
    sides: tokio::sync::Mutex<mpsc::Receiver<TcpStream>>,
}

/// How long what it sends is, at least.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct SampleLengths {
    /// Bytes of a WebSocket frame.
    #[arg(long)]
    frame_bytes: usize,
    /// Bytes of a block of a stream.
    #[arg(long)]
    block_bytes: usize,
}

/// Serves until dropped. `side` takes the side channels of paced turns.
pub async fn serve(
    listener: TcpListener,
    side: TcpListener,
    lengths: SampleLengths,
) -> io::Result<()> {
    let (give, take) = mpsc::channel(4);
    tokio::spawn(async move {
        while let Ok((stream, _)) = side.accept().await {
            if stream.set_nodelay(true).is_err() || give.send(stream).await.is_err() {
                break;
            }
        }
    });
    let blocks = SampleRing::new(SampleFormat::Sse, lengths.block_bytes);
    let turn = blocks.due(0, CHAT_BLOCKS * blocks.frame_bytes(), usize::MAX);
    let floor = Arc::new(FloorServer {
        frames: SampleRing::new(SampleFormat::WebSocket, lengths.frame_bytes),
        chat: [sse::HEAD.as_bytes(), turn, sse::SENTINEL].concat(),
        blocks,
        rings: Mutex::default(),
        next: AtomicU64::new(1),
        address: listener.local_addr()?,
        sides: tokio::sync::Mutex::new(take),
    });
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        // A connection that breaks ends its own task; its client tells.
        tokio::spawn(converse(floor.clone(), stream));
    }
}

/// A request: its first line's path, and its body.
struct FloorRequest {
    post: bool,
    path: String,
    body: Vec<u8>,
}

async fn converse(floor: Arc<FloorServer>, mut stream: TcpStream) -> io::Result<()> {
    let mut bytes = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut bytes).await? {
        let mut parts = request.path.trim_start_matches('/').split(['/', '?']);
        let (root, session, what) = (parts.next(), parts.next(), parts.next());
        let ring = session.and_then(|id| floor.rings.lock().get(id).cloned());
        let answer = match (request.post, session, what, ring) {
            (true, None, ..) => create(&floor),
            (true, Some("stream"), None, None) => {
                stream.write_all(&floor.chat).await?;
                return stream.shutdown().await;
            }
            (true, _, Some("turns"), Some(ring)) => {
                start_turn(&floor, ring, &request.body);
                let id = session.unwrap_or_default();
                answer(202, &format!(r#"{{"turn_id":"{id}","state":"running"}}"#))
            }
            (true, _, Some("feedback"), Some(ring)) => {
                ring.publish(1);
                answer(202, "{}")
            }
            (false, Some(id), None, Some(_)) => {
                let url = format!("ws://{}/sessions/{id}/stream", floor.address);
                let text = format!(r#"{{"ws_url":"{url}","state":"completed"}}"#);
                answer(200, &text)
            }
            (false, _, Some("stream"), Some(ring)) => {
                drop(bytes);
                return match root {
                    Some("chat") => carry_blocks(&floor, &ring, stream).await,
                    _ => carry_frames(&floor, &ring, stream).await,
                };
            }
            _ => answer(404, "{}"),
        };
        stream.write_all(&answer).await?;
    }
    Ok(())
}

fn create(floor: &FloorServer) -> Vec<u8> {
    let id = format!("s{}", floor.next.fetch_add(1, Ordering::Relaxed));
    floor.rings.lock().insert(id.clone(), Arc::default());
    answer(201, &format!(r#"{{"session_id":"{id}"}}"#))
}

fn start_turn(floor: &Arc<FloorServer>, ring: Arc<FloorRing>, body: &[u8]) {
    if contains(body, b"stall") {
        return;
    }
    if !contains(body, b"paced") {
        ring.publish(TURN_FRAMES);
        return;
    }
    let floor = floor.clone();
    tokio::spawn(async move {
        let side = floor.sides.lock().await.recv().await;
        let mut pace = WindowPermits::open(side.ok_or(io::ErrorKind::BrokenPipe)?).await?;
        loop {
            match pace.permits().await? {
                0 => return pace.drained().await,
                frames => ring.publish(frames),
            }
        }
    });
}

/// The WebSocket: one frame from the client (the subscribe), then all that is due, until broken.
async fn carry_frames(
    floor: &FloorServer,
    ring: &FloorRing,
    mut stream: TcpStream,
) -> io::Result<()> {
    let accepted = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {WEBSOCKET_ACCEPT}\r\n\r\n"
    );
    stream.write_all(accepted.as_bytes()).await?;
    let live = subscribed_live(&mut stream).await?;
    let from = match live {
        true => ring.head.load(Ordering::Acquire),
        false => 0,
    };
    let ack = br#"{"type":"subscribe_ack"}"#;
    stream.write_all(&frame::text(ack)).await?;
    follow(&floor.frames, ring, stream, from).await
}

/// The stream of a turn: what comes before the deltas, then all that is due, until broken.
async fn carry_blocks(
    floor: &FloorServer,
    ring: &FloorRing,
    mut stream: TcpStream,
) -> io::Result<()> {
    let blocks = &floor.blocks;
    let opening = blocks.due(0, CHAT_OPENING * blocks.frame_bytes(), usize::MAX);
    let first = [sse::HEAD.as_bytes(), opening].concat();
    stream.write_all(&first).await?;
    drop(first);
    follow(blocks, ring, stream, 0).await
}

/// Writes what the ring has from frame `from` on, until broken.
async fn follow(
    block: &SampleRing,
    ring: &FloorRing,
    mut stream: TcpStream,
    from: u64,
) -> io::Result<()> {
    let size = block.frame_bytes();
    let mut cursor = from * size;
    loop {
        let due = ring.head.load(Ordering::Acquire) * size;
        if cursor < due {
            let limit = (CHUNK_FRAMES * size) as usize;
            let written = stream.write(block.due(cursor, due, limit)).await?;
            cursor += written as u64;
            if written == limit {
                tokio::task::yield_now().await;
            }
            continue;
        }
        let mut woken = std::pin::pin!(ring.wake.notified());
        woken.as_mut().enable();
        // Published between the look and the enable: look again rather than sleep on it.
        if ring.head.load(Ordering::Acquire) * size == cursor {
            woken.await;
        }
    }
}

/// Reads the subscribe frame, small enough to come in one piece on loopback. Apart from `carry_frames`,
/// so that its buffer is gone while the connection idles.
async fn subscribed_live(stream: &mut TcpStream) -> io::Result<bool> {
    let mut subscribe = [0; 1024];
    let len = stream.read(&mut subscribe).await?;
    Ok(contains(&subscribe[..len], br#""since":null"#))
}

/// Reads one request; bytes of a following one stay in `bytes`. None at the end of the stream.
async fn read_request(
    stream: &mut TcpStream,
    bytes: &mut Vec<u8>,
) -> io::Result<Option<FloorRequest>> {
    loop {
        if let Some((request, used)) = parse(bytes) {
            bytes.drain(..used);
            return Ok(Some(request));
        }
        if bytes.len() > 64 * 1024 || stream.read_buf(bytes).await? == 0 {
            return Ok(None);
        }
    }
}

fn parse(bytes: &[u8]) -> Option<(FloorRequest, usize)> {
    let head_len = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..head_len]);
    let mut first = head.lines().next()?.split(' ');
    let post = first.next()? == "POST";
    let path = first.next()?.to_owned();
    let body_len = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(Some(0), |(_, value)| value.trim().parse().ok())?;
    let body = bytes.get(head_len..head_len + body_len)?.to_vec();
    Some((FloorRequest { post, path, body }, head_len + body_len))
}

fn answer(status: u16, body: &str) -> Vec<u8> {
    let len = body.len();
    format!("HTTP/1.1 {status} -\r\nContent-Length: {len}\r\n\r\n{body}").into_bytes()
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}

//! HTTP by hand on one socket: reads a request, writes an answer at its pace, and notices when
//! the other side leaves.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::reply::Reply;

/// The largest request that is read.
const REQUEST_MAX: usize = 1 << 20;

/// The next request, head and body; none when the other side is done or talks nonsense.
pub(super) async fn request(socket: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    while bytes.len() <= REQUEST_MAX {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let body = end + 4;
            let all = body + length(&head)?;
            if bytes.len() >= all {
                return Some((head, bytes[body..all].to_vec()));
            }
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    None
}

fn length(head: &str) -> Option<usize> {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
}

/// Writes an answer; false if the other side left before all of it was written.
pub(super) async fn tell(socket: &mut TcpStream, reply: &Reply) -> bool {
    if left_within(socket, reply.delay).await {
        return false;
    }
    let (size, pause) = reply.pace.unwrap_or((usize::MAX, Duration::ZERO));
    for (at, piece) in reply.bytes.chunks(size).enumerate() {
        if at > 0 && left_within(socket, pause).await {
            return false;
        }
        if socket.write_all(piece).await.is_err() {
            return false;
        }
    }
    reply.stays() || socket.shutdown().await.is_ok()
}

/// Waits; true if the other side left meanwhile. It sends nothing before it has its answer.
async fn left_within(socket: &TcpStream, time: Duration) -> bool {
    if time.is_zero() {
        return false;
    }
    let mut byte = [0];
    tokio::select! {
        () = tokio::time::sleep(time) => false,
        peeked = socket.peek(&mut byte) => !matches!(peeked, Ok(n) if n > 0),
    }
}

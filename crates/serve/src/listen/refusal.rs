//! Answers that no route gives: 429 above the cap of connections, and the problem of a request that
//! the HTTP library cannot read.

use std::io;
use std::time::{Duration, Instant};

use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use turnwire_event::metric;
use turnwire_wire::problem::{Code, MEDIA_TYPE, Problem};

/// How long a client may take to read its refusal.
const GOODBYE: Duration = Duration::from_millis(500);

/// The interval of the log line about refused connections.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Counts refused connections for one log line an interval.
#[derive(Default)]
pub(super) struct RefusalLog {
    logged_at: Option<Instant>,
    refused: u64,
}

impl RefusalLog {
    /// Counts a refusal; logs the number since the last line if one is due.
    pub(super) fn record(&mut self, max: usize) {
        self.refused += 1;
        metrics::counter!(metric::LIMIT_REFUSED_TOTAL, "limit" => "connections", "scope" => "all")
            .increment(1);
        if self.logged_at.is_none_or(|at| at.elapsed() >= LOG_EVERY) {
            let refused = std::mem::take(&mut self.refused);
            tracing::warn!(refused, max, "all connections are taken: refused with 429");
            self.logged_at = Some(Instant::now());
        }
    }
}

/// True if the client has sent what was not read.
pub(super) fn has_unread(stream: &TcpStream) -> bool {
    let mut first = [std::mem::MaybeUninit::uninit()];
    let peeked = SockRef::from(stream).peek(&mut first);
    peeked.is_ok_and(|bytes| bytes > 0)
}

/// The most bytes that [`discard_unread`] reads: what a receive buffer mostly holds.
const DISCARD_BYTES_MAX: usize = 256 << 10;

/// Reads what the client has sent, without waiting: closing a socket with unread bytes resets the
/// connection, and the client may not see its answer.
pub(super) fn discard_unread(stream: &TcpStream) {
    let mut buffer = [0; 4096];
    let mut left = DISCARD_BYTES_MAX;
    while left > 0 {
        match stream.try_read(&mut buffer) {
            Ok(read @ 1..) => left = left.saturating_sub(read),
            Ok(0) | Err(_) => return,
        }
    }
}

/// A response with a problem, as bytes.
fn problem_response(code: Code, status: u16, detail: String, extra_header: &str) -> Vec<u8> {
    let mut random = [0u8; 16];
    // Without randomness the problem has no trace of its own.
    let _ = getrandom::fill(&mut random);
    let trace_id = format!("{:032x}", u128::from_be_bytes(random));
    let mut problem = Problem::new(code, detail, &trace_id);
    problem.status = status;
    let body = serde_json::to_string(&problem).unwrap_or_default();
    let status = axum::http::StatusCode::from_u16(status).unwrap_or_default();
    let reason = status.canonical_reason().unwrap_or_default();
    let length = body.len();
    let status = status.as_u16();
    format!(
        "HTTP/1.1 {status} {reason}\r\ncontent-type: {MEDIA_TYPE}\r\n{extra_header}\
         x-content-type-options: nosniff\r\ncache-control: no-store\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Answers 429 at once: the response fits the send buffer of a new socket, so nothing waits.
pub(super) fn send_too_many(stream: &TcpStream) {
    let detail = "All connections of this server are taken; try again soon.".to_owned();
    let response = problem_response(Code::TooManyRequests, 429, detail, "retry-after: 1\r\n");
    let socket = SockRef::from(stream);
    let _ = socket.send(&response);
    let _ = socket.shutdown(std::net::Shutdown::Write);
}

/// Reads on for a moment, so that a reset does not discard the response.
pub(super) async fn linger(mut stream: TcpStream) {
    let read = async {
        let mut buffer = [0; 1024];
        while stream.read(&mut buffer).await? > 0 {}
        Ok::<_, io::Error>(())
    };
    let _ = tokio::time::timeout(GOODBYE, read).await;
}

/// Answers a request that the HTTP library refused with `status`.
pub(super) async fn send_unreadable(mut stream: TcpStream, status: u16, header_max_bytes: usize) {
    let detail = match status {
        414 | 431 => format!(
            "The request line and the headers may have {header_max_bytes} bytes together, and 100 \
             headers."
        ),
        _ => "The request is not valid HTTP/1.1.".to_owned(),
    };
    let response = problem_response(Code::InvalidRequest, status, detail, "");
    let written = async {
        stream.write_all(&response).await?;
        stream.shutdown().await
    };
    if let Ok(Ok(())) = tokio::time::timeout(GOODBYE, written).await {
        linger(stream).await;
    }
}

/// A header of every response of the routes, which the HTTP library does not know.
const OF_ROUTES: &[u8] = b"x-content-type-options";

/// The status of an error response that the HTTP library wrote by itself: a head without a body.
pub(super) fn own_error_status(written: &[u8]) -> Option<u16> {
    let status = written.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
    let status: u16 = std::str::from_utf8(status).ok()?.parse().ok()?;
    let is_head = written.ends_with(b"\r\n\r\n");
    let is_of_routes = written
        .windows(OF_ROUTES.len())
        .any(|window| window.eq_ignore_ascii_case(OF_ROUTES));
    ((400..500).contains(&status) && is_head && !is_of_routes).then_some(status)
}

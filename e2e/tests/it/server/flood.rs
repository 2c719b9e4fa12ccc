//! A client that sends much and reads nothing: it is throttled, then disconnected; the server
//! neither buffers its replies nor spins (F8).

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{ServerOptions, TestServer};

/// A client's text or ping frame, masked with zeros.
fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0x80 | opcode];
    match payload.len() {
        len @ 0..=125 => out.push(0x80 | len as u8),
        len => {
            out.push(0x80 | 126);
            out.extend_from_slice(&(len as u16).to_be_bytes());
        }
    }
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(payload);
    out
}

/// Attaches by hand: a socket that nothing else reads.
async fn attached(server: &TestServer) -> TcpStream {
    let api = server.api();
    let session = api.create().await.expect("a session");
    let body = api.attach(session).await.expect("a token");
    let url = body["ws_url"].as_str().expect("an address").to_owned();
    let path = url.splitn(4, '/').nth(3).expect("a path").to_owned();
    let mut socket = TcpStream::connect(server.addr()).expect("a connection");
    let host = server.addr();
    let request = format!(
        "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    socket.write_all(request.as_bytes()).expect("a request");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        assert_eq!(socket.read(&mut byte).expect("an answer"), 1);
        head.push(byte[0]);
    }
    assert!(
        head.starts_with(b"HTTP/1.1 101"),
        "{}",
        String::from_utf8_lossy(&head)
    );
    socket
}

fn resident_mib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .expect("its memory");
    let kib: u64 = line
        .split_whitespace()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .expect("a number");
    kib / 1024
}

/// Sends `piece` over and over without reading, for at most `most` or until the server cuts.
fn flood(mut socket: TcpStream, piece: &[u8], most: Duration) -> (usize, bool) {
    socket.set_nonblocking(true).expect("a setting");
    let (begun, mut sent, mut at) = (Instant::now(), 0, 0);
    while begun.elapsed() < most {
        match socket.write(&piece[at..]) {
            Ok(n) => {
                sent += n;
                at = (at + n) % piece.len();
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(5))
            }
            Err(_) => return (sent, true),
        }
    }
    (sent, false)
}

async fn is_bounded(what: &str, piece: Vec<u8>) {
    let options = ServerOptions::script(ModelScript::new().on("", [ScriptStep::text("hi")])).set(
        "stream",
        "write_deadline_ms",
        1_000,
    );
    let server = TestServer::start(options).await;
    let mut socket = attached(&server).await;
    socket
        .write_all(&frame(1, b"{\"type\":\"subscribe\"}"))
        .expect("a subscribe");
    let before = resident_mib(server.pid());
    let flooding =
        tokio::task::spawn_blocking(move || flood(socket, &piece, Duration::from_secs(8)));
    let (sent, cut) = flooding.await.expect("the flood");
    let after = resident_mib(server.pid());
    assert!(cut, "{what}: the server let it go on; {sent} bytes sent");
    assert!(
        after < before + 32,
        "{what}: from {before} to {after} MiB for {sent} bytes"
    );
    assert_eq!(
        server
            .api()
            .get("/healthz")
            .await
            .expect("an answer")
            .status,
        200
    );
}

// F8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_session_pings_are_bounded_and_closed() {
    let nonce = "y".repeat(60_000);
    is_bounded(
        "JSON pings",
        frame(
            1,
            format!("{{\"type\":\"ping\",\"nonce\":\"{nonce}\"}}").as_bytes(),
        ),
    )
    .await;
}

// F8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_websocket_pings_are_bounded_and_closed() {
    is_bounded("WebSocket pings", frame(9, &[b'x'; 125]).repeat(64)).await;
}

// F8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_subscribes_are_bounded_and_closed() {
    is_bounded(
        "subscribes",
        frame(1, b"{\"type\":\"subscribe\",\"snapshot\":true}").repeat(64),
    )
    .await;
}

//! Answers that clients do not read: they count for their owner until their last byte is written, they
//! end after a time, and they keep nobody else out.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use turnwire_e2e::chat::{raw, until};
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{ServerOptions, TestServer};

/// A large answer: some hundred kilobytes.
const LARGE: &str = "/openapi.json";

/// How much of an answer the kernel may keep on both sides, with a margin: the sockets have the smallest
/// buffers.
const KERNEL_BYTES: usize = 32 << 10;

fn options() -> ServerOptions {
    let script = ModelScript::new().on("", [ScriptStep::text("yes")]);
    ServerOptions::script(script).set("stream", "send_buffer_bytes", 4_096)
}

fn as_principal(server: &TestServer, name: &str) -> ApiClient {
    server.api().with("x-turnwire-principal", name)
}

/// A connection whose client can hold a few kilobytes.
async fn connect(addr: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4_096).expect("a small buffer");
    socket.connect(addr).await.expect("a connection")
}

/// Sends `count` requests for `path` at once; the server may close before it has read them all.
async fn send_gets(addr: SocketAddr, path: &str, principal: &str, count: usize) -> TcpStream {
    let mut socket = connect(addr).await;
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: {addr}\r\nx-turnwire-principal: {principal}\r\n\r\n");
    let _ = socket.write_all(request.repeat(count).as_bytes()).await;
    socket
}

/// Reads a head byte by byte, so that nothing of the body is read; returns it with the length of the
/// body. The head ends early if the connection does.
async fn read_head(socket: &mut TcpStream) -> (String, usize) {
    let mut head = Vec::new();
    let read = async {
        while !head.ends_with(b"\r\n\r\n") {
            let Ok(byte) = socket.read_u8().await else {
                return;
            };
            head.push(byte);
        }
    };
    let read = tokio::time::timeout(Duration::from_secs(60), read).await;
    read.expect("a head in time");
    let head = String::from_utf8(head).expect("text");
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    (head, length.unwrap_or(0))
}

/// Asks for a large answer as `principal` and reads its head.
async fn begin_large(addr: SocketAddr, principal: &str) -> (TcpStream, String, usize) {
    let mut socket = send_gets(addr, LARGE, principal, 1).await;
    let (head, length) = read_head(&mut socket).await;
    (socket, head, length)
}

/// Begins three large answers of ann, of which `unread` bytes or more are never read, and checks that
/// ann gets no fourth while others do.
async fn check_unread_answers_count(unread: Option<usize>) {
    let options = options()
        // Answers used to be released when this much was left to write.
        .set("http", "header_max_bytes", 8 * KERNEL_BYTES)
        .set("http", "transfers_max", 8)
        .set("http", "transfers_max_per_owner", 3);
    let server = TestServer::start(options).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        let (mut socket, head, length) = begin_large(server.addr(), "ann").await;
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert!(length > 3 * KERNEL_BYTES, "{length} bytes fit the kernel");
        if let Some(unread) = unread {
            let mut body = vec![0; length - unread];
            socket.read_exact(&mut body).await.expect("most of it");
        }
        held.push(socket);
    }
    let ann = as_principal(&server, "ann");
    for _ in 0..3 {
        let refused = ann.get(LARGE).await.expect("an answer");
        assert_eq!(refused.status, 429, "a fourth answer is in memory");
        assert_eq!(refused.json()["limit"], 3);
    }
    let small = ann.get("/sessions").await.expect("an answer");
    assert_eq!(small.status, 200, "{}", small.body);
    let other = as_principal(&server, "bob").get(LARGE).await;
    assert_eq!(other.expect("an answer").status, 200);
    drop(held);
    until("ann gets large answers again", || async {
        let answer = ann.get(LARGE).await;
        answer.is_ok_and(|answer| answer.status == 200)
    })
    .await;
}

// F8
#[tokio::test]
async fn unread_answers_count_for_their_owner() {
    check_unread_answers_count(None).await;
}

// F8
#[tokio::test]
async fn answers_count_until_their_last_byte_is_written() {
    check_unread_answers_count(Some(2 * KERNEL_BYTES)).await;
}

/// Fills all places with connections that send many requests at once and read none of the answers.
async fn check_pipelining_keeps_nobody_out(path: &str, principal: &str, statuses: &[&str]) {
    const CONNECTIONS: usize = 20;
    let server = TestServer::start(options().set("http", "connections_max", CONNECTIONS)).await;
    let mut sockets = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut socket = send_gets(server.addr(), path, principal, 50).await;
        let (head, _) = read_head(&mut socket).await;
        // A connection that was closed with requests unread may be reset.
        let status = head.get(9..12).unwrap_or(statuses[0]);
        assert!(statuses.contains(&status), "{head}");
        sockets.push(socket);
    }
    for _ in 0..10 {
        let answer = raw(server.addr(), "GET /sessions", &[], b"").await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let answer = raw(server.addr(), "GET /healthz", &[], b"").await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
}

// G9
#[tokio::test]
async fn requests_with_an_invalid_principal_keep_nobody_out() {
    check_pipelining_keeps_nobody_out(LARGE, "not a name", &["422"]).await;
}

// G9
#[tokio::test]
async fn unread_metrics_keep_nobody_out() {
    check_pipelining_keeps_nobody_out("/metrics", "local", &["200", "429"]).await;
}

// G9
#[tokio::test]
async fn answer_that_is_read_slowly_is_cut() {
    let options = options().set("http", "answer_timeout_ms", 2_000);
    let server = TestServer::start(options.set("http", "transfers_max_per_owner", 1)).await;
    let (mut socket, head, length) = begin_large(server.addr(), "ann").await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let ann = as_principal(&server, "ann");
    let (begun, mut received) = (Instant::now(), 0);
    let mut buffer = vec![0; 1_024];
    // At this pace all of the answer would take minutes.
    loop {
        received += socket.read(&mut buffer[..16]).await.unwrap_or(0);
        let next = ann.get(LARGE).await;
        if next.is_ok_and(|answer| answer.status == 200) {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "it is not cut");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    while let Ok(bytes @ 1..) = socket.read(&mut buffer).await {
        received += bytes;
    }
    assert!(received < length, "{received} of {length} bytes came");
}

/// Sends a body of unknown length, in pieces of 16 KiB, and returns the answer.
async fn post_chunked(addr: SocketAddr, body: &str) -> String {
    let mut socket = TcpStream::connect(addr).await.expect("a connection");
    let mut request = format!(
        "POST /sessions HTTP/1.1\r\nhost: {addr}\r\nconnection: close\r\n\
         content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    for piece in body.as_bytes().chunks(16 << 10) {
        let piece = str::from_utf8(piece).expect("ASCII");
        request += &format!("{:x}\r\n{piece}\r\n", piece.len());
    }
    request += "0\r\n\r\n";
    socket.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    let read = socket.read_to_end(&mut answer);
    let read = tokio::time::timeout(Duration::from_secs(60), read).await;
    assert!(read.is_ok(), "no answer");
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn small_chunked_bodies_need_no_transfer() {
    let server = TestServer::start(options().set("http", "transfers_max", 1)).await;
    let (held, head, _) = begin_large(server.addr(), "bob").await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let answer = post_chunked(server.addr(), "{}").await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    let path = "x".repeat(200 << 10);
    let large = json!({ "workspace_path": path }).to_string();
    let answer = post_chunked(server.addr(), &large).await;
    assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
    drop(held);
    until("large bodies are read again", || async {
        let answer = post_chunked(server.addr(), &large).await;
        // It is read, and has a path that is too long.
        answer.starts_with("HTTP/1.1 422 ")
    })
    .await;
}

//! The listener over real sockets: caps, bounds and how it stops.

use std::time::Instant;

use axum::routing::get;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;
use crate::config::SettingSources;

fn config(change: impl FnOnce(&mut ServerConfig)) -> ServerConfig {
    let nowhere = SettingSources {
        home: Some("/nonexistent/turnwire".into()),
        ..SettingSources::default()
    };
    let mut config = ServerConfig::load(&nowhere).expect("defaults");
    config.listen.address = "127.0.0.1:0".parse().expect("an address");
    change(&mut config);
    config
}

struct Server {
    address: SocketAddr,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

fn start(config: ServerConfig) -> Server {
    let listener = bind(&config).expect("a port");
    let address = listener.local_addr().expect("an address");
    let app = Router::new().route("/", get(async || "hello")).route(
        "/slow",
        get(async || {
            tokio::time::sleep(Duration::from_millis(200)).await;
            "late"
        }),
    );
    let stop = CancellationToken::new();
    let token = stop.clone();
    let task = tokio::spawn(async move { serve(listener, app, &config, token).await });
    Server {
        address,
        stop,
        task,
    }
}

async fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(server.address).await.expect("connected")
}

async fn rest(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    // A connection that is cut may be reset; what came before counts.
    let _ = stream.read_to_end(&mut all).await;
    String::from_utf8_lossy(&all).into_owned()
}

async fn get_path(server: &Server, path: &str) -> String {
    let mut stream = connect(server).await;
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    rest(&mut stream).await
}

#[tokio::test]
async fn requests_are_answered() {
    let server = start(config(|_| {}));
    let answer = get_path(&server, "/").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
}

#[tokio::test]
async fn address_in_use_is_reported_with_advice() {
    let first = bind(&config(|_| {})).expect("a port");
    let address = first.local_addr().expect("an address");
    let second = bind(&config(|c| c.listen.address = address)).expect_err("taken");
    assert_eq!(
        second.to_string(),
        format!(
            "{address} is in use: is another turnwire running? Stop it, or listen elsewhere with \
             --listen ADDRESS:PORT"
        )
    );
}

#[tokio::test]
async fn connections_over_the_cap_are_refused_and_slots_freed() {
    let server = start(config(|c| c.http.connections_max = 1));
    let mut first = connect(&server).await;
    first
        .write_all(b"GET /slow HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .expect("sent");
    tokio::time::sleep(Duration::from_millis(50)).await;
    let mut second = connect(&server).await;
    let answer = rest(&mut second).await;
    assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
    assert!(answer.contains("\r\nretry-after: 1\r\n"), "{answer}");
    let mut late = [0; 12];
    first
        .read_exact(&mut late)
        .await
        .expect("the answer is not cut");
    drop(first);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let answer = get_path(&server, "/").await;
    assert!(answer.ends_with("hello"), "{answer}");
}

#[tokio::test]
async fn half_sent_request_makes_room_for_another() {
    let server = start(config(|c| c.http.connections_max = 1));
    let mut first = connect(&server).await;
    first.write_all(b"GET / HT").await.expect("sent");
    tokio::time::sleep(Duration::from_millis(200)).await;
    let answer = get_path(&server, "/").await;
    assert!(answer.ends_with("hello"), "{answer}");
    let answer = rest(&mut first).await;
    assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
}

#[tokio::test]
async fn unused_connection_is_closed_without_a_word() {
    let server = start(config(|c| c.http.connections_max = 1));
    let mut first = connect(&server).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let answer = get_path(&server, "/").await;
    assert!(answer.ends_with("hello"), "{answer}");
    assert_eq!(rest(&mut first).await, "");
}

// serial: a slow request is answered within 2 s
#[tokio::test]
async fn headers_are_bounded_in_bytes_and_time() {
    let server = start(config(|c| {
        c.http.header_max_bytes = 8_192;
        c.http.header_timeout_ms = 100;
    }));
    let long = format!("/?{}", "x".repeat(9_000));
    let answer = get_path(&server, &long).await;
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");

    let mut slow = connect(&server).await;
    slow.write_all(b"GET / HTTP/1.1\r\nhost: ")
        .await
        .expect("sent");
    let since = Instant::now();
    let answer = rest(&mut slow).await;
    assert!(since.elapsed() < Duration::from_secs(2), "{answer}");
    assert!(!answer.contains("200 OK"), "{answer}");
}

#[tokio::test]
async fn heads_that_are_not_read_end_their_connection() {
    let server = start(config(|c| c.http.answer_timeout_ms = 300));
    let mut stream = connect(&server).await;
    let small = SockRef::from(&stream).set_recv_buffer_size(4 << 10);
    small.expect("a small window");
    let requests = "HEAD / HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(100);
    let until = Instant::now() + Duration::from_secs(30);
    // Nothing is read: writing blocks when the server cannot write its answers, and fails when it
    // has closed the connection.
    loop {
        assert!(Instant::now() < until, "the connection stays open");
        let write = stream.write_all(requests.as_bytes());
        if let Ok(Err(_)) = tokio::time::timeout(Duration::from_millis(500), write).await {
            break;
        }
    }
}

#[tokio::test]
async fn request_being_sent_reads_why_its_connection_is_closed() {
    let server = start(config(|c| c.http.connections_max = 1));
    let mut first = connect(&server).await;
    let request = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
    first.write_all(request.as_bytes()).await.expect("sent");
    let mut head = [0; 12];
    first.read_exact(&mut head).await.expect("an answer");
    // More than the library reads at once, so that the kernel holds the rest.
    let more = "GET / HTTP/1.1\r\nx: ".to_owned() + &"x".repeat(100 << 10);
    first.write_all(more.as_bytes()).await.expect("sent");
    let other = get_path(&server, "/").await;
    assert!(other.starts_with("HTTP/1.1 200"), "{other}");
    let last = rest(&mut first).await;
    assert!(last.contains(" 429 ") || last.contains(" 431 "), "{last}");
}

#[tokio::test]
async fn stop_finishes_requests_and_drops_idle_connections() {
    let server = start(config(|_| {}));
    let mut idle = connect(&server).await;
    let mut busy = connect(&server).await;
    busy.write_all(b"GET /slow HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .expect("sent");
    tokio::time::sleep(Duration::from_millis(50)).await;
    server.stop.cancel();
    let answer = rest(&mut busy).await;
    assert!(answer.ends_with("late"), "{answer}");
    assert_eq!(rest(&mut idle).await, "");
    server.task.await.expect("stopped");
    assert!(TcpStream::connect(server.address).await.is_err());
}

//! What nginx tells the server about a request, whatever the client says itself.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use turnwire_testkit::journal::Journal;

use super::nginx::Nginx;

/// Answers one request with 200 and returns its head, in lower case.
fn record_request(listener: &TcpListener) -> String {
    let (mut stream, _) = listener.accept().expect("a request");
    let wait = Some(Duration::from_secs(10));
    stream.set_read_timeout(wait).expect("a deadline");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a byte");
        head.push(byte[0]);
    }
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    stream.write_all(answer).expect("written");
    String::from_utf8(head).expect("text").to_ascii_lowercase()
}

#[tokio::test]
async fn nginx_overwrites_what_a_client_says_of_itself() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let nginx = Nginx::start(listener.local_addr().expect("an address"));
    let recorded = tokio::task::spawn_blocking(move || record_request(&listener));
    let api = nginx
        .api(&Journal::new())
        .with("forwarded", "for=10.9.9.9;host=evil.example;proto=https")
        .with("x-forwarded-for", "10.9.9.9")
        .with("x-forwarded-host", "evil.example")
        .with("x-forwarded-proto", "https")
        .with("x-real-ip", "10.9.9.9")
        .with("authorization", "Bearer a-token");
    let answer = api.get("/sessions").await.expect("an answer");
    assert_eq!(answer.status, 200);
    let head = recorded.await.expect("a request");
    let host = nginx.plain;
    let lines: Vec<&str> = head.lines().collect();
    assert!(lines.contains(&format!("host: {host}").as_str()), "{head}");
    let forwarded = format!("forwarded: for=127.0.0.1;host=\"{host}\";proto=http");
    let said: Vec<_> = lines
        .iter()
        .filter(|line| line.contains("forwarded") || line.contains("real-ip"))
        .collect();
    assert_eq!(said, [&forwarded.as_str()], "{head}");
    assert!(
        !head.contains("10.9.9.9") && !head.contains("evil"),
        "{head}"
    );
    assert!(lines.contains(&"authorization: bearer a-token"), "{head}");
}

//! The strict reference reader: reads streams from the socket and validates every byte.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use turnwire_event::ResponseId;

/// One event as every reader must give it: id, event, data.
pub(crate) type Event = (String, String, String);

/// Appends the events of whole blocks to `events`. What follows the last blank line is a block
/// that was cut, which says nothing.
pub(crate) fn parse(body: &[u8], events: &mut Vec<Event>) {
    let complete_len = body.windows(2).rposition(|pair| pair == b"\n\n");
    let complete_len = complete_len.map_or(0, |at| at + 2);
    let text = std::str::from_utf8(&body[..complete_len]).expect("the stream is UTF-8");
    assert!(
        !text.contains(['\r', '\0']),
        "a control that no line may have"
    );
    let Some(text) = text.strip_prefix("retry: ") else {
        assert!(text.is_empty(), "no stream begins so: {text:?}");
        return;
    };
    let (retry, text) = text.split_once('\n').expect("a line after retry");
    assert!(retry.parse::<u32>().is_ok(), "retry: {retry}");
    for block in text.split_terminator("\n\n") {
        if block == ": ka" {
            continue;
        }
        events.push(event(block, events.last()));
    }
}

fn event(block: &str, before: Option<&Event>) -> Event {
    let field = |line: Option<&str>, name: &str| {
        let value = line.and_then(|line| line.strip_prefix(name)?.strip_prefix(": "));
        let value = value.unwrap_or_else(|| panic!("no {name} where it should be: {block:?}"));
        value.to_owned()
    };
    if block == "data: [DONE]" {
        let id = before.expect("something before the end").0.clone();
        return (id, "message".to_owned(), "[DONE]".to_owned());
    }
    let mut lines = block.split('\n');
    let id = field(lines.next(), "id");
    let name = field(lines.next(), "event");
    let data = field(lines.next(), "data");
    assert_eq!(lines.next(), None, "{block:?}");
    let value: Value = serde_json::from_str(&data).expect("JSON");
    assert_eq!(value["event_type"], name, "{block:?}");
    (id, name, data)
}

/// An answer on a socket of its own.
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    /// What of the body came with the head.
    body: Vec<u8>,
    io: TcpStream,
}

impl Answer {
    /// Sends a request and reads the head of its answer.
    pub(crate) async fn to(addr: SocketAddr, request: &str) -> Self {
        let mut io = TcpStream::connect(addr).await.expect("a connection");
        io.write_all(request.as_bytes()).await.expect("written");
        let (head, body) = head(&mut io).await.expect("an answer");
        Self {
            status: head[9..12].parse().expect("a status"),
            head,
            body,
            io,
        }
    }

    /// Submits a turn whose stream this is.
    pub(crate) async fn post(addr: SocketAddr, body: &str) -> Self {
        let length = body.len();
        let request = format!(
            "POST /chat/stream HTTP/1.1\r\nHost: {addr}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        Self::to(addr, &request).await
    }

    /// Reads a turn's stream from its start.
    pub(crate) async fn get(addr: SocketAddr, response: ResponseId) -> Self {
        let path = format!("/chat/{response}/stream");
        let request = format!("GET {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n");
        Self::to(addr, &request).await
    }

    /// The turn, by the name that is in the head.
    pub(crate) fn response(&self) -> ResponseId {
        let name = "x-response-id: ";
        let id = self.head.lines().find_map(|line| line.strip_prefix(name));
        let id = id.unwrap_or_else(|| panic!("no turn in {}", self.head));
        id.trim().parse().expect("a response id")
    }

    pub(crate) async fn bytes(mut self) -> Vec<u8> {
        let read = self.io.read_to_end(&mut self.body).await;
        read.expect("a stream that ends");
        self.body
    }

    /// The whole stream, which must end with the sentinel.
    pub(crate) async fn events(self) -> Vec<Event> {
        assert_eq!(self.status, 200, "{}", self.head);
        let mut events = Vec::new();
        let body = self.bytes().await;
        parse(&body, &mut events);
        assert!(body.ends_with(b"\n\ndata: [DONE]\n\n"), "an end");
        events
    }
}

/// Reads a head with its blank line, and what came behind it.
pub(crate) async fn head(io: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let api = bytes.split_off(at + 4);
            return Some((String::from_utf8(bytes).ok()?, api));
        }
        if io.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

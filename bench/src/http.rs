//! A minimal HTTP client: requests on a keep-alive connection, and the upgrade to a WebSocket.
//!
//! Loopback only, answers with `Content-Length` only. It speaks the public interface (create,
//! attach, turn, feedback), so the floor and Turnwire are driven by the same requests.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Deadline for one response.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// A keep-alive connection to a server.
#[derive(Debug)]
pub struct HttpConnection {
    stream: BufReader<TcpStream>,
    server: SocketAddr,
    /// The header line that says who it is; empty for the default owner.
    caller: String,
}

/// The bytes of a POST with the header line `caller`, which may be empty.
fn post_of(caller: &str, server: SocketAddr, path: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: {server}\r\n{caller}Content-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

impl HttpConnection {
    /// Opens a connection to a server.
    pub fn connect(server: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        Ok(Self {
            stream: BufReader::new(stream),
            server,
            caller: String::new(),
        })
    }

    /// Opens a connection whose requests are those of `principal`.
    pub fn connect_as(server: SocketAddr, principal: &str) -> io::Result<Self> {
        Ok(Self {
            caller: format!("X-Turnwire-Principal: {principal}\r\n"),
            ..Self::connect(server)?
        })
    }

    /// Opens a connection whose requests carry this bearer token.
    pub fn connect_with(server: SocketAddr, token: Option<&str>) -> io::Result<Self> {
        let caller = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
        Ok(Self {
            caller: caller.unwrap_or_default(),
            ..Self::connect(server)?
        })
    }

    /// The bytes of a POST of nobody in particular.
    pub fn post_bytes(server: SocketAddr, path: &str, body: &str) -> Vec<u8> {
        post_of("", server, path, body)
    }

    /// The bytes of a POST of the caller of this connection.
    pub fn own_post_bytes(&self, path: &str, body: &str) -> Vec<u8> {
        post_of(&self.caller, self.server, path, body)
    }

    /// Sends request bytes; `receive` reads the answer.
    pub fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(request)
    }

    /// Reads one answer: status and body.
    pub fn receive(&mut self) -> io::Result<(u16, Vec<u8>)> {
        let status = self
            .line()?
            .split_whitespace()
            .nth(1)
            .and_then(|code| code.parse().ok());
        let mut len = 0;
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                len = value.trim().parse().map_err(io::Error::other)?;
            }
        }
        let mut body = vec![0; len];
        self.stream.read_exact(&mut body)?;
        match status {
            Some(status) => Ok((status, body)),
            None => Err(io::Error::other("not an HTTP answer")),
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line.truncate(line.trim_end().len());
        Ok(line)
    }

    fn call(&mut self, request: &[u8], wanted: u16) -> io::Result<Value> {
        self.send(request)?;
        let (status, body) = self.receive()?;
        if status != wanted {
            let text = String::from_utf8_lossy(&body);
            return Err(io::Error::other(format!("HTTP {status}: {text}")));
        }
        Ok(serde_json::from_slice(&body)?)
    }

    fn post(&mut self, path: &str, body: &str, wanted: u16) -> io::Result<Value> {
        let request = self.own_post_bytes(path, body);
        self.call(&request, wanted)
    }

    /// The server's metrics, as Prometheus text.
    pub fn metrics(&mut self) -> io::Result<String> {
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {}\r\n\r\n", self.server);
        self.send(request.as_bytes())?;
        let (status, body) = self.receive()?;
        match status {
            200 => Ok(String::from_utf8_lossy(&body).into_owned()),
            other => Err(io::Error::other(format!("no metrics: HTTP {other}"))),
        }
    }

    /// Creates a session; gives its id.
    pub fn create_session(&mut self) -> io::Result<String> {
        text(&self.post("/sessions", "{}", 201)?, "session_id")
    }

    /// Submits a turn; gives its id.
    pub fn submit(&mut self, session: &str, message: &str) -> io::Result<String> {
        let body = serde_json::json!({ "message": message }).to_string();
        let path = format!("/sessions/{session}/turns");
        text(&self.post(&path, &body, 202)?, "turn_id")
    }

    /// Stops a turn and waits for its end; gives how it ended.
    pub fn stop(&mut self, turn: &str) -> io::Result<Value> {
        self.post(&format!("/turns/{turn}/cancel?wait=true"), "{}", 200)
    }

    /// Waits until a turn has ended.
    pub fn await_turn(&mut self, turn: &str) -> io::Result<()> {
        let request = format!(
            "GET /turns/{turn} HTTP/1.1\r\nHost: {}\r\n{}\r\n",
            self.server, self.caller
        );
        for _ in 0..3_000 {
            let state = text(&self.call(request.as_bytes(), 200)?, "state")?;
            if state == "completed" || state == "cancelled" {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(io::Error::other("the turn did not end"))
    }

    /// The bytes of a feedback on `turn`, which appends one persisted event of about 350 bytes.
    pub fn feedback_bytes(server: SocketAddr, session: &str, turn: &str) -> Vec<u8> {
        let comment = "It answered what was asked, and in good time.";
        let body =
            serde_json::json!({ "turn_id": turn, "rating": "up", "comment": comment }).to_string();
        Self::post_bytes(server, &format!("/sessions/{session}/feedback"), &body)
    }

    /// Asks for a fresh attach address and steps up to a WebSocket on a connection of its own.
    pub fn attach(&mut self, session: &str) -> io::Result<TcpStream> {
        let request = format!(
            "GET /sessions/{session} HTTP/1.1\r\nHost: {}\r\n{}\r\n",
            self.server, self.caller
        );
        let url = text(&self.call(request.as_bytes(), 200)?, "ws_url")?;
        let path = url
            .splitn(4, '/')
            .nth(3)
            .ok_or_else(|| io::Error::other("ws_url without a path"))?;
        upgrade(self.server, path)
    }

    /// Asks for the stream of a turn on a connection of its own; the answer is not read.
    pub fn follow(&self, turn: &str) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(self.server)?;
        stream.set_nodelay(true)?;
        let request = format!(
            "GET /chat/{turn}/stream HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n\r\n",
            self.server
        );
        stream.write_all(request.as_bytes())?;
        Ok(stream)
    }
}

/// The key of every handshake here, and what a server must answer it with.
pub const WEBSOCKET_KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
/// The answer that belongs to `WEBSOCKET_KEY`.
pub const WEBSOCKET_ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

fn upgrade(server: SocketAddr, path: &str) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(server)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    let request = format!(
        "GET /{path} HTTP/1.1\r\nHost: {server}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {WEBSOCKET_KEY}\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    // The server says nothing after its answer until it gets a frame, so reading to the end of
    // the head takes nothing that belongs to the WebSocket.
    let mut head = Vec::new();
    let mut bytes = [0; 1024];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut bytes)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            len => head.extend_from_slice(&bytes[..len]),
        }
        if head.len() > 8 * 1024 {
            break;
        }
    }
    let head = String::from_utf8_lossy(&head);
    if !head.starts_with("HTTP/1.1 101") || !head.contains(WEBSOCKET_ACCEPT) {
        return Err(io::Error::other(format!("no WebSocket: {head}")));
    }
    stream.set_read_timeout(None)?;
    Ok(stream)
}

fn text(value: &Value, key: &str) -> io::Result<String> {
    value[key]
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| io::Error::other(format!("no {key} in {value}")))
}

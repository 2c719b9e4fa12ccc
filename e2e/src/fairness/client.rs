//! A lean HTTP and WebSocket client for load: it keeps no journal, reads bodies of any size without
//! keeping them, and parses nothing but the head.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpSocket, TcpStream};

/// Bytes of a body that [`LoadReply`] keeps; the rest is read and counted only.
const KEPT_MAX: usize = 256 << 10;
/// Bytes of a response head, beyond which it is an error.
const HEAD_MAX: usize = 64 << 10;
/// The cursor before the first event of a session.
pub const START: &str = "evt_00010000000000";

/// The answer to a request of a [`LoadClient`].
#[derive(Clone, Debug, Default)]
pub struct LoadReply {
    pub status: u16,
    /// The size of the body.
    pub bytes: u64,
    /// The beginning of the body, at most 256 KiB.
    pub body: String,
}

impl LoadReply {
    /// The text behind `"key":"` in the body, up to the next quote.
    pub fn text(&self, key: &str) -> Option<&str> {
        let (_, rest) = self.body.split_once(&format!("\"{key}\":\""))?;
        rest.split('"').next()
    }
}

/// The requests of one owner to one server.
#[derive(Clone, Debug)]
pub struct LoadClient {
    addr: SocketAddr,
    owner: String,
}

impl LoadClient {
    /// A client that sends `owner` as its principal.
    pub fn new(addr: SocketAddr, owner: impl Into<String>) -> Self {
        Self {
            addr,
            owner: owner.into(),
        }
    }

    /// Opens a connection; `buffer` is the size of its receive buffer.
    pub async fn connect(&self, buffer: Option<u32>) -> io::Result<LoadConnection> {
        let socket = TcpSocket::new_v4()?;
        if let Some(bytes) = buffer {
            socket.set_recv_buffer_size(bytes)?;
        }
        let stream = socket.connect(self.addr).await?;
        stream.set_nodelay(true)?;
        Ok(LoadConnection {
            io: BufReader::with_capacity(64 << 10, stream),
            client: self.clone(),
        })
    }

    /// Sends one request on a connection of its own.
    pub async fn request(
        &self,
        method: &str,
        path: &str,
        body: Option<&str>,
    ) -> io::Result<LoadReply> {
        let mut connection = self.connect(None).await?;
        connection.send(method, path, body).await?;
        connection.reply().await
    }

    /// Creates a session and returns its id.
    pub async fn create_session(&self) -> io::Result<String> {
        let reply = self.request("POST", "/sessions", Some("{}")).await?;
        session_id(&reply)
    }

    /// Submits a turn to a session.
    pub async fn submit(&self, session: &str, message: &str) -> io::Result<LoadReply> {
        let path = format!("/sessions/{session}/turns");
        let body = serde_json::json!({"message": message}).to_string();
        self.request("POST", &path, Some(&body)).await
    }

    /// Opens a WebSocket on a session and subscribes; returns after the acknowledgement. An answer
    /// other than 101 is returned as `Err`.
    pub async fn subscribe(
        &self,
        session: &str,
        since: Option<&str>,
        buffer: Option<u32>,
    ) -> io::Result<Result<LoadConnection, LoadReply>> {
        let attached = self
            .request("GET", &format!("/sessions/{session}"), None)
            .await?;
        let Some(token) = attached.text("attach_token") else {
            return Ok(Err(attached));
        };
        let path = format!("/sessions/{session}/stream?attach={token}");
        let mut connection = self.connect(buffer).await?;
        let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                       sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
        connection.send_with("GET", &path, upgrade, None).await?;
        let head = connection.head().await?;
        if head.status != 101 {
            let reply = connection.body(head).await?;
            return Ok(Err(reply));
        }
        let subscribe = serde_json::json!({
            "type": "subscribe", "filter": "preset:full", "since": since, "snapshot": false,
        });
        connection.send_frame(&subscribe.to_string()).await?;
        connection.read_until(b"subscribe_ack").await?;
        Ok(Ok(connection))
    }
}

/// The id in the answer to a created session.
pub fn session_id(reply: &LoadReply) -> io::Result<String> {
    match (reply.status, reply.text("session_id")) {
        (201, Some(id)) => Ok(id.to_owned()),
        (status, _) => Err(io::Error::other(format!(
            "no session ({status}): {}",
            reply.body
        ))),
    }
}

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyLength {
    Fixed(u64),
    Chunked,
    /// To the end of the connection.
    Open,
}

/// The status of a response and the length of its body.
#[derive(Clone, Copy, Debug)]
pub struct ReplyHead {
    pub status: u16,
    length: BodyLength,
}

/// An open connection; dropping it closes the socket.
#[derive(Debug)]
pub struct LoadConnection {
    io: BufReader<TcpStream>,
    client: LoadClient,
}

impl LoadConnection {
    /// Sends a request without waiting for the response.
    pub async fn send(&mut self, method: &str, path: &str, body: Option<&str>) -> io::Result<()> {
        self.send_with(method, path, "", body).await
    }

    /// Sends a request with more header lines.
    pub async fn send_with(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: Option<&str>,
    ) -> io::Result<()> {
        let content = body.map_or_else(String::new, |body| {
            format!(
                "content-type: application/json\r\ncontent-length: {}\r\n",
                body.len()
            )
        });
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nx-turnwire-principal: {}\r\n{headers}{content}\r\n",
            self.client.addr, self.client.owner
        );
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body.unwrap_or_default().as_bytes());
        self.io.get_mut().write_all(&bytes).await
    }

    /// Sends bytes as they are.
    pub async fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.io.get_mut().write_all(bytes).await
    }

    /// Sends a text frame of a WebSocket, with a zero mask.
    async fn send_frame(&mut self, text: &str) -> io::Result<()> {
        let length = u16::try_from(text.len()).map_err(io::Error::other)?;
        let mut frame = vec![0x81];
        match length {
            0..126 => frame.push(0x80 | length as u8),
            _ => {
                frame.push(0x80 | 126);
                frame.extend_from_slice(&length.to_be_bytes());
            }
        }
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(text.as_bytes());
        self.send_raw(&frame).await
    }

    /// Reads a whole response.
    pub async fn reply(&mut self) -> io::Result<LoadReply> {
        let head = self.head().await?;
        self.body(head).await
    }

    /// Reads the head of a response.
    pub async fn head(&mut self) -> io::Result<ReplyHead> {
        let status = self.line().await?;
        let status = status.strip_prefix("HTTP/1.1 ").and_then(|rest| {
            let digits = rest.get(..3)?;
            digits.parse().ok()
        });
        let status: u16 = status.ok_or_else(|| io::Error::other("not an HTTP response"))?;
        let mut head = ReplyHead {
            status,
            length: match status {
                204 | 304 => BodyLength::Fixed(0),
                _ => BodyLength::Open,
            },
        };
        let mut read = 0;
        loop {
            let line = self.line().await?.to_ascii_lowercase();
            read += line.len();
            if line.is_empty() {
                return Ok(head);
            }
            if read > HEAD_MAX {
                return Err(io::Error::other("the response head is too large"));
            }
            if let Some(length) = line.strip_prefix("content-length:") {
                head.length = BodyLength::Fixed(length.trim().parse().map_err(io::Error::other)?);
            } else if line.starts_with("transfer-encoding:") && line.contains("chunked") {
                head.length = BodyLength::Chunked;
            }
        }
    }

    async fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.io.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }

    async fn body(&mut self, head: ReplyHead) -> io::Result<LoadReply> {
        let mut reply = LoadReply {
            status: head.status,
            ..LoadReply::default()
        };
        let mut kept = Vec::new();
        match head.length {
            BodyLength::Fixed(length) => {
                reply.bytes = self.skip(length, &mut kept).await?;
            }
            BodyLength::Open => {
                reply.bytes = self.skip(u64::MAX, &mut kept).await?;
            }
            BodyLength::Chunked => loop {
                let size = self.line().await?;
                let size = size.split(';').next().unwrap_or_default();
                let size = u64::from_str_radix(size, 16).map_err(io::Error::other)?;
                reply.bytes += self.skip(size, &mut kept).await?;
                self.line().await?;
                if size == 0 {
                    break;
                }
            },
        }
        reply.body = String::from_utf8_lossy(&kept).into_owned();
        Ok(reply)
    }

    /// Reads `length` bytes, or up to the end for [`u64::MAX`], and keeps the first ones.
    async fn skip(&mut self, length: u64, kept: &mut Vec<u8>) -> io::Result<u64> {
        let mut read = 0;
        while read < length {
            let buffer = self.io.fill_buf().await?;
            if buffer.is_empty() {
                return match length {
                    u64::MAX => Ok(read),
                    _ => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
            let taken = buffer.len().min((length - read).min(1 << 30) as usize);
            let room = KEPT_MAX.saturating_sub(kept.len()).min(taken);
            kept.extend_from_slice(&buffer[..room]);
            self.io.consume(taken);
            read += taken as u64;
        }
        Ok(read)
    }

    /// Reads until `needle` has passed; an end before it is an error.
    pub async fn read_until(&mut self, needle: &[u8]) -> io::Result<()> {
        let mut tail: Vec<u8> = Vec::new();
        loop {
            let buffer = self.io.fill_buf().await?;
            if buffer.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let taken = buffer.len();
            tail.extend_from_slice(buffer);
            self.io.consume(taken);
            if tail.windows(needle.len()).any(|part| part == needle) {
                return Ok(());
            }
            let keep = tail.len().min(needle.len());
            tail.drain(..tail.len() - keep);
        }
    }

    /// Reads and counts until the end of the connection.
    pub async fn drain(&mut self) -> io::Result<u64> {
        self.skip(u64::MAX, &mut Vec::new()).await
    }

    /// Reads some bytes; 0 at the end of the connection.
    pub async fn read_some(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.io.read(buffer).await
    }
}

//! Minimal HTTP/1.1 with control of every byte: reads whole requests, writes bytes, and detects at
//! once that the caller closed the connection.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;

/// Maximum size of a request, head and body; far above any test's.
const REQUEST_MAX: usize = 64 << 20;

/// A parsed HTTP request.
#[derive(Clone, Debug, Default)]
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl HttpRequest {
    /// A header's value by its lower-case name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(key, _)| key == name);
        values.next().map(|(_, value)| value.as_str())
    }
}

/// The caller closed the connection.
#[derive(Debug)]
pub(crate) struct CallerLeft;

impl From<io::Error> for CallerLeft {
    fn from(_: io::Error) -> Self {
        Self
    }
}

#[derive(Debug)]
pub(crate) struct HttpSocket {
    socket: TcpStream,
    buffer: Vec<u8>,
}

impl HttpSocket {
    pub(crate) fn new(socket: TcpStream) -> Self {
        Self {
            socket,
            buffer: Vec::new(),
        }
    }

    /// The next request; [`CallerLeft`] if the caller closes instead.
    pub(crate) async fn read(&mut self) -> Result<HttpRequest, CallerLeft> {
        let head = loop {
            if let Some(at) = find(&self.buffer, b"\r\n\r\n") {
                break at;
            }
            self.read_more().await?;
        };
        let text = String::from_utf8_lossy(&self.buffer[..head]).into_owned();
        self.buffer.drain(..head + 4);
        let mut request = parse(&text).ok_or(CallerLeft)?;
        if request.header("expect").is_some() {
            let go = b"HTTP/1.1 100 Continue\r\n\r\n";
            self.send(go, |_| {}).await?;
        }
        request.body = match request.header("content-length") {
            Some(length) => {
                let length: usize = length.parse().map_err(|_| CallerLeft)?;
                while self.buffer.len() < length {
                    self.read_more().await?;
                }
                self.buffer.drain(..length).collect()
            }
            None if request.header("transfer-encoding") == Some("chunked") => self.chunks().await?,
            None => Vec::new(),
        };
        Ok(request)
    }

    async fn chunks(&mut self) -> Result<Vec<u8>, CallerLeft> {
        let mut body = Vec::new();
        loop {
            let line = loop {
                if let Some(at) = find(&self.buffer, b"\r\n") {
                    break at;
                }
                self.read_more().await?;
            };
            let text = String::from_utf8_lossy(&self.buffer[..line]).into_owned();
            let size = text.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(|_| CallerLeft)?;
            while self.buffer.len() < line + 2 + size + 2 {
                self.read_more().await?;
            }
            body.extend_from_slice(&self.buffer[line + 2..line + 2 + size]);
            self.buffer.drain(..line + 2 + size + 2);
            if size == 0 {
                return Ok(body);
            }
        }
    }

    async fn read_more(&mut self) -> Result<(), CallerLeft> {
        if self.buffer.len() > REQUEST_MAX {
            return Err(CallerLeft);
        }
        self.socket.readable().await?;
        if read_available(&self.socket, &mut self.buffer) {
            Ok(())
        } else {
            Err(CallerLeft)
        }
    }

    /// Writes all bytes; calls `on_blocked` with true when the socket is full, and with
    /// false when it accepts bytes again.
    pub(crate) async fn send(
        &mut self,
        mut bytes: &[u8],
        on_blocked: impl Fn(bool),
    ) -> Result<(), CallerLeft> {
        while !bytes.is_empty() {
            match self.socket.try_write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => {
                    on_blocked(true);
                    tokio::select! {
                        ready = self.socket.writable() => ready?,
                        () = peer_closed(&self.socket, &mut self.buffer) => return Err(CallerLeft),
                    }
                    on_blocked(false);
                }
                Err(_) => return Err(CallerLeft),
            }
        }
        // A caller that reads everything at once must not starve the others.
        tokio::task::yield_now().await;
        Ok(())
    }

    /// Sleeps, unless the caller leaves first.
    pub(crate) async fn pause(&mut self, pause: Duration) -> Result<(), CallerLeft> {
        if pause.is_zero() {
            return Ok(());
        }
        self.until(tokio::time::sleep(pause)).await
    }

    /// Waits for a future, unless the caller leaves first.
    pub(crate) async fn until(&mut self, done: impl Future<Output = ()>) -> Result<(), CallerLeft> {
        tokio::select! {
            () = done => Ok(()),
            () = peer_closed(&self.socket, &mut self.buffer) => Err(CallerLeft),
        }
    }

    /// Closes the connection with a TCP reset.
    pub(crate) fn reset(self) {
        // A failure means that the caller has left already.
        let _ = self.socket.set_zero_linger();
    }
}

/// Returns when the peer has closed the connection.
async fn peer_closed(socket: &TcpStream, buffer: &mut Vec<u8>) {
    loop {
        if socket.readable().await.is_err() || !read_available(socket, buffer) {
            return;
        }
    }
}

/// Reads the available bytes; false at the end of the connection.
fn read_available(socket: &TcpStream, buffer: &mut Vec<u8>) -> bool {
    let mut piece = [0; 16 << 10];
    match socket.try_read(&mut piece) {
        Ok(0) => false,
        Ok(count) => {
            buffer.extend_from_slice(&piece[..count]);
            true
        }
        Err(why) => why.kind() == io::ErrorKind::WouldBlock,
    }
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes
        .windows(needle.len())
        .position(|window| window == needle)
}

fn parse(head: &str) -> Option<HttpRequest> {
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?, first.next()?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let headers = lines.filter_map(|line| line.split_once(':'));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()));
    Some(HttpRequest {
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers: headers.collect(),
        body: Vec::new(),
    })
}

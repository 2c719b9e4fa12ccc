//! Just enough HTTP/1.1 to answer byte by byte: reads whole requests, writes what it is told and
//! sees at once when the caller leaves.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;

/// The largest request that is read, head and body: far above any test's.
const REQUEST_MAX: usize = 64 << 20;

/// A request as it came.
#[derive(Clone, Debug, Default)]
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl HttpRequest {
    /// A header's value; names are in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(key, _)| key == name);
        found.next().map(|(_, value)| value.as_str())
    }
}

/// The caller has left.
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

    /// The next request; `CallerLeft` when the caller closes instead.
    pub(crate) async fn read(&mut self) -> Result<HttpRequest, CallerLeft> {
        let head = loop {
            if let Some(at) = find(&self.buffer, b"\r\n\r\n") {
                break at;
            }
            self.more().await?;
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
                    self.more().await?;
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
                self.more().await?;
            };
            let text = String::from_utf8_lossy(&self.buffer[..line]).into_owned();
            let size = text.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(|_| CallerLeft)?;
            while self.buffer.len() < line + 2 + size + 2 {
                self.more().await?;
            }
            body.extend_from_slice(&self.buffer[line + 2..line + 2 + size]);
            self.buffer.drain(..line + 2 + size + 2);
            if size == 0 {
                return Ok(body);
            }
        }
    }

    async fn more(&mut self) -> Result<(), CallerLeft> {
        if self.buffer.len() > REQUEST_MAX {
            return Err(CallerLeft);
        }
        self.socket.readable().await?;
        if taken(&self.socket, &mut self.buffer) {
            Ok(())
        } else {
            Err(CallerLeft)
        }
    }

    /// Writes all of it, and tells `note` when the socket is full and when it takes again.
    pub(crate) async fn send(
        &mut self,
        mut bytes: &[u8],
        note: impl Fn(bool),
    ) -> Result<(), CallerLeft> {
        while !bytes.is_empty() {
            match self.socket.try_write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => {
                    note(true);
                    tokio::select! {
                        ready = self.socket.writable() => ready?,
                        () = left(&self.socket, &mut self.buffer) => return Err(CallerLeft),
                    }
                    note(false);
                }
                Err(_) => return Err(CallerLeft),
            }
        }
        // A caller that takes everything at once must not starve the others.
        tokio::task::yield_now().await;
        Ok(())
    }

    /// Waits, unless the caller leaves first.
    pub(crate) async fn pause(&mut self, pause: Duration) -> Result<(), CallerLeft> {
        if pause.is_zero() {
            return Ok(());
        }
        self.until(tokio::time::sleep(pause)).await
    }

    /// Waits for something, unless the caller leaves first.
    pub(crate) async fn until(&mut self, done: impl Future<Output = ()>) -> Result<(), CallerLeft> {
        tokio::select! {
            () = done => Ok(()),
            () = left(&self.socket, &mut self.buffer) => Err(CallerLeft),
        }
    }

    /// Ends the connection so that the caller sees a reset.
    pub(crate) fn reset(self) {
        // Failing means that the caller is gone, which is what was wanted.
        let _ = self.socket.set_zero_linger();
    }
}

/// Comes back when the other side has closed.
async fn left(socket: &TcpStream, buffer: &mut Vec<u8>) {
    loop {
        if socket.readable().await.is_err() || !taken(socket, buffer) {
            return;
        }
    }
}

/// Takes what can be read; false when there will be nothing more.
fn taken(socket: &TcpStream, buffer: &mut Vec<u8>) -> bool {
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

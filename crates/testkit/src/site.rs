//! A site that HTTP tools ask: pages by path, what it was asked, and which of its connections are
//! still open. A page may be slow, without end, or never come.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// Requests are small; one that is not is cut.
const REQUEST_BYTES_MAX: usize = 1_048_576;

/// What a page says.
#[derive(Clone, Debug)]
pub enum SitePage {
    /// These bytes, and the end.
    Whole(Vec<u8>),
    /// These bytes, then `piece` again and again, with a pause between them.
    Endless {
        /// The head, and what comes first.
        begin: Vec<u8>,
        /// What comes for ever.
        piece: Vec<u8>,
        /// How long it waits in between.
        pause: Duration,
    },
    /// Nothing at all, while the connection stays open.
    Silent,
}

impl SitePage {
    /// A page of a kind.
    pub fn new(status: u16, kind: &str, body: &str) -> Self {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        );
        Self::Whole((head + body).into_bytes())
    }

    /// A page of JSON.
    pub fn json(body: &Value) -> Self {
        Self::new(200, "application/json", &body.to_string())
    }

    /// A page that sends on.
    pub fn redirect(status: u16, location: &str) -> Self {
        let head = format!(
            "HTTP/1.1 {status} Go\r\nlocation: {location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        Self::Whole(head.into_bytes())
    }

    /// A page of text that never ends: a byte every 20 ms.
    pub fn drip() -> Self {
        Self::Endless {
            begin: b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n".to_vec(),
            piece: b"x".to_vec(),
            pause: Duration::from_millis(20),
        }
    }
}

/// One request.
#[derive(Clone, Debug)]
pub struct SiteRequest {
    pub line: String,
    /// All of its head.
    pub head: String,
    pub body: String,
    /// Whether its connection is closed, by whomever.
    pub closed: bool,
}

#[derive(Debug, Default)]
struct SiteState {
    pages: BTreeMap<String, SitePage>,
    asked: Vec<SiteRequest>,
    connections: usize,
    open: usize,
}

/// The site.
#[derive(Debug)]
pub struct FakeSite {
    addr: SocketAddr,
    desk: Arc<Mutex<SiteState>>,
    task: AbortHandle,
}

impl FakeSite {
    /// A site without pages: every path is 404.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("an address");
        let desk = Arc::new(Mutex::new(SiteState::default()));
        let shared = Arc::clone(&desk);
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let desk = Arc::clone(&shared);
                lock(&desk).connections += 1;
                lock(&desk).open += 1;
                tokio::spawn(async move {
                    serve(socket, &desk).await;
                    lock(&desk).open -= 1;
                });
            }
        });
        Self {
            addr,
            desk,
            task: task.abort_handle(),
        }
    }

    /// Where it is, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Its address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What it says from now on at a path (without the query).
    pub fn page(&self, path: &str, page: SitePage) {
        lock(&self.desk).pages.insert(path.to_owned(), page);
    }

    /// The requests so far.
    pub fn asked(&self) -> Vec<SiteRequest> {
        lock(&self.desk).asked.clone()
    }

    /// Connections so far.
    pub fn connections(&self) -> usize {
        lock(&self.desk).connections
    }

    /// Connections that nobody has closed.
    pub fn open_connections(&self) -> usize {
        lock(&self.desk).open
    }
}

impl Drop for FakeSite {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(desk: &Mutex<SiteState>) -> MutexGuard<'_, SiteState> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One request of one connection.
async fn serve(mut socket: TcpStream, desk: &Mutex<SiteState>) {
    let Some((head, body)) = request(&mut socket).await else {
        return;
    };
    let line = head.lines().next().unwrap_or_default().to_owned();
    let target = line.split(' ').nth(1).unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default().to_owned();
    let (page, number) = {
        let mut desk = lock(desk);
        desk.asked.push(SiteRequest {
            line,
            head,
            body,
            closed: false,
        });
        (desk.pages.get(&path).cloned(), desk.asked.len() - 1)
    };
    let none = || SitePage::new(404, "text/plain", "no such page");
    match page.unwrap_or_else(none) {
        SitePage::Whole(bytes) => {
            let _ = socket.write_all(&bytes).await;
            let _ = socket.shutdown().await;
        }
        SitePage::Endless {
            begin,
            piece,
            pause,
        } => {
            let mut next = begin;
            while socket.write_all(&next).await.is_ok() {
                next.clone_from(&piece);
                tokio::time::sleep(pause).await;
            }
        }
        SitePage::Silent => {}
    }
    // Whatever comes now is nothing; that it ends is what is looked for.
    let mut buffer = [0; 1_024];
    while !matches!(socket.read(&mut buffer).await, Ok(0) | Err(_)) {}
    if let Some(asked) = lock(desk).asked.get_mut(number) {
        asked.closed = true;
    }
}

/// Head and body of a request; none if the connection ends before.
async fn request(socket: &mut TcpStream) -> Option<(String, String)> {
    let mut seen = Vec::new();
    while seen.len() < REQUEST_BYTES_MAX {
        let text = String::from_utf8_lossy(&seen).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                let named = name.eq_ignore_ascii_case("content-length");
                named.then(|| value.trim().parse::<usize>().ok()).flatten()
            });
            if body.len() >= length.unwrap_or(0) {
                return Some((head.to_owned(), body.to_owned()));
            }
        }
        let mut buffer = [0; 4_096];
        let n = socket.read(&mut buffer).await.ok().filter(|&n| n > 0)?;
        seen.extend_from_slice(&buffer[..n]);
    }
    None
}

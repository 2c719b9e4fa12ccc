//! A fake web site for HTTP tools: pages by path, a record of all requests, and the number of open
//! connections. A page may be slow, endless, or never sent.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// Maximum size of a request; a larger one is cut.
const REQUEST_BYTES_MAX: usize = 1_048_576;

/// The response of [`FakeSite`] for one path.
#[derive(Clone, Debug)]
pub enum SitePage {
    /// These bytes, then the end of the connection.
    Whole(Vec<u8>),
    /// These bytes, then `piece` again and again, with a pause between them.
    Endless {
        /// The response head and the first bytes.
        begin: Vec<u8>,
        /// The bytes that repeat.
        piece: Vec<u8>,
        /// The pause between two pieces.
        pause: Duration,
    },
    /// No response; the connection stays open.
    Silent,
}

impl SitePage {
    /// A page with a status, a content type and a body.
    pub fn new(status: u16, kind: &str, body: &str) -> Self {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        );
        Self::Whole((head + body).into_bytes())
    }

    /// A page with a JSON body.
    pub fn json(body: &Value) -> Self {
        Self::new(200, "application/json", &body.to_string())
    }

    /// A redirect with a `location` header.
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

/// A recorded request of [`FakeSite`].
#[derive(Clone, Debug)]
pub struct SiteRequest {
    pub line: String,
    /// The request line and all headers.
    pub head: String,
    pub body: String,
    /// True after the connection was closed by either side.
    pub closed: bool,
}

#[derive(Debug, Default)]
struct SiteState {
    pages: BTreeMap<String, SitePage>,
    requests: Vec<SiteRequest>,
    connections: usize,
    open: usize,
}

/// A web site on the loopback; dropping it closes its port.
#[derive(Debug)]
pub struct FakeSite {
    addr: SocketAddr,
    state: Arc<Mutex<SiteState>>,
    task: AbortHandle,
}

impl FakeSite {
    /// Starts a site without pages: every path is 404.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("an address");
        let state = Arc::new(Mutex::new(SiteState::default()));
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                lock(&state).connections += 1;
                lock(&state).open += 1;
                tokio::spawn(async move {
                    serve(socket, &state).await;
                    lock(&state).open -= 1;
                });
            }
        });
        Self {
            addr,
            state,
            task: task.abort_handle(),
        }
    }

    /// The base URL without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The address of the listener.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Sets the page of a path (without the query).
    pub fn page(&self, path: &str, page: SitePage) {
        lock(&self.state).pages.insert(path.to_owned(), page);
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<SiteRequest> {
        lock(&self.state).requests.clone()
    }

    /// The number of accepted connections so far.
    pub fn connections(&self) -> usize {
        lock(&self.state).connections
    }

    /// The number of open connections.
    pub fn open_connections(&self) -> usize {
        lock(&self.state).open
    }
}

impl Drop for FakeSite {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(state: &Mutex<SiteState>) -> MutexGuard<'_, SiteState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves one request of one connection.
async fn serve(mut socket: TcpStream, state: &Mutex<SiteState>) {
    let Some((head, body)) = read_request(&mut socket).await else {
        return;
    };
    let line = head.lines().next().unwrap_or_default().to_owned();
    let target = line.split(' ').nth(1).unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default().to_owned();
    let (page, number) = {
        let mut state = lock(state);
        state.requests.push(SiteRequest {
            line,
            head,
            body,
            closed: false,
        });
        (state.pages.get(&path).cloned(), state.requests.len() - 1)
    };
    let not_found = || SitePage::new(404, "text/plain", "no such page");
    match page.unwrap_or_else(not_found) {
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
    // Discard further bytes until the connection ends.
    let mut buffer = [0; 1_024];
    while !matches!(socket.read(&mut buffer).await, Ok(0) | Err(_)) {}
    if let Some(request) = lock(state).requests.get_mut(number) {
        request.closed = true;
    }
}

/// Head and body of a request; `None` if the connection ends before.
pub(crate) async fn read_request(socket: &mut TcpStream) -> Option<(String, String)> {
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

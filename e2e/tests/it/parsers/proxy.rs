//! A proxy between a reader and the server that forwards a stream in small pieces, cuts it, and
//! records requests and statuses.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::reference::head;

/// One request for a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProxiedRequest {
    pub(crate) last_event_id: Option<String>,
    /// The status it was answered with.
    pub(crate) status: u16,
}

/// How a proxy treats what it passes on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manner {
    /// After how many bytes of its body each stream is cut; those after the last are not.
    pub(crate) cuts: Vec<usize>,
    /// In pieces of how many bytes a body goes; as it comes if none.
    pub(crate) piece: Option<usize>,
}

/// What all connections of a proxy share.
struct Shared {
    upstream: SocketAddr,
    cuts: Mutex<VecDeque<usize>>,
    piece: Option<usize>,
    requests: Mutex<Vec<ProxiedRequest>>,
    /// Bytes of bodies passed on.
    passed: watch::Sender<usize>,
}

/// A proxy of one reader.
pub(crate) struct Proxy {
    addr: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Starts one on a free port.
    pub(crate) async fn start(upstream: SocketAddr, manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let shared = Arc::new(Shared {
            upstream,
            cuts: Mutex::new(manner.cuts.into()),
            piece: manner.piece,
            requests: Mutex::default(),
            passed: watch::Sender::new(0),
        });
        Self {
            addr: listener.local_addr().expect("an address"),
            shared: shared.clone(),
            task: tokio::spawn(accept(listener, shared)),
        }
    }

    /// Where a reader finds it.
    pub(crate) fn base(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// What was asked of it so far.
    pub(crate) fn requests(&self) -> Vec<ProxiedRequest> {
        let requests = self.shared.requests.lock();
        requests.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether all cuts were made.
    pub(crate) fn is_spent(&self) -> bool {
        let cuts = self.shared.cuts.lock();
        cuts.unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Waits until so many bytes of bodies have gone to the reader.
    pub(crate) async fn passed(&self, bytes: usize) {
        let mut passed = self.shared.passed.subscribe();
        let waited = passed.wait_for(|passed| *passed >= bytes).await;
        waited.expect("the proxy is there");
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((reader, _)) = listener.accept().await {
        tokio::spawn(carry(reader, shared.clone()));
    }
}

const PAGE: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n\
                    <!doctype html><title>reader</title><link rel=icon href=data:,>";

async fn carry(mut reader: TcpStream, shared: Arc<Shared>) -> Option<()> {
    let (request, _) = head(&mut reader).await?;
    if !request.starts_with("GET /chat/") {
        return reader.write_all(PAGE.as_bytes()).await.ok();
    }
    let field = |line: &&str, name: &str| {
        let start = line.get(..name.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(name))
    };
    let name = "last-event-id: ";
    let last = request.lines().find(|line| field(line, name));
    let last_event_id = last.map(|line| line[name.len()..].to_owned());
    // One request per connection, so that responses are easy to separate.
    let lines = request.trim_end().split("\r\n");
    let lines: Vec<&str> = lines.filter(|line| !field(line, "connection:")).collect();
    let request = format!("{}\r\nConnection: close\r\n\r\n", lines.join("\r\n"));

    let mut server = TcpStream::connect(shared.upstream).await.ok()?;
    server.write_all(request.as_bytes()).await.ok()?;
    let (answer, body) = head(&mut server).await?;
    let status = answer[9..12].parse().ok()?;
    let request = ProxiedRequest {
        last_event_id,
        status,
    };
    shared.requests.lock().ok()?.push(request);
    let cut = match status {
        200 => shared.cuts.lock().ok()?.pop_front(),
        _ => None,
    };
    reader.set_nodelay(true).ok()?;
    reader.write_all(answer.as_bytes()).await.ok()?;
    pass(&mut server, &mut reader, body, cut, &shared).await
}

/// Passes a body on, up to its cut.
async fn pass(
    server: &mut TcpStream,
    reader: &mut TcpStream,
    mut body: Vec<u8>,
    cut: Option<usize>,
    shared: &Shared,
) -> Option<()> {
    let mut remaining = cut.unwrap_or(usize::MAX);
    loop {
        body.truncate(remaining);
        remaining -= body.len();
        for piece in body.chunks(shared.piece.unwrap_or(usize::MAX)) {
            reader.write_all(piece).await.ok()?;
            shared.passed.send_modify(|passed| *passed += piece.len());
        }
        body.clear();
        if remaining == 0 || server.read_buf(&mut body).await.ok()? == 0 {
            return reader.shutdown().await.ok();
        }
    }
}

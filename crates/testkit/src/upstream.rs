//! A fake agent that runs elsewhere: a source of server-sent events in the inner vocabulary, written
//! as it likes: late, in pieces, too large, twice, or not at all. It records every request and when its
//! client closed the connection.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use crate::site::read_request;

/// The path that stops are posted to.
const CANCEL_PATH: &str = "/cancel";
/// The head of an event stream that ends with its connection.
const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// One step of an answer.
#[derive(Clone, Debug)]
pub enum UpstreamStep {
    /// These bytes as they are.
    Bytes(Vec<u8>),
    /// Nothing for this time.
    Wait(Duration),
    /// Nothing until the client closes the connection.
    Stall,
    /// The connection is reset.
    Reset,
}

impl UpstreamStep {
    /// The head of an event stream.
    pub fn head() -> Self {
        Self::Bytes(STREAM_HEAD.into())
    }

    /// A response without a stream.
    pub fn response(status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        let text = format!(
            "HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        Self::Bytes(text.into_bytes())
    }

    /// A block with this event as its data.
    pub fn event(event: &Value) -> Self {
        Self::Bytes(format!("data: {event}\n\n").into_bytes())
    }

    /// A comment, which is no event.
    pub fn comment() -> Self {
        Self::Bytes(b": still here\n\n".to_vec())
    }

    /// The block that ends a stream.
    pub fn done() -> Self {
        Self::Bytes(b"data: [DONE]\n\n".to_vec())
    }

    /// A pause in milliseconds.
    pub const fn wait(ms: u64) -> Self {
        Self::Wait(Duration::from_millis(ms))
    }
}

/// A whole answer: the head of a stream, these events, and the block that ends a stream.
pub fn stream(events: &[Value]) -> Vec<UpstreamStep> {
    let events = events.iter().map(UpstreamStep::event);
    let steps = [UpstreamStep::head()].into_iter().chain(events);
    steps.chain([UpstreamStep::done()]).collect()
}

/// A recorded request of [`FakeUpstream`].
#[derive(Clone, Debug)]
pub struct UpstreamRequest {
    /// The request line and all headers.
    pub head: String,
    pub body: Value,
    /// When the client closed the connection; `None` while it is open, or if the upstream closed it.
    pub closed_by_client: Option<Instant>,
    /// True once the answer was written to its end.
    pub is_answered: bool,
}

impl UpstreamRequest {
    /// The value of a header; empty if it is not there.
    pub fn header(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        let mut values = lines.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        values.next().map_or("", |(_, value)| value.trim())
    }
}

#[derive(Debug, Default)]
struct UpstreamState {
    /// The answers of the next requests; afterwards `always`.
    next: VecDeque<Vec<UpstreamStep>>,
    always: Vec<UpstreamStep>,
    requests: Vec<UpstreamRequest>,
    cancels: Vec<UpstreamRequest>,
    open: usize,
}

/// An agent that runs elsewhere, on the loopback; dropping it closes its port.
#[derive(Debug)]
pub struct FakeUpstream {
    addr: SocketAddr,
    state: Arc<Mutex<UpstreamState>>,
    task: AbortHandle,
}

impl FakeUpstream {
    /// Starts an upstream that gives this answer to every request.
    pub async fn start(always: Vec<UpstreamStep>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("an address");
        let state = Arc::new(Mutex::new(UpstreamState {
            always,
            ..UpstreamState::default()
        }));
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                state.lock().open += 1;
                tokio::spawn(async move {
                    serve(socket, &state).await;
                    state.lock().open -= 1;
                });
            }
        });
        Self {
            addr,
            state,
            task: task.abort_handle(),
        }
    }

    /// The URL of turns.
    pub fn url(&self) -> String {
        format!("http://{}/turns", self.addr)
    }

    /// The URL of stops.
    pub fn cancel_url(&self) -> String {
        format!("http://{}{CANCEL_PATH}", self.addr)
    }

    /// The answer of the next request that has none yet.
    pub fn answer_next(&self, steps: Vec<UpstreamStep>) {
        self.state.lock().next.push_back(steps);
    }

    /// The answer of every request that has none of its own.
    pub fn answer_always(&self, steps: Vec<UpstreamStep>) {
        self.state.lock().always = steps;
    }

    /// The requests for turns so far.
    pub fn requests(&self) -> Vec<UpstreamRequest> {
        self.state.lock().requests.clone()
    }

    /// The stops so far.
    pub fn cancels(&self) -> Vec<UpstreamRequest> {
        self.state.lock().cancels.clone()
    }

    /// The number of open connections.
    pub fn open_connections(&self) -> usize {
        self.state.lock().open
    }
}

impl Drop for FakeUpstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves one request of one connection.
async fn serve(mut socket: TcpStream, state: &Mutex<UpstreamState>) {
    let Some((head, body)) = read_request(&mut socket).await else {
        return;
    };
    let is_cancel = head
        .lines()
        .next()
        .is_some_and(|line| line.contains(CANCEL_PATH));
    let request = UpstreamRequest {
        head,
        body: serde_json::from_str(&body).unwrap_or(Value::Null),
        closed_by_client: None,
        is_answered: false,
    };
    if is_cancel {
        state.lock().cancels.push(request);
        let response = "HTTP/1.1 204 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        let _ = socket.write_all(response.as_bytes()).await;
        return;
    }
    let (steps, number) = {
        let mut state = state.lock();
        state.requests.push(request);
        let steps = state.next.pop_front();
        (
            steps.unwrap_or_else(|| state.always.clone()),
            state.requests.len() - 1,
        )
    };
    let (mut reader, mut writer) = socket.split();
    let answer = async {
        for step in steps {
            match step {
                UpstreamStep::Bytes(bytes) => {
                    if writer.write_all(&bytes).await.is_err() {
                        return Ending::Whole;
                    }
                }
                UpstreamStep::Wait(pause) => tokio::time::sleep(pause).await,
                UpstreamStep::Stall => std::future::pending().await,
                UpstreamStep::Reset => return Ending::Reset,
            }
        }
        Ending::Whole
    };
    let mut buffer = [0; 1_024];
    let left = async { while !matches!(reader.read(&mut buffer).await, Ok(0) | Err(_)) {} };
    let ending = tokio::select! {
        ending = answer => Some(ending),
        () = left => None,
    };
    let mut state = state.lock();
    let request = &mut state.requests[number];
    match ending {
        None => request.closed_by_client = Some(Instant::now()),
        Some(ending) => {
            request.is_answered = true;
            drop(state);
            if let Ending::Reset = ending {
                let _ = socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO));
            }
        }
    }
}

/// How an answer ends by itself.
enum Ending {
    Whole,
    Reset,
}

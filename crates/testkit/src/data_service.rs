//! A fake data service: answers `POST /v1/enrich` with the bytes that a test sets, at the pace that
//! it sets, and records every request and whether its caller stayed for the reply.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// Maximum size of a request in bytes.
const REQUEST_MAX: usize = 1 << 20;

/// A scripted reply of [`FakeDataService`].
#[derive(Clone, Debug)]
pub struct ServiceReply {
    bytes: Vec<u8>,
    delay: Duration,
    pace: Option<(usize, Duration)>,
}

impl ServiceReply {
    /// A `200 OK` reply with this JSON body.
    pub fn envelope(body: &Value) -> Self {
        Self::http("200 OK", &[], &body.to_string())
    }

    /// A reply with a status line, additional headers and a body.
    pub fn http(status: &str, headers: &[&str], body: &str) -> Self {
        let mut head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n");
        head += &format!("content-length: {}\r\nconnection: close\r\n", body.len());
        for header in headers {
            head += &format!("{header}\r\n");
        }
        Self::raw(format!("{head}\r\n{body}").into_bytes())
    }

    /// These bytes, then the end of the connection.
    pub fn raw(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            delay: Duration::ZERO,
            pace: None,
        }
    }

    /// Delays the reply by `ms` milliseconds.
    #[must_use]
    pub fn after(mut self, ms: u64) -> Self {
        self.delay = Duration::from_millis(ms);
        self
    }

    /// Sends the reply in pieces of `bytes`, with `ms` between them.
    #[must_use]
    pub fn in_pieces(mut self, bytes: usize, ms: u64) -> Self {
        self.pace = Some((bytes, Duration::from_millis(ms)));
        self
    }
}

/// A recorded request and what happened to its reply.
#[derive(Clone, Debug)]
pub struct ServiceCall {
    /// The `enricher_id` of the request.
    pub enricher: String,
    pub head: String,
    pub request: Value,
    pub arrived: Instant,
    /// When the whole reply was written; `None` before that.
    pub answered: Option<Instant>,
    /// True if the caller left before that.
    pub cut: bool,
}

#[derive(Debug, Default)]
struct ServiceState {
    replies: BTreeMap<String, Vec<ServiceReply>>,
    calls: Vec<ServiceCall>,
}

/// A data service on the loopback; dropping it closes its port.
#[derive(Debug)]
pub struct FakeDataService {
    addr: SocketAddr,
    state: Arc<Mutex<ServiceState>>,
    task: AbortHandle,
}

impl FakeDataService {
    /// Starts a service with replies for `offer_search`, `points` and `answers`.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("an address");
        let state = Arc::new(Mutex::new(ServiceState::default()));
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, Arc::clone(&shared)));
            }
        });
        let ccs = Self {
            addr,
            state,
            task: task.abort_handle(),
        };
        for enricher in ["offer_search", "points", "answers"] {
            ccs.set(enricher, ServiceReply::envelope(&envelope(enricher)));
        }
        ccs
    }

    /// The base URL without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Sets the reply for an enricher.
    pub fn set(&self, enricher: &str, reply: ServiceReply) {
        self.set_all(enricher, vec![reply]);
    }

    /// Sets the replies for an enricher, one per request; the last one repeats.
    pub fn set_all(&self, enricher: &str, mut replies: Vec<ServiceReply>) {
        replies.reverse();
        lock(&self.state)
            .replies
            .insert(enricher.to_owned(), replies);
    }

    /// The requests so far.
    pub fn calls(&self) -> Vec<ServiceCall> {
        lock(&self.state).calls.clone()
    }

    /// The requests so far; clears the record.
    pub fn take(&self) -> Vec<ServiceCall> {
        std::mem::take(&mut lock(&self.state).calls)
    }

    /// The parameters of all requests for an enricher.
    pub fn params(&self, enricher: &str) -> Vec<Value> {
        let calls = self.calls().into_iter();
        let own = calls.filter(|call| call.enricher == enricher);
        own.map(|mut call| call.request["params"].take()).collect()
    }

    /// Closes the port of the service.
    pub fn stop(&self) {
        self.task.abort();
    }
}

impl Drop for FakeDataService {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An `ok` envelope of an enricher for `user-42`.
pub fn envelope(enricher: &str) -> Value {
    let (domain_type, version, payload) = match enricher {
        "offer_search" => ("offer_list", "1.2.0", offers()),
        "points" => ("points_balance", "1.0.0", json!({"points": 1240})),
        _ => ("support_answer", "1.0.0", json!({"answer": "Wait a day."})),
    };
    json!({
        "enricher_id": enricher, "domain_type": domain_type, "principal": "user-42",
        "version": version, "status": "ok", "partial": [],
        "cache_meta": {"cached": false, "cacheable": true, "ttl": 60, "key": "LEAK_CACHE"},
        "timing": {"total_ms": 12}, "payload": payload,
    })
}

/// [`envelope`] with some fields replaced.
pub fn envelope_with(enricher: &str, fields: &Value) -> Value {
    let mut envelope = envelope(enricher);
    for (name, value) in fields.as_object().into_iter().flatten() {
        envelope[name] = value.clone();
    }
    envelope
}

/// The payload of `offer_search`.
pub fn offers() -> Value {
    json!({"items": [{"id": "OFF_1", "title": "Oat milk"}, {"id": "OFF_2", "title": "Granola"}]})
}

fn lock(state: &Mutex<ServiceState>) -> MutexGuard<'_, ServiceState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(mut socket: TcpStream, state: Arc<Mutex<ServiceState>>) {
    let Some((head, body)) = read(&mut socket).await else {
        return;
    };
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let enricher = request["enricher_id"].as_str().unwrap_or_default();
    let (at, reply) = {
        let mut state = lock(&state);
        let reply = match state.replies.get_mut(enricher) {
            Some(replies) if replies.len() > 1 => replies.pop(),
            Some(replies) => replies.last().cloned(),
            None => None,
        };
        state.calls.push(ServiceCall {
            enricher: enricher.to_owned(),
            head,
            request: request.clone(),
            arrived: Instant::now(),
            answered: None,
            cut: false,
        });
        (state.calls.len() - 1, reply)
    };
    let reply = reply.unwrap_or_else(|| ServiceReply::http("404 Not Found", &[], "{}"));
    let written = write_reply(&mut socket, &reply).await;
    let mut state = lock(&state);
    // [`FakeDataService::take`] may have removed the call meanwhile.
    if let Some(call) = state.calls.get_mut(at) {
        call.answered = written.then(Instant::now);
        call.cut = !written;
    }
}

/// Writes a reply at its pace; false if the caller left before all of it was written.
async fn write_reply(socket: &mut TcpStream, reply: &ServiceReply) -> bool {
    if caller_left_during(socket, reply.delay).await {
        return false;
    }
    let (size, pause) = reply.pace.unwrap_or((usize::MAX, Duration::ZERO));
    for (at, piece) in reply
        .bytes
        .chunks(size.min(reply.bytes.len()).max(1))
        .enumerate()
    {
        if at > 0 && caller_left_during(socket, pause).await {
            return false;
        }
        if socket.write_all(piece).await.is_err() {
            return false;
        }
    }
    socket.shutdown().await.is_ok()
}

/// Waits for `time`; true if the caller left meanwhile.
async fn caller_left_during(socket: &mut TcpStream, time: Duration) -> bool {
    if time.is_zero() {
        return false;
    }
    let mut byte = [0];
    tokio::select! {
        () = tokio::time::sleep(time) => false,
        read = socket.read(&mut byte) => !matches!(read, Ok(n) if n > 0),
    }
}

async fn read(socket: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                let length = name.eq_ignore_ascii_case("content-length");
                length.then(|| value.trim().parse::<usize>().ok())?
            })?;
            if bytes.len() >= end + 4 + length {
                return Some((head, bytes[end + 4..end + 4 + length].to_vec()));
            }
        }
        if bytes.len() > REQUEST_MAX || socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

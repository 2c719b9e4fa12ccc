//! An OpenTelemetry collector: it takes traces over OTLP/HTTP, reads them with the types that are
//! generated from the specification, and answers as it is told: at once, late, with an error, or in
//! part.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as OtlpValue;
use opentelemetry_proto::tonic::trace::v1::Span;
use parking_lot::Mutex;
use prost::Message as _;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// How a [`Collector`] answers a batch.
#[derive(Clone, Debug)]
pub enum CollectorAnswer {
    /// It takes the whole batch.
    Accept,
    /// It takes the batch without this many of its spans.
    Partial(i64),
    /// It takes nothing, with this status and this `Retry-After`.
    Status(u16, Option<u64>),
    /// It takes the batch after this time.
    Late(Duration),
    /// It takes nothing, and keeps the connection open.
    Hang,
}

/// A span as a collector has read it.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectedSpan {
    pub name: String,
    /// In lower-case hexadecimal, 32 digits.
    pub trace_id: String,
    /// In lower-case hexadecimal, 16 digits.
    pub span_id: String,
    /// In the same form; empty for a span without a parent.
    pub parent_id: String,
    /// As in `SpanKind` of OTLP: 1 internal, 2 server, 3 client.
    pub kind: i32,
    pub state: String,
    pub flags: u32,
    pub started_ns: u64,
    pub ended_ns: u64,
    /// True if the status is an error.
    pub is_error: bool,
    pub attributes: BTreeMap<String, Value>,
    /// The attributes of the server that sent it.
    pub resource: BTreeMap<String, Value>,
}

impl CollectedSpan {
    /// The text of an attribute; empty if it is not there.
    pub fn text(&self, name: &str) -> &str {
        let value = self.attributes.get(name).and_then(Value::as_str);
        value.unwrap_or_default()
    }
}

#[derive(Debug, Default)]
struct CollectorState {
    /// The answers of the next batches; afterwards `always`.
    next: VecDeque<CollectorAnswer>,
    always: Option<CollectorAnswer>,
    spans: Vec<CollectedSpan>,
    /// The heads of all requests.
    heads: Vec<String>,
    /// What could not be read.
    faults: Vec<String>,
}

/// A collector on the loopback; dropping it closes its port.
#[derive(Debug)]
pub struct Collector {
    addr: SocketAddr,
    state: Arc<Mutex<CollectorState>>,
    task: AbortHandle,
}

impl Collector {
    /// Starts a collector that takes every batch.
    pub async fn start() -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        Self::start_on(any).await
    }

    /// Starts a collector on an address.
    pub async fn start_on(addr: SocketAddr) -> Self {
        let listener = TcpListener::bind(addr).await.expect("a port");
        let addr = listener.local_addr().expect("an address");
        let state = Arc::new(Mutex::new(CollectorState::default()));
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                tokio::spawn(async move { serve(socket, &state).await });
            }
        });
        Self {
            addr,
            state,
            task: task.abort_handle(),
        }
    }

    /// The value of `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The variables of a server that sends each span within a moment.
    pub fn variables(&self) -> Vec<(String, String)> {
        let variables = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", self.endpoint()),
            ("OTEL_BSP_SCHEDULE_DELAY", "20".to_owned()),
        ];
        let variables = variables.into_iter();
        variables
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    /// The answer of the next batch that has none yet.
    pub fn answer_next(&self, answer: CollectorAnswer) {
        self.state.lock().next.push_back(answer);
    }

    /// The answer of every batch that has none of its own.
    pub fn answer_always(&self, answer: CollectorAnswer) {
        self.state.lock().always = Some(answer);
    }

    /// The spans of all batches that were taken. Fails if anything could not be read.
    pub fn spans(&self) -> Vec<CollectedSpan> {
        let state = self.state.lock();
        assert_eq!(
            state.faults,
            Vec::<String>::new(),
            "requests that are not OTLP"
        );
        state.spans.clone()
    }

    /// The heads of all requests, in lower case.
    pub fn heads(&self) -> Vec<String> {
        self.state.lock().heads.clone()
    }

    /// Waits until the spans satisfy a condition, and returns them.
    pub async fn spans_until(
        &self,
        what: &str,
        is_so: impl Fn(&[CollectedSpan]) -> bool,
    ) -> Vec<CollectedSpan> {
        for _ in 0..3_000 {
            let spans = self.spans();
            if is_so(&spans) {
                return spans;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let spans = self.spans();
        let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
        panic!("{what}: {names:?}")
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The names of the ancestors of a span within `spans`, from its parent to the root. A parent that is
/// missing ends the list with its id.
pub fn ancestors(spans: &[CollectedSpan], span: &CollectedSpan) -> Vec<String> {
    let by_id: HashMap<&str, &CollectedSpan> = spans
        .iter()
        .map(|span| (span.span_id.as_str(), span))
        .collect();
    let mut names = Vec::new();
    let mut parent = span.parent_id.as_str();
    while !parent.is_empty() && names.len() < spans.len() {
        match by_id.get(parent) {
            Some(span) => {
                names.push(span.name.clone());
                parent = &span.parent_id;
            }
            None => {
                names.push(parent.to_owned());
                break;
            }
        }
    }
    names
}

/// Serves the requests of one connection.
async fn serve(mut socket: TcpStream, state: &Mutex<CollectorState>) {
    while let Some((head, body)) = read_request(&mut socket).await {
        let answer = {
            let mut state = state.lock();
            state.heads.push(head.to_ascii_lowercase());
            let own = state.next.pop_front().or_else(|| state.always.clone());
            own.unwrap_or(CollectorAnswer::Accept)
        };
        let (status, after, rejected) = match answer {
            CollectorAnswer::Accept => (200, None, 0),
            CollectorAnswer::Partial(rejected) => (200, None, rejected),
            CollectorAnswer::Status(status, after) => (status, after, 0),
            CollectorAnswer::Late(time) => {
                tokio::time::sleep(time).await;
                (200, None, 0)
            }
            CollectorAnswer::Hang => std::future::pending().await,
        };
        let mut response = Vec::new();
        if status == 200 {
            take(&head, body, rejected, state);
            let partial = ExportTracePartialSuccess {
                rejected_spans: rejected,
                error_message: "as the test asked".to_owned(),
            };
            let message = ExportTraceServiceResponse {
                partial_success: (rejected > 0).then_some(partial),
            };
            response = message.encode_to_vec();
        }
        let after = after.map_or_else(String::new, |after| format!("retry-after: {after}\r\n"));
        let head = format!(
            "HTTP/1.1 {status} X\r\n{after}content-type: application/x-protobuf\r\ncontent-length: {}\r\n\r\n",
            response.len()
        );
        let written = socket
            .write_all(&[head.as_bytes(), &response].concat())
            .await;
        if written.is_err() {
            return;
        }
    }
}

/// Reads a batch; the first `rejected` spans are not kept.
fn take(head: &str, body: Bytes, rejected: i64, state: &Mutex<CollectorState>) {
    let mut state = state.lock();
    if !head
        .to_ascii_lowercase()
        .contains("content-type: application/x-protobuf")
    {
        state
            .faults
            .push(format!("a head without its type: {head}"));
    }
    let request = match ExportTraceServiceRequest::decode(body) {
        Ok(request) => request,
        Err(error) => return state.faults.push(error.to_string()),
    };
    let mut spans = Vec::new();
    for resource_spans in &request.resource_spans {
        let resource = resource_spans.resource.as_ref();
        let resource = resource.map_or_else(BTreeMap::new, |it| values(&it.attributes));
        let found = resource_spans
            .scope_spans
            .iter()
            .flat_map(|scope| &scope.spans);
        spans.extend(found.map(|span| collected(span, &resource)));
    }
    let rejected = usize::try_from(rejected).unwrap_or(0).min(spans.len());
    state.spans.extend(spans.split_off(rejected));
}

fn collected(span: &Span, resource: &BTreeMap<String, Value>) -> CollectedSpan {
    CollectedSpan {
        name: span.name.clone(),
        trace_id: hex(&span.trace_id),
        span_id: hex(&span.span_id),
        parent_id: hex(&span.parent_span_id),
        kind: span.kind,
        state: span.trace_state.clone(),
        flags: span.flags,
        started_ns: span.start_time_unix_nano,
        ended_ns: span.end_time_unix_nano,
        is_error: span.status.as_ref().is_some_and(|status| status.code == 2),
        attributes: values(&span.attributes),
        resource: resource.clone(),
    }
}

fn values(attributes: &[KeyValue]) -> BTreeMap<String, Value> {
    let value = |attribute: &KeyValue| {
        let value = attribute
            .value
            .as_ref()
            .and_then(|value| value.value.clone());
        (attribute.key.clone(), value.map_or(Value::Null, json))
    };
    attributes.iter().map(value).collect()
}

fn json(value: OtlpValue) -> Value {
    match value {
        OtlpValue::StringValue(text) => text.into(),
        OtlpValue::BoolValue(value) => value.into(),
        OtlpValue::IntValue(value) => value.into(),
        OtlpValue::DoubleValue(value) => value.into(),
        OtlpValue::ArrayValue(list) => {
            let values = list.values.into_iter();
            values
                .map(|value| value.value.map_or(Value::Null, json))
                .collect()
        }
        other => format!("{other:?}").into(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The head and the body of the next request; `None` at the end of the connection.
async fn read_request(socket: &mut TcpStream) -> Option<(String, Bytes)> {
    let mut bytes = Vec::new();
    let head_len = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_len]).into_owned();
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let mut lengths = lines.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let body_len: usize = lengths.next()?.1.trim().parse().ok()?;
    while bytes.len() < head_len + body_len {
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    Some((
        head,
        Bytes::from(bytes).slice(head_len..head_len + body_len),
    ))
}

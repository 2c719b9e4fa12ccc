//! Helpers of the chat wire's tests: submit and resume, raw HTTP requests, and the values of
//! `/metrics`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use turnwire_event::TurnId;
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::chat::{Block, ChatStream, ChatSubmit, CursorPlacement};
use turnwire_testkit::server::TestServer;
use turnwire_wire::pc3::FrameCursor;

/// Deadline of every wait.
const DEADLINE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(10);

/// Submits a turn, which must be accepted.
pub async fn say(api: &ApiClient, name: &str, question: &ChatSubmit) -> ChatStream {
    let stream = ChatStream::submit(api, name, question).await;
    stream.unwrap_or_else(|refused| panic!("{name}: {refused}"))
}

/// Submits a turn and reads its stream to the end.
pub async fn whole(api: &ApiClient, name: &str, question: &ChatSubmit) -> (TurnId, Vec<Block>) {
    let mut stream = say(api, name, question).await;
    let frames = stream.read_to_end().await;
    let frames = frames.unwrap_or_else(|end| panic!("{name}: {end}"));
    (stream.turn(), frames)
}

/// Resumes the stream of a turn.
pub async fn back(
    api: &ApiClient,
    name: &str,
    turn: TurnId,
    cursor: Option<FrameCursor>,
) -> ChatStream {
    let stream = ChatStream::resume(api, name, turn, cursor, CursorPlacement::Header, None).await;
    stream.unwrap_or_else(|refused| panic!("{name}: {refused}"))
}

/// The types of all frames.
pub fn events(frames: &[Block]) -> Vec<&str> {
    frames.iter().map(Block::event).collect()
}

/// The types of all frames, with repetitions removed: the number of chunks is not promised.
pub fn shape(frames: &[Block]) -> Vec<&str> {
    let mut names = events(frames);
    names.dedup();
    names
}

/// The text of the answer.
pub fn words(frames: &[Block]) -> String {
    let texts = frames.iter().filter(|frame| frame.event() == "text");
    texts
        .filter_map(|frame| frame.field("chunk").as_str())
        .collect()
}

/// The code of the last frame's error.
pub fn code(frames: &[Block]) -> &str {
    let last = frames.last().map(|frame| &frame.field("error")["code"]);
    last.and_then(Value::as_str).unwrap_or_default()
}

/// The response to a raw request.
#[derive(Clone, Debug, Default)]
pub struct RawResponse {
    /// The HTTP status; 0 if the connection was closed without a response.
    pub status: u16,
    /// The response head as received.
    pub head: String,
    /// The response body as received.
    pub body: String,
}

impl RawResponse {
    /// The code of a problem; empty if the body is not a problem.
    pub fn code(&self) -> String {
        let problem: Value = serde_json::from_str(&self.body).unwrap_or_default();
        problem["code"].as_str().unwrap_or_default().to_owned()
    }

    /// The problem without the fields that identify the request.
    pub fn essence(&self) -> Value {
        let mut problem: Value = serde_json::from_str(&self.body).unwrap_or_default();
        if let Some(fields) = problem.as_object_mut() {
            fields.remove("trace_id");
        }
        problem
    }

    /// A header's value; empty if it is missing.
    pub fn header(&self, name: &str) -> &str {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let header = lines.find(|(known, _)| known.eq_ignore_ascii_case(name));
        header.map_or("", |(_, value)| value)
    }
}

/// Sends a raw request and reads until the server closes. `lines` are the headers between the request
/// line and the blank line; host, length and `connection: close` are added.
pub async fn raw(addr: SocketAddr, line: &str, lines: &[&str], body: &[u8]) -> RawResponse {
    let mut request = format!("{line} HTTP/1.1\r\nhost: {addr}\r\nconnection: close\r\n");
    for line in lines {
        request += &format!("{line}\r\n");
    }
    if !body.is_empty() {
        request += &format!("content-length: {}\r\n", body.len());
    }
    request += "\r\n";
    let exchange = async {
        let mut socket = TcpStream::connect(addr).await.ok()?;
        let bytes = [request.as_bytes(), body].concat();
        // The response may arrive before the whole request is sent.
        let mut answer = Vec::new();
        let (mut read, mut write) = socket.split();
        let written = async {
            let _ = write.write_all(&bytes).await;
        };
        let _ = tokio::join!(written, read.read_to_end(&mut answer));
        let text = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = text.split_once("\r\n\r\n")?;
        Some(RawResponse {
            status: head.get(9..12)?.parse().ok()?,
            head: head.to_owned(),
            body: body.to_owned(),
        })
    };
    let answer = tokio::time::timeout(DEADLINE, exchange).await;
    answer.expect("an answer or a close").unwrap_or_default()
}

/// Waits until a condition is true; `what` names it in the panic message.
pub async fn until<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let started = std::time::Instant::now();
    while !is_so().await {
        assert!(started.elapsed() < DEADLINE, "it never happened: {what}");
        tokio::time::sleep(POLL).await;
    }
}

/// The values of `/metrics` at one time.
#[derive(Clone, Debug, Default)]
pub struct MetricsSnapshot(Vec<(String, BTreeMap<String, String>, f64)>);

impl MetricsSnapshot {
    /// Reads the server's metrics.
    pub async fn read(api: &ApiClient) -> Self {
        let answer = api.get("/metrics").await.expect("an answer");
        let lines = answer.body.lines().filter(|line| !line.starts_with('#'));
        Self(lines.filter_map(number).collect())
    }

    /// The labels and values of all series of a metric.
    pub fn series<'a>(
        &'a self,
        name: &'a str,
    ) -> impl Iterator<Item = (&'a BTreeMap<String, String>, f64)> {
        let own = self.0.iter().filter(move |(known, ..)| known == name);
        own.map(|(_, labels, value)| (labels, *value))
    }

    /// The sum of a metric over all its labels.
    pub fn sum(&self, name: &str) -> f64 {
        self.series(name).map(|(_, value)| value).sum()
    }

    /// The values of a metric summed by one label, without zeros.
    pub fn by(&self, name: &str, label: &str) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for (labels, value) in self.series(name).filter(|(_, value)| *value > 0.0) {
            let key = labels.get(label).cloned().unwrap_or_default();
            *sums.entry(key).or_default() += value as u64;
        }
        sums
    }

    /// The names of all metrics.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, ..)| name.as_str())
    }
}

fn number(line: &str) -> Option<(String, BTreeMap<String, String>, f64)> {
    let (series, value) = line.rsplit_once(' ')?;
    let (name, labels) = series.split_once('{').unwrap_or((series, ""));
    let labels = labels.trim_end_matches('}').split("\",");
    let labels = labels.filter_map(|label| label.split_once("=\""));
    let labels = labels.map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned()));
    Some((name.to_owned(), labels.collect(), value.parse().ok()?))
}

/// Waits until `count` chat streams are open.
pub async fn streams(api: &ApiClient, count: usize) {
    until("that many open streams", || async {
        MetricsSnapshot::read(api).await.sum("turnwire_sse_streams") as usize == count
    })
    .await;
}

/// Asserts that the server logged no error.
pub fn assert_no_errors_logged(server: &TestServer) {
    let stderr = server.stderr();
    let error = stderr.lines().find(|line| line.contains("ERROR"));
    assert_eq!(error, None, "the server's log has an error");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_line_is_parsed() {
        let (name, labels, value) = number(r#"a_total{x="1",y="",z="a b"} 3"#).expect("a line");
        assert_eq!((name.as_str(), value), ("a_total", 3.0));
        let labels: Vec<(&str, &str)> = labels
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(labels, [("x", "1"), ("y", ""), ("z", "a b")]);
        assert_eq!(
            number("plain 0"),
            Some(("plain".into(), BTreeMap::new(), 0.0))
        );
    }
}

//! A small HTTP client for one server on the loopback: one connection per request, a deadline on
//! each, every response recorded in the [`Journal`]. A missing response is an error, and the
//! journal then leaves open whether the server applied the request.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use turnwire_event::{Position, SessionId, TurnId};

use crate::history::{LoggedEvent, SessionLog};
use crate::journal::Journal;

/// Deadline of a request; long enough for a server that is killed and restarted meanwhile.
const DEADLINE: Duration = Duration::from_secs(60);
/// The server's maximum page size.
const PAGE_MAX: usize = 200;

/// The error of a request without a response.
#[derive(Debug, thiserror::Error)]
#[error("{method} {path}: no answer: {why}")]
pub struct NoResponse {
    method: Method,
    path: String,
    why: String,
}

/// The response to a request.
#[derive(Clone, Debug)]
pub struct ApiResponse {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: String,
}

impl ApiResponse {
    /// The body as JSON; null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    /// A header's value; empty if it is missing.
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).map(HeaderValue::to_str);
        value.and_then(Result::ok).unwrap_or_default()
    }

    /// The status and the body without the trace id, which names the request itself.
    pub fn essence(&self) -> (u16, Value) {
        let mut body = self.json();
        if let Some(fields) = body.as_object_mut() {
            fields.remove("trace_id");
        }
        (self.status, body)
    }

    /// The code of a problem; empty if the body is not a problem.
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// The response to an accepted submit.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct AcceptedSubmit {
    pub turn_id: TurnId,
    /// The session's last position before the turn.
    pub position: Position,
}

/// An HTTP client of one server.
#[derive(Clone, Debug)]
pub struct ApiClient {
    addr: SocketAddr,
    journal: Journal,
    headers: HeaderMap,
}

impl ApiClient {
    /// A client that records into `journal`.
    pub fn new(addr: SocketAddr, journal: Journal) -> Self {
        Self {
            addr,
            journal,
            headers: HeaderMap::new(),
        }
    }

    /// The address of the server.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The journal that the client records into.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The headers of every request.
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Adds a header to every request.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::from_str(value).expect("a header's text");
        self.headers.insert(HeaderName::from_static(name), value);
        self
    }

    /// Sends a request and waits for the response. A body is sent as JSON unless a header says
    /// otherwise.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&str>,
    ) -> Result<ApiResponse, NoResponse> {
        let sent = tokio::time::timeout(DEADLINE, self.exchange(&method, path, body)).await;
        let answer = match sent {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(why)) => Err(why.to_string()),
            Err(_) => Err(format!("nothing within {DEADLINE:?}")),
        };
        // Reads promise nothing, and their bodies would fill the memory of a long campaign.
        let noted = answer.as_ref().ok().map(|a| match method {
            Method::GET => (a.status, String::new()),
            _ => (a.status, a.body.clone()),
        });
        self.journal
            .request(method.as_str(), path, body.unwrap_or_default(), noted);
        answer.map_err(|why| NoResponse {
            method,
            path: path.to_owned(),
            why,
        })
    }

    async fn exchange(
        &self,
        method: &Method,
        path: &str,
        body: Option<&str>,
    ) -> Result<ApiResponse, Box<dyn std::error::Error + Send + Sync>> {
        let stream = TcpStream::connect(self.addr).await?;
        stream.set_nodelay(true)?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let connection = tokio::spawn(connection);
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .body(Full::new(Bytes::from(body.unwrap_or_default().to_owned())))?;
        let headers = request.headers_mut();
        headers.insert(HOST, HeaderValue::from_str(&self.addr.to_string())?);
        if body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        headers.extend(self.headers.clone());
        let response = sender.send_request(request).await?;
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let bytes = response.into_body().collect().await?.to_bytes();
        drop(sender);
        connection.abort();
        let body = String::from_utf8(bytes.to_vec())?;
        Ok(ApiResponse {
            status,
            headers,
            body,
        })
    }

    /// Sends a GET request.
    pub async fn get(&self, path: &str) -> Result<ApiResponse, NoResponse> {
        self.send(Method::GET, path, None).await
    }

    /// Sends a POST request with a JSON body.
    pub async fn post(&self, path: &str, body: Value) -> Result<ApiResponse, NoResponse> {
        self.send(Method::POST, path, Some(&body.to_string())).await
    }

    /// Creates a session; panics if the server refuses.
    pub async fn create(&self) -> Result<SessionId, NoResponse> {
        let answer = self.post("/sessions", json!({})).await?;
        assert_eq!(answer.status, 201, "{}", answer.body);
        let id = answer.json()["session_id"].as_str().map(str::parse);
        Ok(id.and_then(Result::ok).expect("a session id"))
    }

    /// Submits a turn and returns the response, accepted or not.
    pub async fn try_submit(
        &self,
        session: SessionId,
        message: &str,
    ) -> Result<ApiResponse, NoResponse> {
        let body = json!({"message": message});
        self.post(&format!("/sessions/{session}/turns"), body).await
    }

    /// Submits a turn that must be accepted.
    pub async fn submit(
        &self,
        session: SessionId,
        message: &str,
    ) -> Result<AcceptedSubmit, NoResponse> {
        let answer = self.try_submit(session, message).await?;
        assert_eq!(answer.status, 202, "{}", answer.body);
        Ok(serde_json::from_str(&answer.body).expect("an accepted turn"))
    }

    /// Requests the cancellation of a turn.
    pub async fn cancel(&self, turn: TurnId) -> Result<ApiResponse, NoResponse> {
        self.send(Method::POST, &format!("/turns/{turn}/cancel"), None)
            .await
    }

    /// Reads a turn as JSON.
    pub async fn turn(&self, turn: TurnId) -> Result<Value, NoResponse> {
        Ok(self.get(&format!("/turns/{turn}")).await?.json())
    }

    /// Waits until a turn has ended, and returns it as JSON.
    pub async fn ended(&self, turn: TurnId) -> Result<Value, NoResponse> {
        let mut waited = Duration::ZERO;
        loop {
            let row = self.turn(turn).await?;
            if matches!(row["state"].as_str(), Some("completed" | "cancelled")) {
                return Ok(row);
            }
            assert!(waited < 3 * DEADLINE, "turn {turn} does not end: {row}");
            let pause = Duration::from_millis(20);
            tokio::time::sleep(pause).await;
            waited += pause;
        }
    }

    /// Reads a session with a new attach token.
    pub async fn attach(&self, session: SessionId) -> Result<Value, NoResponse> {
        let answer = self.get(&format!("/sessions/{session}")).await?;
        assert_eq!(answer.status, 200, "{}", answer.body);
        Ok(answer.json())
    }

    /// All pages of a list that is paged by `before`, in the order of reading.
    pub async fn pages(&self, path: &str, plural: &str) -> Result<Vec<Vec<Value>>, NoResponse> {
        let mut pages = Vec::new();
        let mut before = String::new();
        loop {
            let answer = self
                .get(&format!("{path}?limit={PAGE_MAX}{before}"))
                .await?;
            assert_eq!(answer.status, StatusCode::OK.as_u16(), "{}", answer.body);
            let mut page = answer.json();
            let Value::Array(rows) = page[plural].take() else {
                panic!("{path} has no {plural}: {}", answer.body)
            };
            pages.push(rows);
            match page["next"].as_str() {
                None => return Ok(pages),
                Some(next) => before = format!("&before={next}"),
            }
        }
    }

    /// All stored events of a session with their hashes.
    pub async fn events(&self, session: SessionId) -> Result<Vec<LoggedEvent>, NoResponse> {
        #[derive(Deserialize)]
        struct EventPage {
            events: Vec<Box<RawValue>>,
            next: Option<Position>,
            hashes: Vec<String>,
        }
        let mut events = Vec::new();
        let mut since = String::new();
        loop {
            let path = format!("/sessions/{session}/events?hashes=true&limit=1000{since}");
            let answer = self.get(&path).await?;
            let page: EventPage = serde_json::from_str(&answer.body)
                .unwrap_or_else(|why| panic!("{path}: {why}: {}", answer.body));
            assert_eq!(page.events.len(), page.hashes.len());
            let rows = page.events.iter().zip(page.hashes);
            events.extend(rows.map(|(event, hash)| LoggedEvent {
                text: event.get().to_owned(),
                hash,
            }));
            match page.next {
                None => return Ok(events),
                Some(next) => since = format!("&since={next}"),
            }
        }
    }

    /// All messages of a session, oldest first, also those that are too large for a list.
    pub async fn messages(&self, session: SessionId) -> Result<Vec<Value>, NoResponse> {
        let base = format!("/sessions/{session}/messages");
        let pages = self.pages(&base, "messages").await?;
        // The newest page comes first, and each page is oldest first.
        let mut messages: Vec<Value> = pages.into_iter().rev().flatten().collect();
        for message in &mut messages {
            if message["omitted_bytes"].is_null() {
                continue;
            }
            let id = message["id"].as_str().unwrap_or_default().to_owned();
            *message = self.get(&format!("{base}/{id}")).await?.json();
        }
        Ok(messages)
    }

    /// The log and all rows of a session.
    pub async fn log(&self, session: SessionId) -> Result<SessionLog, NoResponse> {
        let base = format!("/sessions/{session}");
        let messages = self.messages(session).await?;
        let turns = self.pages(&format!("{base}/turns"), "turns").await?;
        let tool_calls = self
            .pages(&format!("{base}/tool-calls"), "tool_calls")
            .await?;
        Ok(SessionLog {
            id: session,
            events: self.events(session).await?,
            messages,
            turns: turns.into_iter().flatten().collect(),
            tool_calls: tool_calls.into_iter().flatten().collect(),
        })
    }

    /// The logs and rows of several sessions.
    pub async fn logs(&self, sessions: &[SessionId]) -> Result<Vec<SessionLog>, NoResponse> {
        let mut logs = Vec::with_capacity(sessions.len());
        for &session in sessions {
            logs.push(self.log(session).await?);
        }
        Ok(logs)
    }
}

//! The REST calls, each with its typed answer.
//!
//! A [`Client`] is cheap to clone and shares its connections. An error answer becomes
//! [`Error::Problem`] with the code the server gave.

use std::fmt::{Display, Write as _};
use std::sync::Arc;

use hyper::Method;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use turnwire_event::{
    CallId, Day, Message, MessageId, Owner, Position, SessionId, ToolUseId, TurnId, TypeSet,
};
use turnwire_wire::rest::{
    event, feedback, health, llm_call, session, status_event, tool_call, turn, usage,
};

use crate::error::Error;
use crate::frame::readable;
use crate::http::{Answer, Http};
use crate::key::Key;

/// A server, and who speaks to it.
#[derive(Clone, Debug)]
pub struct Client {
    http: Arc<Http>,
}

/// A page of messages: those this client can read.
#[derive(Clone, Debug, PartialEq)]
pub struct Messages {
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// How many of the page have grown beyond this client.
    pub unreadable: usize,
    /// What to ask for `before`, for older ones.
    pub next: Option<MessageId>,
}

/// What to read of a session's log.
#[derive(Clone, Copy, Debug, Default)]
pub struct EventsQuery {
    /// Only events after it.
    pub since: Option<Position>,
    /// Only these types.
    pub types: Option<TypeSet>,
    /// At most so many; the server's default if none.
    pub limit: Option<usize>,
    /// Whether the hashes of the chain come along.
    pub hashes: bool,
}

impl Client {
    /// A client of the server at `base_url` (`http://host:port`), speaking for the default owner.
    pub fn new(base_url: &str) -> Result<Self, Error> {
        Ok(Self {
            http: Arc::new(Http::new(base_url.parse()?, Vec::new())),
        })
    }

    /// The same server, speaking for `owner`.
    #[must_use]
    pub fn speaking_for(&self, owner: &Owner) -> Self {
        let headers = vec![
            ("x-tenant-id", owner.tenant.to_string()),
            ("x-turnwire-principal", owner.principal.to_string()),
        ];
        Self {
            http: Arc::new(Http::new(self.http.address().clone(), headers)),
        }
    }

    pub(crate) fn http(&self) -> &Http {
        &self.http
    }

    /// Makes a session.
    pub async fn create(&self, new: &session::Create) -> Result<session::Created, Error> {
        self.post("/sessions", new).await
    }

    /// The owner's sessions, newest first.
    pub async fn sessions(
        &self,
        before: Option<SessionId>,
        limit: Option<usize>,
    ) -> Result<session::List, Error> {
        self.get(&page("/sessions", before, limit)).await
    }

    /// A session, with a token that opens one connection to its stream.
    pub async fn attach(&self, id: SessionId) -> Result<session::Attached, Error> {
        self.get(&format!("/sessions/{id}")).await
    }

    /// Deletes a session and all that belongs to it.
    pub async fn delete(&self, id: SessionId) -> Result<(), Error> {
        let path = format!("/sessions/{id}");
        let answer = self
            .http
            .exchange(Method::DELETE, &path, None, None)
            .await?;
        succeeded(&answer)
    }

    /// Submits a turn.
    pub async fn submit(
        &self,
        id: SessionId,
        submit: &turn::Submit,
    ) -> Result<turn::Accepted, Error> {
        self.post(&format!("/sessions/{id}/turns"), submit).await
    }

    /// Submits a turn that is started once, however often this is called with the same key.
    pub async fn submit_once(
        &self,
        id: SessionId,
        submit: &turn::Submit,
        key: &Key,
    ) -> Result<turn::Accepted, Error> {
        let path = format!("/sessions/{id}/turns");
        self.post_with(&path, submit, Some(key)).await
    }

    /// A session's turns, newest first.
    pub async fn turns(
        &self,
        id: SessionId,
        before: Option<TurnId>,
        limit: Option<usize>,
    ) -> Result<turn::List, Error> {
        self.get(&page(&format!("/sessions/{id}/turns"), before, limit))
            .await
    }

    /// A turn.
    pub async fn turn(&self, id: TurnId) -> Result<turn::Turn, Error> {
        self.get(&format!("/turns/{id}")).await
    }

    /// The registry of statuses: what agents may emit as progress, and its words.
    pub async fn status_events(&self) -> Result<status_event::StatusEvents, Error> {
        self.get("/status-events").await
    }

    /// A page of a session's messages, walking back from `before`.
    pub async fn messages(
        &self,
        id: SessionId,
        before: Option<MessageId>,
        limit: Option<usize>,
    ) -> Result<Messages, Error> {
        #[derive(Deserialize)]
        struct List {
            messages: Vec<Value>,
            next: Option<MessageId>,
        }
        let path = page(&format!("/sessions/{id}/messages"), before, limit);
        let list: List = self.get(&path).await?;
        let (messages, unreadable) = readable(list.messages);
        Ok(Messages {
            messages,
            unreadable,
            next: list.next,
        })
    }

    /// A page of a session's log, byte for byte.
    pub async fn events(&self, id: SessionId, query: EventsQuery) -> Result<event::List, Error> {
        let mut path = format!("/sessions/{id}/events?hashes={}", query.hashes);
        if let Some(since) = query.since {
            let _ = write!(path, "&since={since}");
        }
        if let Some(types) = query.types {
            let names: Vec<_> = types.iter().map(|kind| kind.name()).collect();
            let _ = write!(path, "&types={}", names.join(","));
        }
        if let Some(limit) = query.limit {
            let _ = write!(path, "&limit={limit}");
        }
        self.get(&path).await
    }

    /// A session's workers, newest first.
    pub async fn workers(
        &self,
        id: SessionId,
        before: Option<SessionId>,
        limit: Option<usize>,
    ) -> Result<session::Workers, Error> {
        self.get(&page(&format!("/sessions/{id}/workers"), before, limit))
            .await
    }

    /// A session's tool calls, newest first.
    pub async fn tool_calls(
        &self,
        id: SessionId,
        before: Option<ToolUseId>,
        limit: Option<usize>,
    ) -> Result<tool_call::List, Error> {
        self.get(&page(&format!("/sessions/{id}/tool-calls"), before, limit))
            .await
    }

    /// A session's model calls, newest first.
    pub async fn llm_calls(
        &self,
        id: SessionId,
        before: Option<CallId>,
        limit: Option<usize>,
    ) -> Result<llm_call::List, Error> {
        self.get(&page(&format!("/sessions/{id}/llm-calls"), before, limit))
            .await
    }

    /// What the tenant's model calls came to, by day and model; the server's default where a day is
    /// not given.
    pub async fn usage(&self, from: Option<Day>, to: Option<Day>) -> Result<usage::Report, Error> {
        let mut query = Vec::new();
        query.extend(from.map(|from| format!("from={from}")));
        query.extend(to.map(|to| format!("to={to}")));
        let mark = if query.is_empty() { "" } else { "?" };
        self.get(&format!("/usage{mark}{}", query.join("&"))).await
    }

    /// Records what a person thought of a message or a turn.
    pub async fn feedback(
        &self,
        id: SessionId,
        said: &feedback::Feedback,
    ) -> Result<feedback::Recorded, Error> {
        self.post(&format!("/sessions/{id}/feedback"), said).await
    }

    /// Whether the process lives.
    pub async fn healthz(&self) -> Result<health::Health, Error> {
        self.get("/healthz").await
    }

    /// Whether the server takes work.
    pub async fn readyz(&self) -> Result<health::Health, Error> {
        self.get("/readyz").await
    }

    /// The metrics, as Prometheus text.
    pub async fn metrics(&self) -> Result<String, Error> {
        let answer = self.http.exchange(Method::GET, "/metrics", None, None);
        let answer = answer.await?;
        succeeded(&answer)?;
        Ok(String::from_utf8_lossy(&answer.body).into_owned())
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        read(&self.http.exchange(Method::GET, path, None, None).await?)
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Error> {
        self.post_with(path, body, None).await
    }

    async fn post_with<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        key: Option<&Key>,
    ) -> Result<T, Error> {
        let body = serde_json::to_vec(body).expect("request bodies are plain data");
        let answer = self.http.exchange(Method::POST, path, Some(body), key);
        read(&answer.await?)
    }
}

fn page(path: &str, before: Option<impl Display>, limit: Option<usize>) -> String {
    let mut query = Vec::new();
    query.extend(before.map(|before| format!("before={before}")));
    query.extend(limit.map(|limit| format!("limit={limit}")));
    if query.is_empty() {
        return path.to_owned();
    }
    format!("{path}?{}", query.join("&"))
}

fn succeeded(answer: &Answer) -> Result<(), Error> {
    if answer.status.is_success() {
        return Ok(());
    }
    let status = answer.status.as_u16();
    let Ok(mut fields) = serde_json::from_slice::<Map<String, Value>>(&answer.body) else {
        return Err(Error::Status(status));
    };
    // RFC 9457 lets every member be absent; only the status is sure.
    for name in ["type", "title", "detail", "code", "trace_id"] {
        fields.entry(name).or_insert_with(|| json!(""));
    }
    fields.insert("status".to_owned(), json!(status));
    match serde_json::from_value(Value::Object(fields)) {
        Ok(problem) => Err(Error::Problem(Box::new(problem))),
        Err(_) => Err(Error::Status(status)),
    }
}

pub(crate) fn read<T: DeserializeOwned>(answer: &Answer) -> Result<T, Error> {
    succeeded(answer)?;
    serde_json::from_slice(&answer.body).map_err(|error| Error::Answer(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::StatusCode;
    use turnwire_wire::problem::Code;

    fn answer(status: u16, body: &'static str) -> Answer {
        Answer {
            status: StatusCode::from_u16(status).expect("a status"),
            body: body.into(),
        }
    }

    #[test]
    fn r_37_a_refusal_keeps_its_code_and_its_extras() {
        let body = r#"{"code":"turn_in_flight","detail":"Wait.","turn_id":"01T","new":1}"#;
        let error = succeeded(&answer(409, body)).expect_err("a refusal");
        assert_eq!(error.code(), Some(Code::TurnInFlight));
        let Error::Problem(problem) = error else {
            panic!("{error:?}");
        };
        assert_eq!(
            (problem.status, &problem.extra["turn_id"]),
            (409, &json!("01T"))
        );
        let error = succeeded(&answer(502, "<html>")).expect_err("a proxy's page");
        assert!(matches!(error, Error::Status(502)), "{error:?}");
    }

    #[test]
    fn pages_ask_only_for_what_is_given() {
        assert_eq!(page("/a", None::<u8>, None), "/a");
        assert_eq!(page("/a", Some(7), None), "/a?before=7");
        assert_eq!(page("/a", Some(7), Some(2)), "/a?before=7&limit=2");
    }
}

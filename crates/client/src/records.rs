//! The stored records of one session: messages, events, tool calls, model calls and workers.
//!
//! All lists are pages: pass `next` of one page as `before` of the request for the next one.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::Value;
use turnwire_event::{CallId, Message, MessageId, Position, SessionId, ToolUseId, TypeSet};
use turnwire_wire::rest::{event, llm_call, session, tool_call};

use crate::error::Error;
use crate::frame::parse_messages;
use crate::http::HttpConnections;
use crate::rest::page_path;

/// Reads the records of one session; from [`Client::records`](crate::Client::records).
#[derive(Clone, Copy, Debug)]
pub struct SessionRecords<'a> {
    http: &'a HttpConnections,
    session: SessionId,
}

/// A page of messages, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct MessagePage {
    /// The messages whose format this client knows.
    pub messages: Vec<Message>,
    /// The number of messages of the page whose format this client does not know.
    pub unreadable: usize,
    /// The `before` of the page with older messages, or `None` on the last page.
    pub next: Option<MessageId>,
}

/// Selects the events of a page of [`SessionRecords::events`].
#[derive(Clone, Copy, Debug, Default)]
pub struct EventPageQuery {
    /// Only events after this position; from the beginning if `None`.
    pub since: Option<Position>,
    /// Only these types; all types if `None`.
    pub types: Option<TypeSet>,
    /// The largest number of events; the default of the server if `None`.
    pub limit: Option<usize>,
    /// True to include the hash of every event.
    pub hashes: bool,
}

impl<'a> SessionRecords<'a> {
    pub(crate) fn new(http: &'a HttpConnections, session: SessionId) -> Self {
        Self { http, session }
    }

    /// A [`MessagePage`] before `before`, or the newest page if `None`.
    pub async fn messages(
        &self,
        before: Option<MessageId>,
        limit: Option<usize>,
    ) -> Result<MessagePage, Error> {
        #[derive(Deserialize)]
        struct MessageList {
            messages: Vec<Value>,
            next: Option<MessageId>,
        }
        let path = page_path(&self.path("messages"), before, limit);
        let list: MessageList = self.http.get(&path).await?;
        let (messages, unreadable) = parse_messages(list.messages);
        Ok(MessagePage {
            messages,
            unreadable,
            next: list.next,
        })
    }

    /// A page of the log, each event with the bytes that the log stores.
    pub async fn events(&self, query: EventPageQuery) -> Result<event::EventList, Error> {
        let mut path = format!("{}?hashes={}", self.path("events"), query.hashes);
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
        self.http.get(&path).await
    }

    /// The workers that turns of the session have started, newest first.
    pub async fn workers(
        &self,
        before: Option<SessionId>,
        limit: Option<usize>,
    ) -> Result<session::WorkerList, Error> {
        let path = page_path(&self.path("workers"), before, limit);
        self.http.get(&path).await
    }

    /// The tool calls of the session, newest first.
    pub async fn tool_calls(
        &self,
        before: Option<ToolUseId>,
        limit: Option<usize>,
    ) -> Result<tool_call::ToolCallList, Error> {
        let path = page_path(&self.path("tool-calls"), before, limit);
        self.http.get(&path).await
    }

    /// The model calls of the session, newest first.
    pub async fn llm_calls(
        &self,
        before: Option<CallId>,
        limit: Option<usize>,
    ) -> Result<llm_call::LlmCallList, Error> {
        let path = page_path(&self.path("llm-calls"), before, limit);
        self.http.get(&path).await
    }

    fn path(&self, collection: &str) -> String {
        format!("/sessions/{}/{collection}", self.session)
    }
}

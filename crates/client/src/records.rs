//! The stored records of one session: messages, events, tool calls, model calls and workers.
//!
//! All lists are pages: pass `next` of one page as `before` of the request for the next one.

use std::fmt::Display;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use turnwire_event::{CallId, Message, MessageId, Position, SessionId, ToolUseId, TypeSet};
use turnwire_wire::rest::event::EventList;
use turnwire_wire::rest::llm_call::LlmCallList;
use turnwire_wire::rest::session::WorkerList;
use turnwire_wire::rest::tool_call::ToolCallList;

use crate::error::Result;
use crate::frame::parse_messages;
use crate::http::HttpConnections;
use crate::rest::{page_path, with_query};

/// Reads the records of one session; from [`Client::records`](crate::Client::records).
#[derive(Clone, Copy, Debug)]
pub struct SessionRecords<'a> {
    pub(crate) http: &'a HttpConnections,
    pub(crate) session: SessionId,
}

/// A page of [`SessionRecords::messages`], oldest first.
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

impl SessionRecords<'_> {
    /// A [`MessagePage`] before `before`, or the newest page if `None`.
    pub async fn messages(
        &self,
        before: Option<MessageId>,
        limit: Option<usize>,
    ) -> Result<MessagePage> {
        #[derive(Deserialize)]
        struct MessageList {
            messages: Vec<Value>,
            next: Option<MessageId>,
        }
        let list: MessageList = self.page("messages", before, limit).await?;
        let (messages, unreadable) = parse_messages(list.messages);
        Ok(MessagePage {
            messages,
            unreadable,
            next: list.next,
        })
    }

    /// A message with all of its content: a list leaves the content of large ones
    /// [out](Message::omitted_bytes).
    pub async fn message(&self, id: MessageId) -> Result<Message> {
        let path = self.path("messages");
        self.http.get(&format!("{path}/{id}")).await
    }

    /// A page of the log that [`EventPageQuery`] selects, each event with the bytes that the log
    /// stores.
    pub async fn events(&self, query: EventPageQuery) -> Result<EventList> {
        let names = |types: TypeSet| types.iter().map(|kind| kind.name()).collect::<Vec<_>>();
        let parameters = [
            ("hashes", Some(query.hashes.to_string())),
            ("since", query.since.map(|since| since.to_string())),
            ("types", query.types.map(|types| names(types).join(","))),
            ("limit", query.limit.map(|limit| limit.to_string())),
        ];
        let path = with_query(&self.path("events"), parameters);
        self.http.get(&path).await
    }

    /// The workers that turns of the session have started, newest first.
    pub async fn workers(
        &self,
        before: Option<SessionId>,
        limit: Option<usize>,
    ) -> Result<WorkerList> {
        self.page("workers", before, limit).await
    }

    /// The tool calls of the session, newest first.
    pub async fn tool_calls(
        &self,
        before: Option<ToolUseId>,
        limit: Option<usize>,
    ) -> Result<ToolCallList> {
        self.page("tool-calls", before, limit).await
    }

    /// The model calls of the session, newest first.
    pub async fn llm_calls(
        &self,
        before: Option<CallId>,
        limit: Option<usize>,
    ) -> Result<LlmCallList> {
        self.page("llm-calls", before, limit).await
    }

    async fn page<T: DeserializeOwned>(
        &self,
        collection: &str,
        before: Option<impl Display>,
        limit: Option<usize>,
    ) -> Result<T> {
        let path = page_path(&self.path(collection), before, limit);
        self.http.get(&path).await
    }

    fn path(&self, collection: &str) -> String {
        format!("/sessions/{}/{collection}", self.session)
    }
}

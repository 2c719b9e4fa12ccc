//! The rows of a session as the REST API returns them, in pages from the newest back: from a server,
//! or from a data folder.

use anyhow::{Context as _, Result};
use turnwire_event::code::TurnState;
use turnwire_event::{CallId, Message, MessageId, Position, Seq, SessionId, ToolUseId, TurnId};
use turnwire_log::{CallRecords as _, PageBounds, SessionRecords as _, TurnRecords as _};
use turnwire_wire::rest::llm_call::LlmCall;
use turnwire_wire::rest::tool_call::ToolCallRecord;
use turnwire_wire::rest::turn::TurnInfo;

use super::{PAGE, PAGE_BYTES, SessionSource, tail};
use crate::session_file::record::SessionRecord;

/// A page, and where the next one begins.
type Page<T, K> = (Vec<T>, Option<K>);

/// Where a page of messages ends: the position of a message's end, which only a folder has, and its id.
pub(crate) type MessageCursor = (Option<Position>, MessageId);

const BOUNDS: PageBounds = PageBounds {
    rows: PAGE,
    bytes: PAGE_BYTES,
};

/// The rows of one session.
pub(crate) struct RowSource<'a> {
    source: &'a SessionSource,
    session: SessionId,
}

impl<'a> RowSource<'a> {
    pub(crate) fn new(source: &'a SessionSource, session: SessionId) -> Self {
        Self { source, session }
    }

    /// The number of an event that is written by now: the last one in a folder, the end of the newest
    /// turn, or the event before its start, on a server.
    pub(crate) async fn last_seq(&self) -> Result<Seq> {
        match self.source {
            SessionSource::Folder(store) => Ok(tail(store, self.session)?.seq),
            SessionSource::Server(client) => {
                let list = client.turns(self.session, None, Some(1)).await?;
                let newest = list
                    .turns
                    .first()
                    .filter(|turn| turn.state != TurnState::Queued);
                let last = newest.map(|turn| {
                    let end = turn.terminal.as_ref().and_then(|terminal| terminal.id);
                    end.unwrap_or(turn.position).seq
                });
                Ok(last.unwrap_or_default())
            }
        }
    }

    /// The row of the session.
    pub(crate) async fn session(&self) -> Result<SessionRecord> {
        match self.source {
            SessionSource::Folder(store) => {
                let row = store.session(self.session)?;
                let mut row = row.context("there is no such session in this folder")?;
                Ok(SessionRecord {
                    metadata: std::mem::take(&mut row.metadata),
                    session: row.into(),
                })
            }
            // Without the attach token of the response.
            SessionSource::Server(client) => {
                let attached = client.attach(self.session).await?;
                Ok(SessionRecord {
                    session: attached.session,
                    metadata: attached.metadata,
                })
            }
        }
    }

    pub(crate) async fn turns(&self, before: Option<TurnId>) -> Result<Page<TurnInfo, TurnId>> {
        match self.source {
            SessionSource::Folder(store) => {
                let page = store.turns(self.session, before, BOUNDS)?;
                let next = page.rows.last().filter(|_| page.has_more).map(|row| row.id);
                Ok((page.rows.into_iter().map(Into::into).collect(), next))
            }
            SessionSource::Server(client) => {
                let list = client.turns(self.session, before, None).await?;
                Ok((list.turns, list.next))
            }
        }
    }

    pub(crate) async fn tool_calls(
        &self,
        before: Option<ToolUseId>,
    ) -> Result<Page<ToolCallRecord, ToolUseId>> {
        match self.source {
            SessionSource::Folder(store) => {
                let page = store.tool_calls(self.session, before, BOUNDS)?;
                let last = page.rows.last().filter(|_| page.has_more);
                let next = last.map(|row| row.tool_use_id);
                Ok((page.rows.into_iter().map(Into::into).collect(), next))
            }
            SessionSource::Server(client) => {
                let records = client.records(self.session);
                let list = records.tool_calls(before, None).await?;
                Ok((list.tool_calls, list.next))
            }
        }
    }

    pub(crate) async fn llm_calls(&self, before: Option<CallId>) -> Result<Page<LlmCall, CallId>> {
        match self.source {
            SessionSource::Folder(store) => {
                let page = store.llm_calls(self.session, before, BOUNDS)?;
                let last = page.rows.last().filter(|_| page.has_more);
                let next = last.map(|row| row.call_id);
                Ok((page.rows.into_iter().map(Into::into).collect(), next))
            }
            SessionSource::Server(client) => {
                let records = client.records(self.session);
                let list = records.llm_calls(before, None).await?;
                Ok((list.llm_calls, list.next))
            }
        }
    }

    /// Messages, each with the position of its end and its scope as far as the source has them.
    pub(crate) async fn messages(
        &self,
        before: Option<MessageCursor>,
    ) -> Result<Page<(Message, Option<Position>, String), MessageCursor>> {
        match self.source {
            SessionSource::Folder(store) => {
                let before = before.and_then(|(at, id)| Some((at?, id)));
                let page = store.scoped_messages(self.session, before, BOUNDS)?;
                let last = page.rows.last().filter(|_| page.has_more);
                let next = last.map(|row| (Some(row.completed), row.message.id));
                let rows = page.rows.into_iter();
                let rows = rows.map(|row| (row.message, Some(row.completed), row.scope));
                Ok((rows.collect(), next))
            }
            SessionSource::Server(client) => {
                let records = client.records(self.session);
                let mut page = records.messages(before.map(|(_, id)| id), None).await?;
                for message in &mut page.messages {
                    if message.omitted_bytes.is_some() {
                        *message = records.message(message.id).await?;
                    }
                }
                let next = page.next.map(|id| (None, id));
                let rows = page.messages.into_iter().rev();
                let rows = rows.map(|message| (message, None, String::new()));
                Ok((rows.collect(), next))
            }
        }
    }
}

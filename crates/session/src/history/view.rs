//! The history that the agents of one turn read: the orchestrator's messages from the cache, and a
//! sub-agent's own messages from the store when it asks for them.

use std::sync::Arc;

use turnwire_event::port::{BoxFuture, HistoryBudget, HistoryError, HistoryReader};
use turnwire_event::{Message, Position, SessionId};
use turnwire_log::{MessageRecords, MessageView, PageBounds, ReadError};

use super::select::{
    SizedMessage, newest_complete_turns, newest_messages, page_bounds, recent_turns, with_size,
};
use crate::error::Error;
use crate::store_read::ReadShare;

/// The budget of notes for all sub-agents, which a sub-agent reads beside its own messages: a long
/// exchange must not push the notes out. Sixteen notes are those of four sub-agents that write as
/// many as they may, and 16 KiB are eight of the longest: a small part of a model's context.
const NOTES_BUDGET: HistoryBudget = HistoryBudget {
    messages_max: 16,
    bytes_max: 16 * 1024,
};

/// The [`HistoryReader`] of one turn. The turn's own input is the last message of its orchestrator.
pub(crate) struct HistoryView {
    messages: Vec<SizedMessage>,
    /// The share of the owner's turns in the reads of `store`.
    share: ReadShare,
    store: Arc<dyn MessageRecords>,
    session: SessionId,
    /// The position of the session before the turn.
    before: Position,
}

impl HistoryView {
    /// The newest turns of `messages` within `budget`. Sub-agents read the store as it was at
    /// `before`.
    pub(crate) fn new(
        messages: Vec<SizedMessage>,
        budget: HistoryBudget,
        (share, store): (ReadShare, Arc<dyn MessageRecords>),
        (session, before): (SessionId, Position),
    ) -> Self {
        Self {
            messages: newest_complete_turns(messages, budget),
            share,
            store,
            session,
            before,
        }
    }

    /// The number of messages that the orchestrator reads.
    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }
}

impl HistoryReader for HistoryView {
    fn recent(&self, budget: HistoryBudget) -> BoxFuture<'_, Result<Vec<Message>, HistoryError>> {
        let messages = without_sizes(newest_complete_turns(self.messages.clone(), budget));
        Box::pin(async move { Ok(messages) })
    }

    fn of_agent(
        &self,
        agent: &str,
        budget: HistoryBudget,
    ) -> BoxFuture<'_, Result<Vec<Message>, HistoryError>> {
        let (share, store) = (self.share.clone(), self.store.clone());
        let (session, before) = (self.session, self.before);
        let agent = agent.to_owned();
        Box::pin(async move {
            let read = share.read(store, move |store| {
                let at = (session, before);
                let bounds = page_bounds(NOTES_BUDGET);
                let notes = store.messages(session, MessageView::Agents, before, None, bounds)?;
                let own = whole_turns(store, at, MessageView::Agent(&agent), budget)?;
                Ok::<_, Error>((notes.rows, own))
            });
            let (notes, own) = read.await.map_err(|error| {
                tracing::error!(%session, %error, "could not read the history of a sub-agent");
                HistoryError
            })?;
            let notes = notes.into_iter().map(with_size);
            let mut messages = newest_messages(notes.collect(), NOTES_BUDGET);
            let own = own.into_iter().map(with_size);
            messages.extend(recent_turns(own.collect(), budget));
            Ok(without_sizes(messages))
        })
    }
}

/// The newest messages of `view` within `budget`, without those of a turn whose first messages
/// exceed it.
fn whole_turns(
    store: &dyn MessageRecords,
    (session, upto): (SessionId, Position),
    view: MessageView<'_>,
    budget: HistoryBudget,
) -> Result<Vec<Message>, ReadError> {
    let page = store.messages(session, view, upto, None, page_bounds(budget))?;
    let mut messages = page.rows;
    let Some(oldest) = messages.first().filter(|_| page.has_more) else {
        return Ok(messages);
    };
    // The page may begin inside its oldest turn: the message before it says whether it does.
    let (turn, bounds) = (oldest.turn_id, PageBounds { rows: 1, bytes: 0 });
    let older = store.messages(session, view, upto, Some(oldest.id), bounds)?;
    if older.rows.last().is_some_and(|older| older.turn_id == turn) {
        messages.retain(|message| message.turn_id != turn);
    }
    Ok(messages)
}

fn without_sizes(messages: Vec<SizedMessage>) -> Vec<Message> {
    let messages = messages.iter();
    messages
        .map(|(message, _)| Message::clone(message))
        .collect()
}

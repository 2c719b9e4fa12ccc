//! The history that the agents of one turn read: the orchestrator's messages from the cache, and a
//! sub-agent's own messages from the store when it asks for them.

use std::sync::Arc;

use turnwire_event::port::{BoxFuture, HistoryBudget, HistoryError, HistoryReader};
use turnwire_event::{Message, Position, SessionId};
use turnwire_log::{MessageRecords, MessageView};

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
    /// The share of the session's owner in the reads of `store`.
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
                let read =
                    |view, budget| store.messages(session, view, before, None, page_bounds(budget));
                let notes = read(MessageView::Agents, NOTES_BUDGET)?;
                Ok::<_, Error>((notes, read(MessageView::Agent(&agent), budget)?))
            });
            let (notes, stored) = read.await.map_err(|error| {
                tracing::error!(%session, %error, "could not read the history of a sub-agent");
                HistoryError
            })?;
            // The page may begin inside its oldest turn.
            let is_cut = stored.has_more;
            let oldest_turn = stored.rows.first().map(|message| message.turn_id);
            let complete_turns = stored
                .rows
                .into_iter()
                .filter(|message| !is_cut || Some(message.turn_id) != oldest_turn);
            let notes = notes.rows.into_iter().map(with_size);
            let mut messages = newest_messages(notes.collect(), NOTES_BUDGET);
            messages.extend(recent_turns(
                complete_turns.map(with_size).collect(),
                budget,
            ));
            Ok(without_sizes(messages))
        })
    }
}

fn without_sizes(messages: Vec<SizedMessage>) -> Vec<Message> {
    let messages = messages.iter();
    messages
        .map(|(message, _)| Message::clone(message))
        .collect()
}

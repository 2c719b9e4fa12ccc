//! What one turn is told of its session's past: the orchestrator's messages, which are at hand,
//! and those of a sub-agent, which are read when it asks.

use std::sync::Arc;

use turnwire_event::port::{BoxFuture, History, HistoryBudget, HistoryError};
use turnwire_event::{Message, Position, SessionId};
use turnwire_log::{Store, View};

use crate::error::Error;
use crate::history::cache::{SizedMessage, fit, newest, recent_turns, weigh, weighed};
use crate::store_read::blocking;

/// What a sub-agent is shown of the notes for all of them, beside its own messages, so that no
/// long exchange pushes out what was to be remembered. Sixteen notes are those of four sub-agents
/// that keep all they may, and 16 KiB are eight of the longest: a small part of what a model reads.
const NOTES: HistoryBudget = HistoryBudget {
    messages_max: 16,
    bytes_max: 16 * 1024,
};

/// The past of a turn; its own input is the last of the orchestrator's messages.
pub struct HistoryView {
    messages: Vec<SizedMessage>,
    store: Arc<dyn Store>,
    session: SessionId,
    /// Where the session stood before the turn.
    before: Position,
}

impl HistoryView {
    /// The messages of a turn that fit the budget. What sub-agents are shown is read from the
    /// store, as it was at `before`.
    pub fn new(
        messages: Vec<SizedMessage>,
        budget: HistoryBudget,
        store: Arc<dyn Store>,
        (session, before): (SessionId, Position),
    ) -> Self {
        Self {
            messages: fit(messages, budget),
            store,
            session,
            before,
        }
    }

    /// How many messages the orchestrator is shown.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}

impl History for HistoryView {
    fn recent(&self, budget: HistoryBudget) -> BoxFuture<'_, Result<Vec<Message>, HistoryError>> {
        let shown = plain(fit(self.messages.clone(), budget));
        Box::pin(async move { Ok(shown) })
    }

    fn of_agent(
        &self,
        agent: &str,
        budget: HistoryBudget,
    ) -> BoxFuture<'_, Result<Vec<Message>, HistoryError>> {
        let (store, session, before) = (self.store.clone(), self.session, self.before);
        let agent = agent.to_owned();
        // One more than may be shown tells whether the oldest turn read is whole.
        let limit = budget.messages_max.saturating_add(1);
        Box::pin(async move {
            let read = blocking(store, move |store| {
                let read = |view, limit| store.messages(session, view, before, None, limit);
                let noted = read(View::Agents, NOTES.messages_max)?;
                Ok::<_, Error>((noted, read(View::Agent(&agent), limit)?))
            });
            let (noted, stored) = read.await.map_err(|error| {
                tracing::error!(%session, %error, "a sub-agent's history could not be read");
                HistoryError
            })?;
            let cut = stored.len() == limit;
            let oldest = stored.first().map(|stored| stored.message.turn_id);
            let whole = stored
                .into_iter()
                .map(|stored| stored.message)
                .filter(|message| !cut || Some(message.turn_id) != oldest);
            let mut shown = newest(weighed(noted).collect(), NOTES);
            shown.extend(recent_turns(whole.map(weigh).collect(), budget));
            Ok(plain(shown))
        })
    }
}

fn plain(messages: Vec<SizedMessage>) -> Vec<Message> {
    let messages = messages.into_iter();
    messages
        .map(|(message, _)| Message::clone(&message))
        .collect()
}

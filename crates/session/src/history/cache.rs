//! The messages of earlier turns, cached while their session is in memory: messages never change,
//! so each turn reads only those stored since the turn before.

use std::collections::VecDeque;

use turnwire_event::port::HistoryBudget;
use turnwire_event::{Message, Position};
use turnwire_log::{MessageView, Store};

use super::select::{SizedMessage, page_bounds, with_size, with_sizes};
use crate::error::Error;

/// The newest messages of a session that its orchestrator reads.
#[derive(Default)]
pub(crate) struct HistoryCache {
    /// The position that the cache is complete up to; `None` before the first read.
    upto: Option<Position>,
    messages: VecDeque<SizedMessage>,
    /// Messages of the session up to `upto`, cached or not.
    total: u64,
    /// The smallest budget that messages were trimmed to; `None` if all messages are cached.
    trimmed_to: Option<HistoryBudget>,
}

impl HistoryCache {
    /// Reads the messages that were completed up to `upto`, and [`trim`](Self::trim)s the cache to
    /// `budget`.
    pub(crate) fn refresh(
        &mut self,
        store: &dyn Store,
        session: turnwire_event::SessionId,
        upto: Position,
        budget: HistoryBudget,
    ) -> Result<(), Error> {
        let upto = self.upto.map_or(upto, |cached| cached.max(upto));
        let view = MessageView::Orchestrator;
        match self.upto.filter(|_| self.covers(budget)) {
            Some(after) if after == upto => {}
            Some(after) => {
                let fresh = store.messages_since(session, view, after, upto)?;
                self.total += fresh.len() as u64;
                self.messages.extend(with_sizes(fresh));
            }
            None => {
                let total = store.message_count(session, view, upto)?;
                // The sizes of stored messages are those that `trim` counts.
                let newest = store.messages(session, view, upto, None, page_bounds(budget))?;
                self.trimmed_to = (newest.rows.len() as u64 != total).then_some(budget);
                self.total = total;
                self.messages = newest.rows.into_iter().map(with_size).collect();
            }
        }
        self.upto = Some(upto);
        self.trim(budget);
        Ok(())
    }

    /// Whether no message was trimmed that `budget` could select: the budget may have grown.
    fn covers(&self, budget: HistoryBudget) -> bool {
        self.trimmed_to.is_none_or(|trimmed| {
            budget.messages_max <= trimmed.messages_max && budget.bytes_max <= trimmed.bytes_max
        })
    }

    /// Removes the oldest messages beyond `budget`.
    pub(crate) fn trim(&mut self, budget: HistoryBudget) {
        let mut bytes: usize = self.messages.iter().map(|(_, bytes)| bytes).sum();
        while self.messages.len() > budget.messages_max
            || (bytes > budget.bytes_max && self.messages.len() > 1)
        {
            let Some((_, size)) = self.messages.pop_front() else {
                break;
            };
            bytes -= size;
            let trimmed = self.trimmed_to.unwrap_or(budget);
            self.trimmed_to = Some(HistoryBudget {
                messages_max: trimmed.messages_max.min(budget.messages_max),
                bytes_max: trimmed.bytes_max.min(budget.bytes_max),
            });
        }
    }

    /// Appends the messages of a turn that started at `from` and ended at `upto`: all messages of
    /// the session in between. Does nothing if the cache was refreshed meanwhile.
    pub(crate) fn append_turn(&mut self, from: Position, upto: Position, messages: Vec<Message>) {
        if self.upto == Some(from) {
            self.upto = Some(upto);
            self.total += messages.len() as u64;
            self.messages.extend(messages.into_iter().map(with_size));
        }
    }

    /// Whether the cache holds every message up to `upto` that `budget` could select.
    pub(crate) fn is_current(&self, upto: Position, budget: HistoryBudget) -> bool {
        self.upto == Some(upto) && self.covers(budget)
    }

    /// Marks the cache of a session without messages as complete up to `at`.
    pub(crate) fn start_empty(&mut self, at: Position) {
        if self.total == 0 {
            self.upto = Some(at);
        }
    }

    /// The cached messages, oldest first, and the number of messages in the session.
    pub(crate) fn messages(&self) -> (Vec<SizedMessage>, u64) {
        (self.messages.iter().cloned().collect(), self.total)
    }
}

//! The messages of earlier turns, cached while their session is in memory and the budget of all caches
//! has room: messages never change, so a turn that follows another in peace reads nothing.

use std::collections::VecDeque;
use std::sync::Arc;

use turnwire_event::port::HistoryBudget;
use turnwire_event::{Message, Position, SessionId};
use turnwire_log::{MessageView, Store};

use super::budget::{CacheReservation, memory_bytes};
use super::select::{SizedMessage, page_bounds, with_size};
use crate::error::Error;

/// Messages oldest first, and the number of messages in their session.
pub(crate) type CountedMessages = (Vec<SizedMessage>, u64);

/// The newest messages of a session that its orchestrator reads.
pub(crate) struct HistoryCache {
    /// The position that the cache is complete up to; `None` if the store must be read.
    upto: Option<Position>,
    messages: VecDeque<CachedMessage>,
    /// Messages of the session up to `upto`, cached or not.
    total: u64,
    /// The smallest budget that messages were trimmed to; `None` if all messages are cached.
    trimmed_to: Option<HistoryBudget>,
    /// The memory of `messages`.
    reserved: CacheReservation,
}

struct CachedMessage {
    sized: SizedMessage,
    memory: usize,
}

impl CachedMessage {
    fn new(message: impl Into<Arc<Message>>) -> Self {
        let message = message.into();
        let memory = memory_bytes(&message);
        let sized = with_size(message);
        Self { sized, memory }
    }
}

impl HistoryCache {
    /// A cache that knows nothing of its session.
    pub(crate) fn new(reserved: CacheReservation) -> Self {
        Self {
            upto: None,
            messages: VecDeque::new(),
            total: 0,
            trimmed_to: None,
            reserved,
        }
    }

    /// Reads the messages that were completed up to `upto`, and returns the newest within `budget`.
    /// They are cached if they fit.
    pub(crate) fn refresh(
        &mut self,
        store: &dyn Store,
        session: SessionId,
        upto: Position,
        budget: HistoryBudget,
    ) -> Result<CountedMessages, Error> {
        let upto = self.upto.map_or(upto, |cached| cached.max(upto));
        let view = MessageView::Orchestrator;
        if self.upto != Some(upto) || !self.covers(budget) {
            // Within the budget, and not all since the last read: a turn may have stored any number.
            // The sizes of stored messages are those that `trim` counts.
            let newest = store.messages(session, view, upto, None, page_bounds(budget))?;
            let total = match newest.has_more {
                true => store.message_count(session, view, upto)?,
                false => newest.rows.len() as u64,
            };
            self.trimmed_to = newest.has_more.then_some(budget);
            self.total = total;
            self.messages = newest.rows.into_iter().map(CachedMessage::new).collect();
        }
        self.upto = Some(upto);
        self.trim(budget);
        let messages = self.messages();
        self.reserve();
        Ok(messages)
    }

    /// Whether no message was trimmed that `budget` could select: the budget may have grown.
    fn covers(&self, budget: HistoryBudget) -> bool {
        self.trimmed_to.is_none_or(|trimmed| {
            budget.messages_max <= trimmed.messages_max && budget.bytes_max <= trimmed.bytes_max
        })
    }

    /// Removes the oldest messages beyond `budget`.
    fn trim(&mut self, budget: HistoryBudget) {
        let sizes = self.messages.iter().map(|cached| cached.sized.1);
        let mut bytes: usize = sizes.sum();
        while self.messages.len() > budget.messages_max
            || (bytes > budget.bytes_max && self.messages.len() > 1)
        {
            let Some(oldest) = self.messages.pop_front() else {
                break;
            };
            bytes -= oldest.sized.1;
            let trimmed = self.trimmed_to.unwrap_or(budget);
            self.trimmed_to = Some(HistoryBudget {
                messages_max: trimmed.messages_max.min(budget.messages_max),
                bytes_max: trimmed.bytes_max.min(budget.bytes_max),
            });
        }
    }

    /// Counts the messages in the budget of all sessions, or forgets them if they do not fit.
    fn reserve(&mut self) {
        let memory = self.messages.iter().map(|cached| cached.memory);
        if !self.reserved.resize(memory.sum()) {
            self.upto = None;
            self.messages = VecDeque::new();
            self.trimmed_to = None;
            // `total` stays: the session is not one without messages.
            self.reserved.resize(0);
        }
    }

    /// Appends the messages of a turn that started at `from` and ended at `upto`, all messages of
    /// the session in between, and removes the oldest beyond `budget`. Does nothing if the cache was
    /// cleared or refreshed meanwhile.
    pub(crate) fn append_turn(
        &mut self,
        (from, upto): (Position, Position),
        messages: Vec<Arc<Message>>,
        budget: HistoryBudget,
    ) {
        if self.upto == Some(from) {
            self.upto = Some(upto);
            self.total += messages.len() as u64;
            let messages = messages.into_iter();
            self.messages.extend(messages.map(CachedMessage::new));
            self.trim(budget);
            self.reserve();
        }
    }

    /// The messages within `budget`, if the cache holds every message up to `upto` that it could
    /// select.
    pub(crate) fn current(
        &mut self,
        upto: Position,
        budget: HistoryBudget,
    ) -> Option<CountedMessages> {
        if self.upto != Some(upto) || !self.covers(budget) {
            return None;
        }
        self.trim(budget);
        let messages = self.messages();
        self.reserve();
        Some(messages)
    }

    /// Marks the cache of a session without messages as complete up to `at`.
    pub(crate) fn start_empty(&mut self, at: Position) {
        if self.total == 0 {
            self.upto = Some(at);
        }
    }

    fn messages(&self) -> CountedMessages {
        let messages = self.messages.iter().map(|cached| cached.sized.clone());
        (messages.collect(), self.total)
    }
}

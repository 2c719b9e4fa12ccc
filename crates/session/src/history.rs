//! A session's past as a model is shown it: whole turns, newest that fit the budget.
//!
//! What was read once is kept, as long as the session is in memory: messages never change, so
//! the next turn reads only what came since.

use std::collections::VecDeque;
use std::sync::Arc;

use turnwire_event::port::{BoxFuture, History, HistoryBudget, HistoryError};
use turnwire_event::{Message, Position, Role};
use turnwire_log::Store;

use crate::error::Error;

/// A message and the bytes of its content.
pub(crate) type Weighed = (Arc<Message>, usize);

/// Messages shown to a turn; its own input is the last.
pub struct Past {
    messages: Vec<Weighed>,
}

impl Past {
    /// The messages of a turn that fit the budget.
    pub fn new(messages: Vec<Weighed>, budget: HistoryBudget) -> Self {
        Self {
            messages: fit(messages, budget),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}

impl History for Past {
    fn recent(&self, budget: HistoryBudget) -> BoxFuture<'_, Result<Vec<Message>, HistoryError>> {
        let shown = fit(self.messages.clone(), budget);
        Box::pin(async move {
            Ok(shown
                .into_iter()
                .map(|(message, _)| Message::clone(&message))
                .collect())
        })
    }
}

/// The newest messages of a session, kept between turns.
#[derive(Default)]
pub struct Memory {
    upto: Option<Position>,
    messages: VecDeque<Weighed>,
    total: u64,
}

impl Memory {
    /// Reads what became whole up to `upto`; of all it keeps the newest that a budget could show.
    pub fn refresh(
        &mut self,
        store: &dyn Store,
        session: turnwire_event::SessionId,
        upto: Position,
        budget: HistoryBudget,
    ) -> Result<(), Error> {
        let fresh = match self.upto {
            Some(after) if after >= upto => {
                self.forget(budget);
                return Ok(());
            }
            Some(after) => {
                let fresh = store.messages_since(session, after, upto)?;
                self.total += fresh.len() as u64;
                fresh
            }
            None => {
                self.total = store.message_count(session, upto)?;
                store.messages(session, upto, None, budget.messages_max)?
            }
        };
        self.upto = Some(upto);
        self.messages
            .extend(fresh.into_iter().map(|stored| weigh(stored.message)));
        self.forget(budget);
        Ok(())
    }

    /// Lets go of what no budget shows.
    pub fn forget(&mut self, budget: HistoryBudget) {
        let mut bytes: usize = self.messages.iter().map(|(_, bytes)| bytes).sum();
        while self.messages.len() > budget.messages_max
            || (bytes > budget.bytes_max && self.messages.len() > 1)
        {
            let Some((_, gone)) = self.messages.pop_front() else {
                break;
            };
            bytes -= gone;
        }
    }

    /// Takes in the messages of a turn that was begun at `from` and ended at `upto`, all of them
    /// and no others; unless someone has read on meanwhile.
    pub fn learn(&mut self, from: Position, upto: Position, messages: Vec<Message>) {
        if self.upto == Some(from) {
            self.upto = Some(upto);
            self.total += messages.len() as u64;
            self.messages.extend(messages.into_iter().map(weigh));
        }
    }

    /// Whether nothing needs to be read to know everything up to `upto`.
    pub fn knows(&self, upto: Position) -> bool {
        self.upto == Some(upto)
    }

    /// Starts with a session that has no messages yet.
    pub fn begin(&mut self, at: Position) {
        if self.total == 0 {
            self.upto = Some(at);
        }
    }

    /// What is kept, oldest first, and how many messages there are in all.
    pub fn recall(&self) -> (Vec<Weighed>, u64) {
        (self.messages.iter().cloned().collect(), self.total)
    }
}

/// A message with the bytes of its content.
pub fn weigh(message: Message) -> Weighed {
    let bytes = serde_json::to_vec(&message.content).map_or(0, |json| json.len());
    (Arc::new(message), bytes)
}

/// The newest messages that fit, from the start of a turn: a cut inside a turn could split a
/// tool call from its result. The newest turn is always kept, however large.
fn fit(mut messages: Vec<Weighed>, budget: HistoryBudget) -> Vec<Weighed> {
    let mut total = 0;
    let mut keep_from = messages.len();
    for (at, (message, bytes)) in messages.iter().enumerate().rev() {
        total += bytes;
        let newest = keep_from == messages.len();
        if !newest && (messages.len() - at > budget.messages_max || total > budget.bytes_max) {
            break;
        }
        if message.role == Role::User {
            keep_from = at;
        }
    }
    messages.drain(..keep_from);
    messages
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::{
        ContentBlock, MessageId, MessageStatus, SessionId, Timestamp, TurnId, Ulid,
    };

    fn message(id: u128, role: Role) -> Message {
        Message {
            id: MessageId(Ulid(id)),
            session_id: SessionId(Ulid(1)),
            turn_id: TurnId(Ulid(1)),
            role,
            status: MessageStatus::Complete,
            content: vec![ContentBlock::text("0123456789")],
            model: None,
            stop_reason: None,
            usage: None,
            created_at: Timestamp::from_millis(0),
            metadata: serde_json::Map::new(),
        }
    }

    #[test]
    fn whole_turns_only() {
        use Role::{Assistant, Tool, User};
        let roles = [User, Assistant, User, Assistant, Tool, Assistant, User];
        let past: Vec<_> = roles
            .into_iter()
            .enumerate()
            .map(|(at, role)| weigh(message(at as u128, role)))
            .collect();
        let kept = |messages_max, bytes_max| -> Vec<u128> {
            let fitted = fit(
                past.clone(),
                HistoryBudget {
                    messages_max,
                    bytes_max,
                },
            );
            fitted.iter().map(|(message, _)| message.id.0.0).collect()
        };
        assert_eq!(kept(100, 10_000), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(kept(5, 10_000), [2, 3, 4, 5, 6]);
        assert_eq!(
            kept(4, 10_000),
            [6],
            "the turn of four messages does not fit whole"
        );
        assert_eq!(kept(100, 200), [2, 3, 4, 5, 6]);
        assert_eq!(kept(0, 0), [6], "the input itself is always shown");
    }
}

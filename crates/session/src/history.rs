//! A session's past as a model is shown it: whole turns, newest that fit the budget.

use turnwire_event::port::{BoxFuture, History, HistoryBudget, HistoryError};
use turnwire_event::{Message, Role};

/// Messages read when the turn was accepted; the turn's own input is the last.
pub struct Past {
    messages: Vec<Message>,
}

impl Past {
    /// The past of a turn.
    pub fn new(messages: Vec<Message>) -> Self {
        Self { messages }
    }
}

impl History for Past {
    fn recent(&self, budget: HistoryBudget) -> BoxFuture<'_, Result<Vec<Message>, HistoryError>> {
        Box::pin(async move { Ok(fit(self.messages.clone(), budget)) })
    }
}

/// The newest messages that fit, from the start of a turn: a cut inside a turn could split a
/// tool call from its result. The newest turn is always kept, however large.
pub fn fit(messages: Vec<Message>, budget: HistoryBudget) -> Vec<Message> {
    let mut bytes = 0;
    let mut keep_from = messages.len();
    for (at, message) in messages.iter().enumerate().rev() {
        bytes += serde_json::to_vec(&message.content).map_or(0, |json| json.len());
        let newest = keep_from == messages.len();
        if !newest && (messages.len() - at > budget.messages_max || bytes > budget.bytes_max) {
            break;
        }
        if message.role == Role::User {
            keep_from = at;
        }
    }
    messages.into_iter().skip(keep_from).collect()
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

    fn ids(messages: &[Message]) -> Vec<u128> {
        messages.iter().map(|m| m.id.0.0).collect()
    }

    #[test]
    fn whole_turns_only() {
        use Role::{Assistant, Tool, User};
        let roles = [User, Assistant, User, Assistant, Tool, Assistant, User];
        let past: Vec<_> = roles
            .into_iter()
            .enumerate()
            .map(|(at, role)| message(at as u128, role))
            .collect();
        let kept = |messages_max, bytes_max| {
            ids(&fit(
                past.clone(),
                HistoryBudget {
                    messages_max,
                    bytes_max,
                },
            ))
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

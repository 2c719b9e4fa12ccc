//! A session's past as a model is shown it: whole turns, newest that fit the budget.
//!
//! What was read once is kept, as long as the session is in memory: messages never change, so
//! the next turn reads only what came since.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use turnwire_event::port::HistoryBudget;
use turnwire_event::row::StoredMessage;
use turnwire_event::{Message, Position, Role, TurnId};
use turnwire_log::{Store, View};

use crate::error::Error;

/// A message and the bytes of what a model is shown of it.
pub type SizedMessage = (Arc<Message>, usize);

/// The newest messages that the orchestrator is shown of a session, kept between turns.
#[derive(Default)]
pub struct HistoryCache {
    upto: Option<Position>,
    messages: VecDeque<SizedMessage>,
    total: u64,
    /// The budget that something was left out for; none if everything is here.
    covered: Option<HistoryBudget>,
}

impl HistoryCache {
    /// Reads what became whole up to `upto`; of all it keeps the newest that a budget could show.
    pub fn refresh(
        &mut self,
        store: &dyn Store,
        session: turnwire_event::SessionId,
        upto: Position,
        budget: HistoryBudget,
    ) -> Result<(), Error> {
        let upto = self.upto.map_or(upto, |known| known.max(upto));
        let view = View::Orchestrator;
        match self.upto.filter(|_| self.covers(budget)) {
            Some(after) if after == upto => {}
            Some(after) => {
                let fresh = store.messages_since(session, view, after, upto)?;
                self.total += fresh.len() as u64;
                self.messages.extend(weighed(fresh));
            }
            None => {
                let total = store.message_count(session, view, upto)?;
                let newest = store.messages(session, view, upto, None, budget.messages_max)?;
                self.covered = (newest.len() as u64 != total).then_some(budget);
                self.total = total;
                self.messages = weighed(newest).collect();
            }
        }
        self.upto = Some(upto);
        self.forget(budget);
        Ok(())
    }

    /// Whether nothing was left out that the budget could show: it may have grown since.
    fn covers(&self, budget: HistoryBudget) -> bool {
        self.covered.is_none_or(|covered| {
            budget.messages_max <= covered.messages_max && budget.bytes_max <= covered.bytes_max
        })
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
            let covered = self.covered.unwrap_or(budget);
            self.covered = Some(HistoryBudget {
                messages_max: covered.messages_max.min(budget.messages_max),
                bytes_max: covered.bytes_max.min(budget.bytes_max),
            });
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

    /// Whether nothing needs to be read to know everything up to `upto` that the budget shows.
    pub fn knows(&self, upto: Position, budget: HistoryBudget) -> bool {
        self.upto == Some(upto) && self.covers(budget)
    }

    /// Starts with a session that has no messages yet.
    pub fn begin(&mut self, at: Position) {
        if self.total == 0 {
            self.upto = Some(at);
        }
    }

    /// What is kept, oldest first, and how many messages there are in all.
    pub fn recall(&self) -> (Vec<SizedMessage>, u64) {
        (self.messages.iter().cloned().collect(), self.total)
    }
}

/// Messages as they are stored, with the bytes of their content.
pub(crate) fn weighed(stored: Vec<StoredMessage>) -> impl Iterator<Item = SizedMessage> {
    stored.into_iter().map(|stored| weigh(stored.message))
}

/// A message with the bytes of its content, and of what its provider is sent back with it.
pub fn weigh(message: Message) -> SizedMessage {
    let mut bytes = serde_json::to_vec(&message.content).map_or(0, |json| json.len());
    if !message.kept.is_empty() {
        bytes += serde_json::to_vec(&message.kept).map_or(0, |json| json.len());
    }
    (Arc::new(message), bytes)
}

/// The newest turns that fit, each whole: a cut inside a turn could split a tool call from its
/// result. The newest turn is always kept, however large.
pub(crate) fn fit(messages: Vec<SizedMessage>, budget: HistoryBudget) -> Vec<SizedMessage> {
    let mut turns = by_turn(messages);
    let mut keep_from = turns.len();
    let (mut count, mut bytes) = (0, 0);
    for (at, turn) in turns.iter().enumerate().rev() {
        count += turn.len();
        bytes += turn.iter().map(|(_, bytes)| bytes).sum::<usize>();
        let newest = at + 1 == turns.len();
        let fits = count <= budget.messages_max && bytes <= budget.bytes_max;
        // What it began with may be forgotten already: also the turn that a leg goes on with.
        let whole = turn.first().is_some_and(|(first, _)| {
            first.role == Role::User && (newest || resumes(first).is_none())
        });
        if !whole || !(newest || fits) {
            break;
        }
        keep_from = at;
    }
    turns.drain(keep_from..).flatten().collect()
}

/// The newest turns that fit, of messages that begin with the first of a turn. None is too new
/// to be left out: the turn at hand is not among them.
pub(crate) fn recent_turns(
    messages: Vec<SizedMessage>,
    budget: HistoryBudget,
) -> Vec<SizedMessage> {
    let mut turns = by_turn(messages);
    let mut keep_from = turns.len();
    let (mut count, mut bytes) = (0, 0);
    for (at, turn) in turns.iter().enumerate().rev() {
        count += turn.len();
        bytes += turn.iter().map(|(_, bytes)| bytes).sum::<usize>();
        if count > budget.messages_max || bytes > budget.bytes_max {
            break;
        }
        keep_from = at;
    }
    turns.drain(keep_from..).flatten().collect()
}

/// The newest messages that fit, each for itself.
pub(crate) fn newest(messages: Vec<SizedMessage>, budget: HistoryBudget) -> Vec<SizedMessage> {
    let mut bytes = 0;
    let newest = messages.into_iter().rev().take(budget.messages_max);
    let mut fitting: Vec<_> = newest
        .take_while(|(_, weight)| {
            bytes += weight;
            bytes <= budget.bytes_max
        })
        .collect();
    fitting.reverse();
    fitting
}

/// What names the paused turn in the message that stands for the answers to its questions.
pub(crate) const RESUMES: &str = "resumes";

/// The turn that a message goes on with: only one that says nothing can stand for answers.
fn resumes(message: &Message) -> Option<TurnId> {
    if message.role != Role::User || !message.content.is_empty() {
        return None;
    }
    message.metadata.get(RESUMES)?.as_str()?.parse().ok()
}

/// The messages turn by turn. A turn that was withdrawn while another ran has its message among
/// the other's: a model is shown one after the other. A turn that goes on with another is shown
/// with it or not at all: the calls of its tools are there.
fn by_turn(messages: Vec<SizedMessage>) -> Vec<Vec<SizedMessage>> {
    let mut at = HashMap::new();
    let mut turns: Vec<Vec<SizedMessage>> = Vec::new();
    for weighed in messages {
        let before = resumes(&weighed.0).and_then(|turn| at.get(&turn).copied());
        let index = before.unwrap_or(turns.len());
        let index = *at.entry(weighed.0.turn_id).or_insert(index);
        match turns.get_mut(index) {
            Some(turn) => turn.push(weighed),
            None => turns.push(vec![weighed]),
        }
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::{
        ContentBlock, MessageId, MessageStatus, SessionId, Timestamp, TurnId, Ulid,
    };

    fn message(id: u128, turn: u128, role: Role) -> Message {
        Message {
            kept: turnwire_event::Kept::default(),
            id: MessageId(Ulid(id)),
            session_id: SessionId(Ulid(1)),
            turn_id: TurnId(Ulid(turn)),
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

    /// The ids of what is kept of messages given by turn and role.
    fn kept(past: &[(u128, Role)], messages_max: usize, bytes_max: usize) -> Vec<u128> {
        let messages = past.iter().enumerate();
        let messages = messages.map(|(at, (turn, role))| weigh(message(at as u128, *turn, *role)));
        let budget = HistoryBudget {
            messages_max,
            bytes_max,
        };
        let fitted = fit(messages.collect(), budget);
        fitted.iter().map(|(message, _)| message.id.0.0).collect()
    }

    #[test]
    fn whole_turns_only() {
        use Role::{Assistant, Tool, User};
        let past = [
            (1, User),
            (1, Assistant),
            (2, User),
            (2, Assistant),
            (2, Tool),
            (2, Assistant),
            (3, User),
        ];
        assert_eq!(kept(&past, 100, 10_000), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(kept(&past, 5, 10_000), [2, 3, 4, 5, 6]);
        assert_eq!(
            kept(&past, 4, 10_000),
            [6],
            "the turn of four messages does not fit whole"
        );
        assert_eq!(kept(&past, 100, 200), [2, 3, 4, 5, 6]);
        assert_eq!(kept(&past, 0, 0), [6], "the input itself is always shown");
    }

    #[test]
    fn a_message_that_came_between_is_shown_after() {
        use Role::{Assistant, Tool, User};
        let past = [
            (1, User),
            (1, Assistant),
            (2, User),
            (1, Tool),
            (1, Assistant),
            (3, User),
        ];
        assert_eq!(kept(&past, 100, 10_000), [0, 1, 3, 4, 2, 5]);
        assert_eq!(kept(&past, 2, 10_000), [2, 5]);
        assert_eq!(
            kept(&past[2..], 100, 10_000),
            [3],
            "a result without its call is not shown, nor what came before it"
        );
    }

    #[test]
    fn a_leg_is_shown_with_the_turn_it_goes_on_with_or_not_at_all() {
        use Role::{Assistant, Tool, User};
        let past = [(1, User), (1, Assistant), (2, User), (2, Tool), (3, User)];
        let shown_from = |from, messages_max, said: Vec<ContentBlock>| {
            let messages = past
                .iter()
                .enumerate()
                .skip(from)
                .map(|(at, (turn, role))| {
                    let mut message = message(at as u128, *turn, *role);
                    if at == 2 {
                        let paused = TurnId(Ulid(1)).to_string();
                        message.metadata.insert(RESUMES.to_owned(), paused.into());
                        message.content.clone_from(&said);
                    }
                    weigh(message)
                });
            let budget = HistoryBudget {
                messages_max,
                bytes_max: 10_000,
            };
            let fitted = fit(messages.collect(), budget);
            let ids = fitted.iter().map(|(message, _)| message.id.0.0);
            ids.collect::<Vec<_>>()
        };
        let shown = |messages_max, said| shown_from(0, messages_max, said);
        assert_eq!(shown(5, Vec::new()), [0, 1, 2, 3, 4]);
        assert_eq!(shown(4, Vec::new()), [4]);
        // Its paused turn was forgotten before: the leg alone would begin with a result.
        assert_eq!(shown_from(2, 5, Vec::new()), [4]);
        // Whoever says something goes on with nothing, whatever a client has put beside it.
        assert_eq!(shown(4, vec![ContentBlock::text("hi")]), [2, 3, 4]);
    }
}

//! Selecting the messages of earlier turns that a model reads: complete turns, newest first, within
//! a [`HistoryBudget`].

use std::collections::HashMap;
use std::sync::Arc;

use turnwire_event::port::HistoryBudget;
use turnwire_event::{Message, Role, TurnId};
use turnwire_log::PageBounds;

/// A message and the bytes that it takes of a [`HistoryBudget`].
pub(crate) type SizedMessage = (Arc<Message>, usize);

/// The bounds of a read of the newest messages: older ones would exceed `budget`.
pub(crate) fn page_bounds(budget: HistoryBudget) -> PageBounds {
    PageBounds {
        rows: budget.messages_max,
        bytes: budget.bytes_max,
    }
}

/// Adds the size to a message: the bytes of its content and of the provider data that is sent
/// back to its provider.
pub(crate) fn with_size(message: impl Into<Arc<Message>>) -> SizedMessage {
    let message = message.into();
    let mut bytes = serde_json::to_vec(&message.content).map_or(0, |json| json.len());
    if !message.provider_state.is_empty() {
        bytes += serde_json::to_vec(&message.provider_state).map_or(0, |json| json.len());
    }
    (message, bytes)
}

/// The newest turns within the budget, each complete: a cut inside a turn could separate a tool
/// call from its result. The newest turn is always included, however large.
pub(crate) fn newest_complete_turns(
    messages: Vec<SizedMessage>,
    budget: HistoryBudget,
) -> Vec<SizedMessage> {
    newest_turns(messages, budget, |turn, is_newest, within_budget| {
        // Its first messages may be trimmed already, and so may the paused turn that it resumes.
        let is_complete = turn.first().is_some_and(|(first, _)| {
            first.role == Role::User && (is_newest || resumed_turn(first).is_none())
        });
        is_complete && (is_newest || within_budget)
    })
}

/// The newest turns within the budget, of `messages` that start at the boundary of a turn. Unlike
/// [`newest_complete_turns`] the result may be empty: the current turn is not among them.
pub(crate) fn recent_turns(
    messages: Vec<SizedMessage>,
    budget: HistoryBudget,
) -> Vec<SizedMessage> {
    newest_turns(messages, budget, |_, _, within_budget| within_budget)
}

/// The newest turns up to the first, from the end, that `selects` refuses. `selects` gets a turn,
/// whether it is the newest, and whether it and all newer ones are within the budget.
fn newest_turns(
    messages: Vec<SizedMessage>,
    budget: HistoryBudget,
    selects: impl Fn(&[SizedMessage], bool, bool) -> bool,
) -> Vec<SizedMessage> {
    let mut turns = group_by_turn(messages);
    let mut first_selected = turns.len();
    let (mut count, mut bytes) = (0, 0);
    for (at, turn) in turns.iter().enumerate().rev() {
        count += turn.len();
        bytes += turn.iter().map(|(_, bytes)| bytes).sum::<usize>();
        let within_budget = count <= budget.messages_max && bytes <= budget.bytes_max;
        if !selects(turn, at + 1 == turns.len(), within_budget) {
            break;
        }
        first_selected = at;
    }
    turns.drain(first_selected..).flatten().collect()
}

/// The newest messages within the budget, regardless of turns.
pub(crate) fn newest_messages(
    messages: Vec<SizedMessage>,
    budget: HistoryBudget,
) -> Vec<SizedMessage> {
    let mut bytes = 0;
    let newest = messages.into_iter().rev().take(budget.messages_max);
    let mut selected: Vec<_> = newest
        .take_while(|(_, size)| {
            bytes += size;
            bytes <= budget.bytes_max
        })
        .collect();
    selected.reverse();
    selected
}

/// The metadata field that names the paused turn, in the empty user message of the turn that
/// resumes it.
pub(crate) const RESUMES: &str = "resumes";

/// The paused turn that the turn of `message` resumes. Only a user message without content
/// resumes a turn: clients may put any metadata beside content.
fn resumed_turn(message: &Message) -> Option<TurnId> {
    if message.role != Role::User || !message.content.is_empty() {
        return None;
    }
    message.metadata.get_str(RESUMES)?.parse().ok()
}

/// Groups messages by turn. The message of a turn that was withdrawn while another ran stands
/// between the other's messages: the model reads one turn after the other. A turn that resumes
/// another is in the group of that turn, which contains the calls of its tools.
fn group_by_turn(messages: Vec<SizedMessage>) -> Vec<Vec<SizedMessage>> {
    let mut index_of_turn = HashMap::new();
    let mut turns: Vec<Vec<SizedMessage>> = Vec::new();
    for sized in messages {
        let paused = resumed_turn(&sized.0).and_then(|turn| index_of_turn.get(&turn).copied());
        let index = paused.unwrap_or(turns.len());
        let index = *index_of_turn.entry(sized.0.turn_id).or_insert(index);
        match turns.get_mut(index) {
            Some(turn) => turn.push(sized),
            None => turns.push(vec![sized]),
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
            provider_state: turnwire_event::ProviderState::default(),
            id: MessageId(Ulid(id)),
            session_id: SessionId(Ulid(1)),
            turn_id: TurnId(Ulid(turn)),
            role,
            status: MessageStatus::Complete,
            content: vec![ContentBlock::text("0123456789")],
            model: None,
            omitted_bytes: None,
            stop_reason: None,
            usage: None,
            created_at: Timestamp::from_millis(0),
            metadata: turnwire_event::JsonObject::default(),
        }
    }

    /// The ids of the selected messages, of `past` by turn and role.
    fn selected_ids(past: &[(u128, Role)], messages_max: usize, bytes_max: usize) -> Vec<u128> {
        let messages = past.iter().enumerate();
        let messages =
            messages.map(|(at, (turn, role))| with_size(message(at as u128, *turn, *role)));
        let budget = HistoryBudget {
            messages_max,
            bytes_max,
        };
        let selected = newest_complete_turns(messages.collect(), budget);
        selected.iter().map(|(message, _)| message.id.0.0).collect()
    }

    #[test]
    fn only_complete_turns_are_selected() {
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
        assert_eq!(selected_ids(&past, 100, 10_000), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(selected_ids(&past, 5, 10_000), [2, 3, 4, 5, 6]);
        assert_eq!(
            selected_ids(&past, 4, 10_000),
            [6],
            "the turn of four messages exceeds the budget"
        );
        assert_eq!(selected_ids(&past, 100, 200), [2, 3, 4, 5, 6]);
        assert_eq!(
            selected_ids(&past, 0, 0),
            [6],
            "the input itself is always selected"
        );
    }

    #[test]
    fn withdrawn_turn_follows_the_turn_it_interleaves() {
        use Role::{Assistant, Tool, User};
        let past = [
            (1, User),
            (1, Assistant),
            (2, User),
            (1, Tool),
            (1, Assistant),
            (3, User),
        ];
        assert_eq!(selected_ids(&past, 100, 10_000), [0, 1, 3, 4, 2, 5]);
        assert_eq!(selected_ids(&past, 2, 10_000), [2, 5]);
        assert_eq!(
            selected_ids(&past[2..], 100, 10_000),
            [3],
            "a result without its call is left out, with all before it"
        );
    }

    #[test]
    fn resumed_turn_is_selected_only_with_its_paused_turn() {
        use Role::{Assistant, Tool, User};
        let past = [(1, User), (1, Assistant), (2, User), (2, Tool), (3, User)];
        let selected_from = |from, messages_max, content: Vec<ContentBlock>| {
            let messages = past
                .iter()
                .enumerate()
                .skip(from)
                .map(|(at, (turn, role))| {
                    let mut message = message(at as u128, *turn, *role);
                    if at == 2 {
                        let paused = TurnId(Ulid(1)).to_string();
                        message.metadata.set(RESUMES, &paused.into());
                        message.content.clone_from(&content);
                    }
                    with_size(message)
                });
            let budget = HistoryBudget {
                messages_max,
                bytes_max: 10_000,
            };
            let selected = newest_complete_turns(messages.collect(), budget);
            let ids = selected.iter().map(|(message, _)| message.id.0.0);
            ids.collect::<Vec<_>>()
        };
        let selected = |messages_max, content| selected_from(0, messages_max, content);
        assert_eq!(selected(5, Vec::new()), [0, 1, 2, 3, 4]);
        assert_eq!(selected(4, Vec::new()), [4]);
        // Its paused turn was trimmed before: alone, the turn would start with a tool result.
        assert_eq!(selected_from(2, 5, Vec::new()), [4]);
        // A message with content resumes nothing, whatever metadata the client set.
        assert_eq!(selected(4, vec![ContentBlock::text("hi")]), [2, 3, 4]);
    }
}

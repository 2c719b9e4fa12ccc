//! What was said, as a model may be shown it: every tool use has its result and every result its
//! use, and nothing is empty, because a model's vendor refuses a conversation that breaks this.
//!
//! Half pairs are normal: a cancel leaves uses without results, and the history's budget may cut
//! between the two. So are empty blocks: they hold the place of a block a model has skipped.
//! Data and components are for people: a model is shown what its tools said, not those.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use turnwire_event::port::TurnInput;
use turnwire_event::{ContentBlock, Message, Role, ToolUseId};
use turnwire_model::Said;

use crate::resources::agent_resources::invocation_of;

/// The history, with the words of the turn at hand at its end.
pub(crate) fn said(history: Vec<Message>, input: &TurnInput) -> Vec<Arc<Said>> {
    let heard = |message: &Message| message.turn_id == input.turn_id && message.role == Role::User;
    // Words larger than the budget are not in the history, and are what the turn is about.
    let missing = !history.iter().any(heard);
    let mut said: Vec<Arc<Said>> = history
        .into_iter()
        .map(|message| Arc::new(heard_again(message)))
        .collect();
    if missing {
        said.push(Arc::new(Said::new(Role::User, input.content.clone())));
    }
    said
}

/// A stored message, with what its provider wants back.
fn heard_again(message: Message) -> Said {
    Said {
        role: message.role,
        content: message.content,
        kept: message.kept,
    }
}

/// The messages of a sub-agent, one invocation after the other. Several that ran at once have
/// written theirs in between each other's; a model is shown each exchange whole.
pub(crate) fn exchanges(messages: Vec<Message>) -> Vec<Arc<Said>> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut placed: Vec<(usize, Arc<Said>)> = Vec::with_capacity(messages.len());
    for (n, message) in messages.into_iter().enumerate() {
        // The place of an invocation is that of its first message.
        let place = match invocation_of(&message) {
            Some(id) => *places.entry(id.to_owned()).or_insert(n),
            None => n,
        };
        placed.push((place, Arc::new(heard_again(message))));
    }
    // Stable: within an invocation the order is that of time.
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, said)| said).collect()
}

/// What of `said` can be shown: without half pairs, and without what says nothing.
pub(crate) fn paired(said: &[Arc<Said>]) -> Vec<Arc<Said>> {
    let mut uses: HashSet<ToolUseId> = HashSet::new();
    let mut results: HashSet<ToolUseId> = HashSet::new();
    for block in said.iter().flat_map(|said| &said.content) {
        match block {
            ContentBlock::ToolUse { id, .. } => uses.insert(*id),
            ContentBlock::ToolResult { tool_use_id, .. } => results.insert(*tool_use_id),
            _ => false,
        };
    }
    let whole = |block: &ContentBlock| match block {
        ContentBlock::ToolUse { id, .. } => results.contains(id),
        ContentBlock::ToolResult { tool_use_id, .. } => uses.contains(tool_use_id),
        ContentBlock::Text { text } => !text.is_empty(),
        ContentBlock::Thinking { .. } => true,
        // What a person is shown is not what was said.
        ContentBlock::Component { .. } | ContentBlock::Data { .. } => false,
    };
    let shown = said.iter().filter_map(|said| {
        let is_shown = |(n, block): (usize, &ContentBlock)| whole(block) || is_sealed(said, n);
        if said.content.iter().enumerate().all(is_shown) {
            return (!said.content.is_empty()).then(|| Arc::clone(said));
        }
        let left = only(said, |n, block| is_shown((n, block)));
        (!left.content.is_empty()).then(|| Arc::new(left))
    });
    shown.collect()
}

/// Whether an empty block stands for something that only its provider can read.
fn is_sealed(said: &Said, block: usize) -> bool {
    let empty = matches!(&said.content[block], ContentBlock::Text { text } if text.is_empty());
    let kept = u32::try_from(block).is_ok_and(|block| said.kept.blocks.contains_key(&block));
    empty && kept
}

/// What was said without the blocks that are not shown; what is kept moves with its block.
fn only(said: &Said, is_shown: impl Fn(usize, &ContentBlock) -> bool) -> Said {
    let mut left = Said::new(said.role, Vec::new());
    left.kept.by.clone_from(&said.kept.by);
    for (n, block) in (0_u32..).zip(&said.content) {
        if !is_shown(n as usize, block) {
            continue;
        }
        if let Some(data) = said.kept.blocks.get(&n) {
            let place = left.content.len() as u32;
            left.kept.blocks.insert(place, data.clone());
        }
        left.content.push(block.clone());
    }
    // What stands behind the last block stays behind it.
    let (from, to) = (said.content.len() as u32, left.content.len() as u32);
    for (n, data) in said.kept.blocks.range(from..) {
        left.kept.blocks.insert(n - from + to, data.clone());
    }
    left
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnwire_event::Ulid;

    use super::*;

    fn say(role: Role, content: Vec<ContentBlock>) -> Arc<Said> {
        Arc::new(Said::new(role, content))
    }

    fn tool_use(n: u128) -> ContentBlock {
        ContentBlock::ToolUse {
            id: ToolUseId(Ulid(n)),
            name: "echo".into(),
            input: json!({}),
        }
    }

    fn result(n: u128) -> ContentBlock {
        ContentBlock::ToolResult {
            tool_use_id: ToolUseId(Ulid(n)),
            content: json!("done"),
            is_error: false,
        }
    }

    #[test]
    fn half_pairs_and_empty_messages_are_left_out() {
        let words = say(Role::User, vec![ContentBlock::text("hi")]);
        let said = [
            say(Role::Tool, vec![result(1)]),
            Arc::clone(&words),
            say(
                Role::Assistant,
                vec![ContentBlock::text("both"), tool_use(2), tool_use(3)],
            ),
            say(Role::Tool, vec![result(3)]),
            say(Role::Assistant, vec![ContentBlock::text("")]),
            say(Role::Assistant, vec![tool_use(4)]),
            say(Role::Assistant, vec![]),
            say(
                Role::Tool,
                vec![ContentBlock::Data {
                    data_id: "data_1".into(),
                    data_type: "offer_list".into(),
                    key: json!({}),
                    items: json!([]),
                }],
            ),
        ];
        assert_eq!(
            paired(&said),
            [
                Arc::clone(&words),
                say(
                    Role::Assistant,
                    vec![ContentBlock::text("both"), tool_use(3)]
                ),
                say(Role::Tool, vec![result(3)]),
            ]
        );
        assert!(
            Arc::ptr_eq(&paired(&said)[0], &words),
            "whole messages are shared"
        );
    }
}

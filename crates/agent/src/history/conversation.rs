//! Messages in the form that models accept: every tool use has its result, every result its use,
//! and no message is empty. Providers refuse a conversation that breaks this.
//!
//! Half pairs are normal: a cancel leaves uses without results, and the history budget may cut
//! between the two. So are empty blocks: they hold the place of a block that a model has skipped.
//! Data and components are for users: a model is sent the results of its tools instead.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use turnwire_event::port::TurnInput;
use turnwire_event::{ContentBlock, Message, Role, ToolUseId};
use turnwire_model::ModelMessage;

use crate::resources::agent_context::ModelMessages;
use crate::resources::message_metadata::invocation_id;

/// The history with the user message of [`TurnInput`] at its end.
pub(crate) fn with_user_message(history: Vec<Message>, input: &TurnInput) -> ModelMessages {
    let is_current =
        |message: &Message| message.turn_id == input.turn_id && message.role == Role::User;
    // A user message larger than the history budget is not in the history, but the turn is about it.
    let is_missing = !history.iter().any(is_current);
    let missing = is_missing.then(|| ModelMessage::new(Role::User, input.content.clone()));
    let messages = history.into_iter().map(model_message).chain(missing);
    messages.map(Arc::new).collect()
}

/// A stored [`Message`] with the data that its provider wants back.
fn model_message(message: Message) -> ModelMessage {
    ModelMessage {
        role: message.role,
        content: message.content,
        provider_data: message.provider_state,
    }
}

/// The messages of a sub-agent, one invocation after the other. Invocations that ran at once have
/// stored their messages interleaved; a model is sent each exchange in one piece.
pub(crate) fn by_invocation(messages: Vec<Message>) -> ModelMessages {
    let mut first_index: HashMap<String, usize> = HashMap::new();
    let mut indexed: Vec<(usize, Arc<ModelMessage>)> = Vec::with_capacity(messages.len());
    for (index, message) in messages.into_iter().enumerate() {
        let sort_key = match invocation_id(&message) {
            Some(id) => *first_index.entry(id).or_insert(index),
            None => index,
        };
        indexed.push((sort_key, Arc::new(model_message(message))));
    }
    // The sort is stable: within an invocation the order of time stays.
    indexed.sort_by_key(|(sort_key, _)| *sort_key);
    indexed.into_iter().map(|(_, message)| message).collect()
}

/// `messages` without half pairs, empty blocks and content for users. Unchanged messages are
/// shared.
pub(crate) fn complete_pairs(messages: &[Arc<ModelMessage>]) -> ModelMessages {
    let mut uses: HashSet<ToolUseId> = HashSet::new();
    let mut results: HashSet<ToolUseId> = HashSet::new();
    for block in messages.iter().flat_map(|message| &message.content) {
        match block {
            ContentBlock::ToolUse { id, .. } => uses.insert(*id),
            ContentBlock::ToolResult { tool_use_id, .. } => results.insert(*tool_use_id),
            _ => false,
        };
    }
    let is_complete = |block: &ContentBlock| match block {
        ContentBlock::ToolUse { id, .. } => results.contains(id),
        ContentBlock::ToolResult { tool_use_id, .. } => uses.contains(tool_use_id),
        ContentBlock::Text { text } => !text.is_empty(),
        ContentBlock::Thinking { .. } => true,
        ContentBlock::Component { .. } | ContentBlock::Data { .. } => false,
    };
    let completed = messages.iter().filter_map(|message| {
        let is_sent = |(index, block): (usize, &ContentBlock)| {
            is_complete(block) || is_opaque(message, index)
        };
        if message.content.iter().enumerate().all(is_sent) {
            return (!message.content.is_empty()).then(|| Arc::clone(message));
        }
        let reduced = retain_blocks(message, |index, block| is_sent((index, block)));
        (!reduced.content.is_empty()).then(|| Arc::new(reduced))
    });
    completed.collect()
}

/// True if the block at `index` is empty and stands for data that only its provider can read.
fn is_opaque(message: &ModelMessage, index: usize) -> bool {
    let block = &message.content[index];
    let is_empty = matches!(block, ContentBlock::Text { text } if text.is_empty());
    let provider_data = &message.provider_data.blocks;
    is_empty && u32::try_from(index).is_ok_and(|index| provider_data.contains_key(&index))
}

/// `message` with only the blocks that `is_sent` accepts. Provider data moves with its block.
fn retain_blocks(
    message: &ModelMessage,
    is_sent: impl Fn(usize, &ContentBlock) -> bool,
) -> ModelMessage {
    let mut reduced = ModelMessage::new(message.role, Vec::new());
    reduced.provider_data.by = message.provider_data.by.clone();
    for (index, block) in (0_u32..).zip(&message.content) {
        if !is_sent(index as usize, block) {
            continue;
        }
        if let Some(data) = message.provider_data.blocks.get(&index) {
            let new_index = reduced.content.len() as u32;
            reduced.provider_data.blocks.insert(new_index, data.clone());
        }
        reduced.content.push(block.clone());
    }
    // Data behind the last block stays behind the last block.
    let (old_end, new_end) = (message.content.len() as u32, reduced.content.len() as u32);
    for (index, data) in message.provider_data.blocks.range(old_end..) {
        let new_index = index - old_end + new_end;
        reduced.provider_data.blocks.insert(new_index, data.clone());
    }
    reduced
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnwire_event::Ulid;

    use super::*;

    fn message(role: Role, content: Vec<ContentBlock>) -> Arc<ModelMessage> {
        Arc::new(ModelMessage::new(role, content))
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
    fn half_pairs_and_empty_messages_are_removed() {
        let user_message = message(Role::User, vec![ContentBlock::text("hi")]);
        let messages = [
            message(Role::Tool, vec![result(1)]),
            Arc::clone(&user_message),
            message(
                Role::Assistant,
                vec![ContentBlock::text("both"), tool_use(2), tool_use(3)],
            ),
            message(Role::Tool, vec![result(3)]),
            message(Role::Assistant, vec![ContentBlock::text("")]),
            message(Role::Assistant, vec![tool_use(4)]),
            message(Role::Assistant, vec![]),
            message(
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
            complete_pairs(&messages),
            [
                Arc::clone(&user_message),
                message(
                    Role::Assistant,
                    vec![ContentBlock::text("both"), tool_use(3)]
                ),
                message(Role::Tool, vec![result(3)]),
            ]
        );
        assert!(
            Arc::ptr_eq(&complete_pairs(&messages)[0], &user_message),
            "unchanged messages are shared"
        );
    }
}

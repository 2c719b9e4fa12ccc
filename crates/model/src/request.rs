//! The input of one model call: model, conversation and tools.
//!
//! Everything large is behind an [`Arc`], so that later calls of a turn do not copy the history.

use std::sync::Arc;

use serde_json::Value;
use turnwire_event::{ContentBlock, ProviderState, Role};

/// One message of a [`ModelRequest`]'s conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelMessage {
    /// Author of the message.
    pub role: Role,
    /// The message's content blocks, in order.
    pub content: Vec<ContentBlock>,
    /// Opaque data that the provider returned with this message ([`crate::Delta::ProviderData`])
    /// and expects back; keyed by block number, as in `content`.
    pub provider_data: ProviderState,
}

impl ModelMessage {
    /// A message without provider data.
    pub fn new(role: Role, content: Vec<ContentBlock>) -> Self {
        Self {
            role,
            content,
            provider_data: ProviderState::default(),
        }
    }

    /// The text of all text blocks, concatenated.
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(ContentBlock::as_text);
        texts.collect()
    }
}

/// The definition of a tool in a [`ModelRequest`].
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Name by which the model calls the tool.
    pub name: String,
    /// Tells the model when to use the tool.
    pub description: String,
    /// JSON Schema of the tool's input.
    pub input_schema: Value,
}

/// The input of one model call.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelRequest {
    /// The model, written `provider:model`.
    pub model: String,
    /// Id of the calling agent.
    pub agent: String,
    /// Number of this call within the agent's invocation, from 1.
    pub call: u32,
    /// Number of this attempt, from 1; counts on when a fallback model is tried.
    pub attempt: u32,
    /// BCP 47 tag of the language to answer in, such as `de-AT`; empty if unknown.
    pub locale: String,
    /// The system prompt; `None` for no system prompt.
    pub system: Option<String>,
    /// The conversation, oldest first. Every tool use has its result and every result its use.
    pub messages: Vec<Arc<ModelMessage>>,
    /// Tools that the model may call.
    pub tools: Arc<[ToolSpec]>,
}

impl ModelRequest {
    /// The text of the newest user message; empty if there is none.
    pub fn user_text(&self) -> String {
        let index = self.newest_user_index();
        index.map_or_else(String::new, |index| self.messages[index].text())
    }

    /// The content of the turn's newest tool result; `None` if no tool has finished in this turn.
    pub fn last_tool_result(&self) -> Option<String> {
        let messages = self.messages_of_turn().iter();
        let blocks = messages.flat_map(|message| &message.content);
        blocks.rev().find_map(|block| match block {
            ContentBlock::ToolResult { content, .. } => Some(value_text(content)),
            _ => None,
        })
    }

    /// The messages after the newest user message.
    pub(crate) fn messages_of_turn(&self) -> &[Arc<ModelMessage>] {
        let start = self.newest_user_index().map_or(0, |index| index + 1);
        &self.messages[start..]
    }

    fn newest_user_index(&self) -> Option<usize> {
        let mut messages = self.messages.iter();
        messages.rposition(|message| message.role == Role::User)
    }
}

/// A value as text: strings unchanged, any other value as JSON.
pub(crate) fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnwire_event::{ToolUseId, Ulid};

    use super::*;

    fn message(role: Role, content: Vec<ContentBlock>) -> Arc<ModelMessage> {
        Arc::new(ModelMessage::new(role, content))
    }

    fn result(content: Value) -> ContentBlock {
        ContentBlock::ToolResult {
            tool_use_id: ToolUseId(Ulid(1)),
            content,
            is_error: false,
        }
    }

    fn request(messages: Vec<Arc<ModelMessage>>) -> ModelRequest {
        ModelRequest {
            model: "scripted:default".into(),
            agent: "orchestrator".into(),
            call: 1,
            attempt: 1,
            locale: "en".into(),
            system: None,
            messages,
            tools: [].into(),
        }
    }

    #[test]
    fn user_text_is_that_of_the_newest_user_message() {
        let request = request(vec![
            message(Role::User, vec![ContentBlock::text("old")]),
            message(
                Role::User,
                vec![ContentBlock::text("ne"), ContentBlock::text("w")],
            ),
            message(Role::Assistant, vec![ContentBlock::text("answer")]),
        ]);
        assert_eq!(request.user_text(), "new");
    }

    #[test]
    fn last_tool_result_ignores_earlier_turns() {
        let mut messages = vec![
            message(Role::User, vec![ContentBlock::text("one")]),
            message(Role::Tool, vec![result(json!("stale"))]),
            message(Role::User, vec![ContentBlock::text("two")]),
        ];
        assert_eq!(request(messages.clone()).last_tool_result(), None);
        messages.push(message(Role::Tool, vec![result(json!("first"))]));
        messages.push(message(Role::Tool, vec![result(json!({"n": 2}))]));
        let last = request(messages).last_tool_result();
        assert_eq!(last.as_deref(), Some(r#"{"n":2}"#));
    }
}

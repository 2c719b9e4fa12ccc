//! What a model is asked: who asks, what was said so far, and which tools it may name.
//!
//! Everything large is behind an `Arc`, so that the n-th call of a turn copies no history.

use std::sync::Arc;

use serde_json::Value;
use turnwire_event::{ContentBlock, Kept, Role};

/// One thing that was said.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// By whom.
    pub role: Role,
    /// What.
    pub content: Vec<ContentBlock>,
    /// What the provider that said it wants back with it; blocks as in `content`.
    pub kept: Kept,
}

impl Said {
    /// Something that carries nothing for a provider.
    pub fn new(role: Role, content: Vec<ContentBlock>) -> Self {
        Self {
            role,
            content,
            kept: Kept::default(),
        }
    }

    /// The words of all text blocks, joined.
    pub fn text(&self) -> String {
        self.content
            .iter()
            .filter_map(ContentBlock::as_text)
            .collect()
    }
}

/// A tool as a model is told of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it is good for.
    pub description: String,
    /// The JSON Schema of its input.
    pub input_schema: Value,
}

/// One call of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The model, `provider:model`.
    pub model: String,
    /// The agent that asks.
    pub agent: String,
    /// Which call of this agent's invocation it is, from 1.
    pub call: u32,
    /// Which try of this call it is, from 1, whatever model was tried before.
    pub attempt: u32,
    /// The language tag the person is to be answered in, such as `de-AT`; empty if nobody said.
    pub locale: String,
    /// The standing instruction.
    pub system: Option<String>,
    /// What was said, oldest first; every tool use has its result and every result its use.
    pub messages: Vec<Arc<Said>>,
    /// The tools it may name.
    pub tools: Arc<[ToolSpec]>,
}

impl Request {
    /// What the person said last.
    pub fn user_text(&self) -> String {
        self.newest_user()
            .map(|at| self.messages[at].text())
            .unwrap_or_default()
    }

    /// What the newest tool result of the turn says; none if no tool has answered yet.
    pub fn last_tool_result(&self) -> Option<String> {
        let blocks = self.this_turn().iter().flat_map(|said| &said.content);
        blocks.rev().find_map(|block| match block {
            ContentBlock::ToolResult { content, .. } => Some(match content {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            }),
            _ => None,
        })
    }

    /// What was said after the person's newest words.
    pub(crate) fn this_turn(&self) -> &[Arc<Said>] {
        let from = self.newest_user().map_or(0, |at| at + 1);
        &self.messages[from..]
    }

    fn newest_user(&self) -> Option<usize> {
        self.messages
            .iter()
            .rposition(|said| said.role == Role::User)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnwire_event::{ToolUseId, Ulid};

    use super::*;

    fn said(role: Role, content: Vec<ContentBlock>) -> Arc<Said> {
        Arc::new(Said::new(role, content))
    }

    fn result(content: Value) -> ContentBlock {
        ContentBlock::ToolResult {
            tool_use_id: ToolUseId(Ulid(1)),
            content,
            is_error: false,
        }
    }

    fn request(messages: Vec<Arc<Said>>) -> Request {
        Request {
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
    fn the_newest_words_of_the_person_count() {
        let request = request(vec![
            said(Role::User, vec![ContentBlock::text("old")]),
            said(
                Role::User,
                vec![ContentBlock::text("ne"), ContentBlock::text("w")],
            ),
            said(Role::Assistant, vec![ContentBlock::text("answer")]),
        ]);
        assert_eq!(request.user_text(), "new");
    }

    #[test]
    fn only_results_of_the_turn_at_hand_count() {
        let mut messages = vec![
            said(Role::User, vec![ContentBlock::text("one")]),
            said(Role::Tool, vec![result(json!("stale"))]),
            said(Role::User, vec![ContentBlock::text("two")]),
        ];
        assert_eq!(request(messages.clone()).last_tool_result(), None);
        messages.push(said(Role::Tool, vec![result(json!("first"))]));
        messages.push(said(Role::Tool, vec![result(json!({"n": 2}))]));
        let last = request(messages).last_tool_result();
        assert_eq!(last.as_deref(), Some(r#"{"n":2}"#));
    }
}

//! The parts of a [`ModelRequest`] that a script tests: the user's text, the language, and the tool
//! results of the turn. Tool results are collected only if a rule needs them.

use std::cell::OnceCell;

use serde_json::Value;
use turnwire_event::{ContentBlock, Role};

use crate::request::{ModelRequest, value_text};

/// A tool result of the current turn, from [`ModelRequest::messages_of_turn`].
pub(crate) struct ToolAnswer {
    pub(crate) tool: String,
    /// The result; JSON inside a string is parsed, so that paths work on both.
    pub(crate) content: Value,
    /// The result as text, for patterns.
    pub(crate) text: String,
    pub(crate) is_error: bool,
    /// True if no message of the model follows it.
    pub(crate) is_newest: bool,
}

/// A [`ModelRequest`] with the values that conditions and placeholders use.
pub(crate) struct RequestView<'a> {
    pub(crate) request: &'a ModelRequest,
    pub(crate) user: String,
    answers: OnceCell<Vec<ToolAnswer>>,
}

impl<'a> RequestView<'a> {
    pub(crate) fn new(request: &'a ModelRequest) -> Self {
        Self {
            request,
            user: request.user_text(),
            answers: OnceCell::new(),
        }
    }

    /// The tool results of the turn, oldest first.
    pub(crate) fn tool_answers(&self) -> &[ToolAnswer] {
        self.answers.get_or_init(|| tool_answers(self.request))
    }

    /// The newest result of `tool`.
    pub(crate) fn tool_answer(&self, tool: &str) -> Option<&ToolAnswer> {
        let mut answers = self.tool_answers().iter();
        answers.rfind(|answer| answer.tool == tool)
    }

    /// Number of user messages in the request.
    pub(crate) fn turn_number(&self) -> usize {
        let messages = self.request.messages.iter();
        let messages = messages.filter(|message| message.role == Role::User);
        messages.count()
    }

    /// True if the request's language is `tag` or more specific: `de` matches `de-AT`.
    pub(crate) fn matches_locale(&self, tag: &str) -> bool {
        let locale = self.request.locale.as_bytes();
        let Some((prefix, suffix)) = locale.split_at_checked(tag.len()) else {
            return false;
        };
        prefix.eq_ignore_ascii_case(tag.as_bytes())
            && matches!(suffix.first(), None | Some(b'-' | b'_'))
    }
}

fn tool_answers(request: &ModelRequest) -> Vec<ToolAnswer> {
    let messages = request.messages_of_turn();
    let last_answer = messages
        .iter()
        .rposition(|message| message.role == Role::Assistant);
    let mut out = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        for block in &message.content {
            let ContentBlock::ToolResult {
                tool_use_id,
                content,
                is_error,
            } = block
            else {
                continue;
            };
            let mut blocks = messages.iter().flat_map(|message| &message.content);
            let tool = blocks.find_map(|block| match block {
                ContentBlock::ToolUse { id, name, .. } if id == tool_use_id => Some(name.clone()),
                _ => None,
            });
            out.push(ToolAnswer {
                tool: tool.unwrap_or_default(),
                content: parsed(content),
                text: text(content),
                is_error: *is_error,
                is_newest: last_answer.is_none_or(|answer| index > answer),
            });
        }
    }
    out
}

/// Parses JSON that was sent as a string.
fn parsed(content: &Value) -> Value {
    match content {
        Value::String(text) if text.starts_with(['{', '[']) => {
            serde_json::from_str(text).unwrap_or_else(|_| content.clone())
        }
        other => other.clone(),
    }
}

/// A value as text: strings without quotation marks, nothing for null.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        other => value_text(other),
    }
}

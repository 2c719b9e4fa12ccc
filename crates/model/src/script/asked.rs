//! A request as a script sees it: what the person said, in which language, and what the tools of
//! this turn have answered. Answers are looked up only if a rule asks for them.

use std::cell::OnceCell;

use serde_json::Value;
use turnwire_event::{ContentBlock, Role};

use crate::request::Request;

/// What a tool answered in the turn at hand.
pub(crate) struct Answer {
    pub(crate) tool: String,
    /// As it came; JSON in a string is read, so that both can be quoted by path.
    pub(crate) content: Value,
    /// As text, for patterns.
    pub(crate) text: String,
    pub(crate) failed: bool,
    /// Whether no message of the model came after it.
    pub(crate) newest: bool,
}

/// A request and what a script wants to know of it.
pub(crate) struct Asked<'a> {
    pub(crate) request: &'a Request,
    pub(crate) user: String,
    answers: OnceCell<Vec<Answer>>,
}

impl<'a> Asked<'a> {
    pub(crate) fn new(request: &'a Request) -> Self {
        Self {
            request,
            user: request.user_text(),
            answers: OnceCell::new(),
        }
    }

    /// The answers of the turn, oldest first.
    pub(crate) fn answers(&self) -> &[Answer] {
        self.answers.get_or_init(|| answers(self.request))
    }

    /// The newest answer of `tool`.
    pub(crate) fn answer(&self, tool: &str) -> Option<&Answer> {
        self.answers().iter().rfind(|answer| answer.tool == tool)
    }

    /// How often the person has spoken in what the model is shown.
    pub(crate) fn turn(&self) -> usize {
        let messages = self.request.messages.iter();
        messages.filter(|said| said.role == Role::User).count()
    }

    /// Whether the person's language tag is `tag` or a narrower one: `de` is heard in `de-AT`.
    pub(crate) fn speaks(&self, tag: &str) -> bool {
        let locale = self.request.locale.as_bytes();
        let Some((head, rest)) = locale.split_at_checked(tag.len()) else {
            return false;
        };
        head.eq_ignore_ascii_case(tag.as_bytes())
            && matches!(rest.first(), None | Some(b'-' | b'_'))
    }
}

fn answers(request: &Request) -> Vec<Answer> {
    let turn = request.messages_of_turn();
    let spoken = turn.iter().rposition(|said| said.role == Role::Assistant);
    let mut out = Vec::new();
    for (at, said) in turn.iter().enumerate() {
        for block in &said.content {
            let ContentBlock::ToolResult {
                tool_use_id,
                content,
                is_error,
            } = block
            else {
                continue;
            };
            let tool = turn
                .iter()
                .flat_map(|said| &said.content)
                .find_map(|block| match block {
                    ContentBlock::ToolUse { id, name, .. } if id == tool_use_id => {
                        Some(name.clone())
                    }
                    _ => None,
                });
            out.push(Answer {
                tool: tool.unwrap_or_default(),
                content: read(content),
                text: text(content),
                failed: *is_error,
                newest: spoken.is_none_or(|spoken| at > spoken),
            });
        }
    }
    out
}

/// JSON that travelled as text is JSON again.
fn read(content: &Value) -> Value {
    match content {
        Value::String(text) if text.starts_with(['{', '[']) => {
            serde_json::from_str(text).unwrap_or_else(|_| content.clone())
        }
        other => other.clone(),
    }
}

/// A value as words: strings without their quotation marks, nothing for null.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

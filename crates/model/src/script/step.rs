//! A step of a script after checking: what the model does next. Everything in it is within
//! bounds; the words may still hold places to fill in.

use std::time::Duration;

use serde_json::Value;
use turnwire_event::code::LlmErrorClass;
use turnwire_event::{StopReason, Usage};

/// What may be quoted in words and tool inputs.
const USER: &str = "{{user}}";
const LAST_TOOL_RESULT: &str = "{{last_tool_result}}";

/// Words and how they stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Words {
    pub(crate) text: String,
    /// Characters a delta; words if not given.
    pub(crate) chunk: Option<usize>,
    /// The wait before each delta.
    pub(crate) delay: Duration,
}

/// What a tool is asked with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Input {
    /// An object.
    Json(Value),
    /// Text that is sent as it is, so that broken input can be tried.
    Raw(String),
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Thinking {
        words: Words,
        signature: Option<String>,
    },
    Text {
        words: Words,
        repeat: u32,
    },
    Tool {
        name: String,
        input: Input,
        fragments: Option<usize>,
        delay: Duration,
    },
    Pause(Duration),
    Stall,
    Error(LlmErrorClass),
    Stop {
        reason: StopReason,
        usage: Option<Usage>,
    },
}

impl Step {
    /// Whether it holds places to fill in.
    pub(crate) fn quotes(&self) -> bool {
        match self {
            Self::Thinking { words, .. } | Self::Text { words, .. } => quotes(&words.text),
            Self::Tool { input, .. } => match input {
                Input::Json(value) => quotes(&value.to_string()),
                Input::Raw(_) => false,
            },
            Self::Pause(_) | Self::Stall | Self::Error(_) | Self::Stop { .. } => false,
        }
    }
}

/// Whether `text` holds places to fill in.
pub(crate) fn quotes(text: &str) -> bool {
    text.contains(USER) || text.contains(LAST_TOOL_RESULT)
}

/// What the places are filled with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quotes {
    pub(crate) user: String,
    pub(crate) last_tool_result: String,
}

impl Quotes {
    /// `text` with its places filled in; what is filled in is not looked at again, and what grows
    /// over `bytes_max` is cut.
    pub(crate) fn fill(&self, text: &str, bytes_max: usize) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("{{") {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            let (value, length) = if from.starts_with(USER) {
                (self.user.as_str(), USER.len())
            } else if from.starts_with(LAST_TOOL_RESULT) {
                (self.last_tool_result.as_str(), LAST_TOOL_RESULT.len())
            } else {
                ("{{", 2)
            };
            out.push_str(value);
            if out.len() > bytes_max {
                break;
            }
            rest = &from[length..];
        }
        out.push_str(rest);
        out.truncate(out.floor_char_boundary(bytes_max));
        out
    }

    /// `value` with the places in its strings filled in.
    pub(crate) fn fill_value(&self, value: &Value, bytes_max: usize) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(text, bytes_max)),
            Value::Array(items) => items
                .iter()
                .map(|item| self.fill_value(item, bytes_max))
                .collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(key, item)| (key.clone(), self.fill_value(item, bytes_max)))
                .collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn places_are_filled_once_and_others_are_left() {
        let quotes = Quotes {
            user: "say {{user}}".into(),
            last_tool_result: "noon".into(),
        };
        assert_eq!(
            quotes.fill("{{last_tool_result}}: {{user}}, {{x}} {{", 100),
            "noon: say {{user}}, {{x}} {{"
        );
        assert_eq!(quotes.fill("ä{{user}}{{user}}", 6), "äsay ");
        assert_eq!(
            quotes.fill_value(&json!({"a": ["{{user}}", 1], "{{user}}": null}), 100),
            json!({"a": ["say {{user}}", 1], "{{user}}": null})
        );
    }
}

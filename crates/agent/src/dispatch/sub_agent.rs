//! A sub-agent as a turn is bound to it: a tool for the orchestrator, an agent of its own.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use turnwire_event::ContentBlock;
use turnwire_model::ToolSpec;

use crate::resources::agent_resources::Means;

/// What the name of a tool that asks a sub-agent begins with (S2-003).
const ASK: &str = "ask_";

/// A sub-agent that the turn may ask.
pub(crate) struct Member {
    /// Its id.
    pub(crate) id: String,
    /// The field it knows.
    pub(crate) vertical: String,
    /// Other names a model may use for it.
    pub(crate) aliases: Vec<String>,
    /// What it is good for, word for word as its author says it.
    pub(crate) description: String,
    /// How long one answer may take.
    pub(crate) timeout: Duration,
    /// The statuses it may show.
    pub(crate) emits: Vec<String>,
    /// The status that is shown when it has been silent for a while.
    pub(crate) default_status: Option<String>,
    /// What it works with; none if it cannot be made.
    pub(crate) means: Option<Arc<Means>>,
}

impl Member {
    /// The name of the tool that asks it.
    pub(crate) fn tool(&self) -> String {
        format!("{ASK}{}", self.id)
    }

    /// Every name of a tool that asks it.
    pub(crate) fn tools(&self) -> Vec<String> {
        let aliases = self.aliases.iter().map(|alias| format!("{ASK}{alias}"));
        std::iter::once(self.tool()).chain(aliases).collect()
    }

    /// Whether the tool `name` asks it.
    pub(crate) fn answers_to(&self, name: &str) -> bool {
        let Some(name) = name.strip_prefix(ASK) else {
            return false;
        };
        self.id == name || self.aliases.iter().any(|alias| alias == name)
    }

    /// The tool as the orchestrator's model is told of it.
    pub(crate) fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.tool(),
            description: self.description.clone(),
            input_schema: json!({
                "type": "object",
                "properties": {"query": {
                    "type": "string",
                    "description": "What to ask, in plain words and with all that must be known.",
                }},
                "required": ["query"],
                "additionalProperties": false,
            }),
        }
    }
}

/// The question in what the model wrote for the tool; what the person said if it wrote nothing.
pub(crate) fn question(input: &Value, person: &[ContentBlock]) -> String {
    match input.get("query") {
        Some(Value::String(query)) => query.clone(),
        _ if input.as_object().is_some_and(serde_json::Map::is_empty) => {
            person.iter().filter_map(ContentBlock::as_text).collect()
        }
        // A model that names it otherwise still meant something.
        _ => input.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_found_in_whatever_the_model_wrote() {
        let person = [ContentBlock::text("oat "), ContentBlock::text("milk")];
        let cases = [
            (json!({"query": "q", "more": 1}), "q"),
            (json!({}), "oat milk"),
            (json!({"question": "q"}), r#"{"question":"q"}"#),
            (json!({"query": 7}), r#"{"query":7}"#),
        ];
        for (input, expected) in cases {
            assert_eq!(question(&input, &person), expected);
        }
    }
}

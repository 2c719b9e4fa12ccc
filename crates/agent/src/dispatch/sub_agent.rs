//! A sub-agent that a turn is bound to: a tool for the orchestrator, an agent of its own.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use turnwire_event::ContentBlock;
use turnwire_model::ToolSpec;
use turnwire_relay::RelayedAgent;

use crate::resources::agent_resources::AgentResources;
use crate::tool_call::tool_request::ToolRequest;

/// The prefix of tools that call a sub-agent (S2-003).
const TOOL_PREFIX: &str = "ask_";

/// The input field with the question for the sub-agent.
const QUERY: &str = "query";
/// The input field in which the orchestrator's model sums up the conversation for a sub-agent that
/// takes over (S2-016).
const PRIOR_CONTEXT: &str = "prior_context";

/// A sub-agent that the orchestrator of a turn may call.
pub(crate) struct BoundSubAgent {
    pub(crate) id: String,
    /// The business area, a label of metrics.
    pub(crate) vertical: String,
    /// Other names that a model may use for the sub-agent.
    pub(crate) aliases: Vec<String>,
    /// The description for the orchestrator's model, verbatim from the pack.
    pub(crate) description: String,
    /// The longest time of one invocation.
    pub(crate) timeout: Duration,
    /// The ids of the statuses that users are shown.
    pub(crate) shown_status_ids: Vec<String>,
    /// The status that is shown after a long silence.
    pub(crate) default_status: Option<String>,
    /// `None` if its tools or models are not available: an invocation then fails. Also for a sub-agent
    /// that runs elsewhere.
    pub(crate) resources: Option<Arc<AgentResources>>,
    /// The sub-agent, if it runs elsewhere.
    pub(crate) remote: Option<Arc<RelayedAgent>>,
}

/// A [`ToolRequest`] and the sub-agent that it calls.
pub(crate) type SubAgentCall = (ToolRequest, Arc<BoundSubAgent>);

impl BoundSubAgent {
    /// The name of the tool that calls the sub-agent.
    pub(crate) fn tool_name(&self) -> String {
        format!("{TOOL_PREFIX}{}", self.id)
    }

    /// All names of tools that call the sub-agent, aliases included.
    pub(crate) fn tool_names(&self) -> Vec<String> {
        let aliases = self.aliases.iter();
        let aliases = aliases.map(|alias| format!("{TOOL_PREFIX}{alias}"));
        std::iter::once(self.tool_name()).chain(aliases).collect()
    }

    /// True if the tool `name` calls the sub-agent.
    pub(crate) fn is_called_by(&self, name: &str) -> bool {
        let Some(name) = name.strip_prefix(TOOL_PREFIX) else {
            return false;
        };
        self.id == name || self.aliases.iter().any(|alias| alias == name)
    }

    /// The [`ToolSpec`] for the orchestrator's model.
    pub(crate) fn tool_spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.tool_name(),
            description: self.description.clone(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    QUERY: {
                        "type": "string",
                        "description": "What to ask, in plain words and with all that must be known.",
                    },
                    PRIOR_CONTEXT: {
                        "type": "string",
                        "description": "Only where the person turns to another subject: what of the \
                                        conversation so far this assistant needs, in a few \
                                        sentences and in the language of the person.",
                    },
                },
                "required": [QUERY],
                "additionalProperties": false,
            }),
        }
    }
}

/// The question in the input of the tool; the user's text if the input has none.
pub(crate) fn question(input: &Value, user_content: &[ContentBlock]) -> String {
    if let Some(Value::String(query)) = input.get(QUERY) {
        return query.clone();
    }
    let mut rest = input.clone();
    if let Value::Object(fields) = &mut rest {
        fields.remove(PRIOR_CONTEXT);
        if fields.is_empty() {
            let texts = user_content.iter().filter_map(ContentBlock::as_text);
            return texts.collect();
        }
    }
    // A model that uses another field still means a question.
    rest.to_string()
}

/// The prior context that the orchestrator's model wrote into the input of the tool, if any.
pub(crate) fn written_context(input: &Value) -> Option<&str> {
    let written = input.get(PRIOR_CONTEXT)?.as_str()?.trim();
    (!written.is_empty()).then_some(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_is_read_from_any_input() {
        let user_content = [ContentBlock::text("oat "), ContentBlock::text("milk")];
        let cases = [
            (json!({"query": "q", "more": 1}), "q"),
            (json!({}), "oat milk"),
            (json!({"question": "q"}), r#"{"question":"q"}"#),
            (json!({"query": 7}), r#"{"query":7}"#),
            (json!({"prior_context": "p"}), "oat milk"),
            (json!({"prior_context": "p", "q": 7}), r#"{"q":7}"#),
        ];
        for (input, expected) in cases {
            assert_eq!(question(&input, &user_content), expected);
        }
    }
    #[test]
    fn documents_list_the_inputs_of_a_generated_tool() {
        let page = include_str!("../../../../docs/tools.md");
        let start = "| `ask_<sub-agent>` (generated) | ";
        let row = page.lines().find_map(|line| line.strip_prefix(start));
        let input = row.and_then(|row| row.split(" | ").next()).expect("a row");
        let shop = BoundSubAgent {
            id: "shop".into(),
            vertical: String::new(),
            aliases: Vec::new(),
            description: String::new(),
            timeout: Duration::ZERO,
            shown_status_ids: Vec::new(),
            default_status: None,
            resources: None,
            remote: None,
        };
        let schema = shop.tool_spec().input_schema;
        for field in schema["properties"].as_object().expect("an object").keys() {
            assert!(input.contains(&format!("`{field}`")), "{field} in {input}");
        }
    }
}

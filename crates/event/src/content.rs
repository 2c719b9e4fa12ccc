//! The parts of a message: content blocks, stop reasons, and token usage.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::ToolUseId;

/// One block of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ContentBlock {
    #[cfg_attr(feature = "schema", schemars(title = "TextBlock"))]
    Text {
        /// What the user or the model wrote.
        text: String,
    },
    /// The model's reasoning, if the provider exposes it.
    #[cfg_attr(feature = "schema", schemars(title = "ThinkingBlock"))]
    Thinking {
        /// The reasoning, as far as the provider shows it.
        text: String,
        /// The provider's signature, sent back unchanged in later requests.
        signature: Option<String>,
    },
    /// The model's request to run a tool.
    #[cfg_attr(feature = "schema", schemars(title = "ToolUseBlock"))]
    ToolUse {
        /// Names the tool use; its result has the same id.
        id: ToolUseId,
        /// The name of the tool.
        name: String,
        /// The tool's input, parsed.
        input: Value,
    },
    /// The result of a tool use.
    #[cfg_attr(feature = "schema", schemars(title = "ToolResultBlock"))]
    ToolResult {
        /// The tool use that this result answers.
        tool_use_id: ToolUseId,
        /// The result, as the tool returned it.
        content: Value,
        /// True if `content` is an error message for the model.
        is_error: bool,
    },
    /// A component for the client to render.
    #[cfg_attr(feature = "schema", schemars(title = "ComponentBlock"))]
    Component {
        /// The tool use that produced the component.
        tool_use_id: ToolUseId,
        /// The component, as the client renders it.
        component: Value,
    },
    /// A collection for the client to render.
    #[cfg_attr(feature = "schema", schemars(title = "DataBlock"))]
    Data {
        /// The id of the placeholder: the same as in its `data.loading`.
        data_id: String,
        /// The kind of the items.
        data_type: String,
        /// The keys of the requested items.
        key: Value,
        /// The items, as the enricher returned them.
        items: Value,
    },
}

impl ContentBlock {
    /// Creates a text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// The text of a [`ContentBlock::Text`]; `None` for other blocks.
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text { text } = self {
            return Some(text);
        }
        None
    }
}

/// Why a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model finished its answer.
    EndTurn,
    /// The model reached its output limit.
    MaxTokens,
    /// The model produced a stop sequence.
    StopSequence,
    /// The model requests tools.
    ToolUse,
    /// The turn was cancelled.
    Cancelled,
    /// The model call failed midway.
    Error,
}

/// The tokens and the cost of one or more model calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct TokenUsage {
    /// Tokens of the requests, cached ones included.
    pub input_tokens: u64,
    /// Tokens of the answers, reasoning included.
    pub output_tokens: u64,
    /// As the provider reports it; otherwise `input_tokens` and `output_tokens` together.
    pub total_tokens: u64,
    /// The share of `output_tokens` that is reasoning.
    pub reasoning_tokens: u64,
    /// The share of `input_tokens` that the provider read from its cache.
    pub cached_tokens: u64,
    /// The cost in US dollars by the prices of the pack; 0 for a model without a price.
    pub cost_usd: f64,
    /// True if a part of the numbers is the server's estimate: a call that was stopped or that
    /// failed has no final numbers of its provider.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

/// Bytes of text that count as one token where a provider reports no number.
const TOKEN_BYTES: u64 = 4;

impl TokenUsage {
    /// The number of tokens of `bytes` of text, roughly: for a call without its provider's numbers.
    pub const fn estimated_tokens(bytes: u64) -> u64 {
        bytes.div_ceil(TOKEN_BYTES)
    }

    /// True if nothing was used.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// Adds two usages, saturating.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            total_tokens: self.total_tokens.saturating_add(other.total_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            cost_usd: self.cost_usd + other.cost_usd,
            estimated: self.estimated || other.estimated,
        }
    }
}

/// SHA-256 of `bytes` as lower-case hex, the form that events use.
pub fn sha256_hex(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(bytes);
    digest
        .iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            use std::fmt::Write as _;
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}

/// Serialises `content` as it is stored. Returns the JSON and its SHA-256.
pub fn content_json(content: &[ContentBlock]) -> (String, String) {
    let json = serde_json::to_string(content).expect("content blocks are plain data");
    let hash = sha256_hex(json.as_bytes());
    (json, hash)
}

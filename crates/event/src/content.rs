//! What messages are made of: content blocks, why a message stopped, and what it cost.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::ToolUseId;

/// One block of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ContentBlock {
    /// Words.
    Text {
        /// The words.
        text: String,
    },
    /// The model's reasoning, where it shows it.
    Thinking {
        /// The reasoning.
        text: String,
        /// The provider's seal on it, to be sent back as it came.
        signature: Option<String>,
    },
    /// The model asks for a tool.
    ToolUse {
        /// Which use.
        id: ToolUseId,
        /// Which tool.
        name: String,
        /// With what.
        input: Value,
    },
    /// What the tool gave.
    ToolResult {
        /// Of which use.
        tool_use_id: ToolUseId,
        /// The result.
        content: Value,
        /// Whether it is an error told to the model.
        is_error: bool,
    },
    /// A component for the client.
    Component {
        /// Made by which use.
        tool_use_id: ToolUseId,
        /// The component.
        component: Value,
    },
    /// A collection for the client.
    Data {
        /// Which announced collection it is; the same id as its `data.loading`.
        data_id: String,
        /// What the items are.
        data_type: String,
        /// What was asked for.
        key: Value,
        /// The items.
        items: Value,
    },
}

impl ContentBlock {
    /// A block of words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// The words, if it is words.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            Self::Thinking { .. }
            | Self::ToolUse { .. }
            | Self::ToolResult { .. }
            | Self::Component { .. }
            | Self::Data { .. } => None,
        }
    }
}

/// Why a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model had said all.
    EndTurn,
    /// The model ran into its limit.
    MaxTokens,
    /// The model met a stop sequence.
    StopSequence,
    /// The model wants tools.
    ToolUse,
    /// The turn was cancelled.
    Cancelled,
    /// The call failed.
    Error,
}

/// Tokens and cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Both.
    pub total_tokens: u64,
    /// Of the written, those of reasoning.
    pub reasoning_tokens: u64,
    /// Of the read, those from a cache.
    pub cached_tokens: u64,
    /// What it cost.
    pub cost_usd: f64,
}

impl Usage {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            total_tokens: self.total_tokens.saturating_add(other.total_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            cost_usd: self.cost_usd + other.cost_usd,
        }
    }
}

/// SHA-256 of bytes as the log writes it: lower-case hex.
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

/// The JSON of content as it is stored, and its hash.
pub fn content_json(content: &[ContentBlock]) -> (String, String) {
    let json = serde_json::to_string(content).expect("content blocks are plain data");
    let hash = sha256_hex(json.as_bytes());
    (json, hash)
}

//! `message.*`, `text.*`, `thinking.*`, `tool.use_*`: a message while the model streams it. Transient.

use serde::{Deserialize, Serialize};

use serde_json::Value;

use crate::content::{ContentBlock, StopReason, TokenUsage};
use crate::id::{MessageId, ToolUseId};
use crate::message::Role;

/// A message started to stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageStart {
    pub message_id: MessageId,
    pub role: Role,
    /// The model that produces the message.
    pub model: String,
}

/// Text was added to a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TextDelta {
    pub message_id: MessageId,
    pub content_block_index: u32,
    /// The added text only.
    pub text: String,
}

/// Reasoning was added to a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThinkingDelta {
    pub message_id: MessageId,
    pub content_block_index: u32,
    /// The added reasoning only.
    pub text: String,
    /// The provider's signature, on the last delta of the block.
    pub signature: Option<String>,
    /// True if text was sent earlier in the turn; set by the session's emitter.
    #[serde(default)]
    pub after_text: bool,
}

/// The model started a tool use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolUseStart {
    pub message_id: MessageId,
    pub content_block_index: u32,
    pub tool_use_id: ToolUseId,
    pub tool_name: String,
}

/// A fragment of a tool's input, as raw text that may not parse yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolUseInputDelta {
    pub message_id: MessageId,
    pub content_block_index: u32,
    pub tool_use_id: ToolUseId,
    pub partial_json: String,
}

/// A tool's input is complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolUseEnd {
    pub message_id: MessageId,
    pub content_block_index: u32,
    pub tool_use_id: ToolUseId,
    /// The parsed input; authoritative over the fragments.
    pub final_input: Value,
}

/// A message is complete, or was cut off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageComplete {
    pub message_id: MessageId,
    pub stop_reason: StopReason,
    /// All blocks; authoritative over the deltas.
    pub final_content: Vec<ContentBlock>,
    pub usage: TokenUsage,
}

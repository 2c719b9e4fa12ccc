//! `message.*`, `text.*`, `thinking.*`, `tool.use_*`: a message as the model writes it. Transient.

use serde::{Deserialize, Serialize};

use serde_json::Value;

use crate::content::{ContentBlock, StopReason, Usage};
use crate::id::{MessageId, ToolUseId};
use crate::message::Role;

/// A message begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageStart {
    /// Which message.
    pub message_id: MessageId,
    /// Always `assistant`.
    pub role: Role,
    /// The model that writes.
    pub model: String,
}

/// More words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TextDelta {
    /// Which message.
    pub message_id: MessageId,
    /// Which block.
    pub content_block_index: u32,
    /// The new words only.
    pub text: String,
}

/// More reasoning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThinkingDelta {
    /// Which message.
    pub message_id: MessageId,
    /// Which block.
    pub content_block_index: u32,
    /// The new reasoning only.
    pub text: String,
    /// The provider's seal, on the last delta of the block.
    pub signature: Option<String>,
    /// Whether words were sent before it in the turn; stamped by the writer.
    #[serde(default)]
    pub after_text: bool,
}

/// The model begins to ask for a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolUseStart {
    /// Which message.
    pub message_id: MessageId,
    /// Which block.
    pub content_block_index: u32,
    /// Which use.
    pub tool_use_id: ToolUseId,
    /// Which tool.
    pub tool_name: String,
}

/// More of the tool's input, as raw text that need not parse yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolUseInputDelta {
    /// Which message.
    pub message_id: MessageId,
    /// Which block.
    pub content_block_index: u32,
    /// Which use.
    pub tool_use_id: ToolUseId,
    /// The fragment.
    pub partial_json: String,
}

/// The tool's input is whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolUseEnd {
    /// Which message.
    pub message_id: MessageId,
    /// Which block.
    pub content_block_index: u32,
    /// Which use.
    pub tool_use_id: ToolUseId,
    /// The input, authoritative.
    pub final_input: Value,
}

/// A message is whole, or as whole as it will get.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageComplete {
    /// Which message.
    pub message_id: MessageId,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// All of it, authoritative.
    pub final_content: Vec<ContentBlock>,
    /// What it cost.
    pub usage: Usage,
}

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
    /// Names the message in its later events and in `/sessions/{id}/messages/{message_id}`.
    pub message_id: MessageId,
    /// The author, always `assistant`.
    pub role: Role,
    /// The model that produces the message.
    pub model: String,
}

/// Text was added to a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TextDelta {
    /// The message, as in its `message.start`.
    pub message_id: MessageId,
    /// The number of the block in the message, from 0: its index in `final_content`.
    pub content_block_index: u32,
    /// The added text only.
    pub text: String,
}

/// Reasoning was added to a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThinkingDelta {
    /// The message, as in its `message.start`.
    pub message_id: MessageId,
    /// The number of the block in the message, from 0: its index in `final_content`.
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
    /// The message, as in its `message.start`.
    pub message_id: MessageId,
    /// The number of the block in the message, from 0: its index in `final_content`.
    pub content_block_index: u32,
    /// Names the tool use in its later events, in `tool.*` and in the result.
    pub tool_use_id: ToolUseId,
    pub tool_name: String,
}

/// A fragment of a tool's input, as raw text that may not parse yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolUseInputDelta {
    /// The message, as in its `message.start`.
    pub message_id: MessageId,
    /// The number of the block in the message, from 0: its index in `final_content`.
    pub content_block_index: u32,
    /// The tool use, as in its `tool.use_start`.
    pub tool_use_id: ToolUseId,
    /// The next part of the input's JSON text.
    pub partial_json: String,
}

/// A tool's input is complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolUseEnd {
    /// The message, as in its `message.start`.
    pub message_id: MessageId,
    /// The number of the block in the message, from 0: its index in `final_content`.
    pub content_block_index: u32,
    /// The tool use, as in its `tool.use_start`.
    pub tool_use_id: ToolUseId,
    /// The parsed input; authoritative over the fragments.
    pub final_input: Value,
}

/// A message is complete, or was cut off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageComplete {
    /// The message, as in its `message.start`.
    pub message_id: MessageId,
    pub stop_reason: StopReason,
    /// All blocks; authoritative over the deltas.
    pub final_content: Vec<ContentBlock>,
    /// What the model call of the message used.
    pub usage: TokenUsage,
}

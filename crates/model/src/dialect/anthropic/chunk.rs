//! The events of a Messages stream, reduced to the fields that the decoder reads. Unknown fields
//! are skipped; every enum that may grow has an `Unknown` variant.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::dialect::lenient::{LenientCount, LenientStr};

/// The type of a stream event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EventKind {
    MessageStart,
    ContentBlockStart,
    ContentBlockDelta,
    ContentBlockStop,
    MessageDelta,
    MessageStop,
    Ping,
    Error,
    #[default]
    #[serde(other)]
    Unknown,
}

impl EventKind {
    /// The kind for an SSE event name; saves parsing the data.
    pub(super) fn from_event_name(event: &str) -> Self {
        match event {
            "content_block_delta" => Self::ContentBlockDelta,
            "message_start" => Self::MessageStart,
            "content_block_start" => Self::ContentBlockStart,
            "content_block_stop" => Self::ContentBlockStop,
            "message_delta" => Self::MessageDelta,
            "message_stop" => Self::MessageStop,
            "ping" => Self::Ping,
            "error" => Self::Error,
            _ => Self::Unknown,
        }
    }
}

/// The `type` of any event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct EventTag {
    #[serde(rename = "type")]
    pub(super) kind: EventKind,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MessageStartEvent {
    pub(super) message: Option<StartedMessage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StartedMessage {
    pub(super) id: Option<String>,
    pub(super) usage: Option<AnthropicUsage>,
}

/// Token counts so far; `None` for a count not reported yet.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AnthropicUsage {
    pub(super) input_tokens: Option<LenientCount>,
    pub(super) output_tokens: Option<LenientCount>,
    pub(super) cache_read_input_tokens: Option<LenientCount>,
    pub(super) cache_creation_input_tokens: Option<LenientCount>,
    pub(super) output_tokens_details: Option<AnthropicOutputDetails>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AnthropicOutputDetails {
    pub(super) thinking_tokens: Option<LenientCount>,
}

#[derive(Debug, Deserialize)]
pub(super) struct BlockStart<'a> {
    #[serde(default)]
    pub(super) index: u64,
    #[serde(borrow)]
    pub(super) content_block: &'a RawValue,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BlockKind {
    Text,
    Thinking,
    RedactedThinking,
    ToolUse,
    #[default]
    #[serde(other)]
    Unknown,
}

/// The `type` of a block: a block of an unknown type may have fields of any shape.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BlockTag {
    #[serde(rename = "type")]
    pub(super) kind: BlockKind,
}

/// A block of a known type, as in its start event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StartedBlock<'a> {
    pub(super) text: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) signature: Option<String>,
    pub(super) data: Option<String>,
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct BlockDelta {
    #[serde(default)]
    pub(super) index: u64,
    pub(super) delta: BlockPiece,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PieceKind {
    TextDelta,
    InputJsonDelta,
    ThinkingDelta,
    SignatureDelta,
    CitationsDelta,
    #[default]
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BlockPiece {
    #[serde(rename = "type")]
    pub(super) kind: PieceKind,
    pub(super) text: Option<String>,
    pub(super) partial_json: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) signature: Option<String>,
}

/// The `type` of a delta: a delta of an unknown type may have fields of any shape.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct DeltaTag {
    pub(super) index: u64,
    pub(super) delta: PieceTag,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PieceTag {
    #[serde(rename = "type")]
    pub(super) kind: PieceKind,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BlockStop {
    pub(super) index: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MessageDelta<'a> {
    #[serde(borrow)]
    pub(super) delta: Option<MessageDeltaFields<'a>>,
    pub(super) usage: Option<AnthropicUsage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MessageDeltaFields<'a> {
    #[serde(borrow)]
    pub(super) stop_reason: Option<LenientStr<'a>>,
}

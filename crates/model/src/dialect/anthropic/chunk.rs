//! The events of a Messages stream, reduced to the fields that the decoder reads. Unknown fields
//! are skipped; every enum that may grow has an `Unknown` variant.

use serde::Deserialize;
use serde::de::IntoDeserializer as _;
use serde::de::value::{self, StrDeserializer};
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
    pub(super) fn from_event_name(name: &str) -> Self {
        let name: StrDeserializer<'_, value::Error> = name.into_deserializer();
        Self::deserialize(name).unwrap_or_default()
    }
}

/// The `type` of an event, a block or a delta: one of an unknown type may have fields of any shape.
#[derive(Debug, Default, Deserialize)]
pub(super) struct TypeTag<K> {
    #[serde(rename = "type", default)]
    pub(super) kind: K,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct MessageStartEvent {
    pub(super) message: Option<StartedMessage>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct StartedMessage {
    pub(super) id: Option<String>,
    pub(super) usage: Option<AnthropicUsage>,
}

/// Token counts so far; `None` for a count not reported yet.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct AnthropicUsage {
    pub(super) input_tokens: Option<LenientCount>,
    pub(super) output_tokens: Option<LenientCount>,
    pub(super) cache_read_input_tokens: Option<LenientCount>,
    pub(super) cache_creation_input_tokens: Option<LenientCount>,
    pub(super) output_tokens_details: Option<AnthropicOutputDetails>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
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

/// A block of a known type, as in its start event.
#[derive(Debug, Default, Deserialize)]
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

/// A delta of which only the kind is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct DeltaTag {
    pub(super) index: u64,
    pub(super) delta: TypeTag<PieceKind>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BlockStop {
    pub(super) index: u64,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct MessageDelta<'a> {
    #[serde(borrow)]
    pub(super) delta: Option<MessageDeltaFields<'a>>,
    pub(super) usage: Option<AnthropicUsage>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct MessageDeltaFields<'a> {
    #[serde(borrow)]
    pub(super) stop_reason: Option<LenientStr<'a>>,
}

//! The events of a Messages stream, as typed as reading them needs. Every struct is flat and
//! skips what it does not know; every name that may grow has an `Unknown`.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::dialect::loose::{Count, Glance};

/// What an event is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
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

impl Kind {
    /// By the event's name, which saves looking into the data.
    pub(super) fn named(event: &str) -> Self {
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

/// Any event: only what it is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tagged {
    #[serde(rename = "type")]
    pub(super) kind: Kind,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MessageStart {
    pub(super) message: Option<Message>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    pub(super) id: Option<String>,
    pub(super) usage: Option<Usage>,
}

/// Counts so far; what is not given is not known yet.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Usage {
    pub(super) input_tokens: Option<Count>,
    pub(super) output_tokens: Option<Count>,
    pub(super) cache_read_input_tokens: Option<Count>,
    pub(super) cache_creation_input_tokens: Option<Count>,
    pub(super) output_tokens_details: Option<OutputDetails>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OutputDetails {
    pub(super) thinking_tokens: Option<Count>,
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

/// Only what a block is: one of an unknown kind may have fields of any shape.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BlockTag {
    #[serde(rename = "type")]
    pub(super) kind: BlockKind,
}

/// A block of a known kind.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Block<'a> {
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
    pub(super) delta: Piece,
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
pub(super) struct Piece {
    #[serde(rename = "type")]
    pub(super) kind: PieceKind,
    pub(super) text: Option<String>,
    pub(super) partial_json: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) signature: Option<String>,
}

/// A delta of which only its kind is known: one of a new kind may have fields of any shape.
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
    pub(super) delta: Option<Ending<'a>>,
    pub(super) usage: Option<Usage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Ending<'a> {
    #[serde(borrow)]
    pub(super) stop_reason: Option<Glance<'a>>,
}

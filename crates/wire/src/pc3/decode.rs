//! Decodes frames for clients: known frames are typed, unknown ones are skipped.
//!
//! In: the `event:` name and the `data:` text of one block. Unknown fields and unknown frame types
//! are ignored (S1-008); codes stay text, because new ones may be added.

use serde::Deserialize;
use serde_json::Value;

use super::frame_kind::FrameKind;

/// A block, decoded by [`decode`].
#[derive(Clone, Debug, PartialEq)]
pub enum DecodedBlock {
    /// A frame of a known type.
    Frame(DecodedFrame),
    /// A frame of an unknown type, which the client skips.
    Unknown(String),
    /// The sentinel; no block follows.
    Done,
}

/// A frame: the envelope and the [`FramePayload`].
#[derive(Clone, Debug, PartialEq)]
pub struct DecodedFrame {
    /// The version of the wire, such as `0.5`.
    pub version: String,
    /// The time of the event, as RFC 3339 text.
    pub timestamp: String,
    /// The turn, as `resp_…`.
    pub response_id: String,
    /// The fields of the frame's type.
    pub payload: FramePayload,
}

/// The fields of a frame besides the envelope, by frame type.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "event_type", rename_all = "snake_case")]
pub enum FramePayload {
    /// The first frame; the response id is in the envelope.
    ResponseId,
    /// The episode that the turn belongs to.
    Episode {
        /// The opaque id of the episode.
        episode_id: String,
    },
    /// Reasoning of the model before its first text.
    Thinking {
        /// The next part of the reasoning; `None` in the first frame.
        #[serde(default)]
        content: Option<String>,
    },
    /// Reasoning of the model after its first text.
    Reasoning {
        /// The next part of the reasoning.
        chunk: String,
    },
    /// A part of the answer.
    Text {
        /// The next part of the text.
        chunk: String,
    },
    /// The start of a tool call.
    ToolCall {
        /// The call that starts.
        tool_call: ToolCallPayload,
    },
    /// The end of a tool call, successful or not.
    ToolCompleted {
        /// The call that ended.
        tool_call: ToolCallPayload,
    },
    /// Progress, as a sentence for the user.
    Status {
        /// The status ids and the sentence.
        data: StatusPayload,
    },
    /// A placeholder for a collection of items.
    DataLoading {
        /// The collection, without items.
        data: CollectionPayload,
    },
    /// The items of a collection.
    DataLoaded {
        /// The collection with the id of its placeholder.
        data: CollectionPayload,
    },
    /// A component of a render tool.
    Component {
        /// The component as its tool rendered it.
        chunk: Value,
        /// The call of the render tool.
        #[serde(default)]
        tool_call: Option<ToolCallPayload>,
    },
    /// A request for the tools of an MCP server.
    McpListToolsStart(McpServerPayload),
    /// The number of tools of an MCP server.
    McpListToolsCompleted(McpServerPayload),
    /// A new connection to an MCP server.
    McpSessionStart(McpServerPayload),
    /// Progress of a call to an MCP server.
    McpSessionProgress(McpServerPayload),
    /// The tokens of the turn.
    Usage(TokenUsagePayload),
    /// The end of a successful turn.
    Completed,
    /// The end of a cancelled turn.
    Cancelled {
        /// The code of the cancel.
        error: ErrorDetail,
    },
    /// A failure, final or not.
    Error {
        /// The code and its fields.
        error: ErrorDetail,
        /// True if the failure ends the turn; a frame without the field (0.4) is final.
        #[serde(default = "default_is_final")]
        is_final: bool,
    },
}

const fn default_is_final() -> bool {
    true
}

/// A tool call in a frame.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ToolCallPayload {
    /// The id of the tool use.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The type of the tool, such as `ccs` or `render`.
    #[serde(rename = "type")]
    pub kind: String,
}

/// The data of a status frame.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct StatusPayload {
    /// The status id; for a group, the first one.
    pub event_id: String,
    /// All status ids of a group; empty for a single status.
    #[serde(default)]
    pub event_ids: Vec<String>,
    /// The sentence for the user.
    pub message: String,
}

/// A collection of items, or its placeholder.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct CollectionPayload {
    /// The id of the placeholder, the same in both frames.
    pub id: String,
    /// The type of the collection.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// The keys of the items, as the server names them.
    #[serde(default)]
    pub key: Value,
    /// The items; empty in a placeholder.
    #[serde(default)]
    pub items: Vec<Value>,
}

/// An MCP server in a frame.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct McpServerPayload {
    /// The name of the server in the pack.
    pub server: String,
    /// The number of tools, in `mcp_list_tools_completed`.
    pub tool_count: Option<u32>,
    /// The progress so far, in `mcp_session_progress`.
    pub progress: Option<f64>,
    /// The value of `progress` at the end, if known.
    pub total: Option<f64>,
}

/// The tokens of a turn, over all of its model calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct TokenUsagePayload {
    /// Tokens sent to the model.
    pub input_tokens: u64,
    /// Tokens that the model generated.
    pub output_tokens: u64,
    /// The sum of input and output.
    pub total_tokens: u64,
    /// The part of the output that is reasoning.
    pub reasoning_tokens: u64,
    /// The part of the input that came from the provider's cache.
    pub cached_tokens: u64,
}

/// A failure, as a code with its fields.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ErrorDetail {
    /// Text, because a newer server may send new codes.
    pub code: String,
    /// The failed sub-agent, if the code is about one.
    #[serde(default)]
    pub sub_agent_id: Option<String>,
    /// The failed enricher, if the code is about one.
    #[serde(default)]
    pub enricher_id: Option<String>,
    /// The reason of the enricher.
    #[serde(default)]
    pub reason: Option<String>,
    /// The failures of a fan-out.
    #[serde(default)]
    pub failed: Vec<ErrorDetail>,
}

impl FramePayload {
    /// True if the frame ends the turn.
    pub const fn is_terminal(&self) -> bool {
        matches!(
            self,
            Self::Completed | Self::Cancelled { .. } | Self::Error { is_final: true, .. }
        )
    }
}

/// A block that cannot be decoded although its type is known.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The data is not JSON, or a field is missing or has another type.
    #[error("not a frame: {0}")]
    Json(#[from] serde_json::Error),
    /// The `event:` line and the field `event_type` differ.
    #[error("the event line is {event} but event_type is {event_type}")]
    Names {
        /// The value of the `event:` line.
        event: String,
        /// The value in the data.
        event_type: String,
    },
}

#[derive(Deserialize)]
struct FrameEnvelope {
    event_type: String,
    version: String,
    timestamp: String,
    response_id: String,
}

/// Decodes one block: the value of its `event:` line, empty if there is none, and its data.
pub fn decode(event: &str, data: &str) -> Result<DecodedBlock, DecodeError> {
    if event.is_empty() && data == "[DONE]" {
        return Ok(DecodedBlock::Done);
    }
    if !FrameKind::ALL.iter().any(|kind| kind.event_type() == event) {
        return Ok(DecodedBlock::Unknown(event.to_owned()));
    }
    let envelope: FrameEnvelope = serde_json::from_str(data)?;
    if envelope.event_type != event {
        return Err(DecodeError::Names {
            event: event.to_owned(),
            event_type: envelope.event_type,
        });
    }
    Ok(DecodedBlock::Frame(DecodedFrame {
        payload: serde_json::from_str(data)?,
        version: envelope.version,
        timestamp: envelope.timestamp,
        response_id: envelope.response_id,
    }))
}

#[cfg(test)]
mod tests;

//! Frames as a client reads them: what it knows, typed; what it does not know, passed over.
//!
//! Comes in: the `event:` name and the `data:` text of one block. Fields that are not known are
//! ignored and so are types (S1-008); codes stay text, because there may be new ones.

use serde::Deserialize;

/// What a block is.
#[derive(Clone, Debug, PartialEq)]
pub enum Decoded {
    /// A frame of a type that is known.
    Frame(Frame),
    /// A frame of another type, to be passed over.
    Unknown(String),
    /// The sentinel: nothing follows.
    Done,
}

/// A frame: the fields that all have, and what it says.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The version of the wire.
    pub version: String,
    /// When.
    pub timestamp: String,
    /// Of which turn.
    pub response_id: String,
    /// What it says.
    pub payload: Payload,
}

/// What a frame says, by type.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "event_type", rename_all = "snake_case")]
pub enum Payload {
    /// The turn's name is in the envelope.
    ResponseId,
    /// The episode.
    Episode {
        /// Which.
        episode_id: String,
    },
    /// The model thinks, before any words.
    Thinking {
        /// What; none on the opening indicator.
        #[serde(default)]
        content: Option<String>,
    },
    /// The model thinks, after words.
    Reasoning {
        /// What.
        chunk: String,
    },
    /// Words.
    Text {
        /// The new ones.
        chunk: String,
    },
    /// A tool begins.
    ToolCall {
        /// Which.
        tool_call: ToolCall,
    },
    /// A tool ended.
    ToolCompleted {
        /// Which.
        tool_call: ToolCall,
    },
    /// What the turn cost.
    Usage(Usage),
    /// The turn ended as it should.
    Completed,
    /// The turn was cancelled.
    Cancelled {
        /// By what.
        error: ErrorDetail,
    },
    /// Something failed.
    Error {
        /// What.
        error: ErrorDetail,
        /// Whether the turn ended with it; so it is where the frame does not say (0.4).
        #[serde(default = "yes")]
        is_final: bool,
    },
}

const fn yes() -> bool {
    true
}

/// A tool at work.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ToolCall {
    /// Which use of it.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What kind of tool.
    #[serde(rename = "type")]
    pub kind: String,
}

/// Tokens, summed over the turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Sent to the model.
    pub input_tokens: u64,
    /// Written by it.
    pub output_tokens: u64,
    /// Both.
    pub total_tokens: u64,
    /// Of the output, reasoning.
    pub reasoning_tokens: u64,
    /// Of the input, from the provider's cache.
    pub cached_tokens: u64,
}

/// What failed, in codes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ErrorDetail {
    /// The code.
    pub code: String,
    /// The sub-agent at fault.
    #[serde(default)]
    pub sub_agent_id: Option<String>,
    /// The enricher at fault.
    #[serde(default)]
    pub enricher_id: Option<String>,
    /// The enricher's reason.
    #[serde(default)]
    pub reason: Option<String>,
}

impl Payload {
    /// Whether the turn is over with this frame.
    pub const fn is_terminal(&self) -> bool {
        match self {
            Self::Completed | Self::Cancelled { .. } => true,
            Self::Error { is_final, .. } => *is_final,
            Self::ResponseId
            | Self::Episode { .. }
            | Self::Thinking { .. }
            | Self::Reasoning { .. }
            | Self::Text { .. }
            | Self::ToolCall { .. }
            | Self::ToolCompleted { .. }
            | Self::Usage(_) => false,
        }
    }
}

/// A frame of a known type that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Its data is no JSON, or a field is missing or of another type.
    #[error("not a frame: {0}")]
    Json(#[from] serde_json::Error),
    /// Its two names are not the same.
    #[error("the frame is called {event} outside and {event_type} inside")]
    Names {
        /// On the `event:` line.
        event: String,
        /// In the data.
        event_type: String,
    },
}

/// The types that `Payload` has.
const KNOWN: [&str; 11] = [
    "response_id",
    "episode",
    "thinking",
    "reasoning",
    "text",
    "tool_call",
    "tool_completed",
    "usage",
    "completed",
    "cancelled",
    "error",
];

#[derive(Deserialize)]
struct Envelope {
    event_type: String,
    version: String,
    timestamp: String,
    response_id: String,
}

/// Reads one block: its `event:` name, empty if it had none, and its `data:`.
pub fn decode(event: &str, data: &str) -> Result<Decoded, DecodeError> {
    if event.is_empty() && data == "[DONE]" {
        return Ok(Decoded::Done);
    }
    if !KNOWN.contains(&event) {
        return Ok(Decoded::Unknown(event.to_owned()));
    }
    let envelope: Envelope = serde_json::from_str(data)?;
    if envelope.event_type != event {
        return Err(DecodeError::Names {
            event: event.to_owned(),
            event_type: envelope.event_type,
        });
    }
    Ok(Decoded::Frame(Frame {
        payload: serde_json::from_str(data)?,
        version: envelope.version,
        timestamp: envelope.timestamp,
        response_id: envelope.response_id,
    }))
}

#[cfg(test)]
mod tests;

//! Frames as a client reads them: what it knows, typed; what it does not know, passed over.
//!
//! Comes in: the `event:` name and the `data:` text of one block. Fields that are not known are
//! ignored and so are types (S1-008); codes stay text, because there may be new ones.

use serde::Deserialize;
use serde_json::Value;

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
    /// What is being done, in words for the person.
    Status {
        /// What, and the words.
        data: Status,
    },
    /// A place for a collection.
    DataLoading {
        /// Which.
        data: Data,
    },
    /// The collection.
    DataLoaded {
        /// The same place, with what is in it.
        data: Data,
    },
    /// A component.
    Component {
        /// The component, as it was rendered.
        chunk: Value,
        /// What rendered it.
        #[serde(default)]
        tool_call: Option<ToolCall>,
    },
    /// A tool server is asked for its tools.
    McpListToolsStart(Server),
    /// It has listed them.
    McpListToolsCompleted(Server),
    /// A tool server is connected to.
    McpSessionStart(Server),
    /// A tool server is at work.
    McpSessionProgress(Server),
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

/// Progress.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Status {
    /// The registered identifier; of several, the first.
    pub event_id: String,
    /// All identifiers where several are told at once.
    #[serde(default)]
    pub event_ids: Vec<String>,
    /// The sentence for the person.
    pub message: String,
}

/// A collection, or the place for one.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Data {
    /// The place, the same in both frames.
    pub id: String,
    /// What kind of collection.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// Which items, as the server names them.
    #[serde(default)]
    pub key: Value,
    /// The items; none while they load.
    #[serde(default)]
    pub items: Vec<Value>,
}

/// A tool server.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Server {
    /// Its name.
    pub server: String,
    /// How many tools it has, once they are listed.
    pub tool_count: Option<u32>,
    /// How far it is.
    pub progress: Option<f64>,
    /// Of how much.
    pub total: Option<f64>,
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
    /// What failed of several.
    #[serde(default)]
    pub failed: Vec<ErrorDetail>,
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
            | Self::Status { .. }
            | Self::DataLoading { .. }
            | Self::DataLoaded { .. }
            | Self::Component { .. }
            | Self::McpListToolsStart(_)
            | Self::McpListToolsCompleted(_)
            | Self::McpSessionStart(_)
            | Self::McpSessionProgress(_)
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
const KNOWN: [&str; 19] = [
    "response_id",
    "episode",
    "thinking",
    "reasoning",
    "text",
    "tool_call",
    "tool_completed",
    "status",
    "data_loading",
    "data_loaded",
    "component",
    "mcp_list_tools_start",
    "mcp_list_tools_completed",
    "mcp_session_start",
    "mcp_session_progress",
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

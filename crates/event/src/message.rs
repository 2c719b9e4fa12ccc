//! A stored message: what was said, by which role, in which turn, and how it ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::clock::Timestamp;
use crate::content::{ContentBlock, StopReason, Usage};
use crate::id::{MessageId, SessionId, TurnId};

/// Who speaks in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
    /// A tool, to the model.
    Tool,
    /// The house.
    System,
}

/// How far a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageStatus {
    /// Still being written.
    InProgress,
    /// Whole.
    Complete,
    /// Cut by a cancel.
    Cancelled,
    /// Cut by a failure.
    Failed,
}

/// One message of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// Its session.
    pub session_id: SessionId,
    /// The turn it was said in.
    pub turn_id: TurnId,
    /// Who speaks.
    pub role: Role,
    /// How far it is.
    pub status: MessageStatus,
    /// What is said.
    pub content: Vec<ContentBlock>,
    /// Which model wrote it.
    pub model: Option<String>,
    /// Why it ended.
    pub stop_reason: Option<StopReason>,
    /// What it cost.
    pub usage: Option<Usage>,
    /// When it began.
    pub created_at: Timestamp,
    /// Whatever else is known of it.
    pub metadata: Map<String, Value>,
}

impl Message {
    /// The words of all text blocks, joined.
    pub fn text(&self) -> String {
        self.content
            .iter()
            .filter_map(ContentBlock::as_text)
            .collect()
    }
}

//! A stored message: what was said, by which role, in which turn, and how it ended.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::clock::Timestamp;
use crate::content::{ContentBlock, StopReason, Usage};
use crate::id::{MessageId, SessionId, TurnId};

/// Who speaks in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// What a vendor wants back with a message when it is shown to the vendor again, and what nobody
/// else can read: its own ids of tool uses, seals, encrypted reasoning. Clients never see it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// The provider that gave it; nothing of it is sent to another.
    pub by: String,
    /// By block, in the words of that provider's dialect.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub blocks: BTreeMap<u32, Value>,
}

impl Kept {
    /// Whether there is nothing to keep: nobody said who it is from.
    pub fn is_empty(&self) -> bool {
        self.by.is_empty()
    }
}

/// One message of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// What its model's provider wants back with it; on no wire.
    #[serde(skip)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub kept: Kept,
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

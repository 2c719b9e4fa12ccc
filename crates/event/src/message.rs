//! A stored message: its content, role, turn and end.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::Timestamp;
use crate::content::{ContentBlock, StopReason, TokenUsage};
use crate::id::{MessageId, SessionId, TurnId};
use crate::json_object::JsonObject;

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The end user's message.
    User,
    /// A message of the model.
    Assistant,
    /// A tool's result, addressed to the model.
    Tool,
    /// A message of the server.
    System,
}

/// The state of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MessageStatus {
    /// The message is still streaming.
    InProgress,
    /// The message ended normally.
    Complete,
    /// Cut off by a cancel.
    Cancelled,
    /// Cut off by a failure.
    Failed,
}

/// Provider-specific state of a message that must be sent back to the same provider with it:
/// tool use ids, signatures, encrypted reasoning. Clients never see it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProviderState {
    /// The provider that produced the state; it is sent to no other.
    pub by: String,
    /// The state by block index, in that provider's format.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub blocks: BTreeMap<u32, Value>,
}

impl ProviderState {
    /// True if no provider produced any state.
    pub fn is_empty(&self) -> bool {
        self.by.is_empty()
    }
}

/// One message of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Message {
    pub id: MessageId,
    pub session_id: SessionId,
    /// The turn that the message belongs to.
    pub turn_id: TurnId,
    pub role: Role,
    pub status: MessageStatus,
    pub content: Vec<ContentBlock>,
    /// The bytes of content and metadata that a list or a snapshot leaves out because they exceed it;
    /// `GET /sessions/{id}/messages/{message_id}` has them. Absent if nothing is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted_bytes: Option<u64>,
    /// The model that produced the message; `None` for other roles.
    pub model: Option<String>,
    pub stop_reason: Option<StopReason>,
    pub usage: Option<TokenUsage>,
    /// The time at which the message started.
    pub created_at: Timestamp,
    /// Free-form data that clients or the server attach.
    pub metadata: JsonObject,
    /// Provider state, sent back to the provider and on no wire.
    #[serde(skip)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub provider_state: ProviderState,
}

impl Message {
    /// Leaves out content and metadata of `bytes` in all.
    pub fn omit_content(&mut self, bytes: u64) {
        self.content = Vec::new();
        self.metadata = JsonObject::default();
        self.omitted_bytes = Some(bytes);
    }

    /// The concatenated text of all text blocks.
    pub fn text(&self) -> String {
        self.content
            .iter()
            .filter_map(ContentBlock::as_text)
            .collect()
    }
}

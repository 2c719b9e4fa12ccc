//! `feedback.*`: what a person thought of it.

use serde::{Deserialize, Serialize};

use crate::id::{MessageId, TurnId};

/// Feedback on a message or a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recorded {
    /// The message it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// The turn it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    /// The rating, in the client's own scale.
    pub rating: String,
    /// In words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

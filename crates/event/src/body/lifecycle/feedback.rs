//! `feedback.*`: a user's rating of a message or a turn.

use serde::{Deserialize, Serialize};

use crate::id::{MessageId, TurnId};

/// Feedback on a message or a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FeedbackRecorded {
    /// The rated message; absent for the rating of a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// The rated turn; absent for the rating of a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    /// The rating, on the client's own scale.
    pub rating: String,
    /// The user's comment, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

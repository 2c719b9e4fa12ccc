//! `/sessions/{id}/messages`: what was said, a page at a time, walking back.

use serde::{Deserialize, Serialize};
use turnwire_event::{Message, MessageId};

/// 200 of `GET /sessions/{id}/messages`: the newest page first, each page oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "MessageList"))]
pub struct List {
    /// The messages.
    pub messages: Vec<Message>,
    /// What to send as `before` for older ones.
    pub next: Option<MessageId>,
}

//! `/sessions/{id}/messages`: the stored messages, one page at a time, from the newest back.

use serde::{Deserialize, Serialize};
use turnwire_event::{Message, MessageId};

/// 200 of `GET /sessions/{id}/messages`: the newest page first, each page oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "MessageList")
)]
pub struct MessagesResponse {
    /// One page of messages, oldest first.
    pub messages: Vec<Message>,
    /// The `before` of the next page; null on the last page.
    pub next: Option<MessageId>,
}

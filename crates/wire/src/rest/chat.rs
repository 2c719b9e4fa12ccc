//! `/chat/stream`: one turn whose response is its own stream, in a given or a new session.

use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use turnwire_event::SessionId;
use turnwire_event::code::{OnBusy, OnDisconnect};

use super::content::integer;
use super::content::{MessageInput, MetadataInput};
pub use super::turn::LOCATION_CHARS_MAX;
#[cfg(feature = "schema")]
use super::turn::{DISCONNECT_GRACE_MS_MAX, LOCALE_BYTES_MAX, LOCALE_PATTERN};

/// The request of `POST /chat/stream`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "Chat")
)]
#[serde(deny_unknown_fields)]
pub struct ChatRequest {
    /// The session to continue; a new one is created if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<SessionId>"))]
    pub session_id: Option<String>,
    /// The message of the user.
    pub message: MessageInput,
    /// The user's language; if absent, that of `Accept-Language`, else `en` (D-19).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = LOCALE_BYTES_MAX), regex(pattern = LOCALE_PATTERN)))]
    pub locale: Option<String>,
    /// Where the user is, as free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = LOCATION_CHARS_MAX)))]
    pub location: Option<String>,
    /// Any data of the client, stored with the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<MetadataInput>,
    /// What happens when the client disconnects; `cancel` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_disconnect: Option<OnDisconnect>,
    /// How long the client may be disconnected first, in milliseconds.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "integer::option"
    )]
    #[cfg_attr(feature = "schema", schemars(range(max = DISCONNECT_GRACE_MS_MAX)))]
    pub disconnect_grace_ms: Option<u64>,
    /// What happens while another turn runs; the request is rejected if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_busy: Option<OnBusy>,
}

impl ChatRequest {
    /// A turn in a new session with this message and defaults for everything else.
    pub fn text(message: impl Into<String>) -> Self {
        Self {
            session_id: None,
            message: MessageInput::Text(message.into()),
            locale: None,
            location: None,
            metadata: None,
            on_disconnect: None,
            disconnect_grace_ms: None,
            on_busy: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn chat_request_omits_defaults_and_rejects_unknown_fields() {
        let small = json!({"message": "hi"});
        let chat: ChatRequest = serde_json::from_value(small.clone()).expect("a chat");
        assert_eq!(chat, ChatRequest::text("hi"));
        assert_eq!(serde_json::to_value(&chat).expect("plain data"), small);
        let all_fields = json!({
            "session_id": "sess_00000000000000000000000001",
            "message": [{"type": "text", "text": "hi"}],
            "locale": "de-AT",
            "location": "Graz",
            "metadata": {"page": 3},
            "on_disconnect": "continue",
            "disconnect_grace_ms": 500,
            "on_busy": "interrupt",
        });
        let chat: ChatRequest = serde_json::from_value(all_fields.clone()).expect("a chat");
        assert_eq!(serde_json::to_value(&chat).expect("plain data"), all_fields);
        let unknown = serde_json::from_value::<ChatRequest>(json!({"message": "hi", "model": "x"}));
        let error = unknown.expect_err("refused").to_string();
        assert!(error.starts_with("unknown field `model`"), "{error}");
    }
}

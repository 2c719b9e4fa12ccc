//! `/chat/stream`: one turn whose answer is its own stream, with a session made if none is named.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
#[cfg(feature = "schema")]
use turnwire_event::SessionId;
use turnwire_event::code::{OnBusy, OnDisconnect};

use super::content::Input;
pub use super::turn::LOCATION_CHARS_MAX;
#[cfg(feature = "schema")]
use super::turn::{DISCONNECT_GRACE_MS_MAX, LOCALE_BYTES_MAX, LOCALE_PATTERN};
use super::whole;

/// `POST /chat/stream`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Chat {
    /// The session that goes on; a new one if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<SessionId>"))]
    pub session_id: Option<String>,
    /// What the person says.
    pub message: Input,
    /// The language the person wants; else that of `Accept-Language`, else `en` (D-19).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = LOCALE_BYTES_MAX), regex(pattern = LOCALE_PATTERN)))]
    pub locale: Option<String>,
    /// Where the person is, in the client's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = LOCATION_CHARS_MAX)))]
    pub location: Option<String>,
    /// Whatever the client wants to find again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// What happens when the client leaves; the turn is cancelled if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_disconnect: Option<OnDisconnect>,
    /// How long it may be away first.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole::option"
    )]
    #[cfg_attr(feature = "schema", schemars(range(max = DISCONNECT_GRACE_MS_MAX)))]
    pub disconnect_grace_ms: Option<u64>,
    /// What happens when the session is busy; the turn is refused if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_busy: Option<OnBusy>,
}

impl Chat {
    /// A turn that says `message` in a new session, everything else left to the server.
    pub fn text(message: impl Into<String>) -> Self {
        Self {
            session_id: None,
            message: Input::Text(message.into()),
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
    fn a_chat_says_only_what_differs_and_names_what_it_does_not_know() {
        let small = json!({"message": "hi"});
        let chat: Chat = serde_json::from_value(small.clone()).expect("a chat");
        assert_eq!(chat, Chat::text("hi"));
        assert_eq!(serde_json::to_value(&chat).expect("plain data"), small);
        let whole = json!({
            "session_id": "sess_00000000000000000000000001",
            "message": [{"type": "text", "text": "hi"}],
            "locale": "de-AT",
            "location": "Graz",
            "metadata": {"page": 3},
            "on_disconnect": "continue",
            "disconnect_grace_ms": 500,
            "on_busy": "interrupt",
        });
        let chat: Chat = serde_json::from_value(whole.clone()).expect("a chat");
        assert_eq!(serde_json::to_value(&chat).expect("plain data"), whole);
        let unknown = serde_json::from_value::<Chat>(json!({"message": "hi", "model": "x"}));
        let why = unknown.expect_err("refused").to_string();
        assert!(why.starts_with("unknown field `model`"), "{why}");
    }
}

//! What a request says about a turn, checked once for every route that takes one.

use axum::http::HeaderMap;
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use turnwire_event::TraceContext;
use turnwire_event::code::{OnBusy, OnDisconnect, Origin};
use turnwire_session::SubmitRequest;
use turnwire_session::{DisconnectScope, IdempotencyKey};
use turnwire_wire::pc3::WireVersion;
use turnwire_wire::problem::Code;
use turnwire_wire::rest::chat::LOCATION_CHARS_MAX;
use turnwire_wire::rest::content::{InvalidContent, MessageInput};
use turnwire_wire::rest::turn::DISCONNECT_GRACE_MS_MAX;

use crate::error::RequestFault;
use crate::request::header::only;
use crate::request::locale;

/// The header that chooses the version of the chat wire (D-09).
pub(crate) const WIRE_VERSION: &str = "X-Wire-Version";

/// The header that makes a submit repeatable.
const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// The longest key: twice what the longest UUID library writes, and a bound on a row.
const KEY_BYTES_MAX: usize = 255;

/// A turn as a request describes it.
pub(crate) struct ParsedSubmit {
    pub(crate) message: MessageInput,
    pub(crate) locale: Option<String>,
    pub(crate) location: Option<String>,
    pub(crate) metadata: Option<Map<String, Value>>,
    pub(crate) on_disconnect: OnDisconnect,
    pub(crate) disconnect_grace_ms: Option<u64>,
    pub(crate) on_busy: Option<OnBusy>,
    pub(crate) disconnect_scope: DisconnectScope,
    pub(crate) origin: Origin,
    pub(crate) dm_type: Option<String>,
}

/// A field that makes no sense.
pub(crate) fn invalid(field: &str, what: &str) -> RequestFault {
    RequestFault::new(Code::InvalidRequest, format!("{field} {what}.")).with("field", field)
}

/// The version of the chat wire that the request asks for.
pub(crate) fn version(headers: &HeaderMap) -> Result<Option<WireVersion>, RequestFault> {
    let invalid = || invalid(WIRE_VERSION, "must be 0.5 or 0.4, said once");
    let version = only(headers, WIRE_VERSION).map_err(|_| invalid())?;
    version.map(str::parse).transpose().map_err(|_| invalid())
}

/// What a key must be.
pub(crate) fn key_rule() -> String {
    format!("must be 1 to {KEY_BYTES_MAX} printable ASCII characters without spaces")
}

/// Whether it can be the key of a submit.
pub(crate) fn is_key(key: &str) -> bool {
    let printable = key.bytes().all(|b| b.is_ascii_graphic());
    printable && (1..=KEY_BYTES_MAX).contains(&key.len())
}

/// The key of a submit, bound to the body it came with.
pub(crate) fn key<T: Serialize>(
    headers: &HeaderMap,
    route: &'static str,
    body: &T,
) -> Result<Option<IdempotencyKey>, RequestFault> {
    let invalid = || invalid(IDEMPOTENCY_KEY, &format!("{}, said once", key_rule()));
    let Some(key) = only(headers, IDEMPOTENCY_KEY).map_err(|_| invalid())? else {
        return Ok(None);
    };
    if !is_key(key) {
        return Err(invalid());
    }
    // What the body says, not how it is written: white space and order of fields do not count.
    let mut value = serde_json::to_value(body).map_err(|_| RequestFault::internal())?;
    value.sort_all_objects();
    let canonical = serde_json::to_vec(&value).map_err(|_| RequestFault::internal())?;
    Ok(Some(IdempotencyKey {
        route,
        key: key.to_owned(),
        body_sha256: Sha256::digest(canonical).into(),
    }))
}

/// What a request says about a turn, or why it says nothing that can be done.
pub(crate) fn checked(
    asked: ParsedSubmit,
    headers: &HeaderMap,
    trace: Option<TraceContext>,
    version: WireVersion,
) -> Result<SubmitRequest, RequestFault> {
    let locale = locale::chosen(asked.locale, headers)?;
    let disconnect_grace_ms = asked.disconnect_grace_ms.unwrap_or(0);
    if disconnect_grace_ms > DISCONNECT_GRACE_MS_MAX {
        let message = format!("must be a whole number from 0 to {DISCONNECT_GRACE_MS_MAX}");
        return Err(invalid("disconnect_grace_ms", &message));
    }
    let long = |location: &String| location.chars().count() > LOCATION_CHARS_MAX;
    if asked.location.as_ref().is_some_and(long) {
        let message = format!("may have {LOCATION_CHARS_MAX} characters");
        return Err(invalid("location", &message));
    }
    if let Some(kind) = &asked.dm_type {
        let named = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let first = kind.starts_with(|c: char| c.is_ascii_lowercase());
        if !first || kind.len() > 32 || !kind.chars().all(named) {
            let message = "is a word such as `daily_digest`: up to 32 letters a to z, digits and _";
            return Err(invalid("dm_type", message));
        }
    }
    let content = asked.message.content().map_err(|bad| {
        let detail = format!("{bad}.");
        match bad {
            InvalidContent::Empty | InvalidContent::Invalid { .. } => {
                RequestFault::new(Code::InvalidRequest, detail).with("field", "message")
            }
            InvalidContent::Unsupported { kind, .. } => {
                RequestFault::new(Code::UnsupportedContent, detail).with("content_type", kind)
            }
            InvalidContent::UnknownField { field, .. } => {
                RequestFault::new(Code::UnknownField, detail).with("field", field)
            }
        }
    })?;
    Ok(SubmitRequest {
        content,
        locale,
        on_disconnect: asked.on_disconnect,
        disconnect_grace_ms,
        trace,
        on_busy: asked.on_busy.unwrap_or_default(),
        wire_version: version.to_string(),
        metadata: asked.metadata.unwrap_or_default(),
        location: asked.location,
        disconnect_scope: asked.disconnect_scope,
        origin: asked.origin,
        dm_type: asked.dm_type,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use turnwire_wire::rest::chat::ChatRequest;

    fn sha(body: Value) -> [u8; 32] {
        let headers = HeaderMap::from_iter([(
            axum::http::HeaderName::from_static("idempotency-key"),
            axum::http::HeaderValue::from_static("k"),
        )]);
        let body: ChatRequest = serde_json::from_value(body).expect("a chat");
        let key = key(&headers, "/chat/stream", &body).expect("a key");
        key.expect("it is there").body_sha256
    }

    #[test]
    fn body_hash_ignores_field_order() {
        let one = json!({"message": [{"type": "text", "text": "hi"}],
            "metadata": {"a": 1, "b": {"c": 2, "d": [3]}}});
        let other = json!({"metadata": {"b": {"d": [3], "c": 2}, "a": 1},
            "message": [{"text": "hi", "type": "text"}]});
        assert_eq!(sha(one.clone()), sha(other));
        assert_ne!(sha(one), sha(json!({"message": "hi"})));
    }

    #[test]
    fn key_is_one_word_and_version_is_known() {
        let said = |name: &'static str, value: &str| {
            HeaderMap::from_iter([(
                axum::http::HeaderName::from_static(name),
                value.parse().expect("a header"),
            )])
        };
        let long = "k".repeat(KEY_BYTES_MAX + 1);
        for bad in ["", "a b", long.as_str()] {
            let key = key(&said("idempotency-key", bad), "/x", &json!({}));
            assert_eq!(
                key.expect_err("no key").code(),
                Code::InvalidRequest,
                "{bad}"
            );
        }
        assert_eq!(key(&HeaderMap::new(), "/x", &json!({})), Ok(None));
        let asked = version(&said("x-wire-version", "0.4"));
        assert_eq!(asked, Ok(Some(WireVersion::V04)));
        for bad in ["", "0.6", "0.5 ", "v0.5"] {
            let refused = version(&said("x-wire-version", bad)).expect_err("unknown");
            assert_eq!(refused.code(), Code::InvalidRequest, "{bad}");
        }
    }
}

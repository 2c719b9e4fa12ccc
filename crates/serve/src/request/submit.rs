//! The submit of a turn, checked the same way for every route that accepts one.

use axum::http::HeaderMap;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use turnwire_event::code::{OnDisconnect, Origin};
use turnwire_event::{CallerTrace, JobName, JsonObject, TracePropagation};
use turnwire_session::{DisconnectScope, IdempotencyKey, LISTED_PATH_BYTES_MAX, SubmitRequest};
use turnwire_wire::pc3::WireVersion;
use turnwire_wire::problem::Code;
use turnwire_wire::rest::chat::LOCATION_CHARS_MAX;
use turnwire_wire::rest::content::{
    InvalidContent, METADATA_READ_BYTES_MAX, MessageInput, MetadataInput,
};
use turnwire_wire::rest::turn::{DISCONNECT_GRACE_MS_MAX, TurnSubmit};

use crate::access::header::single_value;
use crate::config::ServerConfig;
use crate::error::RequestFault;
use crate::request::locale;

/// The header that selects the [`WireVersion`] (D-09).
pub(crate) const WIRE_VERSION: &str = "X-Wire-Version";

/// The header that makes a submit repeatable.
const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// The longest key, in bytes: far above a UUID, and a bound on a row.
const KEY_BYTES_MAX: usize = 255;

/// The [`WireVersion`] that the request asks for.
pub(crate) fn version(headers: &HeaderMap) -> Result<Option<WireVersion>, RequestFault> {
    let invalid = || RequestFault::invalid(WIRE_VERSION, "must be 0.5 or 0.4, sent once");
    let version = single_value(headers, WIRE_VERSION).map_err(|_| invalid())?;
    version.map(str::parse).transpose().map_err(|_| invalid())
}

/// The rule for idempotency keys.
pub(crate) fn key_rule() -> String {
    format!("must be 1 to {KEY_BYTES_MAX} printable ASCII characters without spaces")
}

/// True if `key` is a valid idempotency key.
pub(crate) fn is_key(key: &str) -> bool {
    let printable = key.bytes().all(|b| b.is_ascii_graphic());
    printable && (1..=KEY_BYTES_MAX).contains(&key.len())
}

/// The [`IdempotencyKey`] of a submit, bound to its body.
pub(crate) fn key<T: Serialize>(
    headers: &HeaderMap,
    route: &'static str,
    body: &T,
) -> Result<Option<IdempotencyKey>, RequestFault> {
    let rule = || format!("{}, sent once", key_rule());
    let invalid = || RequestFault::invalid(IDEMPOTENCY_KEY, rule());
    let Some(key) = single_value(headers, IDEMPOTENCY_KEY).map_err(|_| invalid())? else {
        return Ok(None);
    };
    if !is_key(key) {
        return Err(invalid());
    }
    // The values of the body, not its text: white space and the order of fields do not matter.
    let mut value = serde_json::to_value(body).map_err(|_| RequestFault::internal())?;
    value.sort_all_objects();
    let canonical = serde_json::to_vec(&value).map_err(|_| RequestFault::internal())?;
    Ok(Some(IdempotencyKey {
        route,
        key: key.to_owned(),
        body_sha256: Sha256::digest(canonical).into(),
    }))
}

// Metadata that the setting allows is kept while it is read.
const _: () = assert!(LISTED_PATH_BYTES_MAX <= METADATA_READ_BYTES_MAX);

/// The metadata of a request, empty if absent; refused above `bytes_max` bytes as JSON.
pub(crate) fn metadata(
    input: Option<MetadataInput>,
    bytes_max: usize,
) -> Result<JsonObject, RequestFault> {
    let object = input.map_or(Ok(JsonObject::default()), |input| input.up_to(bytes_max));
    object.map_err(|object| RequestFault::oversized("metadata", object.bytes, bytes_max))
}

/// Refuses metadata and messages above the limits of `config`, before their [`key`] is computed:
/// parsed values take many times the bytes of their text.
pub(crate) fn check_sizes(
    message: &MessageInput,
    metadata: Option<&MetadataInput>,
    config: &ServerConfig,
) -> Result<(), RequestFault> {
    let bytes = metadata.map_or(0, MetadataInput::bytes);
    RequestFault::check_bytes("metadata", bytes, config.session.metadata_max_bytes)?;
    let (count, max) = (message.block_count(), config.turn.message_blocks_max);
    if count > max {
        let rule = format!("has {count} blocks and may have {max}");
        return Err(RequestFault::invalid("message", rule).with("limit_blocks", max));
    }
    Ok(())
}

/// The job of a submit, which a person's message does not have.
pub(crate) fn job(submit: &TurnSubmit) -> Result<Option<JobName>, RequestFault> {
    let Some(name) = &submit.job else {
        return Ok(None);
    };
    if submit.origin == Some(Origin::Chat) {
        let rule = "is not for the origin chat";
        return Err(RequestFault::invalid("job", rule));
    }
    let rule = "is a name such as `daily-digest`: up to 64 letters, digits, `.`, `_` and `-`, of which \
                the first is a letter or a digit";
    let job = name.parse().map(Some);
    job.map_err(|_| RequestFault::invalid("job", rule))
}

/// The [`SubmitRequest`] of a body, or what is wrong with it. Without `on_disconnect`, a turn that is
/// streamed by its own response is cancelled with its stream, and others continue.
pub(crate) fn checked(
    submit: TurnSubmit,
    disconnect_scope: DisconnectScope,
    headers: &HeaderMap,
    caller: Option<CallerTrace>,
    version: WireVersion,
    metadata_bytes_max: usize,
) -> Result<SubmitRequest, RequestFault> {
    let locale = locale::chosen(submit.locale, headers)?;
    let disconnect_grace_ms = submit.disconnect_grace_ms.unwrap_or(0);
    if disconnect_grace_ms > DISCONNECT_GRACE_MS_MAX {
        let rule = format!("must be a whole number from 0 to {DISCONNECT_GRACE_MS_MAX}");
        return Err(RequestFault::invalid("disconnect_grace_ms", rule));
    }
    RequestFault::check_length("location", submit.location.as_deref(), LOCATION_CHARS_MAX)?;
    if let Some(kind) = &submit.dm_type {
        let named = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let first = kind.starts_with(|c: char| c.is_ascii_lowercase());
        if !first || kind.len() > 32 || !kind.chars().all(named) {
            let rule = "is a word such as `daily_digest`: up to 32 letters a to z, digits and _";
            return Err(RequestFault::invalid("dm_type", rule));
        }
    }
    let metadata = metadata(submit.metadata, metadata_bytes_max)?;
    let content = submit.message.content().map_err(|bad| {
        let detail = format!("{bad}.");
        match bad {
            InvalidContent::Empty
            | InvalidContent::TooManyBlocks { .. }
            | InvalidContent::Invalid { .. } => {
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
    let on_disconnect = match disconnect_scope {
        DisconnectScope::Stream => OnDisconnect::Cancel,
        DisconnectScope::Session => OnDisconnect::Continue,
    };
    let (trace, propagation) = match caller {
        None => (None, TracePropagation::default()),
        Some(caller) => (Some(caller.context), caller.propagation),
    };
    Ok(SubmitRequest {
        content,
        locale,
        on_disconnect: submit.on_disconnect.unwrap_or(on_disconnect),
        disconnect_grace_ms,
        trace,
        propagation,
        on_busy: submit.on_busy.unwrap_or_default(),
        wire_version: version.to_string(),
        metadata,
        location: submit.location,
        disconnect_scope,
        origin: submit.origin.unwrap_or(match submit.job {
            Some(_) => Origin::Scheduled,
            None => Origin::Chat,
        }),
        dm_type: submit.dm_type,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SettingSources;
    use serde_json::{Value, json};
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
    fn sizes_are_refused_with_their_limits() {
        let sources = SettingSources {
            home: Some("/nonexistent/turnwire".into()),
            ..SettingSources::default()
        };
        let mut config = ServerConfig::load(&sources).expect("defaults");
        config.session.metadata_max_bytes = 64;
        config.turn.message_blocks_max = 2;
        let checked = |body: Value| {
            let body: ChatRequest = serde_json::from_value(body).expect("a chat");
            check_sizes(&body.message, body.metadata.as_ref(), &config)
        };
        let block = json!({"type": "text", "text": "a"});
        let labelled = |bytes: usize| json!({"m": "x".repeat(bytes - 8)});
        let allowed = json!({"message": vec![block.clone(); 2], "metadata": labelled(64)});
        assert_eq!(checked(allowed), Ok(()));
        for bytes in [65, 100_000] {
            let refused = RequestFault::oversized("metadata", bytes, 64);
            let body = json!({"message": "a", "metadata": labelled(bytes)});
            assert_eq!(checked(body), Err(refused.clone()));
            let input = serde_json::from_value(labelled(bytes)).expect("an object");
            assert_eq!(metadata(Some(input), 64), Err(refused));
        }
        for count in [3, 38_001] {
            let rule = format!("has {count} blocks and may have 2");
            let refused = RequestFault::invalid("message", rule).with("limit_blocks", 2);
            let body = json!({"message": vec![block.clone(); count]});
            assert_eq!(checked(body), Err(refused));
        }
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
        let submit = version(&said("x-wire-version", "0.4"));
        assert_eq!(submit, Ok(Some(WireVersion::V04)));
        for bad in ["", "0.6", "0.5 ", "v0.5"] {
            let refused = version(&said("x-wire-version", bad)).expect_err("unknown");
            assert_eq!(refused.code(), Code::InvalidRequest, "{bad}");
        }
    }
}

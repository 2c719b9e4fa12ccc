//! What the model gets to see of an answer: its status and its body, and no header.

use serde_json::{Value, json};
use turnwire_dial::{DialError, Reply};
use turnwire_event::code::ToolErrorClass;

use crate::secrets::Secrets;
use crate::tool::ToolFailure;

/// Of the body of an answer that is an error: enough to say what was wrong.
const ERROR_BYTES_MAX: usize = 2 * 1_024;
/// The result that `reply` is, or the failure.
pub(super) fn judge(reply: &Reply, secrets: &Secrets) -> Result<Value, ToolFailure> {
    let kind = reply.content_type();
    let text = text(reply, &kind);
    let json = text.as_deref().filter(|_| json_kind(&kind));
    let json: Option<Value> = json.and_then(|text| serde_json::from_str(text).ok());
    if reply.status >= 400 {
        let told = format!("The service answered with status {}", reply.status);
        let shown = text.map(|text| {
            // In JSON a key may be written in many ways; where there is none, the words stay as
            // they are.
            let hidden = json.map(|json| (secrets.hide_in(json.clone()), json));
            let hidden = hidden.filter(|(hidden, json)| hidden != json);
            hidden.map_or_else(|| secrets.hide(text), |(hidden, _)| hidden.to_string())
        });
        let body = shown.as_deref().map(excerpt).unwrap_or_default();
        return Err(ToolFailure::internal(if body.is_empty() {
            format!("{told}.")
        } else {
            format!("{told}: {body}")
        }));
    }
    let text = text.ok_or_else(|| ToolFailure::internal("The answer is neither JSON nor text."))?;
    let body = match json {
        Some(json) => secrets.hide_in(json),
        None if text.is_empty() => Value::Null,
        // What says that it is JSON and is not is still text.
        None => Value::String(secrets.hide(text)),
    };
    Ok(json!({"status": reply.status, "body": body}))
}

/// Why there is no answer, in words that tell nothing of the other side.
pub(super) fn failure(error: DialError) -> ToolFailure {
    match error {
        DialError::Refused => ToolFailure::internal("The address is not allowed."),
        DialError::Timeout | DialError::Unconnected => ToolFailure::new(
            ToolErrorClass::Timeout,
            "The service did not answer in time.",
        ),
        DialError::Unreachable | DialError::Setup => {
            ToolFailure::internal("The service could not be reached.")
        }
        DialError::TooLarge { max_bytes } => {
            ToolFailure::internal(format!("The answer is larger than {max_bytes} bytes."))
        }
        DialError::Encoded => ToolFailure::internal("The answer is neither JSON nor text."),
        DialError::Redirects => ToolFailure::internal("The service sent the request on too often."),
    }
}

fn json_kind(kind: &str) -> bool {
    kind == "application/json" || kind.ends_with("+json")
}

/// The body as text, if it is any.
fn text(reply: &Reply, kind: &str) -> Option<String> {
    match std::str::from_utf8(&reply.body) {
        Ok(text) => Some(text.to_owned()),
        Err(_) if kind.starts_with("text/") => {
            Some(String::from_utf8_lossy(&reply.body).into_owned())
        }
        Err(_) => None,
    }
}

/// The beginning of `text`, whole characters only.
fn excerpt(text: &str) -> &str {
    let text = text.trim();
    let mut end = text.len().min(ERROR_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

//! What the model gets of a response: its status and its body, and no header.

use std::borrow::Cow;

use serde_json::{Value, json};
use turnwire_dial::{DialError, HttpResponse};
use turnwire_event::code::ToolErrorClass;

use crate::secrets::Secrets;
use crate::tool::ToolFailure;

/// The limit of the body of an error response: enough to say what was wrong.
const ERROR_BYTES_MAX: usize = 2 * 1_024;

/// The result, or the failure, of `response`.
pub(super) fn result(response: &HttpResponse, secrets: &Secrets) -> Result<Value, ToolFailure> {
    let content_type = response.content_type();
    let text = text(response, &content_type);
    let json = text.as_deref().filter(|_| is_json(&content_type));
    let json: Option<Value> = json.and_then(|text| serde_json::from_str(text).ok());
    let status = response.status;
    if status >= 400 {
        let message = format!("The service answered with status {status}");
        let body = text.map(|text| {
            // In JSON a key may be written in many ways. A body without keys is not changed.
            let hidden = json.map(|json| (secrets.hide_in(json.clone()), json));
            let hidden = hidden.filter(|(hidden, json)| hidden != json);
            hidden.map_or_else(|| secrets.hide(text), |(hidden, _)| hidden.to_string())
        });
        let body = body.as_deref().map(excerpt).unwrap_or_default();
        return Err(ToolFailure::internal(if body.is_empty() {
            format!("{message}.")
        } else {
            format!("{message}: {body}")
        }));
    }
    let text = text.ok_or_else(|| ToolFailure::internal(NOT_TEXT))?;
    let body = match json {
        Some(json) => secrets.hide_in(json),
        None if text.is_empty() => Value::Null,
        None if is_json(&content_type) => return Err(ToolFailure::internal(NOT_JSON)),
        None => Value::String(secrets.hide(text)),
    };
    Ok(json!({"status": status, "body": body}))
}

const NOT_JSON: &str = "The response is labelled as JSON and cannot be read as JSON.";
const NOT_TEXT: &str = "The response is neither JSON nor text.";

/// The failure without a response. Its text says nothing about the host.
pub(super) fn failure(error: DialError) -> ToolFailure {
    let message = match error {
        DialError::Refused => "The address is not allowed.",
        DialError::Timeout | DialError::ConnectTimeout => {
            let message = "The service did not answer in time.";
            return ToolFailure::new(ToolErrorClass::Timeout, message);
        }
        DialError::Unreachable | DialError::Setup => "The service could not be reached.",
        DialError::TooLarge { max_bytes } => {
            &format!("The response is larger than {max_bytes} bytes.")
        }
        DialError::UnexpectedEncoding => NOT_TEXT,
        DialError::TooManyRedirects => "The service redirected too often.",
    };
    ToolFailure::internal(message)
}

fn is_json(content_type: &str) -> bool {
    content_type == "application/json" || content_type.ends_with("+json")
}

/// The body, if it is text.
fn text(response: &HttpResponse, content_type: &str) -> Option<String> {
    let text = String::from_utf8_lossy(&response.body);
    // An owned text has replacement characters for bytes that are not UTF-8.
    let is_text = matches!(text, Cow::Borrowed(_)) || content_type.starts_with("text/");
    is_text.then(|| text.into_owned())
}

/// The beginning of `text`, in whole characters.
fn excerpt(text: &str) -> &str {
    let text = text.trim();
    &text[..text.floor_char_boundary(ERROR_BYTES_MAX)]
}

//! What the model gets to see of an answer: its status and its body, and no header.

use serde_json::{Value, json};
use turnwire_dial::{DialError, Reply};
use turnwire_event::code::ToolErrorClass;

use crate::tool::ToolFailure;

/// Of the body of an answer that is an error: enough to say what was wrong.
const ERROR_BYTES_MAX: usize = 2 * 1_024;
/// Shorter texts are words, not keys.
const SECRET_CHARS_MIN: usize = 8;
/// Parts of the names of headers and parameters that carry keys. The values of others (a version, a date) may
/// well be in an answer and mean something there.
const KEY_NAMES: [&str; 7] = [
    "auth", "key", "token", "secret", "pass", "cookie", "session",
];

/// The keys that a tool sends along. A service that repeats them does not get them to the model.
#[derive(Clone, Default)]
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    /// The values of those of `pairs` that carry keys, whole and each word of them.
    pub(super) fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let carries = |name: &str| {
            let name = name.to_ascii_lowercase();
            KEY_NAMES.iter().any(|part| name.contains(part))
        };
        let words = |value: &'a str| std::iter::once(value).chain(value.split_whitespace());
        let mut all: Vec<String> = pairs
            .into_iter()
            .filter(|(name, _)| carries(name))
            .flat_map(|(_, value)| words(value))
            .filter(|word| word.len() >= SECRET_CHARS_MIN)
            .map(str::to_owned)
            .collect();
        // The longest first: a part that is taken out would leave the rest of the whole.
        all.sort_by_key(|word| std::cmp::Reverse(word.len()));
        all.dedup();
        Self(all)
    }

    fn hide(&self, text: String) -> String {
        let hide = |text: String, secret: &String| {
            if text.contains(secret.as_str()) {
                text.replace(secret.as_str(), "***")
            } else {
                text
            }
        };
        self.0.iter().fold(text, hide)
    }
}

/// The result that `reply` is, or the failure.
pub(super) fn judge(reply: &Reply, secrets: &Secrets) -> Result<Value, ToolFailure> {
    let kind = reply.content_type();
    let text = text(reply, &kind).map(|text| secrets.hide(text));
    if reply.status >= 400 {
        let told = format!("The service answered with status {}", reply.status);
        let body = text.as_deref().map(excerpt).unwrap_or_default();
        return Err(ToolFailure::internal(if body.is_empty() {
            format!("{told}.")
        } else {
            format!("{told}: {body}")
        }));
    }
    let text = text.ok_or_else(|| ToolFailure::internal("The answer is neither JSON nor text."))?;
    let body = if text.is_empty() {
        Value::Null
    } else if json_kind(&kind) {
        // What says that it is JSON and is not is still text.
        serde_json::from_str(&text).unwrap_or(Value::String(text))
    } else {
        Value::String(text)
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

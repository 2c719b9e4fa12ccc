//! Codes, counts and message text as words.

use serde::Serialize;
use serde_json::Value;
use turnwire_client::Error;
use turnwire_event::ContentBlock;

/// A code as the log and the wires write it.
pub(crate) fn code_name(code: impl Serialize) -> String {
    match serde_json::to_value(code) {
        Ok(Value::String(name)) => name,
        Ok(_) | Err(_) => String::new(),
    }
}

/// An error of the server as a sentence, without its code.
pub(crate) fn error_text(error: &Error) -> String {
    match error {
        Error::Problem(problem) => format!("{}: {}", problem.title, problem.detail),
        Error::Certificate { .. } => {
            format!("{error}; --ca-file names the file of an authority of your own")
        }
        Error::SubscribeRejected { message, .. } => message.clone(),
        other => other.to_string(),
    }
}

/// A number with its noun in the singular or plural.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// The [`ContentBlock::Text`] blocks of `content`, joined with `separator`.
pub(crate) fn text_of(content: &[ContentBlock], separator: &str) -> String {
    let texts: Vec<&str> = content.iter().filter_map(ContentBlock::as_text).collect();
    texts.join(separator)
}

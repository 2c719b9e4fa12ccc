//! The parser's words for a person who writes YAML, not Rust: what is wrong and what to write.

use serde_saphyr::{Error, MessageFormatter as _};
use turnwire_pack::{listed, nearest, shown};

/// A map, and how one is written.
const PAIRS: (&str, &str) = ("`key: value` pairs", "`key: value`, a line for each");

/// What is wrong, and what to write instead if that is known.
pub(crate) fn of(error: &Error) -> (String, Option<String>) {
    match error {
        Error::SerdeUnknownField {
            field, expected, ..
        } => unknown(field, expected),
        Error::DuplicateMappingKey { key, .. } => {
            let key = shown(key.as_deref().unwrap_or_default());
            let what = format!("the key `{key}` is there twice");
            (what, Some("each key once".to_owned()))
        }
        Error::Eof { .. } => ("the file ends too early".to_owned(), None),
        Error::MultipleDocuments { .. } => {
            let what = "a second document begins here (`---`)".to_owned();
            (what, Some("one document a file".to_owned()))
        }
        Error::Unexpected { expected, .. } => wanted(expected),
        Error::SerdeInvalidType { expected, .. } | Error::SerdeInvalidValue { expected, .. } => {
            wanted(expected)
        }
        Error::InvalidScalar { ty, .. } => wanted(ty),
        Error::InvalidBooleanStrict { .. } => wanted("bool"),
        Error::NullIntoString { .. } => wanted("string"),
        Error::NonFiniteFloat { .. } => wanted("f64"),
        Error::AliasError { error, .. } => of(error),
        other => syntax(&serde_saphyr::UserMessageFormatter.format_message(other)),
    }
}

/// Whether the text is YAML and only one thing in it has a shape that does not fit.
pub(crate) fn is_shape(error: &Error) -> bool {
    matches!(
        error,
        Error::SerdeUnknownField { .. }
            | Error::SerdeMissingField { .. }
            | Error::DuplicateMappingKey { .. }
            | Error::Unexpected { .. }
            | Error::SerdeInvalidType { .. }
            | Error::SerdeInvalidValue { .. }
            | Error::InvalidScalar { .. }
            | Error::InvalidBooleanStrict { .. }
            | Error::NullIntoString { .. }
    )
}

fn unknown(field: &str, allowed: &[&str]) -> (String, Option<String>) {
    let written = shown(field);
    match nearest(field, allowed.iter().copied()) {
        Some(meant) => (
            format!("unknown field `{written}`, did you mean `{meant}`?"),
            None,
        ),
        None => (
            format!("unknown field `{written}`"),
            Some(format!("one of {}", listed(allowed.iter().copied()))),
        ),
    }
}

/// The parser's word for what should be here, as a sentence and an example.
fn wanted(expected: &str) -> (String, Option<String>) {
    let (noun, example) = match expected {
        "sequence start" | "a sequence" => ("a list", "`[a, b]`, or a line `- a` for each"),
        "mapping start" | "a map" => PAIRS,
        "string scalar" | "string" | "a string" => ("text", "it in quotes if need be"),
        "bool" | "boolean" | "a boolean" => ("true or false", ""),
        "f64" | "f32" | "float" | "floating point" => ("a number", "for example 0.25"),
        other if other.starts_with("struct ") => PAIRS,
        other if is_whole(other) => ("a whole number", "0 or more"),
        other => (other, ""),
    };
    let example = (!example.is_empty()).then(|| example.to_owned());
    (format!("this should be {noun}"), example)
}

fn is_whole(expected: &str) -> bool {
    let kind = expected.trim_start_matches("invalid ");
    kind == "integer" || matches!(kind.as_bytes(), [b'u' | b'i', b'0'..=b'9', ..])
}

/// The mistakes that are made most, each with its cure.
fn syntax(message: &str) -> (String, Option<String>) {
    let (what, instead) = match message {
        _ if message.contains("found a tab") => ("a tab is in the way", "spaces"),
        _ if message.contains("quoted scalar") || message.contains("unclosed quote") => (
            "a quotation mark is not closed",
            "one at the end of the text too",
        ),
        _ if message.contains("flow mapping") || message.contains("'}'") => {
            ("a `{` before this is not closed", "`,` or `}`")
        }
        _ if message.contains("flow sequence") || message.contains("']'") => {
            ("a `[` before this is not closed", "`,` or `]`")
        }
        _ if message.contains("only valid inside a block") => {
            ("a `[` or `{` before this is not closed", "its `]` or `}`")
        }
        _ => return (format!("this is not YAML: {}", shown(message)), None),
    };
    (what.to_owned(), Some(instead.to_owned()))
}

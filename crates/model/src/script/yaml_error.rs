//! Explains errors of the YAML parser to authors of YAML: the mistake and what to write instead.
//! The parser's own messages speak of Rust types.

use serde_saphyr::{Error, MessageFormatter as _};
use turnwire_pack::{listed, nearest, shown};

/// Name of a map, and an example.
const PAIRS: (&str, &str) = ("`key: value` pairs", "`key: value`, a line for each");

/// Describes the mistake, and what to write instead if that is known.
pub(crate) fn explain(error: &Error) -> (String, Option<String>) {
    match error {
        Error::SerdeUnknownField {
            field, expected, ..
        } => unknown_field(field, expected),
        Error::DuplicateMappingKey { key, .. } => {
            let key = shown(key.as_deref().unwrap_or_default());
            let message = format!("the key `{key}` is there twice");
            (message, Some("each key once".to_owned()))
        }
        Error::Eof { .. } => ("the file ends too early".to_owned(), None),
        Error::MultipleDocuments { .. } => {
            let message = "a second document begins here (`---`)".to_owned();
            (message, Some("one document a file".to_owned()))
        }
        Error::Unexpected { expected, .. } => expected_type(expected),
        Error::SerdeInvalidType { expected, .. } | Error::SerdeInvalidValue { expected, .. } => {
            expected_type(expected)
        }
        Error::InvalidScalar { ty, .. } => expected_type(ty),
        Error::InvalidBooleanStrict { .. } => expected_type("bool"),
        Error::NullIntoString { .. } => expected_type("string"),
        Error::NonFiniteFloat { .. } => expected_type("f64"),
        Error::AliasError { error, .. } => explain(error),
        other => syntax(&serde_saphyr::UserMessageFormatter.format_message(other)),
    }
}

/// True if the text is valid YAML and only a value has the wrong structure.
pub(crate) fn is_structural(error: &Error) -> bool {
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

fn unknown_field(field: &str, allowed: &[&str]) -> (String, Option<String>) {
    let written = shown(field);
    match nearest(field, allowed.iter().copied()) {
        Some(suggested) => (
            format!("unknown field `{written}`, did you mean `{suggested}`?"),
            None,
        ),
        None => (
            format!("unknown field `{written}`"),
            Some(format!("one of {}", listed(allowed.iter().copied()))),
        ),
    }
}

/// Describes an expected type, with an example.
fn expected_type(expected: &str) -> (String, Option<String>) {
    let (noun, example) = match expected {
        "sequence start" | "a sequence" => ("a list", "`[a, b]`, or a line `- a` for each"),
        "mapping start" | "a map" => PAIRS,
        "string scalar" | "string" | "a string" => ("text", "it in quotes if need be"),
        "bool" | "boolean" | "a boolean" => ("true or false", ""),
        "f64" | "f32" | "float" | "floating point" => ("a number", "for example 0.25"),
        other if other.starts_with("struct ") => PAIRS,
        other if is_integer(other) => ("a whole number", "0 or more"),
        other => (other, ""),
    };
    let example = (!example.is_empty()).then(|| example.to_owned());
    (format!("this should be {noun}"), example)
}

fn is_integer(expected: &str) -> bool {
    let kind = expected.trim_start_matches("invalid ");
    kind == "integer" || matches!(kind.as_bytes(), [b'u' | b'i', b'0'..=b'9', ..])
}

/// Describes the most common syntax errors.
fn syntax(message: &str) -> (String, Option<String>) {
    let (message, instead) = match message {
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
    (message.to_owned(), Some(instead.to_owned()))
}

//! One YAML file in, its shape out, or one finding that says in plain words where it stops making
//! sense.

use serde::de::DeserializeOwned;
use serde_saphyr::{Error, MessageFormatter as _};

use crate::finding::{Findings, shown};
use crate::nearest::{listed, nearest};
use crate::place::Place;

/// Reads a file.
pub(crate) fn read<T: DeserializeOwned>(file: &str, text: &str, found: &mut Findings) -> Option<T> {
    match serde_saphyr::from_str(text) {
        Ok(read) => Some(read),
        Err(error) => {
            tell(file, &error, found);
            None
        }
    }
}

fn tell(file: &str, error: &Error, found: &mut Findings) {
    let error = error.without_snippet();
    let place = error.location().map_or(Place::TOP, Place::from);
    let (what, instead) = words(error);
    let finding = found.error(file, place, what);
    finding.instead = instead;
}

/// What is wrong and what to write, for a person who writes YAML, not Rust.
fn words(error: &Error) -> (String, Option<String>) {
    match error {
        Error::SerdeUnknownField {
            field, expected, ..
        } => field_words(field, expected),
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().unwrap_or_default();
            let what = format!("the key `{}` is there twice", shown(key));
            (what, Some("each key once".to_owned()))
        }
        Error::Eof { .. } => ("the file is empty, or ends too early".to_owned(), None),
        Error::MultipleDocuments { .. } => {
            let what = "a second document begins here (`---`)".to_owned();
            (what, Some("one document a file".to_owned()))
        }
        Error::Unexpected { expected, .. } => (wanted(expected), None),
        Error::SerdeInvalidType { expected, .. } | Error::SerdeInvalidValue { expected, .. } => {
            (wanted(expected), None)
        }
        Error::InvalidScalar { ty, .. } => (wanted(ty), None),
        Error::InvalidBooleanStrict { .. } => (wanted("bool"), None),
        Error::NullIntoString { .. } => (wanted("string"), None),
        Error::NonFiniteFloat { .. } => (wanted("f64"), None),
        Error::AliasError { error, .. } => words(error),
        other => {
            let message = serde_saphyr::UserMessageFormatter.format_message(other);
            (format!("this is not YAML: {}", shown(&message)), None)
        }
    }
}

fn field_words(field: &str, allowed: &[&'static str]) -> (String, Option<String>) {
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

/// The parser's word for what should be here, as a sentence.
fn wanted(expected: &str) -> String {
    let noun = match expected {
        "sequence start" | "a sequence" => "a list",
        "mapping start" | "a map" => "`key: value` pairs",
        "string scalar" | "string" | "a string" => "text",
        "bool" | "boolean" | "a boolean" => "true or false",
        "f64" | "f32" | "float" | "floating point" => "a number",
        other if other.starts_with("struct ") => "`key: value` pairs",
        other if is_whole(other) => "a whole number from 0 up",
        other => other,
    };
    format!("{noun} is expected here")
}

fn is_whole(expected: &str) -> bool {
    let kind = expected.trim_start_matches("invalid ");
    kind == "integer" || matches!(kind.as_bytes(), [b'u' | b'i', b'0'..=b'9', ..])
}

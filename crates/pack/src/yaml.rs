//! One YAML file in, its shape out, or findings that say in plain words where it stops making
//! sense: the first mistake of its shape, and every key that does not belong.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_saphyr::{Error, MessageFormatter as _};

use crate::finding::{Findings, shown};
use crate::nearest::{listed, nearest};
use crate::place::Place;
use crate::schema;
use crate::tree::Tree;

/// A map, and how one is written.
const PAIRS: (&str, &str) = ("`key: value` pairs", "`key: value`, a line for each");

/// Reads a file.
pub(crate) fn read<T: DeserializeOwned + JsonSchema>(
    file: &str,
    text: &str,
    found: &mut Findings,
) -> Option<T> {
    match serde_saphyr::from_str(text) {
        Ok(read) => Some(read),
        Err(error) => {
            let error = error.without_snippet();
            let told = strays::<T>(file, text, found);
            if !(told && matches!(error, Error::SerdeUnknownField { .. })) {
                tell(file, error, found);
            }
            None
        }
    }
}

fn tell(file: &str, error: &Error, found: &mut Findings) {
    let place = error.location().map_or(Place::TOP, Place::from);
    let (what, instead) = words(error);
    found.error(file, place, what).instead = instead;
}

/// Tells the keys that do not belong; whether there are any.
fn strays<T: JsonSchema>(file: &str, text: &str, found: &mut Findings) -> bool {
    let Ok(tree) = serde_saphyr::from_str::<Tree>(text) else {
        return false;
    };
    let schema = schema::of::<T>(file);
    let strays = tree.strays(&schema);
    for stray in &strays {
        let (what, instead) = field_words(stray.key, &stray.allowed);
        found.error(file, stray.place, what).instead = instead;
    }
    !strays.is_empty()
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
        Error::Unexpected { expected, .. } => wanted(expected),
        Error::SerdeInvalidType { expected, .. } | Error::SerdeInvalidValue { expected, .. } => {
            wanted(expected)
        }
        Error::InvalidScalar { ty, .. } => wanted(ty),
        Error::InvalidBooleanStrict { .. } => wanted("bool"),
        Error::NullIntoString { .. } => wanted("string"),
        Error::NonFiniteFloat { .. } => wanted("f64"),
        Error::AliasError { error, .. } => words(error),
        other => {
            let message = serde_saphyr::UserMessageFormatter.format_message(other);
            syntax(&message)
        }
    }
}

/// The mistakes that are made most, each with its cure.
fn syntax(message: &str) -> (String, Option<String>) {
    let (what, instead) = match message {
        _ if message.contains("found a tab") => ("a tab is in the way", "spaces"),
        _ if message.contains("quoted scalar") => (
            "a quotation mark before this is not closed",
            "one at the end of the text too",
        ),
        _ if message.contains("flow mapping") => ("a `{` before this is not closed", "`,` or `}`"),
        _ if message.contains("flow sequence") => ("a `[` before this is not closed", "`,` or `]`"),
        _ => return (format!("this is not YAML: {}", shown(message)), None),
    };
    (what.to_owned(), Some(instead.to_owned()))
}

fn field_words(field: &str, allowed: &[&str]) -> (String, Option<String>) {
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

//! One YAML file in, its shape out, or findings that say in plain words where it stops making
//! sense: where the YAML breaks off, or every key and value that does not fit.

use serde::de::DeserializeOwned;
use serde_saphyr::{Error, MessageFormatter as _};

use crate::erased;
use crate::finding::{Findings, shown};
use crate::nearest::{listed, nearest};
use crate::place::{At, Place};
use crate::schema::{self, Described};
use crate::tree::{Misfit, Tree};

/// A map, and how one is written.
const PAIRS: (&str, &str) = ("`key: value` pairs", "`key: value`, a line for each");

/// Reads a file. Of one whose only mistakes are numbers and truths that are none, the rest is
/// still read: what is left out has a default.
pub(crate) fn read<T: DeserializeOwned + Described>(
    file: &str,
    text: &str,
    found: &mut Findings,
) -> Option<T> {
    let error = match erased::from_str(text) {
        Ok(read) => return Some(read),
        Err(error) => error,
    };
    let schema = schema::of::<T>();
    let tree = match erased::from_str::<At<Tree>>(text) {
        Ok(tree) => tree,
        // Not YAML at all, which matters more than where the shape was left first.
        Err(error) => {
            tell(file, text, error.without_snippet(), found);
            return None;
        }
    };
    let misfits = tree.misfits(&schema);
    if misfits.is_empty() {
        tell(file, text, error.without_snippet(), found);
        return None;
    }
    let mut rest = Some(text.to_owned());
    for misfit in &misfits {
        let (place, (what, instead)) = match misfit {
            Misfit::Stray {
                key,
                place,
                allowed,
            } => (*place, field_words(key, allowed)),
            Misfit::Kind {
                place,
                wanted,
                bounds,
            } => (*place, kind_words(wanted, *bounds)),
        };
        found.error(file, place, what).instead = instead;
        rest = rest.and_then(|rest| without(rest, misfit));
    }
    rest.and_then(|rest| erased::from_str(&rest).ok())
}

/// The text with nothing in the place of a number or a truth, all else where it was.
fn without(text: String, misfit: &Misfit<'_>) -> Option<String> {
    let Misfit::Kind { place, wanted, .. } = misfit else {
        return None;
    };
    if !matches!(wanted[..], ["integer" | "boolean"]) {
        return None;
    }
    let start: usize = text
        .split_inclusive('\n')
        .take(place.line as usize - 1)
        .map(str::len)
        .sum();
    let line = text[start..].lines().next()?;
    let at = line.char_indices().nth(place.column as usize - 1)?.0;
    let written = &line[at..];
    // Only what is plainly one word, so that nothing else is taken away with it.
    let end = written.find([',', '}', ' ', '#']).unwrap_or(written.len());
    let word = &written[..end];
    if word.is_empty() || word.contains(['[', '{', '|', '>', '&', '!']) {
        return None;
    }
    let quotes = word.matches(['"', '\'']).count();
    if quotes != 0 && quotes != 2 {
        return None;
    }
    let blank = format!("~{}", " ".repeat(word.chars().count() - 1));
    let at = start + at;
    Some(format!(
        "{}{blank}{}",
        &text[..at],
        &text[at + word.len()..]
    ))
}

fn tell(file: &str, text: &str, error: &Error, found: &mut Findings) {
    let mut place = error.location().map_or(Place::TOP, Place::from);
    let (what, instead) = words(error);
    if what == TAB {
        place = tab(text, place);
    }
    found.error(file, place, what).instead = instead;
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
        Error::Unexpected { expected, .. } => wanted_words(expected),
        Error::SerdeInvalidType { expected, .. } | Error::SerdeInvalidValue { expected, .. } => {
            wanted_words(expected)
        }
        Error::InvalidScalar { ty, .. } => wanted_words(ty),
        Error::InvalidBooleanStrict { .. } => wanted_words("bool"),
        Error::NullIntoString { .. } => wanted_words("string"),
        Error::NonFiniteFloat { .. } => wanted_words("f64"),
        Error::AliasError { error, .. } => words(error),
        other => {
            let message = serde_saphyr::UserMessageFormatter.format_message(other);
            syntax(&message)
        }
    }
}

/// A tab where YAML wants spaces.
const TAB: &str = "a tab is in the way";

/// Where the tab is: the parser may still be at the end of the line before.
fn tab(text: &str, from: Place) -> Place {
    let indented = |line: &&str| {
        line.chars()
            .take_while(|c| c.is_whitespace())
            .any(|c| c == '\t')
    };
    let lines = text.lines().zip(1_u64..);
    let mut lines = lines.filter(|(_, number)| *number >= from.line);
    let found = lines.find(|(line, _)| indented(line));
    found.map_or(from, |(line, number)| Place {
        line: number,
        column: line.find('\t').map_or(1, |at| at as u64 + 1),
    })
}

/// The mistakes that are made most, each with its cure: the parser's word for it, ours, what to
/// write. The first that is found counts.
const CURES: [(&str, &str, &str); 14] = [
    ("found a tab", TAB, "spaces"),
    ("tabs disallowed", TAB, "spaces"),
    (
        "escape",
        "a `\\` in this text begins nothing that YAML knows",
        "`\\\\`, or the text in single quotes",
    ),
    (
        "quoted scalar",
        "a quotation mark before this is not closed",
        "one at the end of the text too",
    ),
    (
        "flow mapping",
        "a `{` before this is not closed",
        "`,` or `}`",
    ),
    (
        "flow sequence",
        "a `[` before this is not closed",
        "`,` or `]`",
    ),
    (
        "placement of ':'",
        "a `:` cannot stand here: a `[` or `{` before it is not closed",
        "`]` or `}` where the list or the pairs end",
    ),
    (
        "mapping values are not allowed",
        "a second `: ` on this line, or a line too far in",
        "a text with a colon in quotes: `\"Speaks: loudly\"`",
    ),
    (
        "did not find expected key",
        "this line does not stand in line with those above",
        "as many spaces before it as before its neighbours",
    ),
    (
        "expected '-' indicator",
        "this line does not stand in line with those above",
        "as many spaces before it as before its neighbours",
    ),
    (
        "unknown anchor",
        "`*` here names an anchor that is not there",
        "`&name` before the value that is meant, further up",
    ),
    (
        "unknown value",
        "`*` here names an anchor that is not there",
        "`&name` before the value that is meant, further up",
    ),
    (
        "expected node content",
        "a value is missing here, or begins with a sign of YAML",
        "the value, in quotes if it begins with a sign",
    ),
    (
        "unexpected character",
        "a text cannot begin with this sign",
        "the text in quotes",
    ),
];

fn syntax(message: &str) -> (String, Option<String>) {
    let cure = CURES.iter().find(|(word, ..)| message.contains(word));
    match cure {
        Some((_, what, instead)) => ((*what).to_owned(), Some((*instead).to_owned())),
        None => (format!("this is not YAML: {}", shown(message)), None),
    }
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

/// The kinds that should be here, in the words of JSON Schema, as a sentence and an example.
fn kind_words(wanted: &[&str], bounds: Option<(u64, u64)>) -> (String, Option<String>) {
    if let (["integer"], Some((least, most))) = (wanted, bounds) {
        let example = format!("a number from {least} to {most}");
        return ("this should be a whole number".to_owned(), Some(example));
    }
    if let [kind] = wanted {
        return wanted_words(kind);
    }
    let nouns = wanted.iter().map(|kind| match *kind {
        "boolean" => "true, false".to_owned(),
        kind => noun(kind).0.to_owned(),
    });
    let nouns: Vec<String> = nouns.collect();
    (format!("this should be {}", nouns.join(" or ")), None)
}

/// The parser's word for what should be here, as a sentence and an example.
fn wanted_words(expected: &str) -> (String, Option<String>) {
    let (noun, example) = noun(expected);
    let example = (!example.is_empty()).then(|| example.to_owned());
    (format!("this should be {noun}"), example)
}

fn noun(expected: &str) -> (&str, &'static str) {
    match expected {
        "sequence start" | "a sequence" | "array" => {
            ("a list", "`[a, b]`, or a line `- a` for each")
        }
        "mapping start" | "a map" | "object" => PAIRS,
        "string scalar" | "string" | "a string" => ("text", "it in quotes if need be"),
        "bool" | "boolean" | "a boolean" => ("true or false", ""),
        "f64" | "f32" | "float" | "floating point" | "number" => ("a number", "for example 0.25"),
        other if other.starts_with("struct ") => PAIRS,
        other if is_whole(other) => ("a whole number", "0 or more"),
        other => (other, ""),
    }
}

fn is_whole(expected: &str) -> bool {
    let kind = expected.trim_start_matches("invalid ");
    kind == "integer" || matches!(kind.as_bytes(), [b'u' | b'i', b'0'..=b'9', ..])
}

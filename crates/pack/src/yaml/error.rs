//! Why a YAML text cannot be read, in words for a person who writes YAML and not Rust.

use std::fmt::{self, Display};

use serde::de::{self, Expected, Unexpected};
use serde_saphyr::{Error, MessageFormatter as _};

use super::position::TextPosition;
use crate::text::wording::one_line;
use crate::text::wording::{closest_name, quoted_list};

/// A text that is not YAML, or a value that does not fit the type that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlError {
    /// Where the text or the value is wrong; `None` until a position is known.
    pub position: Option<TextPosition>,
    pub message: String,
    /// What to write instead, where the message does not say it.
    pub instead: Option<String>,
}

impl YamlError {
    fn new((message, instead): (String, Option<String>)) -> Self {
        Self {
            position: None,
            message,
            instead,
        }
    }

    /// The error at `position`, unless a position inside it is known.
    pub(super) fn or_at(mut self, position: TextPosition) -> Self {
        self.position.get_or_insert(position);
        self
    }

    /// What the YAML parser reports about `text`.
    pub(super) fn syntax(text: &str, error: &Error) -> Self {
        let error = error.without_snippet();
        let mut position = error.location().map_or(TextPosition::TOP, Into::into);
        let words = syntax(error);
        if words.0 == TAB {
            position = tab(text, position);
        }
        Self::new(words).or_at(position)
    }
}

impl Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(TextPosition { line, column }) = self.position {
            write!(f, "{line}:{column}: ")?;
        }
        f.write_str(&self.message)?;
        match &self.instead {
            Some(instead) => write!(f, "; write: {instead}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for YamlError {}

impl de::Error for YamlError {
    fn custom<T: Display>(message: T) -> Self {
        Self::new((message.to_string(), None))
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(unexpected_kind(&expected.to_string()))
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(unexpected, expected)
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let message = format!("unknown value `{}`", one_line(variant));
        Self::new((message, Some(one_of(expected))))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::new(unknown_field(field, expected))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new((format!("`{field}` is missing"), None))
    }
}

fn one_of(names: &[&str]) -> String {
    format!("one of {}", quoted_list(names.iter().copied()))
}

/// The sentence about a key that is not among the allowed ones, and what to write.
pub(crate) fn unknown_field(field: &str, allowed: &[&str]) -> (String, Option<String>) {
    let written = one_line(field);
    match closest_name(field, allowed.iter().copied()) {
        Some(meant) => (
            format!("unknown field `{written}`, did you mean `{meant}`?"),
            None,
        ),
        None => (format!("unknown field `{written}`"), Some(one_of(allowed))),
    }
}

/// The sentence about a value of the wrong kind, and what to write; `expected` is the name that
/// serde or JSON Schema has for the right kind.
pub(crate) fn unexpected_kind(expected: &str) -> (String, Option<String>) {
    let kind = expected.trim_start_matches("invalid ");
    let is_whole = kind == "integer" || matches!(kind.as_bytes(), [b'u' | b'i', b'0'..=b'9', ..]);
    let (noun, example) = match kind {
        "a sequence" | "array" => ("a list", "`[a, b]`, or a line `- a` for each"),
        "a map" | "object" => MAP,
        "string" | "a string" => ("text", "it in quotes if need be"),
        "bool" | "boolean" | "a boolean" => ("true or false", ""),
        "f64" | "f32" | "number" => ("a number", "for example 0.25"),
        struct_name if struct_name.starts_with("struct ") => MAP,
        _ if is_whole => ("a whole number", "0 or more"),
        other => (other, ""),
    };
    let example = (!example.is_empty()).then(|| example.to_owned());
    (format!("this should be {noun}"), example)
}

/// A map, and how to write one.
const MAP: (&str, &str) = ("`key: value` pairs", "`key: value`, a line for each");

fn syntax(error: &Error) -> (String, Option<String>) {
    match error {
        Error::DuplicateMappingKey { key, .. } => {
            let key = one_line(key.as_deref().unwrap_or_default());
            let message = format!("the key `{key}` is there twice");
            (message, Some("each key once".to_owned()))
        }
        Error::Eof { .. } => ("the file is empty, or ends too early".to_owned(), None),
        Error::MultipleDocuments { .. } => {
            let message = "a second document begins here (`---`)".to_owned();
            (message, Some("one document a file".to_owned()))
        }
        Error::Unexpected { expected, .. } if *expected == "string scalar" => {
            unexpected_kind("string")
        }
        Error::AliasError { error, .. } => syntax(error),
        other => {
            let message = serde_saphyr::UserMessageFormatter.format_message(other);
            for line in REMEDIES.lines() {
                let mut parts = line.split(" => ");
                if let (Some(part), Some(what), Some(instead)) =
                    (parts.next(), parts.next(), parts.next())
                    && message.contains(part)
                {
                    return (what.to_owned(), Some(instead.to_owned()));
                }
            }
            (format!("this is not YAML: {}", one_line(&message)), None)
        }
    }
}

/// A tab where YAML wants spaces.
const TAB: &str = "a tab is in the way";

/// The position of the tab: the parser may still be at the end of the line before.
fn tab(text: &str, from: TextPosition) -> TextPosition {
    let indent = |line: &str| {
        line.find(|c: char| !c.is_whitespace())
            .unwrap_or(line.len())
    };
    let lines = text.lines().zip(1_u64..);
    let mut lines = lines.filter(|(_, number)| *number >= from.line);
    let tab = lines.find_map(|(line, number)| Some((line[..indent(line)].find('\t')?, number)));
    tab.map_or(from, |(at, line)| TextPosition {
        line,
        column: at as u64 + 1,
    })
}

/// The most frequent mistakes: a part of the parser's message, what is wrong, what to write. The
/// first line whose part is in the message counts.
const REMEDIES: &str = r#"
found a tab => a tab is in the way => spaces
tabs disallowed => a tab is in the way => spaces
escape => a `\` in this text begins nothing that YAML knows => `\\`, or the text in single quotes
quoted scalar => a quotation mark before this is not closed => one at the end of the text too
flow mapping => a `{` before this is not closed => `,` or `}`
flow sequence => a `[` before this is not closed => `,` or `]`
unclosed bracket '{' => the `{` here is not closed => `}` where the pairs end
unclosed bracket '[' => the `[` here is not closed => `]` where the list ends
unclosed quote => a quotation mark before this is not closed => one at the end of the text too
only valid inside a block => a `[` or `{` before this is not closed => its `]` or `}`
placement of ':' => a `:` cannot stand here: a `[` or `{` before it is not closed => `]` or `}` where the list or the pairs end
mapping values are not allowed => a second `: ` on this line, or a line too far in => a text with a colon in quotes: `"Speaks: loudly"`
did not find expected key => this line does not stand in line with those above => as many spaces before it as before its neighbours
expected '-' indicator => this line does not stand in line with those above => as many spaces before it as before its neighbours
unknown anchor => `*` here names an anchor that is not there => `&name` before the value that is meant, further up
unknown value => `*` here names an anchor that is not there => `&name` before the value that is meant, further up
expected node content => a value is missing here, or begins with a sign of YAML => the value, in quotes if it begins with a sign
unexpected character => a text cannot begin with this sign => the text in quotes
"#;

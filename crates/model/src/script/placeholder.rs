//! Placeholders in text and tool inputs, filled from the request.
//!
//! `{{user}}` is the user's text, `{{locale}}` the language tag, `{{last_tool_result}}` the newest
//! tool result of the turn, `{{result.<tool>}}` the newest result of one tool and
//! `{{result.<tool>.<path>}}` a value in it. A path has field names and list indices from 0,
//! separated by dots; `*` is every item of a list, joined with commas, and `name?` is a field that
//! is skipped if it is missing. A missing value is empty. `{{request}}` is the whole request as
//! JSON, for tests.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::request_view::{self, RequestView};
use crate::request::ModelRequest;

const OPEN: &str = "{{";
const CLOSE: &str = "}}";
/// Marks an optional field.
const OPTIONAL: char = '?';
/// Separator between the items of a list.
const ITEM_SEPARATOR: &str = ", ";
/// The mistake in a malformed placeholder.
const MALFORMED: &str = "a result placeholder is `{{result.tool}}` or `{{result.tool.field}}`: a tool's \
     name, then field names, list indices or `*`, separated by dots";

/// A placeholder in a text.
#[derive(Clone, Copy, Debug, PartialEq)]
enum TextPlaceholder<'t> {
    User,
    Locale,
    LastToolResult,
    Request,
    /// A tool, and the path into its result if there is one.
    Result(&'t str, Option<&'t str>),
}

/// What a piece of a text is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum PieceKind<'t> {
    Placeholder(TextPlaceholder<'t>),
    /// Text, or braces that are not a placeholder.
    Plain,
    /// The braces of a malformed `result` placeholder.
    Malformed,
}

/// The pieces of `text`, in order; together they are the text.
fn pieces(text: &str) -> impl Iterator<Item = (&str, PieceKind<'_>)> {
    let mut remaining = text;
    std::iter::from_fn(move || {
        let (kind, length) = match remaining.find(OPEN) {
            None if remaining.is_empty() => return None,
            None => (PieceKind::Plain, remaining.len()),
            Some(0) => brace_start(remaining),
            Some(start) => (PieceKind::Plain, start),
        };
        let (piece, tail) = remaining.split_at(length);
        remaining = tail;
        Some((piece, kind))
    })
}

/// True if `text` has placeholders; an error if one of them is malformed.
pub(crate) fn has_placeholders(text: &str) -> Result<bool, &'static str> {
    pieces(text).try_fold(false, |has_any, (_, kind)| match kind {
        PieceKind::Placeholder(_) => Ok(true),
        PieceKind::Plain => Ok(has_any),
        PieceKind::Malformed => Err(MALFORMED),
    })
}

/// Tools whose results are used by placeholders in `text`.
pub(crate) fn result_tools(text: &str) -> impl Iterator<Item = &str> {
    pieces(text).filter_map(|(_, kind)| match kind {
        PieceKind::Placeholder(TextPlaceholder::Result(tool, _)) => Some(tool),
        _ => None,
    })
}

/// True if any string in `value` has placeholders.
pub(crate) fn has_placeholders_in(value: &Value) -> Result<bool, &'static str> {
    match value {
        Value::String(text) => has_placeholders(text),
        Value::Array(items) => any_has_placeholders(items),
        Value::Object(fields) => any_has_placeholders(fields.values()),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(false),
    }
}

fn any_has_placeholders<'v>(
    values: impl IntoIterator<Item = &'v Value>,
) -> Result<bool, &'static str> {
    let mut values = values.into_iter();
    values.try_fold(false, |has_any, value| {
        Ok(has_placeholders_in(value)? || has_any)
    })
}

/// Fills the placeholders of `text`; inserted text is not scanned again, and the result is cut at
/// `bytes_max`.
pub(crate) fn fill(view: &RequestView<'_>, text: &str, bytes_max: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for (piece, kind) in pieces(text) {
        match kind {
            PieceKind::Placeholder(placeholder) => out.push_str(&replacement(view, placeholder)),
            PieceKind::Plain | PieceKind::Malformed => out.push_str(piece),
        }
        if out.len() > bytes_max {
            break;
        }
    }
    out.truncate(out.floor_char_boundary(bytes_max));
    out
}

/// Fills the placeholders in all strings of `value`. A string that is exactly one `result`
/// placeholder becomes the value with its type, a list if the path has `*`.
pub(crate) fn fill_value(view: &RequestView<'_>, value: &Value, bytes_max: usize) -> Value {
    match value {
        Value::String(text) => match sole_result(text) {
            Some((tool, path)) => result_value(view, tool, path).unwrap_or_else(|| "".into()),
            None => Value::String(fill(view, text, bytes_max)),
        },
        Value::Array(items) => items
            .iter()
            .map(|item| fill_value(view, item, bytes_max))
            .collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, item)| (key.clone(), fill_value(view, item, bytes_max)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// The tool and path of a text that is exactly one `result` placeholder.
fn sole_result(text: &str) -> Option<(&str, Option<&str>)> {
    let mut pieces = pieces(text);
    match (pieces.next(), pieces.next()) {
        (Some((_, PieceKind::Placeholder(TextPlaceholder::Result(tool, path)))), None) => {
            Some((tool, path))
        }
        _ => None,
    }
}

/// What a text that starts with `{{` begins with, and its length in bytes.
fn brace_start(text: &str) -> (PieceKind<'_>, usize) {
    let inner = &text[OPEN.len()..];
    let Some((name, _)) = inner.split_once(CLOSE) else {
        let kind = match inner.starts_with("result") {
            true => PieceKind::Malformed,
            false => PieceKind::Plain,
        };
        return (kind, OPEN.len());
    };
    let placeholder = match name {
        "user" => TextPlaceholder::User,
        "locale" => TextPlaceholder::Locale,
        "last_tool_result" => TextPlaceholder::LastToolResult,
        "request" => TextPlaceholder::Request,
        _ => match name.strip_prefix("result").map(result_placeholder) {
            Some(Some(placeholder)) => placeholder,
            Some(None) => return (PieceKind::Malformed, OPEN.len()),
            None => return (PieceKind::Plain, OPEN.len()),
        },
    };
    let length = OPEN.len() + name.len() + CLOSE.len();
    (PieceKind::Placeholder(placeholder), length)
}

/// The placeholder `result` with the tool and path in `reference`, `.tool` or `.tool.path`; `None`
/// if it is malformed.
fn result_placeholder(reference: &str) -> Option<TextPlaceholder<'_>> {
    let reference = reference.strip_prefix('.')?;
    let (tool, path) = match reference.split_once('.') {
        Some((tool, path)) => (tool, Some(path)),
        None => (reference, None),
    };
    let is_valid = reference.split('.').all(is_step) && tool != "*" && !tool.ends_with(OPTIONAL);
    is_valid.then_some(TextPlaceholder::Result(tool, path))
}

/// True if `step` is a valid step of a path.
fn is_step(step: &str) -> bool {
    let is_name_char = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let name = step.strip_suffix(OPTIONAL).unwrap_or(step);
    step == "*" || (!name.is_empty() && name.chars().all(is_name_char))
}

fn replacement<'a>(view: &'a RequestView<'_>, placeholder: TextPlaceholder<'_>) -> Cow<'a, str> {
    match placeholder {
        TextPlaceholder::User => Cow::Borrowed(&view.user),
        TextPlaceholder::Locale => Cow::Borrowed(&view.request.locale),
        TextPlaceholder::LastToolResult => {
            Cow::Owned(view.request.last_tool_result().unwrap_or_default())
        }
        TextPlaceholder::Request => Cow::Owned(request_json(view.request).to_string()),
        TextPlaceholder::Result(tool, path) => Cow::Owned(match result_value(view, tool, path) {
            Some(Value::Array(items)) if path.is_some_and(|path| path.contains('*')) => {
                let items: Vec<String> = items.iter().map(request_view::text).collect();
                items.join(ITEM_SEPARATOR)
            }
            Some(value) => request_view::text(&value),
            None => String::new(),
        }),
    }
}

/// The request as JSON.
fn request_json(request: &ModelRequest) -> Value {
    let tools = request.tools.iter();
    let tools: Vec<Value> = tools
        .map(|tool| json!({"name": tool.name, "description": tool.description}))
        .collect();
    let messages = request.messages.iter();
    let messages: Vec<Value> = messages
        .map(|message| json!({"role": message.role, "content": message.content}))
        .collect();
    json!({
        "model": request.model, "agent": request.agent, "call": request.call,
        "locale": request.locale, "system": request.system, "tools": tools, "messages": messages,
    })
}

/// The value at a path. A path with `*` always yields a list, which may be empty.
fn result_value(view: &RequestView<'_>, tool: &str, path: Option<&str>) -> Option<Value> {
    let content = view.tool_answer(tool).map(|answer| &answer.content);
    let Some(path) = path else {
        return content.cloned();
    };
    let mut values: Vec<&Value> = content.into_iter().collect();
    let mut is_list = false;
    for step in path.split('.') {
        is_list |= step == "*";
        let steps = values.into_iter().flat_map(|value| step_into(value, step));
        values = steps.collect();
    }
    if is_list {
        return Some(values.into_iter().cloned().collect());
    }
    values.first().map(|value| (*value).clone())
}

fn step_into<'v>(value: &'v Value, step: &str) -> Vec<&'v Value> {
    match value {
        Value::Array(items) if step == "*" => items.iter().collect(),
        Value::Array(items) => {
            let item = step
                .parse::<usize>()
                .ok()
                .and_then(|index| items.get(index));
            item.into_iter().collect()
        }
        Value::Object(fields) => match step.strip_suffix(OPTIONAL) {
            Some(name) => vec![fields.get(name).unwrap_or(value)],
            None => fields.get(step).into_iter().collect(),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests;

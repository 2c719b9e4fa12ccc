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
const USER: &str = "user";
const LOCALE: &str = "locale";
const LAST_TOOL_RESULT: &str = "last_tool_result";
const REQUEST: &str = "request";
const RESULT: &str = "result";
/// Marks an optional field.
const OPTIONAL: char = '?';
/// Separator between the items of a list.
const ITEM_SEPARATOR: &str = ", ";

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

/// How a text that starts with `{{` begins: with a [`TextPlaceholder`] or not.
enum BraceStart<'t> {
    /// A placeholder, and its length in bytes.
    Placeholder(TextPlaceholder<'t>, usize),
    /// Braces that are not a placeholder.
    Plain,
    /// A malformed `result` placeholder.
    Malformed,
}

/// True if `text` has placeholders; an error if one of them is malformed.
pub(crate) fn has_placeholders(text: &str) -> Result<bool, &'static str> {
    let mut has_any = false;
    let mut remaining = text;
    while let Some(start) = remaining.find(OPEN) {
        remaining = &remaining[start..];
        remaining = match brace_start(remaining) {
            BraceStart::Placeholder(_, length) => {
                has_any = true;
                &remaining[length..]
            }
            BraceStart::Plain => &remaining[OPEN.len()..],
            BraceStart::Malformed => {
                return Err(
                    "a result placeholder is `{{result.tool}}` or `{{result.tool.field}}`: a tool's \
                     name, then field names, list indices or `*`, separated by dots",
                );
            }
        };
    }
    Ok(has_any)
}

/// Tools whose results are used by placeholders in `text`.
pub(crate) fn result_tools(text: &str) -> Vec<&str> {
    let mut tools = Vec::new();
    for (start, _) in text.match_indices(OPEN) {
        if let BraceStart::Placeholder(TextPlaceholder::Result(tool, _), _) =
            brace_start(&text[start..])
        {
            tools.push(tool);
        }
    }
    tools
}

/// True if any string in `value` has placeholders.
pub(crate) fn has_placeholders_in(value: &Value) -> Result<bool, &'static str> {
    let any = |mut items: Box<dyn Iterator<Item = &Value> + '_>| {
        items.try_fold(false, |has_any, item| {
            Ok(has_placeholders_in(item)? || has_any)
        })
    };
    match value {
        Value::String(text) => has_placeholders(text),
        Value::Array(items) => any(Box::new(items.iter())),
        Value::Object(fields) => any(Box::new(fields.values())),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(false),
    }
}

/// Fills the placeholders of `text`; inserted text is not scanned again, and the result is cut at
/// `bytes_max`.
pub(crate) fn fill(view: &RequestView<'_>, text: &str, bytes_max: usize) -> String {
    let mut out = String::with_capacity(text.len());
    let mut remaining = text;
    while let Some(start) = remaining.find(OPEN) {
        let (before, from) = remaining.split_at(start);
        out.push_str(before);
        let length = match brace_start(from) {
            BraceStart::Placeholder(placeholder, length) => {
                out.push_str(&replacement(view, placeholder));
                length
            }
            BraceStart::Plain | BraceStart::Malformed => {
                out.push_str(OPEN);
                OPEN.len()
            }
        };
        remaining = &from[length..];
        if out.len() > bytes_max {
            break;
        }
    }
    out.push_str(remaining);
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
    if !text.starts_with(OPEN) {
        return None;
    }
    match brace_start(text) {
        BraceStart::Placeholder(TextPlaceholder::Result(tool, path), length)
            if length == text.len() =>
        {
            Some((tool, path))
        }
        BraceStart::Placeholder(..) | BraceStart::Plain | BraceStart::Malformed => None,
    }
}

fn brace_start(text: &str) -> BraceStart<'_> {
    let inner = &text[OPEN.len()..];
    let name = inner.find(CLOSE).map(|end| &inner[..end]);
    let length = name.map_or(0, str::len) + OPEN.len() + CLOSE.len();
    match name {
        Some(USER) => BraceStart::Placeholder(TextPlaceholder::User, length),
        Some(LOCALE) => BraceStart::Placeholder(TextPlaceholder::Locale, length),
        Some(LAST_TOOL_RESULT) => BraceStart::Placeholder(TextPlaceholder::LastToolResult, length),
        Some(REQUEST) => BraceStart::Placeholder(TextPlaceholder::Request, length),
        Some(name) => match name.strip_prefix(RESULT).map(|path| path.strip_prefix('.')) {
            Some(Some(path)) if path.split('.').all(is_step) => {
                let (tool, path) = match path.split_once('.') {
                    Some((tool, path)) => (tool, Some(path)),
                    None => (path, None),
                };
                match tool {
                    "*" => BraceStart::Malformed,
                    tool if tool.ends_with(OPTIONAL) => BraceStart::Malformed,
                    tool => BraceStart::Placeholder(TextPlaceholder::Result(tool, path), length),
                }
            }
            Some(_) => BraceStart::Malformed,
            None => BraceStart::Plain,
        },
        None if inner.starts_with(RESULT) => BraceStart::Malformed,
        None => BraceStart::Plain,
    }
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
        values = values
            .into_iter()
            .flat_map(|value| step_into(value, step))
            .collect();
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
            let index = step.parse::<usize>().ok();
            index
                .and_then(|index| items.get(index))
                .into_iter()
                .collect()
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

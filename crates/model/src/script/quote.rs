//! Quotes: places in words and tool inputs that are filled from the request.
//!
//! `{{user}}` is what the person said, `{{locale}}` the language tag, `{{last_tool_result}}` the
//! newest tool result of the turn, `{{result.<tool>}}` the newest result of one tool and
//! `{{result.<tool>.<path>}}` a value in it. A path is field names and list places from 0, with
//! dots between; `*` is every item of a list, joined with commas, and `name?` is a field that is
//! passed over where it is not there. What is not found is empty. `{{request}}` is all that the
//! model was shown, as JSON, for tests of what that is.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::asked::{self, Asked};
use crate::request::Request;

const OPEN: &str = "{{";
const CLOSE: &str = "}}";
const USER: &str = "user";
const LOCALE: &str = "locale";
const LAST_TOOL_RESULT: &str = "last_tool_result";
const REQUEST: &str = "request";
const RESULT: &str = "result";
/// After a field that need not be there.
const MAYBE: char = '?';
/// What stands between the items of a list.
const JOINT: &str = ", ";

/// One place to fill in.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Quote<'t> {
    User,
    Locale,
    LastToolResult,
    Request,
    /// A tool, and the path into its result if one is given.
    Result(&'t str, Option<&'t str>),
}

/// What stands at the beginning of a text that begins with `{{`.
enum Place<'t> {
    /// A quote, and the bytes it takes.
    Quote(Quote<'t>, usize),
    /// Braces that are no quote.
    Plain,
    /// Meant as a quote of a result, but not one.
    Broken,
}

/// Whether `text` has places to fill in; an error if one of them cannot be filled.
pub(crate) fn quotes(text: &str) -> Result<bool, &'static str> {
    let mut found = false;
    let mut rest = text;
    while let Some(at) = rest.find(OPEN) {
        rest = &rest[at..];
        rest = match place(rest) {
            Place::Quote(_, length) => {
                found = true;
                &rest[length..]
            }
            Place::Plain => &rest[OPEN.len()..],
            Place::Broken => {
                return Err(
                    "a result is quoted as `{{result.tool}}` or `{{result.tool.field}}`: a tool's \
                     name, then field names, list places or `*`, with dots between",
                );
            }
        };
    }
    Ok(found)
}

/// The tools whose results `text` quotes.
pub(crate) fn results(text: &str) -> Vec<&str> {
    let mut tools = Vec::new();
    for (at, _) in text.match_indices(OPEN) {
        if let Place::Quote(Quote::Result(tool, _), _) = place(&text[at..]) {
            tools.push(tool);
        }
    }
    tools
}

/// Whether any string in `value` has places to fill in.
pub(crate) fn quotes_in(value: &Value) -> Result<bool, &'static str> {
    let any = |mut items: Box<dyn Iterator<Item = &Value> + '_>| {
        items.try_fold(false, |found, item| Ok(quotes_in(item)? || found))
    };
    match value {
        Value::String(text) => quotes(text),
        Value::Array(items) => any(Box::new(items.iter())),
        Value::Object(fields) => any(Box::new(fields.values())),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(false),
    }
}

/// `text` with its places filled in; what is filled in is not looked at again, and what grows
/// over `bytes_max` is cut.
pub(crate) fn fill(asked: &Asked<'_>, text: &str, bytes_max: usize) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(OPEN) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let length = match place(from) {
            Place::Quote(quote, length) => {
                out.push_str(&words(asked, quote));
                length
            }
            Place::Plain | Place::Broken => {
                out.push_str(OPEN);
                OPEN.len()
            }
        };
        rest = &from[length..];
        if out.len() > bytes_max {
            break;
        }
    }
    out.push_str(rest);
    out.truncate(out.floor_char_boundary(bytes_max));
    out
}

/// `value` with the places in its strings filled in. A string that is nothing but one quote of a
/// result becomes that value with its kind, a list where the path has `*`.
pub(crate) fn fill_value(asked: &Asked<'_>, value: &Value, bytes_max: usize) -> Value {
    match value {
        Value::String(text) => match whole(text) {
            Some((tool, path)) => found(asked, tool, path).unwrap_or_else(|| "".into()),
            None => Value::String(fill(asked, text, bytes_max)),
        },
        Value::Array(items) => items
            .iter()
            .map(|item| fill_value(asked, item, bytes_max))
            .collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, item)| (key.clone(), fill_value(asked, item, bytes_max)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// The tool and the path of a text that is one quote of a result.
fn whole(text: &str) -> Option<(&str, Option<&str>)> {
    if !text.starts_with(OPEN) {
        return None;
    }
    match place(text) {
        Place::Quote(Quote::Result(tool, path), length) if length == text.len() => {
            Some((tool, path))
        }
        Place::Quote(..) | Place::Plain | Place::Broken => None,
    }
}

fn place(text: &str) -> Place<'_> {
    let inner = &text[OPEN.len()..];
    let name = inner.find(CLOSE).map(|end| &inner[..end]);
    let length = name.map_or(0, str::len) + OPEN.len() + CLOSE.len();
    match name {
        Some(USER) => Place::Quote(Quote::User, length),
        Some(LOCALE) => Place::Quote(Quote::Locale, length),
        Some(LAST_TOOL_RESULT) => Place::Quote(Quote::LastToolResult, length),
        Some(REQUEST) => Place::Quote(Quote::Request, length),
        Some(name) => match name.strip_prefix(RESULT).map(|rest| rest.strip_prefix('.')) {
            Some(Some(rest)) if rest.split('.').all(is_step) => {
                let (tool, path) = match rest.split_once('.') {
                    Some((tool, path)) => (tool, Some(path)),
                    None => (rest, None),
                };
                match tool {
                    "*" => Place::Broken,
                    tool if tool.ends_with(MAYBE) => Place::Broken,
                    tool => Place::Quote(Quote::Result(tool, path), length),
                }
            }
            Some(_) => Place::Broken,
            None => Place::Plain,
        },
        None if inner.starts_with(RESULT) => Place::Broken,
        None => Place::Plain,
    }
}

/// Whether `step` can be one step of a path.
fn is_step(step: &str) -> bool {
    let named = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let name = step.strip_suffix(MAYBE).unwrap_or(step);
    step == "*" || (!name.is_empty() && name.chars().all(named))
}

fn words<'a>(asked: &'a Asked<'_>, quote: Quote<'_>) -> Cow<'a, str> {
    match quote {
        Quote::User => Cow::Borrowed(&asked.user),
        Quote::Locale => Cow::Borrowed(&asked.request.locale),
        Quote::LastToolResult => Cow::Owned(asked.request.last_tool_result().unwrap_or_default()),
        Quote::Request => Cow::Owned(shown(asked.request).to_string()),
        Quote::Result(tool, path) => Cow::Owned(match found(asked, tool, path) {
            Some(Value::Array(items)) if path.is_some_and(|path| path.contains('*')) => {
                let items: Vec<String> = items.iter().map(asked::text).collect();
                items.join(JOINT)
            }
            Some(value) => asked::text(&value),
            None => String::new(),
        }),
    }
}

/// All that the model was shown.
fn shown(request: &Request) -> Value {
    let tools = request.tools.iter();
    let tools: Vec<Value> = tools
        .map(|tool| json!({"name": tool.name, "description": tool.description}))
        .collect();
    let messages = request.messages.iter();
    let messages: Vec<Value> = messages
        .map(|said| json!({"role": said.role, "content": said.content}))
        .collect();
    json!({
        "model": request.model, "agent": request.agent, "call": request.call,
        "locale": request.locale, "system": request.system, "tools": tools, "messages": messages,
    })
}

/// What a path leads to. A path with `*` always leads to a list, which may be empty.
fn found(asked: &Asked<'_>, tool: &str, path: Option<&str>) -> Option<Value> {
    let content = asked.answer(tool).map(|answer| &answer.content);
    let Some(path) = path else {
        return content.cloned();
    };
    let mut at: Vec<&Value> = content.into_iter().collect();
    let mut many = false;
    for step in path.split('.') {
        many |= step == "*";
        at = at
            .into_iter()
            .flat_map(|value| enter(value, step))
            .collect();
    }
    if many {
        return Some(at.into_iter().cloned().collect());
    }
    at.first().map(|value| (*value).clone())
}

fn enter<'v>(value: &'v Value, step: &str) -> Vec<&'v Value> {
    match value {
        Value::Array(items) if step == "*" => items.iter().collect(),
        Value::Array(items) => {
            let place = step.parse::<usize>().ok();
            place.and_then(|at| items.get(at)).into_iter().collect()
        }
        Value::Object(fields) => match step.strip_suffix(MAYBE) {
            Some(name) => vec![fields.get(name).unwrap_or(value)],
            None => fields.get(step).into_iter().collect(),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests;

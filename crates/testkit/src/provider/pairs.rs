//! Calls and their results must belong together: every provider refuses a conversation in which a
//! call has no result or a result no call, each in its own way of writing both.

use std::collections::BTreeSet;

use serde_json::Value;

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map_or(&[], Vec::as_slice)
}

fn ids<'a>(items: &'a [Value], kind: &str, field: &str) -> BTreeSet<&'a str> {
    let items = items.iter().filter(|item| item["type"] == kind);
    items.filter_map(|item| item[field].as_str()).collect()
}

/// Anthropic: the message after one with `tool_use` has a `tool_result` for each.
pub(crate) fn anthropic(body: &Value) -> Option<String> {
    let messages = list(body, "messages");
    let mut open_calls = BTreeSet::new();
    for (at, message) in messages.iter().enumerate() {
        let blocks = list(message, "content");
        let answered = ids(blocks, "tool_result", "tool_use_id");
        if answered != open_calls {
            return Some(format!(
                "messages.{at}: `tool_use` ids and `tool_result` blocks differ: {open_calls:?}, {answered:?}"
            ));
        }
        open_calls = ids(blocks, "tool_use", "id");
    }
    dangling(&open_calls)
}

/// Chat Completions: after `tool_calls` comes a message of role `tool` for each.
pub(crate) fn chat(body: &Value) -> Option<String> {
    let mut open = BTreeSet::new();
    for (at, message) in list(body, "messages").iter().enumerate() {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if !open.remove(id) {
                return Some(format!("messages.{at}: nobody called with the id {id:?}"));
            }
            continue;
        }
        if let Some(why) = dangling(&open) {
            return Some(why);
        }
        open = ids(list(message, "tool_calls"), "function", "id");
    }
    dangling(&open)
}

/// Responses: a `function_call_output` for each `function_call`, anywhere after it.
pub(crate) fn responses(body: &Value) -> Option<String> {
    let mut open = BTreeSet::new();
    for (at, item) in list(body, "input").iter().enumerate() {
        let id = item["call_id"].as_str().unwrap_or_default();
        if item["type"] == "function_call" {
            open.insert(id);
        } else if item["type"] == "function_call_output" && !open.remove(id) {
            return Some(format!(
                "input[{at}]: No tool call found with call_id {id}."
            ));
        }
    }
    // A conversation that goes on from a stored response has its calls there.
    if body["previous_response_id"].is_string() {
        return None;
    }
    dangling(&open)
}

/// Gemini: the turn after one with calls has as many responses, by name.
pub(crate) fn gemini(body: &Value) -> Option<String> {
    let names = |content: &Value, field: &str| {
        let parts = list(content, "parts").iter();
        let names = parts.filter_map(|part| part[field]["name"].as_str().map(str::to_owned));
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    let mut open_calls = Vec::new();
    for (at, content) in list(body, "contents").iter().enumerate() {
        if !["user", "model", "function"].contains(&content["role"].as_str().unwrap_or("user")) {
            return Some(format!(
                "contents[{at}].role: Please use a valid role: user, model."
            ));
        }
        let answered = names(content, "functionResponse");
        if answered != open_calls {
            return Some(format!(
                "contents[{at}]: function response parts {answered:?} must equal function call parts {open_calls:?}"
            ));
        }
        open_calls = names(content, "functionCall");
    }
    (!open_calls.is_empty()).then(|| format!("calls without a response: {open_calls:?}"))
}

fn dangling(open: &BTreeSet<&str>) -> Option<String> {
    (!open.is_empty()).then(|| format!("calls without a result: {open:?}"))
}

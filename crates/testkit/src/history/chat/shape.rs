//! Checks the frames without the log: the fields of each (S1-002 to S1-028), their order, and that
//! every started tool ends.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::super::chat_violation::ChatViolation;
use super::expected::ExpectedTurn;
use super::streams::{ViewedFrame, ViewerStream};
use crate::sse::Said;

/// The first fields of every frame, in order.
const ENVELOPE: [&str; 4] = ["event_type", "version", "timestamp", "response_id"];

/// Checks the frames of one reading.
pub(super) fn check(
    viewer: &ViewerStream<'_>,
    expected: &ExpectedTurn,
    broken: &mut Vec<ChatViolation>,
) {
    let mut before: Option<&str> = None;
    for frame in &viewer.frames {
        let Said::Frame(_, event, data) = &frame.block.said else {
            continue;
        };
        if let Err(reason) = check_envelope(event, data, expected) {
            broken.push(ChatViolation::Envelope {
                id: frame.id.to_string(),
                reason,
                text: frame.block.text.clone(),
            });
        }
        let at = data.get("timestamp").and_then(Value::as_str);
        // Timestamps have one fixed format, so text order is time order.
        if let (Some(before), Some(at)) = (before, at)
            && at < before
        {
            broken.push(ChatViolation::TimeBack {
                id: frame.id.to_string(),
                before: before.to_owned(),
                after: at.to_owned(),
            });
        }
        before = at.or(before);
    }
    check_first(viewer, expected, broken);
    check_ending(viewer, broken);
    check_tools(viewer, expected, broken);
}

fn check_envelope(
    event: &str,
    data: &Map<String, Value>,
    expected: &ExpectedTurn,
) -> Result<(), String> {
    let keys: Vec<&str> = data.keys().map(String::as_str).collect();
    if keys.len() < ENVELOPE.len() || keys[..ENVELOPE.len()] != ENVELOPE {
        return Err("the envelope is not the first four fields".into());
    }
    let field = |name: &str| data.get(name).and_then(Value::as_str).unwrap_or_default();
    if field("version") != expected.version.as_str() {
        return Err(format!("the turn is bound to {}", expected.version));
    }
    if field("response_id") != expected.response {
        return Err(format!("the turn is {}", expected.response));
    }
    if !is_time(field("timestamp")) {
        return Err("the timestamp is not UTC with milliseconds".into());
    }
    let payload: &[&str] = match event {
        "completed" if data.contains_key("paused") => &["paused"],
        "response_id" | "completed" => &[],
        "episode" => &["episode_id"],
        "thinking" if data.contains_key("content") => &["content", "role"],
        "thinking" => &["role"],
        "text" | "reasoning" => &["type", "chunk"],
        "tool_call" | "tool_completed" => &["tool_call"],
        "status" | "data_loading" | "data_loaded" => &["data"],
        "component" => &["chunk", "tool_call"],
        "mcp_list_tools_start" | "mcp_session_start" => &["server"],
        "mcp_list_tools_completed" => &["server", "tool_count"],
        "mcp_session_progress" if data.contains_key("total") => &["server", "progress", "total"],
        "mcp_session_progress" => &["server", "progress"],
        "usage" => &[
            "input_tokens",
            "output_tokens",
            "total_tokens",
            "reasoning_tokens",
            "cached_tokens",
        ],
        "cancelled" if data.contains_key("kept_until") => &["error", "kept_until"],
        "cancelled" => &["error"],
        "error" if data.contains_key("kept_until") => &["error", "is_final", "kept_until"],
        "error" => &["error", "is_final"],
        _ => return Err("unknown event type".into()),
    };
    if keys[ENVELOPE.len()..] != *payload {
        return Err(format!("the payload should be {payload:?}"));
    }
    let kinds = payload.iter().all(|name| {
        let value = &data[*name];
        match *name {
            "tool_call" | "error" | "data" | "paused" => value.is_object(),
            "is_final" => value.is_boolean(),
            // A component is any JSON.
            "chunk" if event == "component" => true,
            "tool_count" | "progress" | "total" => value.is_number(),
            name if name.ends_with("_tokens") => value.is_u64(),
            _ => value.is_string(),
        }
    });
    kinds
        .then_some(())
        .ok_or("a field has the wrong type".into())
}

fn is_time(text: &str) -> bool {
    let shape = b"0000-00-00T00:00:00.000Z";
    let matches = |(is, shape): (u8, &u8)| match shape {
        b'0' => is.is_ascii_digit(),
        other => is == *other,
    };
    text.len() == shape.len() && text.bytes().zip(shape).all(matches)
}

/// `response_id` is the first frame of the turn, and only the first.
fn check_first(
    viewer: &ViewerStream<'_>,
    expected: &ExpectedTurn,
    broken: &mut Vec<ChatViolation>,
) {
    let from_start = match (viewer.from, expected.frames.first()) {
        (Some(from), Some((check_first, _))) => {
            !from.covers(check_first.position, check_first.frame.unwrap_or_default())
        }
        (None, _) | (_, None) => true,
    };
    for (index, frame) in viewer.frames.iter().enumerate() {
        let named = frame.block.event() == "response_id";
        if named != (index == 0 && from_start) {
            broken.push(ChatViolation::First {
                id: frame.id.to_string(),
                event: frame.block.event().to_owned(),
            });
            return;
        }
    }
}

/// One terminal as the last frame, with `usage` right before it unless the turn was cancelled.
fn check_ending(viewer: &ViewerStream<'_>, broken: &mut Vec<ChatViolation>) {
    let mut frames = viewer.frames.iter().peekable();
    let mut has_usage = viewer.from.is_some();
    let mut ended = false;
    while let Some(frame) = frames.next() {
        let event = frame.block.event();
        if ended {
            broken.push(ChatViolation::AfterTerminal {
                id: frame.id.to_string(),
                event: event.to_owned(),
            });
        }
        if event == "usage" {
            has_usage = true;
            let next = frames.peek();
            if next.is_some_and(|next| !next.block.is_terminal() || is_cancel(next)) {
                let reason = "the next frame is not a terminal with usage".into();
                broken.push(ChatViolation::Usage { reason });
            }
        }
        if frame.block.is_terminal() {
            ended = true;
            if !has_usage && !is_cancel(frame) {
                let reason = format!("{event} without it");
                broken.push(ChatViolation::Usage { reason });
            }
        }
    }
}

fn is_cancel(frame: &ViewedFrame) -> bool {
    let code = frame.block.field("error")["code"].as_str();
    matches!(code, Some("REQUEST_CANCELLED" | "IDLE_TIMEOUT"))
}

/// Every `tool_completed` follows a `tool_call` with the same content; no tool is open at the end.
fn check_tools(
    viewer: &ViewerStream<'_>,
    expected: &ExpectedTurn,
    broken: &mut Vec<ChatViolation>,
) {
    let mut open: BTreeMap<String, Value> = BTreeMap::new();
    let mut report = |tool: &str, reason: &'static str| {
        let tool = tool.to_owned();
        broken.push(ChatViolation::Tool { tool, reason });
    };
    // A viewer with a cursor may have missed the start.
    let from_start = viewer.from.is_none();
    for frame in &viewer.frames {
        let tool = frame.block.field("tool_call");
        let id = tool["id"].as_str().unwrap_or_default();
        match frame.block.event() {
            "tool_call" => {
                let before = open.insert(id.to_owned(), tool.clone());
                if before.is_some() {
                    report(id, "started twice");
                }
            }
            "tool_completed" => match open.remove(id) {
                Some(started) if started != *tool => report(id, "ended as another tool"),
                None if from_start => report(id, "ended without a start"),
                Some(_) | None => {}
            },
            _ => {}
        }
    }
    let last = viewer.frames.last();
    if last.is_some_and(|last| expected.is_over(last.id)) {
        for id in open.keys() {
            report(id, "open at the terminal");
        }
    }
}

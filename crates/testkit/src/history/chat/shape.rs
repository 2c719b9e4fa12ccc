//! The frames by themselves: what each must carry (S1-002 to S1-028), in which order they may
//! come, and that what begins also ends.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::super::chat_violation::ChatViolation;
use super::expected::ExpectedTurn;
use super::streams::{ViewedFrame, ViewerStream};
use crate::sse::Said;

/// The fields that every frame has, in their order.
const ENVELOPE: [&str; 4] = ["event_type", "version", "timestamp", "response_id"];

/// Checks the frames of one reading.
pub(super) fn check(
    reading: &ViewerStream<'_>,
    due: &ExpectedTurn,
    broken: &mut Vec<ChatViolation>,
) {
    let mut before: Option<&str> = None;
    for frame in &reading.frames {
        let Said::Frame(_, event, data) = &frame.block.said else {
            continue;
        };
        if let Err(why) = envelope(event, data, due) {
            broken.push(ChatViolation::Envelope {
                id: frame.id.to_string(),
                why,
                text: frame.block.text.clone(),
            });
        }
        let at = data.get("timestamp").and_then(Value::as_str);
        // They are written alike, so that their texts have the order of their times.
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
    first(reading, due, broken);
    ending(reading, broken);
    tools(reading, due, broken);
}

fn envelope(event: &str, data: &Map<String, Value>, due: &ExpectedTurn) -> Result<(), String> {
    let keys: Vec<&str> = data.keys().map(String::as_str).collect();
    if keys.len() < ENVELOPE.len() || keys[..ENVELOPE.len()] != ENVELOPE {
        return Err("the envelope is not the first four fields".into());
    }
    let field = |name: &str| data.get(name).and_then(Value::as_str).unwrap_or_default();
    if field("version") != due.version.as_str() {
        return Err(format!("the turn is bound to {}", due.version));
    }
    if field("response_id") != due.response {
        return Err(format!("the turn is {}", due.response));
    }
    if !is_time(field("timestamp")) {
        return Err("the timestamp is not UTC with milliseconds".into());
    }
    let payload: &[&str] = match event {
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
        "cancelled" => &["error"],
        "error" => &["error", "is_final"],
        _ => return Err("a type that is not known".into()),
    };
    if keys[ENVELOPE.len()..] != *payload {
        return Err(format!("the payload should be {payload:?}"));
    }
    let kinds = payload.iter().all(|name| {
        let value = &data[*name];
        match *name {
            "tool_call" | "error" | "data" => value.is_object(),
            "is_final" => value.is_boolean(),
            // A component is any JSON.
            "chunk" if event == "component" => true,
            "tool_count" | "progress" | "total" => value.is_number(),
            name if name.ends_with("_tokens") => value.is_u64(),
            _ => value.is_string(),
        }
    });
    kinds.then_some(()).ok_or("a field of another kind".into())
}

fn is_time(text: &str) -> bool {
    let shape = b"0000-00-00T00:00:00.000Z";
    let fits = |(is, shape): (u8, &u8)| match shape {
        b'0' => is.is_ascii_digit(),
        other => is == *other,
    };
    text.len() == shape.len() && text.bytes().zip(shape).all(fits)
}

/// The turn's name is the first frame of the turn, and no other.
fn first(reading: &ViewerStream<'_>, due: &ExpectedTurn, broken: &mut Vec<ChatViolation>) {
    let from_start = match (reading.from, due.frames.first()) {
        (Some(from), Some((first, _))) => {
            !from.covers(first.position, first.frame.unwrap_or_default())
        }
        (None, _) | (_, None) => true,
    };
    for (index, frame) in reading.frames.iter().enumerate() {
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

/// One terminal, last of all; what the turn cost right before it, unless it was cancelled.
fn ending(reading: &ViewerStream<'_>, broken: &mut Vec<ChatViolation>) {
    let mut frames = reading.frames.iter().peekable();
    let mut priced = reading.from.is_some();
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
            priced = true;
            let next = frames.peek();
            if next.is_some_and(|next| !next.block.is_terminal() || is_cancel(next)) {
                let why = "what follows it is no terminal that has it".into();
                broken.push(ChatViolation::Usage { why });
            }
        }
        if frame.block.is_terminal() {
            ended = true;
            if !priced && !is_cancel(frame) {
                let why = format!("{event} without it");
                broken.push(ChatViolation::Usage { why });
            }
        }
    }
}

fn is_cancel(frame: &ViewedFrame) -> bool {
    let code = frame.block.field("error")["code"].as_str();
    matches!(code, Some("REQUEST_CANCELLED" | "IDLE_TIMEOUT"))
}

/// A tool that ended had begun, as the same tool; and none is left at the end.
fn tools(reading: &ViewerStream<'_>, due: &ExpectedTurn, broken: &mut Vec<ChatViolation>) {
    let mut open: BTreeMap<String, Value> = BTreeMap::new();
    let mut tell = |tool: &str, why: &'static str| {
        let tool = tool.to_owned();
        broken.push(ChatViolation::Tool { tool, why });
    };
    // One that came later does not know what had begun.
    let whole = reading.from.is_none();
    for frame in &reading.frames {
        let tool = frame.block.field("tool_call");
        let id = tool["id"].as_str().unwrap_or_default();
        match frame.block.event() {
            "tool_call" => {
                let before = open.insert(id.to_owned(), tool.clone());
                if before.is_some() {
                    tell(id, "it began twice");
                }
            }
            "tool_completed" => match open.remove(id) {
                Some(begun) if begun != *tool => tell(id, "it ended as another tool"),
                None if whole => tell(id, "it ended and had not begun"),
                Some(_) | None => {}
            },
            _ => {}
        }
    }
    let last = reading.frames.last();
    if last.is_some_and(|last| due.is_over(last.id)) {
        for id in open.keys() {
            tell(id, "it is open at the terminal");
        }
    }
}

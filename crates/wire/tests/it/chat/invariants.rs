//! The invariants of the stream of one turn, each violation as a sentence.

use serde_json::{Value, json};
use turnwire_event::{Body, ContentBlock, Event, Timestamp};
use turnwire_wire::pc3::WireVersion;

use super::shape::{payloads, places};
use super::{ParsedFrame, StreamItem, all_turns, frames, items, stream};

const TERMINALS: [&str; 3] = ["completed", "error", "cancelled"];
const CONTENT: [&str; 9] = [
    "thinking",
    "reasoning",
    "text",
    "tool_call",
    "tool_completed",
    "status",
    "data_loading",
    "data_loaded",
    "component",
];

/// Every invariant that the stream of a turn violates.
pub(super) fn violations(turn: &[Event], bytes: &[u8], version: WireVersion) -> Vec<String> {
    let mut items = match items(bytes) {
        Ok(items) => items,
        Err(odd) => return vec![odd],
    };
    let mut out = Vec::new();
    if items.pop() != Some(StreamItem::Done) {
        out.push("the sentinel is not last".into());
    }
    let mut frames = Vec::new();
    for item in items {
        match item {
            StreamItem::ParsedFrame(frame) => frames.push(frame),
            StreamItem::Done => out.push("there is a second sentinel".into()),
        }
    }
    out.extend(envelopes(&frames, version));
    out.extend(payloads(&frames, version));
    out.extend(places(&frames));
    out.extend(order(&frames));
    out.extend(terminal(&frames));
    out.extend(tools(&frames));
    out.extend(content(turn, &frames));
    out
}

/// S1-002, S1-003, S1-004, S1-009, invariant 2: ids increase.
fn envelopes(frames: &[ParsedFrame], version: WireVersion) -> Vec<String> {
    let mut out = Vec::new();
    let mut last = ("", Timestamp::from_millis(i64::MIN));
    let name = frames.first().map_or("", |frame| frame.text("response_id"));
    if !name.starts_with("resp_") {
        out.push(format!("{name:?} names no turn"));
    }
    for frame in frames {
        let id = frame.id.as_str();
        if !["event_type", "version", "timestamp", "response_id"]
            .iter()
            .all(|key| frame.data.get(*key).is_some_and(Value::is_string))
        {
            out.push(format!("{id} lacks a field of the envelope"));
        }
        if frame.text("event_type") != frame.event {
            out.push(format!("{id} has two names"));
        }
        if frame.text("version") != version.as_str() || frame.text("response_id") != name {
            out.push(format!("{id} is of another version or turn"));
        }
        let at = frame.text("timestamp").parse().unwrap_or(last.1);
        if frame.text("timestamp") != at.to_string() || at < last.1 {
            out.push(format!("{id} is earlier than the frame before it"));
        }
        if id <= last.0 {
            out.push(format!("{id} is not greater than the id before it"));
        }
        last = (id, at);
    }
    out
}

/// S1-016, S1-022, S1-023, S1-031, C-10: the order of frames.
fn order(frames: &[ParsedFrame]) -> Vec<String> {
    let mut out = Vec::new();
    let at = |event: &str| frames.iter().position(|frame| frame.event == event);
    let count = |event: &str| frames.iter().filter(|frame| frame.event == event).count();
    if at("response_id") != Some(0) || count("response_id") != 1 {
        out.push("response_id is not first and once".into());
    }
    let content = frames
        .iter()
        .position(|frame| CONTENT.contains(&frame.event.as_str()));
    let episode = at("episode");
    if count("episode") != 1 || content.is_some_and(|content| episode > Some(content)) {
        out.push("episode is not once, before the content".into());
    }
    let first_text = at("text").unwrap_or(frames.len());
    for (at, frame) in frames.iter().enumerate() {
        if frame.event == "thinking" && at > first_text {
            out.push("thinking comes after text".into());
        }
        if frame.event == "reasoning" && at < first_text {
            out.push("reasoning comes before text".into());
        }
    }
    let indicator =
        |frame: &&ParsedFrame| frame.event == "thinking" && frame.text("content").is_empty();
    let indicators = frames.iter().filter(indicator).count();
    if indicators > 1 || first_text < frames.len() && indicators != 1 {
        out.push("the turn does not show once that it thinks".into());
    }
    out
}

/// S1-024, S1-026, S1-097, S1-103: one terminal frame, last, preceded by the usage unless the turn was
/// cancelled.
fn terminal(frames: &[ParsedFrame]) -> Vec<String> {
    let mut out = Vec::new();
    let goes_on = |frame: &ParsedFrame| frame.data.get("is_final") == Some(&json!(false));
    let ends = |frame: &&ParsedFrame| TERMINALS.contains(&frame.event.as_str()) && !goes_on(frame);
    if frames.iter().filter(ends).count() != 1 {
        out.push("there is not one terminal".into());
    }
    let Some(last) = frames.last().filter(ends) else {
        out.push("the terminal is not last".into());
        return out;
    };
    for (at, frame) in frames.iter().enumerate() {
        let is_final = frame.data.get("is_final");
        let is_last = json!(at + 1 == frames.len());
        if is_final != (frame.event == "error").then_some(&is_last) {
            out.push(format!("{} is_final is {is_final:?}", frame.id));
        }
    }
    let code = last.data.get("error").map(|error| error["code"].clone());
    let cancelled = code.is_some_and(|c| c == "IDLE_TIMEOUT" || c == "REQUEST_CANCELLED");
    let costs: Vec<_> = (0..frames.len())
        .filter(|&at| frames[at].event == "usage")
        .collect();
    let wanted = if cancelled {
        Vec::new()
    } else {
        vec![frames.len().wrapping_sub(2)]
    };
    if costs != wanted {
        out.push("usage is not once before the terminal, or comes with a cancel".into());
    }
    out
}

/// S1-017, S1-018, S1-046: tool frames come in pairs that close before the terminal frame.
fn tools(frames: &[ParsedFrame]) -> Vec<String> {
    let mut out = Vec::new();
    let mut open: Vec<&Value> = Vec::new();
    for frame in frames {
        let Some(tool) = frame.data.get("tool_call") else {
            continue;
        };
        let keys: Vec<_> = tool
            .as_object()
            .into_iter()
            .flat_map(|t| t.keys())
            .collect();
        if keys.len() != 3 || !["id", "name", "type"].iter().all(|k| tool[k].is_string()) {
            out.push(format!("{} a tool has {keys:?}", frame.id));
        }
        match open.iter().position(|known| *known == tool) {
            Some(_) if frame.event == "component" => {}
            None if frame.event == "tool_call" => open.push(tool),
            Some(at) if frame.event == "tool_completed" => drop(open.remove(at)),
            None | Some(_) => out.push(format!("{} is no pair", frame.id)),
        }
    }
    out.extend(
        open.iter()
            .map(|tool| format!("{tool} is open at the terminal")),
    );
    out
}

/// Invariant 5: the chunks add up to the stored text, and so does the reasoning.
fn content(turn: &[Event], frames: &[ParsedFrame]) -> Vec<String> {
    let (mut said, mut thought) = (String::new(), String::new());
    for event in turn {
        if let Body::MessageComplete(message) = &event.body {
            for block in &message.final_content {
                if let ContentBlock::Text { text } = block {
                    said.push_str(text);
                }
                if let ContentBlock::Thinking { text, .. } = block {
                    thought.push_str(text);
                }
            }
        }
    }
    let (mut text, mut reasoning) = (String::new(), String::new());
    for frame in frames {
        match frame.event.as_str() {
            "text" => text.push_str(frame.text("chunk")),
            "reasoning" => reasoning.push_str(frame.text("chunk")),
            "thinking" => reasoning.push_str(frame.text("content")),
            _ => {}
        }
    }
    let mut out = Vec::new();
    if text != said {
        out.push("the chunks do not sum to the stored text".into());
    }
    if reasoning != thought {
        out.push("the reasoning does not sum to the stored reasoning".into());
    }
    out
}

/// Checks every turn of every scenario, in both versions.
pub(super) fn check_all_turns(law: impl Fn(&[Event], &[ParsedFrame], WireVersion) -> Vec<String>) {
    for (name, turn) in all_turns() {
        for version in WireVersion::ALL {
            let violations = law(&turn, &frames(&stream(&turn, version)), version);
            assert_eq!(violations, Vec::<String>::new(), "{name}, {version}");
        }
    }
}

// S1-138, S1-002, S1-004, S1-009
#[test]
fn every_frame_has_the_envelope_of_its_turn() {
    check_all_turns(|_, frames, version| envelopes(frames, version));
}

// S1-016, S1-022, S1-023
#[test]
fn response_id_episode_and_thinking_come_first() {
    check_all_turns(|_, frames, _| order(frames));
}

// S1-138, LAW-1, S1-024, S1-097, S1-103, C-02, I-01
#[test]
fn every_turn_ends_once_after_its_usage() {
    check_all_turns(|_, frames, _| terminal(frames));
}

// S1-138, LAW-6, S1-046, D-79, I-05
#[test]
fn every_tool_call_ends_before_the_terminal() {
    check_all_turns(|_, frames, _| tools(frames));
}

// LAW-5, S1-014, S1-015, C-09, I-04
#[test]
fn chunks_add_up_to_the_stored_text() {
    check_all_turns(|turn, frames, _| content(turn, frames));
}

// S1-003, S1-005
#[test]
fn stream_is_complete_blocks_and_a_final_sentinel() {
    for (name, turn) in all_turns() {
        for version in WireVersion::ALL {
            let violations = violations(&turn, &stream(&turn, version), version);
            assert_eq!(violations, Vec::<String>::new(), "{name}, {version}");
        }
    }
}

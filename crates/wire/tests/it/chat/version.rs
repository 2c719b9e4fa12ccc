//! Version 0.4 beside 0.5: how an old client reads both (S1-007, S1-137, D-22).

use serde_json::{Map, Value};
use turnwire_wire::pc3::WireVersion;

use super::{ParsedFrame, all_turns, frames, stream};

/// The type of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum JsonKind {
    Text,
    Number,
    List,
    Any,
    Object(&'static [(&'static str, JsonKind)]),
}

const TOOL: JsonKind = JsonKind::Object(&[
    ("id", JsonKind::Text),
    ("name", JsonKind::Text),
    ("type", JsonKind::Text),
]);
const KEY: JsonKind = JsonKind::Object(&[("ids", JsonKind::List)]);
const PLACE: JsonKind = JsonKind::Object(&[
    ("id", JsonKind::Text),
    ("type", JsonKind::Text),
    ("key", KEY),
]);
const LOADED: JsonKind = JsonKind::Object(&[
    ("id", JsonKind::Text),
    ("type", JsonKind::Text),
    ("key", KEY),
    ("items", JsonKind::List),
]);
const ERROR: JsonKind = JsonKind::Object(&[("code", JsonKind::Text)]);

const ENVELOPE: [(&str, JsonKind); 4] = [
    ("event_type", JsonKind::Text),
    ("version", JsonKind::Text),
    ("timestamp", JsonKind::Text),
    ("response_id", JsonKind::Text),
];

/// The frame types and fields that a client of 0.4 knows.
const OLD: [(&str, &[(&str, JsonKind)]); 17] = [
    ("response_id", &[]),
    ("episode", &[("episode_id", JsonKind::Text)]),
    ("thinking", &[("role", JsonKind::Text)]),
    (
        "reasoning",
        &[("type", JsonKind::Text), ("chunk", JsonKind::Text)],
    ),
    (
        "text",
        &[("type", JsonKind::Text), ("chunk", JsonKind::Text)],
    ),
    ("tool_call", &[("tool_call", TOOL)]),
    ("tool_completed", &[("tool_call", TOOL)]),
    ("data_loading", &[("data", PLACE)]),
    ("data_loaded", &[("data", LOADED)]),
    (
        "component",
        &[("chunk", JsonKind::Any), ("tool_call", TOOL)],
    ),
    ("mcp_list_tools_start", &[("server", JsonKind::Text)]),
    ("mcp_list_tools_completed", &[("server", JsonKind::Text)]),
    ("mcp_session_start", &[("server", JsonKind::Text)]),
    ("mcp_session_progress", &[("server", JsonKind::Text)]),
    (
        "usage",
        &[
            ("input_tokens", JsonKind::Number),
            ("output_tokens", JsonKind::Number),
            ("total_tokens", JsonKind::Number),
            ("reasoning_tokens", JsonKind::Number),
            ("cached_tokens", JsonKind::Number),
        ],
    ),
    ("completed", &[]),
    ("error", &[("error", ERROR)]),
];

const OLD_CODES: [&str; 4] = [
    "INTERNAL_ERROR",
    "RATE_LIMIT_ERROR",
    "IDLE_TIMEOUT",
    "REQUEST_CANCELLED",
];

fn has_kind(value: Option<&Value>, kind: JsonKind) -> bool {
    match (value, kind) {
        (Some(Value::String(_)), JsonKind::Text)
        | (Some(Value::Number(_)), JsonKind::Number)
        | (Some(Value::Array(_)), JsonKind::List)
        | (Some(_), JsonKind::Any) => true,
        (Some(Value::Object(object)), JsonKind::Object(fields)) => has_fields(object, fields),
        (
            _,
            JsonKind::Text
            | JsonKind::Number
            | JsonKind::List
            | JsonKind::Any
            | JsonKind::Object(_),
        ) => false,
    }
}

fn has_fields(object: &Map<String, Value>, fields: &[(&str, JsonKind)]) -> bool {
    fields
        .iter()
        .all(|(name, kind)| has_kind(object.get(*name), *kind))
}

/// The frames that a client of 0.4 sees: it skips unknown types, requires the fields of known types,
/// and closes at the first `error`.
fn old_client(frames: &[ParsedFrame]) -> Result<Vec<&ParsedFrame>, String> {
    let mut seen = Vec::new();
    for frame in frames {
        let Some((_, fields)) = OLD.iter().find(|(event, _)| *event == frame.event) else {
            continue;
        };
        if !has_fields(&frame.data, &ENVELOPE) || !has_fields(&frame.data, fields) {
            return Err(format!("{frame:?} is not as it was"));
        }
        seen.push(frame);
        if frame.event == "error" {
            break;
        }
    }
    Ok(seen)
}

// S1-007
#[test]
fn fields_of_0_4_have_the_same_types_in_0_5() {
    for (name, turn) in all_turns() {
        let new = frames(&stream(&turn, WireVersion::V05));
        let seen = old_client(&new).unwrap_or_else(|odd| panic!("{name}: {odd}"));
        // The client closes at the first error, which is not always final in 0.5 (S1-101).
        let read = match seen.last().filter(|frame| frame.event == "error") {
            Some(last) => new.iter().position(|frame| frame == *last).unwrap_or(0) + 1,
            None => new.len(),
        };
        let unknown = new[..read].iter().filter(|frame| !seen.contains(frame));
        let unknown: Vec<_> = unknown.map(|frame| frame.event.as_str()).collect();
        assert!(
            unknown
                .iter()
                .all(|event| ["cancelled", "status"].contains(event)),
            "{name}: {unknown:?}"
        );
    }
}

// S1-137, D-22
#[test]
fn client_of_0_4_knows_all_types_and_codes_of_0_4() {
    for (name, turn) in all_turns() {
        let old = frames(&stream(&turn, WireVersion::V04));
        let seen = old_client(&old).unwrap_or_else(|odd| panic!("{name}: {odd}"));
        assert_eq!(
            seen.len(),
            old.len(),
            "{name}: nothing is unknown or behind an error"
        );
        let last = old.last().expect("a terminal");
        if let Some(error) = last.data.get("error") {
            let code = error["code"].as_str().unwrap_or_default();
            assert!(OLD_CODES.contains(&code), "{name}: {code}");
            assert_eq!(
                error.as_object().map(Map::len),
                Some(1),
                "{name}: the code alone"
            );
        }
    }
}

/// The frame of 0.4 for a frame of 0.5; `None` if it is new in 0.5 and not terminal.
fn rolled_back(mut frame: ParsedFrame) -> Option<ParsedFrame> {
    if frame.event == "status" || frame.data.get("is_final") == Some(&false.into()) {
        return None;
    }
    frame.data.insert("version".into(), "0.4".into());
    if frame.event == "cancelled" {
        frame.event = "error".into();
        frame.data.insert("event_type".into(), "error".into());
        frame.data.insert("is_final".into(), true.into());
    }
    if let Some(error) = frame.data.get_mut("error") {
        let code = error["code"].as_str().unwrap_or_default();
        let code = if OLD_CODES.contains(&code) {
            code
        } else {
            OLD_CODES[0]
        };
        *error = serde_json::json!({ "code": code });
    }
    Some(frame)
}

// S1-137, D-22
#[test]
fn versions_differ_only_in_statuses_reports_and_cancels() {
    for (name, turn) in all_turns() {
        let new = frames(&stream(&turn, WireVersion::V05));
        let old = frames(&stream(&turn, WireVersion::V04));
        let rolled: Vec<ParsedFrame> = new.into_iter().filter_map(rolled_back).collect();
        assert_eq!(rolled, old, "{name}");
    }
}

// S1-006
#[test]
fn every_frame_has_its_version() {
    for version in WireVersion::ALL {
        for (name, turn) in all_turns() {
            for frame in frames(&stream(&turn, version)) {
                assert_eq!(frame.text("version"), version.as_str(), "{name}");
            }
        }
    }
}

// S1-114, S1-115
#[test]
fn cancel_is_an_error_in_0_4_only() {
    for (name, turn) in all_turns()
        .iter()
        .filter(|(name, _)| name.contains("cancel_in"))
    {
        let last = |version| {
            let frames = frames(&stream(turn, version));
            frames.last().map(|frame| frame.event.clone())
        };
        assert_eq!(
            last(WireVersion::default()).as_deref(),
            Some("cancelled"),
            "{name}"
        );
        assert_eq!(last(WireVersion::V04).as_deref(), Some("error"), "{name}");
    }
}

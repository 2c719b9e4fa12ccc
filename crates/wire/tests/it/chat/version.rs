//! Version 0.4 beside 0.5: what an old client reads of either (S1-007, S1-137, D-22).

use serde_json::{Map, Value};
use turnwire_wire::pc3::Version;

use super::{Frame, all_turns, frames, stream};

/// A kind of JSON value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Text,
    Number,
    List,
    Any,
    Object(&'static [(&'static str, Kind)]),
}

const TOOL: Kind = Kind::Object(&[
    ("id", Kind::Text),
    ("name", Kind::Text),
    ("type", Kind::Text),
]);
const KEY: Kind = Kind::Object(&[("ids", Kind::List)]);
const PLACE: Kind = Kind::Object(&[("id", Kind::Text), ("type", Kind::Text), ("key", KEY)]);
const LOADED: Kind = Kind::Object(&[
    ("id", Kind::Text),
    ("type", Kind::Text),
    ("key", KEY),
    ("items", Kind::List),
]);
const ERROR: Kind = Kind::Object(&[("code", Kind::Text)]);

const ENVELOPE: [(&str, Kind); 4] = [
    ("event_type", Kind::Text),
    ("version", Kind::Text),
    ("timestamp", Kind::Text),
    ("response_id", Kind::Text),
];

/// The types and fields that a client of 0.4 was written against.
const OLD: [(&str, &[(&str, Kind)]); 17] = [
    ("response_id", &[]),
    ("episode", &[("episode_id", Kind::Text)]),
    ("thinking", &[("role", Kind::Text)]),
    ("reasoning", &[("type", Kind::Text), ("chunk", Kind::Text)]),
    ("text", &[("type", Kind::Text), ("chunk", Kind::Text)]),
    ("tool_call", &[("tool_call", TOOL)]),
    ("tool_completed", &[("tool_call", TOOL)]),
    ("data_loading", &[("data", PLACE)]),
    ("data_loaded", &[("data", LOADED)]),
    ("component", &[("chunk", Kind::Any), ("tool_call", TOOL)]),
    ("mcp_list_tools_start", &[("server", Kind::Text)]),
    ("mcp_list_tools_completed", &[("server", Kind::Text)]),
    ("mcp_session_start", &[("server", Kind::Text)]),
    ("mcp_session_progress", &[("server", Kind::Text)]),
    (
        "usage",
        &[
            ("input_tokens", Kind::Number),
            ("output_tokens", Kind::Number),
            ("total_tokens", Kind::Number),
            ("reasoning_tokens", Kind::Number),
            ("cached_tokens", Kind::Number),
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

fn fits(value: Option<&Value>, kind: Kind) -> bool {
    match (value, kind) {
        (Some(Value::String(_)), Kind::Text)
        | (Some(Value::Number(_)), Kind::Number)
        | (Some(Value::Array(_)), Kind::List)
        | (Some(_), Kind::Any) => true,
        (Some(Value::Object(object)), Kind::Object(fields)) => all_fit(object, fields),
        (_, Kind::Text | Kind::Number | Kind::List | Kind::Any | Kind::Object(_)) => false,
    }
}

fn all_fit(object: &Map<String, Value>, fields: &[(&str, Kind)]) -> bool {
    fields
        .iter()
        .all(|(name, kind)| fits(object.get(*name), *kind))
}

/// What a client of 0.4 sees of a stream: it passes over types it does not know, insists on the
/// fields it does, and closes at the first `error`.
fn old_client(frames: &[Frame]) -> Result<Vec<&Frame>, String> {
    let mut seen = Vec::new();
    for frame in frames {
        let Some((_, fields)) = OLD.iter().find(|(event, _)| *event == frame.event) else {
            continue;
        };
        if !all_fit(&frame.data, &ENVELOPE) || !all_fit(&frame.data, fields) {
            return Err(format!("{frame:?} is not as it was"));
        }
        seen.push(frame);
        if frame.event == "error" {
            break;
        }
    }
    Ok(seen)
}

#[test]
fn s1_007_fields_of_0_4_are_in_0_5_with_the_same_types() {
    for (name, turn) in all_turns() {
        let new = frames(&stream(&turn, Version::V05));
        let seen = old_client(&new).unwrap_or_else(|odd| panic!("{name}: {odd}"));
        // It closes at the first error, which in 0.5 need not be the end (S1-101).
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

#[test]
fn s1_137_d_22_an_old_client_knows_every_type_and_code_of_0_4_and_reads_to_the_end() {
    for (name, turn) in all_turns() {
        let old = frames(&stream(&turn, Version::V04));
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

/// What a frame of 0.5 is in 0.4; nothing, if it came with 0.5 and is not the end.
fn rolled_back(mut frame: Frame) -> Option<Frame> {
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

#[test]
fn s1_137_d_22_the_versions_differ_in_statuses_reports_cancels_and_codes_and_nothing_else() {
    for (name, turn) in all_turns() {
        let new = frames(&stream(&turn, Version::V05));
        let old = frames(&stream(&turn, Version::V04));
        let rolled: Vec<Frame> = new.into_iter().filter_map(rolled_back).collect();
        assert_eq!(rolled, old, "{name}");
    }
}

#[test]
fn s1_006_every_frame_names_its_version() {
    for version in Version::ALL {
        for (name, turn) in all_turns() {
            for frame in frames(&stream(&turn, version)) {
                assert_eq!(frame.text("version"), version.as_str(), "{name}");
            }
        }
    }
}

#[test]
fn s1_114_s1_115_a_cancel_is_no_error_unless_the_old_shape_was_asked_for() {
    for (name, turn) in all_turns()
        .iter()
        .filter(|(name, _)| name.contains("cancel_in"))
    {
        let last = |version| {
            let frames = frames(&stream(turn, version));
            frames.last().map(|frame| frame.event.clone())
        };
        assert_eq!(
            last(Version::default()).as_deref(),
            Some("cancelled"),
            "{name}"
        );
        assert_eq!(last(Version::V04).as_deref(), Some("error"), "{name}");
    }
}

//! The frames of both wires satisfy their schemas, in both directions, and have no member that the
//! schemas do not describe.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value, json};
use turnwire_event::code::TurnState;
use turnwire_event::{Epoch, Position, Seq, SessionId, TurnId, Ulid};
use turnwire_wire::pc3::{FrameKind, WireVersion};
use turnwire_wire::session::{
    CancelAck, CancelError, CancelErrorCode, ClientFrame, SessionCloseReason, SubscribeError,
    write_cancel_ack, write_cancel_error, write_ping, write_pong, write_subscribe_error,
};

use super::{read_json, refusal, validator};

/// The text of a file of every golden scenario.
fn golden(file: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/wire/tests/golden");
    let scenarios = std::fs::read_dir(folder).expect("golden files");
    let paths = scenarios.map(|scenario| scenario.expect("a folder").path().join(file));
    paths
        .map(|path| std::fs::read_to_string(path).expect("a golden file"))
        .collect()
}

/// A position in a log.
fn at_start() -> Position {
    Position::persisted(Epoch(1), Seq(1))
}

/// The schema without room for members that it does not describe.
fn closed(mut schema: Value) -> Value {
    fn close(value: &mut Value) {
        match value {
            Value::Object(map) => {
                if map.contains_key("properties") && map.get("type") == Some(&json!("object")) {
                    map.entry("additionalProperties").or_insert(json!(false));
                }
                map.values_mut().for_each(close);
            }
            Value::Array(items) => items.iter_mut().for_each(close),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    close(&mut schema);
    schema
}

/// The types of the frames that a schema describes.
fn types(schema: &Value, tag: &str) -> BTreeSet<String> {
    let refs = schema["oneOf"].as_array().expect("frames").iter();
    refs.map(|frame| {
        let pointer = frame["$ref"].as_str().expect("a reference");
        let frame = schema
            .pointer(pointer.trim_start_matches('#'))
            .expect("a frame");
        let kind = frame["properties"][tag]["const"].as_str();
        kind.expect("a type").to_owned()
    })
    .collect()
}

#[test]
fn chat_frames_satisfy_the_schema_of_their_version() {
    for version in WireVersion::ALL {
        let schema = read_json(&format!("schema/wires/pc3-{version}.json"));
        let judge = validator(&closed(schema.clone()));
        let mut seen = BTreeSet::new();
        for stream in golden(&format!("pc3-{version}.txt")) {
            let data = stream
                .lines()
                .filter_map(|line| line.strip_prefix("data: "));
            for frame in data.filter(|data| *data != "[DONE]") {
                let frame: Value = serde_json::from_str(frame).expect("a frame is JSON");
                assert_eq!(refusal(&judge, &frame), None, "{version}: {frame}");
                seen.insert(frame["event_type"].as_str().expect("a type").to_owned());
            }
        }
        let described = types(&schema, "event_type");
        assert_eq!(seen, described, "{version}");
        let all: BTreeSet<String> = FrameKind::ALL
            .iter()
            .map(|kind| kind.event_type().to_owned())
            .collect();
        let missing: Vec<&String> = all.difference(&described).collect();
        match version {
            WireVersion::V04 => assert_eq!(missing, ["cancelled", "status"]),
            WireVersion::V05 => assert_eq!(missing, [""; 0]),
        }
    }
}

#[test]
fn versions_of_the_chat_wire_refuse_frames_of_the_other() {
    let judge = validator(&read_json("schema/wires/pc3-0.5.json"));
    let mut frame = json!({
        "event_type": "error",
        "version": "0.5",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "response_id": "resp_00000000000000000000000001",
        "error": { "code": "INTERNAL_ERROR" },
        "is_final": true,
    });
    assert_eq!(refusal(&judge, &frame), None);
    frame["error"]["code"] = json!("REQUEST_CANCELLED");
    assert!(!judge.is_valid(&frame), "a cancel is no error in 0.5");
    frame["version"] = json!("0.4");
    let judge = validator(&read_json("schema/wires/pc3-0.4.json"));
    assert_eq!(refusal(&judge, &frame), None);
}

#[test]
fn session_frames_of_the_server_satisfy_their_schema() {
    let schema = read_json("schema/wires/session-server.json");
    let judge = validator(&closed(schema));
    let check = |frame: &[u8]| {
        let frame: Value = serde_json::from_slice(frame).expect("a frame is JSON");
        assert_eq!(refusal(&judge, &frame), None, "{frame}");
    };
    for frames in golden("session.jsonl") {
        frames.lines().for_each(|frame| check(frame.as_bytes()));
    }
    let (mut frame, at) = (Vec::new(), at_start());
    for error in [
        SubscribeError::session_not_found(),
        SubscribeError::cursor_expired(),
        SubscribeError::replay_too_large(5),
        SubscribeError::invalid_filter("no"),
    ] {
        frame.clear();
        write_subscribe_error(&error, &mut frame);
        check(&frame);
    }
    for error in [
        CancelError::invalid_frame("no"),
        CancelError::of(CancelErrorCode::TurnNotFound, "x"),
    ] {
        frame.clear();
        write_cancel_error(&error, &mut frame);
        check(&frame);
    }
    frame.clear();
    let ack = CancelAck {
        turn_id: TurnId(Ulid(1)),
        state: TurnState::Cancelling,
    };
    write_cancel_ack(&ack, &mut frame);
    check(&frame);
    let positions = [(SessionId(Ulid(1)), at)].into_iter().collect();
    for positions in [None, Some(&positions)] {
        frame.clear();
        write_ping("n", at, positions, &mut frame);
        check(&frame);
    }
    frame.clear();
    write_pong("n", &mut frame);
    check(&frame);
}

#[test]
fn parser_and_schema_agree_on_frames_of_clients() {
    let judge = validator(&read_json("schema/wires/session-client.json"));
    let at = at_start().to_string();
    let by_session: Map<String, Value> = [(SessionId(Ulid(1)).to_string(), json!(at))]
        .into_iter()
        .collect();
    let worker = json!({ "include_worker_sessions": true, "actors": ["tool"] });
    for good in [
        json!({ "type": "subscribe" }),
        json!({ "type": "subscribe", "filter": "preset:chat", "since": at }),
        json!({ "type": "subscribe", "filter": null, "since": null, "snapshot": true }),
        json!({ "type": "subscribe", "filter": { "event_types": ["turn.started", "mission.stage"] } }),
        json!({ "type": "subscribe", "filter": worker, "since": by_session }),
        json!({ "type": "cancel", "turn_id": "resp_01" }),
        json!({ "type": "cancel", "turn_id": "x", "reason": null }),
        json!({ "type": "cancel", "turn_id": "x", "reason": "r".repeat(5_000) }),
        json!({ "type": "ping", "nonce": "" }),
        json!({ "type": "pong", "nonce": "n" }),
    ] {
        assert_eq!(refusal(&judge, &good), None, "{good}");
        let frame = ClientFrame::parse(&good.to_string()).expect("a frame");
        assert!(!matches!(frame, ClientFrame::Unknown { .. }), "{good}");
    }
    for bad in [
        json!({ "type": "subscribe", "filters": null }),
        json!({ "type": "subscribe", "snapshot": null }),
        json!({ "type": "subscribe", "filter": "preset:none" }),
        json!({ "type": "subscribe", "filter": { "event_types": ["support.noted"] } }),
        json!({ "type": "subscribe", "since": 5 }),
        json!({ "type": "cancel" }),
        json!({ "type": "cancel", "turn_id": "x", "reason": 1 }),
        json!({ "type": "ping" }),
    ] {
        assert!(!judge.is_valid(&bad), "{bad}");
        assert!(ClientFrame::parse(&bad.to_string()).is_err(), "{bad}");
    }
    assert!(!judge.is_valid(&json!({ "type": "shout" })));
}

#[test]
fn closes_of_the_server_satisfy_their_schema() {
    let judge = validator(&read_json("schema/wires/session-close.json"));
    for close in SessionCloseReason::ALL {
        let reason: Value = serde_json::from_str(&close.reason_json()).expect("a reason is JSON");
        let whole = json!({ "code": close.code(), "reason": reason });
        assert_eq!(refusal(&judge, &whole), None);
        let mut other = whole.clone();
        other["code"] = json!(4_000);
        assert!(!judge.is_valid(&other), "{other}");
        let mut other = whole;
        other["reason"]["code"] = json!("unheard_of");
        assert!(!judge.is_valid(&other), "{other}");
    }
}

/// The ways in which a frame is no frame any more, each with its name.
fn mutilated(frame: &Value, schema: &Value, tag: &str) -> Vec<(String, Value)> {
    let kind = frame[tag].as_str().expect("a type");
    let frames = schema["oneOf"].as_array().expect("frames").iter();
    let mut definitions = frames.map(|frame| {
        let pointer = frame["$ref"].as_str().expect("a reference");
        let definition = schema.pointer(pointer.trim_start_matches('#'));
        definition.expect("a frame")
    });
    let is_of_kind = |definition: &&Value| definition["properties"][tag]["const"] == kind;
    let definition = definitions.find(is_of_kind).expect("a known type");
    let mut out = Vec::new();
    let mut unknown = frame.clone();
    unknown[tag] = json!("unheard_of");
    out.push(("an unknown type".to_owned(), unknown));
    for name in definition["required"].as_array().into_iter().flatten() {
        let name = name.as_str().expect("a name");
        let mut without = frame.clone();
        without
            .as_object_mut()
            .expect("an object")
            .shift_remove(name);
        out.push((format!("without {name}"), without));
    }
    for (name, member) in definition["properties"].as_object().into_iter().flatten() {
        let is_anything = member.as_object().is_none_or(|schema| {
            let judges = ["type", "$ref", "anyOf", "oneOf", "allOf", "const", "enum"];
            !judges.iter().any(|keyword| schema.contains_key(*keyword))
        });
        if frame.get(name).is_some() && !is_anything {
            let mut other = frame.clone();
            // No member of a frame is a list of nulls.
            other[name] = json!([null]);
            out.push((format!("{name} of another kind"), other));
        }
    }
    out
}

#[test]
fn mutilated_golden_frames_are_refused() {
    let mut refused = 0;
    let mut check = |frame: &Value, schema: &Value, judge: &jsonschema::Validator, tag: &str| {
        assert_eq!(refusal(judge, frame), None, "{frame}");
        for (how, broken) in mutilated(frame, schema, tag) {
            assert!(!judge.is_valid(&broken), "{how}: {broken}");
            refused += 1;
        }
    };
    for version in WireVersion::ALL {
        let schema = read_json(&format!("schema/wires/pc3-{version}.json"));
        let judge = validator(&schema);
        for stream in golden(&format!("pc3-{version}.txt")) {
            let data = stream
                .lines()
                .filter_map(|line| line.strip_prefix("data: "));
            for frame in data.filter(|data| *data != "[DONE]") {
                let frame = serde_json::from_str(frame).expect("a frame is JSON");
                check(&frame, &schema, &judge, "event_type");
            }
        }
    }
    let schema = read_json("schema/wires/session-server.json");
    let judge = validator(&schema);
    for frames in golden("session.jsonl") {
        for frame in frames.lines() {
            let frame = serde_json::from_str(frame).expect("a frame is JSON");
            check(&frame, &schema, &judge, "type");
        }
    }
    assert!(refused > 10_000, "{refused}");
}

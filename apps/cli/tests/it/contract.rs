//! `docs/wires/session.md` against the code: its examples are frames, its tables are the tables; and
//! the frames of the complete session in `docs/example.md`.

use serde_json::Value;
use turnwire_event::body::turn::TurnCancelled;
use turnwire_event::{Event, EventFilter, EventLane, EventType, Message};
use turnwire_wire::rest::session::SessionAttached;
use turnwire_wire::rest::turn::TurnInfo;
use turnwire_wire::session::{
    self, ClientFrame, ClientFrameError, ReconnectAdvice, SessionCloseReason, SessionSummary,
    SinceCursor, SnapshotWork,
};

const PAGE: &str = include_str!("../../../../docs/wires/session.md");

const EXAMPLE: &str = include_str!("../../../../docs/example.md");
const SERVER_FRAMES: &str = include_str!("../../../../schema/wires/session-server.json");
/// Stands in an object from which the page leaves fields out.
const LEFT_OUT: &str = "…";

/// The JSON examples of the page.
fn examples() -> Vec<Value> {
    let blocks = PAGE.split("```json\n").skip(1);
    blocks
        .map(|block| {
            let json = block.split("```").next().expect("an end");
            serde_json::from_str(json).unwrap_or_else(|error| panic!("{error} in {json}"))
        })
        .collect()
}

fn of<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error} in {value}"))
}

/// The frame the server would write for what an example says.
fn written(example: &Value) -> Value {
    let mut out = Vec::new();
    match example["type"].as_str().expect("a type") {
        "subscribe_ack" => {
            let filter = EventFilter::resolve(&of(&example["resolved_filter"])).expect("a filter");
            let since: Option<SinceCursor> = of(&example["since"]);
            let ack = session::SubscribeAck {
                version: session::SESSION_WIRE_VERSION,
                resolved_filter: filter.spec(),
                since: since.as_ref(),
                snapshot: of(&example["snapshot"]),
                replay_event_count: of(&example["replay_event_count"]),
                positions: of(&example["positions"]),
            };
            session::write_ack(&ack, &mut out);
        }
        "subscribe_error" => session::write_subscribe_error(&of(example), &mut out),
        "cancel_ack" => session::write_cancel_ack(&of(example), &mut out),
        "cancel_error" => session::write_cancel_error(&of(example), &mut out),
        "renew_ack" => session::write_renew_ack(&of(example), &mut out),
        "renew_error" => session::write_renew_error(&of(example), &mut out),
        "event" => {
            let event = Event::read(example["event"].to_string().as_bytes()).expect("an event");
            session::write_event(&event.to_bytes(), &mut out);
        }
        "snapshot" => {
            let summary: SessionSummary = of(&example["session"]);
            let messages: Vec<Message> = of(&example["messages"]);
            let open: SnapshotWork = of(&example["open"]);
            let last_turn: Option<TurnInfo> = of(&example["last_turn"]);
            let snapshot = session::SnapshotFrame {
                session: &summary,
                messages: &messages,
                next: of(&example["next"]),
                open: &open,
                last_turn: last_turn.as_ref(),
                snapshot_at_event_id: of(&example["snapshot_at_event_id"]),
            };
            session::write_snapshot(&snapshot, &mut out);
        }
        "ping" => {
            let nonce: String = of(&example["nonce"]);
            let positions: Option<session::SessionPositions> = of(&example["positions"]);
            session::write_ping(
                &nonce,
                of(&example["position"]),
                positions.as_ref(),
                &mut out,
            );
        }
        kind => panic!("an example of a frame {kind} that nobody writes"),
    }
    serde_json::from_slice(&out).expect("a frame")
}

// S3-046
#[test]
fn examples_are_the_frames_the_code_reads_and_writes() {
    let mut seen = Vec::new();
    for example in examples() {
        let Some(kind) = example["type"].as_str() else {
            continue;
        };
        seen.push(kind.to_owned());
        match (kind, ClientFrame::parse(&example.to_string())) {
            ("subscribe", Ok(ClientFrame::Subscribe(_)))
            | ("cancel", Ok(ClientFrame::Cancel { .. }))
            | ("renew", Ok(ClientFrame::Renew { .. })) => {}
            ("subscribe" | "cancel" | "renew", read) => panic!("{read:?}"),
            _ => assert_eq!(written(&example), example),
        }
    }
    let expected = [
        "subscribe",
        "subscribe_ack",
        "subscribe_error",
        "event",
        "snapshot",
        "cancel",
        "cancel_ack",
        "cancel_error",
        "renew",
        "renew_ack",
        "renew_error",
        "ping",
    ];
    assert_eq!(seen, expected);
}

/// Checks the fields of an object of the page against its schema: none is unknown, and none that is
/// required is missing without a sign.
fn assert_fields(object: &Value, schema: &Value, line: &str) {
    let fields = object.as_object().expect("an object");
    let known = schema["properties"].as_object().expect("properties");
    for name in fields.keys() {
        let is_known = known.contains_key(name) || name == LEFT_OUT;
        assert!(is_known, "unknown field {name} in {line}");
    }
    let required = schema["required"].as_array().expect("required fields");
    for name in required.iter().filter_map(Value::as_str) {
        let is_there = fields.contains_key(name) || fields.contains_key(LEFT_OUT);
        assert!(is_there, "no {name} in {line}");
    }
}

// S3-046
#[test]
fn complete_session_of_the_documents_has_valid_frames() {
    let schema: Value = serde_json::from_str(SERVER_FRAMES).expect("a schema");
    let types = schema["$defs"].as_object().expect("definitions");
    let of_type = |kind: &Value| {
        let is_of_type = |it: &&Value| it["properties"]["type"]["const"] == *kind;
        types.values().find(is_of_type)
    };
    let mut seen = std::collections::BTreeMap::<String, usize>::new();
    for line in EXAMPLE.lines() {
        if line.starts_with("> {") {
            let frame = ClientFrame::parse(&line[2..]);
            assert!(frame.is_ok(), "{frame:?} of {line}");
        }
        let Some(json) = line.strip_prefix("< ").filter(|json| json.starts_with('{')) else {
            continue;
        };
        let json = json.replace(",…]", "]");
        let json = json.replace(",…", r#","…":0"#).replace("{…", r#"{"…":0"#);
        let frame: Value =
            serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error} in {line}"));
        *seen.entry(frame["type"].to_string()).or_default() += 1;
        let frame_schema = of_type(&frame["type"]).unwrap_or_else(|| panic!("no frame: {line}"));
        assert_fields(&frame, frame_schema, line);
        let event = &frame["event"];
        if event.is_object() {
            let event_schema = of_type(&event["type"]).unwrap_or_else(|| panic!("no type: {line}"));
            assert_fields(event, event_schema, line);
            let payload = &event_schema["properties"]["payload"]["$ref"];
            let name = payload.as_str().and_then(|it| it.rsplit('/').next());
            let payload_schema = &types[name.expect("a payload")];
            if event["payload"].is_object() {
                assert_fields(&event["payload"], payload_schema, line);
            }
        }
    }
    let seen: Vec<_> = seen.into_iter().collect();
    let expected = [
        ("\"event\"", 24),
        ("\"snapshot\"", 1),
        ("\"subscribe_ack\"", 2),
    ];
    assert_eq!(seen, expected.map(|(kind, count)| (kind.to_owned(), count)));
}

#[test]
fn documented_receipt_and_attach_are_parsed() {
    let whole = examples();
    let has = |key: &str| whole.iter().find(|example| example.get(key).is_some());
    let _: TurnCancelled = of(has("receipt").expect("a receipt"));
    let attached: SessionAttached = of(has("attach_token").expect("an attach"));
    assert!(attached.ws_url.ends_with(&attached.attach_token));
}

#[test]
fn documented_close_codes_match_the_code() {
    let rows = PAGE.lines().filter(|line| line.starts_with("| 1"));
    let told: Vec<(String, bool)> = rows
        .map(|row| {
            let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
            (
                format!("{} {}", cells[0], cells[1]),
                cells[3].starts_with("yes"),
            )
        })
        .collect();
    let known: Vec<(String, bool)> = SessionCloseReason::ALL
        .iter()
        .map(|close| {
            let resumes = close.reconnect() == ReconnectAdvice::Resume;
            (format!("{} `{}`", close.code(), close.name()), resumes)
        })
        .collect();
    assert_eq!(told, known);
}

// S3-019
#[test]
fn preset_chat_matches_the_document() {
    let list = PAGE
        .split("the types that an end-user view needs:")
        .nth(1)
        .expect("the list");
    let list = list.split(".\n\n").next().expect("its end");
    let mut told: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
    let mut known: Vec<&str> = EventFilter::chat()
        .types()
        .iter()
        .map(EventType::name)
        .collect();
    told.sort_unstable();
    known.sort_unstable();
    assert_eq!(told, known);
}

// S3-020
#[test]
fn preset_full_matches_the_document() {
    let full: Vec<_> = EventFilter::full().types().iter().collect();
    let expected: Vec<_> = EventType::ALL
        .iter()
        .copied()
        .filter(|kind| matches!(kind.lane(), EventLane::Persisted | EventLane::Streaming))
        .collect();
    assert_eq!(full, expected);
    assert_eq!(
        full.len(),
        50,
        "43 of the catalog and 7 of a message in flight"
    );
}

// S3-068, S3-105
#[test]
fn reserved_names_are_listed_and_rejected() {
    let table = PAGE.split("are reserved for later versions").nth(1);
    let table = table.expect("the table").split("\n\n").nth(1);
    let rows = table.expect("its rows").lines().skip(2);
    let reserved: Vec<(&str, bool)> = rows
        .map(|row| {
            let cell = row.split('|').nth(1).expect("a cell");
            let name = cell.split('`').nth(1).expect("a name");
            (name, cell.contains("event type"))
        })
        .collect();
    assert_eq!(reserved.len(), 3, "{reserved:?}");
    for (name, is_type) in reserved {
        let filter = match is_type {
            true => serde_json::json!({"event_types": [name]}),
            false => serde_json::json!({name: false}),
        };
        let frame = serde_json::json!({"type": "subscribe", "filter": filter});
        match ClientFrame::parse(&frame.to_string()) {
            Err(ClientFrameError::Subscribe(error)) => {
                assert_eq!(error.code.name(), "invalid_filter");
                assert!(error.message.contains(name), "{error}");
            }
            other => panic!("{name} is not rejected: {other:?}"),
        }
    }
}

#[test]
fn version_of_the_page_is_that_of_the_code() {
    let stated = format!("This page is version {} ", session::SESSION_WIRE_VERSION);
    assert!(PAGE.contains(&stated));
}

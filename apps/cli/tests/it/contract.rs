//! `docs/wires/session.md` against the code: its examples are frames, its tables are the tables.

use serde_json::Value;
use turnwire_event::body::turn::TurnCancelled;
use turnwire_event::{Event, EventFilter, EventLane, EventType, Message};
use turnwire_wire::rest::session::SessionAttached;
use turnwire_wire::session::{
    self, ClientFrame, ReconnectAdvice, SessionCloseReason, SessionSummary, SinceCursor,
};

const PAGE: &str = include_str!("../../../../docs/wires/session.md");

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
                resolved_filter: filter.spec(),
                since: since.as_ref(),
                snapshot: of(&example["snapshot"]),
                replay_event_count: of(&example["replay_event_count"]),
                positions: of(&example["positions"]),
            };
            session::write_ack(&ack, &mut out);
        }
        "subscribe_error" => session::write_subscribe_error(&of(example), &mut out),
        "event" => {
            let event = Event::read(example["event"].to_string().as_bytes()).expect("an event");
            session::write_event(&event.to_bytes(), &mut out);
        }
        "snapshot" => {
            let summary: SessionSummary = of(&example["session"]);
            let messages: Vec<Message> = of(&example["messages"]);
            let snapshot = session::SnapshotFrame {
                session: &summary,
                messages: &messages,
                next: of(&example["next"]),
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
            | ("cancel", Ok(ClientFrame::Cancel { .. })) => {}
            ("subscribe" | "cancel", read) => panic!("{read:?}"),
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
        "ping",
    ];
    assert_eq!(seen, expected);
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

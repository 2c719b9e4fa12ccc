//! Client frames: which are accepted, which are rejected, which close the connection.

use proptest::prelude::*;
use turnwire_event::{Epoch, EventFilter, EventType, Position, Seq, SessionId, TypeSet, Ulid};

use super::*;
use crate::session::subscribe::{SINCE_SESSIONS_MAX, SinceCursor, SubscribeCode};

fn subscribe(text: &str) -> SubscribeFrame {
    match ClientFrame::parse(text) {
        Ok(ClientFrame::Subscribe(subscribe)) => subscribe,
        other => panic!("{text}: {other:?}"),
    }
}

fn rejection(text: &str) -> String {
    match ClientFrame::parse(text) {
        Err(ClientFrameError::Subscribe(error)) => {
            assert_eq!(error.code, SubscribeCode::InvalidFilter, "{text}");
            error.message
        }
        other => panic!("{text}: {other:?}"),
    }
}

// S3-014, S3-013
#[test]
fn subscribe_with_all_fields_is_parsed() {
    let read = subscribe(
        r#"{"type":"subscribe","filter":{"event_types":["text.delta","turn.started"],
            "actors":["orchestrator"],"include_worker_sessions":true},
            "since":"evt_00010000000007","snapshot":true}"#,
    );
    let types: TypeSet = [EventType::TextDelta, EventType::TurnStarted]
        .into_iter()
        .collect();
    assert_eq!(read.filter.types(), types);
    assert_eq!(read.filter.spec().actors, Some(vec!["orchestrator".into()]));
    assert!(read.filter.spec().include_worker_sessions);
    assert_eq!(
        read.since,
        Some(SinceCursor::Id("evt_00010000000007".into()))
    );
    assert!(read.snapshot);
}

// S3-014, S3-015, R-39
#[test]
fn missing_subscribe_fields_have_defaults() {
    let everything = SubscribeFrame {
        filter: EventFilter::full(),
        since: None,
        snapshot: false,
    };
    for text in [
        r#"{"type":"subscribe"}"#,
        r#"{"type":"subscribe","filter":null,"since":null}"#,
        r#"{"type":"subscribe","filter":{}}"#,
        r#"{"type":"subscribe","filter":{"event_types":null,"actors":null}}"#,
        r#"{"type":"subscribe","filter":"preset:full","since":null,"snapshot":false}"#,
    ] {
        assert_eq!(subscribe(text), everything, "{text}");
    }
    let chat = subscribe(r#"{"type":"subscribe","filter":"preset:chat"}"#);
    assert_eq!(chat.filter, EventFilter::chat());
}

// S3-012, S3-017
#[test]
fn unknown_or_mistyped_field_is_named() {
    for (fields, message) in [
        (
            r#""filter":{"event_types":["made.up.thing"]}"#,
            "unknown event type \"made.up.thing\"",
        ),
        (
            r#""filter":{"actors":["nobody"]}"#,
            "unknown actor \"nobody\"",
        ),
        (
            r#""filter":"preset:all""#,
            "unknown preset \"preset:all\"; there are preset:chat and preset:full",
        ),
        (
            r#""filter":{"event_types":"text.delta"}"#,
            "filter.event_types must be a list of strings or null",
        ),
        (
            r#""filter":{"event_types":[5]}"#,
            "filter.event_types must be a list of strings or null",
        ),
        (
            r#""filter":{"actors":{}}"#,
            "filter.actors must be a list of strings or null",
        ),
        (
            r#""filter":{"include_worker_sessions":1}"#,
            "filter.include_worker_sessions must be true or false",
        ),
        (
            r#""filter":{"include_suppressed":"yes"}"#,
            "filter.include_suppressed must be true or false",
        ),
        (r#""filter":{"types":[]}"#, "unknown field \"filter.types\""),
        (
            r#""filter":7"#,
            "filter must be an object, a preset or null",
        ),
        (
            r#""since":7"#,
            "since must be an event id, a map of them by session, or null",
        ),
        (
            r#""since":{"a":7}"#,
            "since must be an event id, a map of them by session, or null",
        ),
        (r#""snapshot":"true""#, "snapshot must be true or false"),
        (r#""snapshot":null"#, "snapshot must be true or false"),
        (r#""snapshots":true"#, "unknown field \"snapshots\""),
    ] {
        let text = format!(r#"{{"type":"subscribe",{fields}}}"#);
        assert_eq!(rejection(&text), message, "{text}");
    }
}

// D-40
#[test]
fn malformed_cursor_is_reported_as_expired() {
    let session = SessionId(Ulid(1));
    let at = Position::persisted(Epoch(1), Seq(7));
    let id = SinceCursor::from(at);
    assert_eq!(id.position(session), Ok(at));
    let garbage = subscribe(r#"{"type":"subscribe","since":"yesterday"}"#);
    let error = garbage
        .since
        .expect("a cursor")
        .position(session)
        .expect_err("no id");
    assert_eq!(error, SubscribeError::cursor_expired());

    let map = format!(
        r#"{{"type":"subscribe","since":{{"{session}":"evt_00010000000007","sess_x":"y"}}}}"#
    );
    let map = subscribe(&map).since.expect("a cursor");
    assert_eq!(map.position(session), Ok(at));
    let other = map
        .position(SessionId(Ulid(2)))
        .expect_err("no entry for it");
    assert_eq!(other.code, SubscribeCode::InvalidFilter);
}

// S3-087
#[test]
fn cursor_map_is_parsed_strictly() {
    let (session, worker) = (SessionId(Ulid(1)), SessionId(Ulid(2)));
    let read = |pairs: &[(&str, &str)]| {
        let ids = pairs
            .iter()
            .map(|(id, at)| ((*id).to_owned(), (*at).to_owned()));
        SinceCursor::BySession(ids.collect()).workers(session)
    };
    let (mine, theirs) = (session.to_string(), worker.to_string());
    let at = Position::persisted(Epoch(1), Seq(7));
    let good = read(&[
        (&mine, "evt_00010000000009"),
        (&theirs, "evt_00010000000007"),
    ]);
    assert_eq!(good, Ok([(worker, at)].into()));
    assert_eq!(read(&[]), Ok(Default::default()));
    assert_eq!(
        SinceCursor::from(at).workers(session),
        Ok(Default::default())
    );
    let expired = read(&[(&theirs, "yesterday")]);
    assert_eq!(expired, Err(SubscribeError::cursor_expired()));
    let nobody = read(&[("sess_x", "evt_00010000000007")]).expect_err("no session");
    assert_eq!(nobody.code, SubscribeCode::InvalidFilter);
    assert!(nobody.message.contains("sess_x"), "{nobody}");
    let long = "x".repeat(10_000);
    let long = read(&[(&long, "evt_00010000000007")]).expect_err("no session");
    assert!(long.message.len() < 200, "{long}");
    let many: Vec<String> = (0..=SINCE_SESSIONS_MAX)
        .map(|n| SessionId(Ulid(n as u128)).to_string())
        .collect();
    let many: Vec<_> = many
        .iter()
        .map(|id| (id.as_str(), "evt_00010000000007"))
        .collect();
    let many = read(&many).expect_err("too many");
    assert_eq!(many.code, SubscribeCode::InvalidFilter);
}

// S3-070
#[test]
fn cancel_carries_its_reason() {
    assert_eq!(
        ClientFrame::parse(r#"{"type":"cancel","turn_id":"01T","reason":"user_cancel"}"#),
        Ok(ClientFrame::Cancel {
            turn_id: "01T".into(),
            reason: Some("user_cancel".into())
        })
    );
    for text in [
        r#"{"type":"cancel","turn_id":"01T"}"#,
        r#"{"type":"cancel","turn_id":"01T","reason":null}"#,
    ] {
        let frame = ClientFrame::Cancel {
            turn_id: "01T".into(),
            reason: None,
        };
        assert_eq!(ClientFrame::parse(text), Ok(frame));
    }
}

// S3-044
#[test]
fn heartbeats_carry_their_nonce() {
    let nonce = String::from("n1");
    assert_eq!(
        ClientFrame::parse(r#"{"type":"ping","nonce":"n1"}"#),
        Ok(ClientFrame::Ping {
            nonce: nonce.clone()
        })
    );
    assert_eq!(
        ClientFrame::parse(r#"{"type":"pong","nonce":"n1"}"#),
        Ok(ClientFrame::Pong { nonce })
    );
}

// S3-031
#[test]
fn unknown_json_differs_from_invalid_json() {
    for (text, kind) in [
        (r#"{"type":"submit"}"#, "submit"),
        (r#"{"type":7}"#, ""),
        ("{}", ""),
        ("[]", ""),
        ("null", ""),
        ("\"subscribe\"", ""),
    ] {
        let unknown = ClientFrame::Unknown { kind: kind.into() };
        assert_eq!(ClientFrame::parse(text), Ok(unknown), "{text}");
    }
    for text in ["", "hello", "{\"type\":\"ping\"", "{}{}", "\u{feff}{}"] {
        assert_eq!(
            ClientFrame::parse(text),
            Err(ClientFrameError::NotJson),
            "{text}"
        );
    }
    for (text, kind, field) in [
        (r#"{"type":"cancel"}"#, "cancel", "turn_id"),
        (r#"{"type":"cancel","turn_id":3}"#, "cancel", "turn_id"),
        (
            r#"{"type":"cancel","turn_id":"t","reason":3}"#,
            "cancel",
            "reason",
        ),
        (r#"{"type":"ping"}"#, "ping", "nonce"),
        (r#"{"type":"pong","nonce":1}"#, "pong", "nonce"),
    ] {
        let malformed = ClientFrameError::Malformed { kind, field };
        assert_eq!(ClientFrame::parse(text), Err(malformed), "{text}");
    }
}

proptest! {
    #[test]
    fn parsing_any_text_never_panics(text in ".{0,200}") {
        let _ = ClientFrame::parse(&text);
    }

    #[test]
    fn parsing_any_subscribe_never_panics(filter in "[\\[\\]{}\",:a-z0-9.]{0,60}", since in ".{0,40}") {
        let text = format!("{{\"type\":\"subscribe\",\"filter\":{filter},\"since\":{since:?}}}");
        let _ = ClientFrame::parse(&text);
    }
}

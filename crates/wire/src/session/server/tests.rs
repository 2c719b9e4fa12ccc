//! Server frames, compared byte for byte.

use serde_json::{Value, json};
use turnwire_event::code::TurnState;
use turnwire_event::row::SessionRow;
use turnwire_event::{
    ContentBlock, EpisodeId, Epoch, EventFilter, EventType, MessageId, MessageStatus, Owner, Role,
    Seq, SessionId, Sub, TenantId, Timestamp, TurnId, TypeSet, Ulid,
};

use super::*;

const AT: Position = Position {
    epoch: Epoch(1),
    seq: Seq(7),
    sub: Sub(2),
};

fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).expect("frames are text")
}

fn row() -> SessionRow {
    SessionRow {
        agent: None,
        id: SessionId(Ulid(1)),
        owner: Owner {
            tenant: TenantId(0),
            principal: "local".parse().expect("a principal"),
        },
        parent: None,
        workspace_path: None,
        metadata: turnwire_event::JsonObject::default(),
        episode_id: EpisodeId(Ulid(2)),
        active_model: "scripted:demo".into(),
        routing_policy_version: "2026-11-01".into(),
        cost_usd: 0.142,
        turn_count: 7,
        created_at: Timestamp::from_millis(0),
        updated_at: Timestamp::from_millis(0),
    }
}

// S3-048
#[test]
fn event_frame_contains_the_stored_bytes() {
    let stored = "{\"id\":\"evt_00010000000001\",\"odd\" :  1.0}";
    let frame = text(|out| write_event(stored.as_bytes(), out));
    assert_eq!(frame, format!("{{\"type\":\"event\",\"event\":{stored}}}"));
}

#[test]
fn cancel_is_answered_with_its_turn() {
    let ack = CancelAck {
        turn_id: TurnId(Ulid(5)),
        state: TurnState::Cancelling,
    };
    let turn = ack.turn_id;
    let frame = text(|out| write_cancel_ack(&ack, out));
    let expected = format!(r#"{{"type":"cancel_ack","turn_id":"{turn}","state":"cancelling"}}"#);
    assert_eq!(frame, expected);
    let error = CancelError::invalid_frame("a cancel needs a turn_id");
    let frame = text(|out| write_cancel_error(&error, out));
    assert_eq!(
        frame,
        r#"{"type":"cancel_error","code":"invalid_frame","message":"a cancel needs a turn_id","turn_id":null}"#
    );
}

// S3-018
#[test]
fn ack_echoes_cursor_and_expands_filter() {
    let filter = EventFilter::of(TypeSet::EMPTY.with(EventType::TextDelta));
    let since = SinceCursor::Id("evt_00010000000007".into());
    let mut answer = SubscribeAck {
        version: SESSION_WIRE_VERSION,
        resolved_filter: filter.spec(),
        since: Some(&since),
        snapshot: false,
        replay_event_count: 47,
        positions: None,
    };
    let frame = text(|out| write_ack(&answer, out));
    assert_eq!(
        frame,
        "{\"type\":\"subscribe_ack\",\"version\":\"1.0\",\"resolved_filter\":{\"event_types\":[\"text.delta\"],\
         \"actors\":null,\"include_worker_sessions\":false,\"include_suppressed\":false},\
         \"since\":\"evt_00010000000007\",\"snapshot\":false,\"replay_event_count\":47}"
    );
    answer.since = None;
    (answer.snapshot, answer.replay_event_count) = (true, 0);
    let without_positions = text(|out| write_ack(&answer, out));
    assert!(
        without_positions.ends_with("\"since\":null,\"snapshot\":true,\"replay_event_count\":0}")
    );
    answer.positions = Some(SessionPositions::from([(SessionId(Ulid(1)), AT)]));
    let workers = text(|out| write_ack(&answer, out));
    let expected =
        "\"positions\":{\"sess_00000000000000000000000001\":\"evt_00010000000007.000002\"}}";
    assert!(workers.ends_with(expected), "{workers}");
}

// S3-024
#[test]
fn every_subscribe_error_has_its_code() {
    for (error, code) in [
        (SubscribeError::session_not_found(), "session_not_found"),
        (SubscribeError::cursor_expired(), "cursor_expired"),
        (SubscribeError::replay_too_large(10_000), "replay_too_large"),
        (SubscribeError::invalid_filter("x"), "invalid_filter"),
    ] {
        assert_eq!(error.code.name(), code);
        let frame = text(|out| write_subscribe_error(&error, out));
        let value: Value = serde_json::from_str(&frame).expect("JSON");
        let expected = json!({"type": "subscribe_error", "code": code, "message": error.message});
        assert_eq!(value, expected);
    }
    let frame = text(|out| write_subscribe_error(&SubscribeError::replay_too_large(10_000), out));
    assert_eq!(
        frame,
        "{\"type\":\"subscribe_error\",\"code\":\"replay_too_large\",\"message\":\
         \"More than 10000 events are missing; subscribe with snapshot: true instead.\"}"
    );
}

// S3-028, R-14, D-37
#[test]
fn summary_has_all_fields_idle_and_in_flight() {
    let idle = SessionSummary::new(&row(), None);
    let value = serde_json::to_value(&idle).expect("plain data");
    let expected = json!({
        "id": "sess_00000000000000000000000001",
        "workspace_path": null,
        "active_model": "scripted:demo",
        "routing_policy_version": "2026-11-01",
        "cost_so_far_usd": 0.142,
        "turn_count": 7,
        "current_turn_id": null,
        "current_turn_status": null,
        "tenant_id": "00000000-0000-0000-0000-000000000000",
        "episode_id": "ep_00000000000000000000000002",
    });
    assert_eq!(value, expected);
    let busy = SessionSummary::new(&row(), Some(TurnId(Ulid(9))));
    let value = serde_json::to_value(&busy).expect("plain data");
    assert_eq!(value["current_turn_id"], "00000000000000000000000009");
    assert_eq!(value["current_turn_status"], "in_flight");
}

// S3-027
#[test]
fn snapshot_has_session_messages_and_position() {
    let message = Message {
        provider_state: turnwire_event::ProviderState::default(),
        id: MessageId(Ulid(3)),
        session_id: SessionId(Ulid(1)),
        turn_id: TurnId(Ulid(9)),
        role: Role::Assistant,
        status: MessageStatus::InProgress,
        content: vec![ContentBlock::text("so f")],
        model: Some("scripted:demo".into()),
        omitted_bytes: None,
        stop_reason: None,
        usage: None,
        created_at: Timestamp::from_millis(5),
        metadata: turnwire_event::JsonObject::default(),
    };
    let summary = SessionSummary::new(&row(), Some(TurnId(Ulid(9))));
    let messages = [message];
    let snapshot = SnapshotFrame {
        session: &summary,
        messages: &messages,
        next: Some(MessageId(Ulid(3))),
        open: &SnapshotWork::default(),
        last_turn: None,
        snapshot_at_event_id: AT,
    };
    let frame = text(|out| write_snapshot(&snapshot, out));
    assert!(frame.starts_with("{\"type\":\"snapshot\",\"session\":{\"id\":"));
    assert!(frame.ends_with(",\"snapshot_at_event_id\":\"evt_00010000000007.000002\"}"));
    let value: Value = serde_json::from_str(&frame).expect("JSON");
    let session: SessionSummary =
        serde_json::from_value(value["session"].clone()).expect("a summary");
    assert_eq!(session, summary);
    let read: Vec<Message> = serde_json::from_value(value["messages"].clone()).expect("messages");
    assert_eq!(read, messages);
    assert_eq!(value["next"], "00000000000000000000000003");
    let nothing =
        json!({"tools": [], "sub_agents": [], "workers": [], "approvals": [], "inputs": []});
    assert_eq!(value["open"], nothing);
    assert_eq!(value["last_turn"], Value::Null);
}

// S3-042, I-19
#[test]
fn heartbeats_have_a_nonce_and_pings_a_position() {
    let frame = text(|out| write_ping("a\"b", AT, None, out));
    assert_eq!(
        frame,
        "{\"type\":\"ping\",\"nonce\":\"a\\\"b\",\"position\":\"evt_00010000000007.000002\"}"
    );
    assert_eq!(
        text(|out| write_pong("n", out)),
        "{\"type\":\"pong\",\"nonce\":\"n\"}"
    );
}

// S3-087
#[test]
fn ping_with_workers_has_a_position_per_session() {
    let worker = SessionId(Ulid(9));
    let start = Position::persisted(Epoch::FIRST, Seq(0));
    let positions = SessionPositions::from([(SessionId(Ulid(1)), AT), (worker, start)]);
    let frame = text(|out| write_ping("1", AT, Some(&positions), out));
    let value: Value = serde_json::from_str(&frame).expect("JSON");
    let expected = json!({
        "type": "ping", "nonce": "1", "position": AT,
        "positions": {"sess_00000000000000000000000001": AT, worker.to_string(): start},
    });
    assert_eq!(value, expected);
    let since: SinceCursor = serde_json::from_value(value["positions"].clone()).expect("a cursor");
    assert_eq!(since.position(SessionId(Ulid(1))), Ok(AT));
    let workers = since.workers(SessionId(Ulid(1))).expect("workers");
    assert_eq!(workers, SessionPositions::from([(worker, start)]));
}

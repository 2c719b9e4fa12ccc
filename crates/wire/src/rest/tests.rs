//! The JSON of the bodies, compared as clients see it.

use serde_json::{Map, Value, json};
use turnwire_event::code::{OnDisconnect, TurnKind, TurnState};
use turnwire_event::row::{SessionRow, TurnRow};
use turnwire_event::{
    EpisodeId, Epoch, EventType, Owner, Position, RenderPolicy, Seq, SessionId, TenantId,
    Timestamp, TurnId, Ulid,
};

use super::{feedback, session, status_event, turn};

fn session_row() -> SessionRow {
    let metadata: Map<String, Value> = [("a".to_owned(), json!(1))].into_iter().collect();
    SessionRow {
        agent: None,
        id: SessionId(Ulid(1)),
        owner: Owner {
            tenant: TenantId(0),
            principal: "local".parse().expect("a principal"),
        },
        parent: None,
        workspace_path: Some("/w".into()),
        metadata: metadata.into(),
        episode_id: EpisodeId(Ulid(2)),
        active_model: "scripted:demo".into(),
        routing_policy_version: "builtin-1".into(),
        cost_usd: 0.5,
        turn_count: 3,
        created_at: Timestamp::from_millis(0),
        updated_at: Timestamp::from_millis(1_000),
    }
}

fn turn_row(state: TurnState, terminal: Option<(EventType, Value)>) -> TurnRow {
    TurnRow {
        id: TurnId(Ulid(3)),
        response_id: None,
        session_id: SessionId(Ulid(1)),
        kind: TurnKind::Chat,
        state,
        on_disconnect: OnDisconnect::Continue,
        disconnect_grace_ms: 0,
        trace: None,
        wire_version: Some("0.5".into()),
        agent_definition: String::new(),
        resumes: None,
        started: Position::persisted(Epoch(1), Seq(8)),
        started_at: Timestamp::from_millis(0),
        ended: terminal
            .as_ref()
            .map(|_| Position::persisted(Epoch(1), Seq(12))),
        ended_at: terminal.as_ref().map(|_| Timestamp::from_millis(1_000)),
        terminal,
    }
}

// S3-010, S3-001
#[test]
fn attach_response_has_session_model_token_and_url() {
    let attached =
        session::SessionAttached::new(session_row(), "atk_X".into(), "ws://localhost:8421");
    let expected = json!({
        "session_id": "sess_00000000000000000000000001",
        "active_model": "scripted:demo",
        "routing_policy_version": "builtin-1",
        "workspace_path": "/w",
        "parent_session_id": null,
        "agent": null,
        "tenant_id": "00000000-0000-0000-0000-000000000000",
        "principal": "local",
        "episode_id": "ep_00000000000000000000000002",
        "metadata": {"a": 1},
        "cost_so_far_usd": 0.5,
        "turn_count": 3,
        "created_at": "1970-01-01T00:00:00.000Z",
        "updated_at": "1970-01-01T00:00:01.000Z",
        "attach_token": "atk_X",
        "ws_url": "ws://localhost:8421/sessions/sess_00000000000000000000000001/stream?attach=atk_X",
    });
    let value = serde_json::to_value(&attached).expect("plain data");
    assert_eq!(value, expected);
    let read: session::SessionAttached = serde_json::from_value(value).expect("its own JSON");
    assert_eq!(read, attached);
}

#[test]
fn running_turn_has_no_terminal() {
    let value = serde_json::to_value(turn::TurnInfo::from(turn_row(TurnState::Running, None)));
    let expected = json!({
        "turn_id": "00000000000000000000000003",
        "response_id": "resp_00000000000000000000000003",
        "session_id": "sess_00000000000000000000000001",
        "kind": "chat",
        "resumes": null,
        "state": "running",
        "position": "evt_00010000000007",
        "started_at": "1970-01-01T00:00:00.000Z",
        "ended_at": null,
        "on_disconnect": "continue",
        "disconnect_grace_ms": 0,
        "terminal": null,
        "usage": null,
        "receipt": null,
    });
    assert_eq!(value.expect("plain data"), expected);
}

#[test]
fn ended_turn_has_terminal_usage_or_receipt() {
    let usage = json!({"input_tokens": 1, "output_tokens": 2, "total_tokens": 3,
        "reasoning_tokens": 0, "cached_tokens": 0, "cost_usd": 0.25});
    let completed = json!({"status": "ok", "usage": usage, "error": null, "partial": null});
    let row = turn_row(
        TurnState::Completed,
        Some((EventType::TurnCompleted, completed.clone())),
    );
    let value = serde_json::to_value(turn::TurnInfo::from(row)).expect("plain data");
    assert_eq!(value["usage"], usage);
    assert_eq!(value["receipt"], Value::Null);
    let terminal =
        json!({"id": "evt_0001000000000C", "type": "turn.completed", "payload": completed});
    assert_eq!(value["terminal"], terminal);

    let receipt = json!([{"kind": "tool", "id": "tu_1", "outcome": "stopped", "ms": 4}]);
    let cancelled = json!({"reason": "user_cancel", "code": "REQUEST_CANCELLED", "phase": "tool",
        "partial": {"message_id": null, "bytes": 0}, "receipt": receipt});
    let row = turn_row(
        TurnState::Cancelled,
        Some((EventType::TurnCancelled, cancelled)),
    );
    let value = serde_json::to_value(turn::TurnInfo::from(row)).expect("plain data");
    assert_eq!(value["receipt"], receipt);
    assert_eq!(value["usage"], Value::Null);
    assert_eq!(value["ended_at"], "1970-01-01T00:00:01.000Z");
}

#[test]
fn requests_name_an_unknown_field() {
    fn unknown<T: serde::de::DeserializeOwned + std::fmt::Debug>(body: &str) -> String {
        serde_json::from_str::<T>(body)
            .expect_err("refused")
            .to_string()
    }
    let created = unknown::<session::SessionCreate>(r#"{"workspace":"/w"}"#);
    assert!(
        created.starts_with("unknown field `workspace`"),
        "{created}"
    );
    let submitted = unknown::<turn::TurnSubmit>(r#"{"message":"hi","when_busy":"enqueue"}"#);
    assert!(
        submitted.starts_with("unknown field `when_busy`"),
        "{submitted}"
    );
    let cancelled = unknown::<turn::TurnCancel>(r#"{"why":"x"}"#);
    assert!(cancelled.starts_with("unknown field `why`"), "{cancelled}");
    let rated = unknown::<feedback::FeedbackRequest>(r#"{"rating":1,"stars":5}"#);
    assert!(rated.starts_with("unknown field `stars`"), "{rated}");
    let silent = unknown::<turn::TurnSubmit>("{}");
    assert!(silent.starts_with("missing field `message`"), "{silent}");
}

#[test]
fn serialized_requests_omit_defaults() {
    let text = |value: Value| value.to_string();
    let submit = serde_json::to_value(turn::TurnSubmit::text("hi")).expect("plain data");
    assert_eq!(text(submit), r#"{"message":"hi"}"#);
    let create = serde_json::to_value(session::SessionCreate::default()).expect("plain data");
    assert_eq!(text(create), "{}");
    let cancel = serde_json::to_value(turn::TurnCancel::default()).expect("plain data");
    assert_eq!(text(cancel), "{}");
}

// S1-064, S1-065
#[test]
fn registry_entry_has_all_fields_and_deprecation_note() {
    let entry = |lifecycle, note: Option<&str>| status_event::StatusEvent {
        id: "searching_offers".into(),
        description: "A search for offers begins.".into(),
        default_render_key: "status.searching_offers".into(),
        default_policy: RenderPolicy::Transform,
        emitter_subagents: vec!["shop".into()],
        lifecycle,
        note: note.map(str::to_owned),
        fragment: "verticals/shop/status_events.yaml".into(),
        messages: [("en".to_owned(), "Searching for offers...".to_owned())].into(),
        emissions: status_event::Emissions {
            total: 7,
            days: [("2026-11-16".to_owned(), 7)].into(),
        },
    };
    let list = status_event::StatusEvents {
        status_events: vec![
            entry(status_event::LifecycleState::Active, None),
            entry(
                status_event::LifecycleState::Deprecated,
                Some("use browsing"),
            ),
        ],
        next: Some("searching_offers".into()),
        version: "r1".into(),
    };
    let mut first = json!({
        "id": "searching_offers",
        "description": "A search for offers begins.",
        "default_render_key": "status.searching_offers",
        "default_policy": "transform",
        "emitter_subagents": ["shop"],
        "lifecycle": "active",
        "fragment": "verticals/shop/status_events.yaml",
        "messages": {"en": "Searching for offers..."},
        "emissions": {"total": 7, "days": {"2026-11-16": 7}},
    });
    let mut second = first.clone();
    second["lifecycle"] = "deprecated".into();
    second["note"] = "use browsing".into();
    let expected = json!({"status_events": [first.take(), second], "next": "searching_offers",
        "version": "r1"});
    assert_eq!(serde_json::to_value(&list).expect("plain data"), expected);
    let read: status_event::StatusEvents = serde_json::from_value(expected).expect("read back");
    assert_eq!(read, list);
}

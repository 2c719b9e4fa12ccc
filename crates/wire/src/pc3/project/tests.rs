//! The frames of each event type in both versions, compared byte for byte.

use serde_json::{Value, json};
use turnwire_event::body::data::{CollectionKey, DataLoaded, DataLoading, ItemKey};
use turnwire_event::body::llm::CallStarted;
use turnwire_event::body::route::RelayedResponse;
use turnwire_event::body::stream::{TextDelta, ThinkingDelta};
use turnwire_event::body::support::SupportNoted;
use turnwire_event::body::tool;
use turnwire_event::body::turn::{BoundVersions, CancelRequested, TurnStarted};
use turnwire_event::code::{CallPurpose, CancelCode, ToolErrorClass, ToolType, TurnKind};
use turnwire_event::{CallId, EpisodeId, MessageId, ToolUseId, TurnId, Ulid};

use super::*;
use crate::pc3::tests::{DONE, USAGE, block, event, projected, turn_cancelled, turn_completed};
use WireVersion::{V04, V05};

fn thinking_delta(text: &str, after_text: bool) -> Body {
    Body::ThinkingDelta(ThinkingDelta {
        message_id: MessageId(Ulid(3)),
        content_block_index: 0,
        text: text.into(),
        signature: Some("c2VhbA==".into()),
        after_text,
    })
}

fn text_delta(text: &str) -> Body {
    Body::TextDelta(TextDelta {
        message_id: MessageId(Ulid(3)),
        content_block_index: 0,
        text: text.into(),
    })
}

fn failed_tool(called: bool) -> Body {
    Body::ToolFailed(tool::ToolFailed {
        upstream_id: None,
        tool_use_id: ToolUseId(Ulid(4)),
        tool_name: "clock".into(),
        tool_type: ToolType::SubAgent,
        error_class: ToolErrorClass::Internal,
        called,
    })
}

fn llm_call_started(first: bool) -> Body {
    Body::LlmCallStarted(CallStarted {
        call_id: CallId(Ulid(5)),
        model: "m".into(),
        purpose: CallPurpose::Orchestrate,
        attempt: 1,
        first,
    })
}

// S1-022, S1-023
#[test]
fn turn_starts_with_response_id_and_episode() {
    let started = Body::TurnStarted(TurnStarted {
        relayed_to: None,
        answers: Vec::new(),
        resumes: None,
        user_message_id: MessageId(Ulid(3)),
        input: Vec::new(),
        kind: TurnKind::Chat,
        origin: None,
        dm_type: None,
        episode_id: EpisodeId(Ulid(9)),
        locale: "en".into(),
        wire_version: Some("0.5".into()),
        history_omitted: 0,
        versions: BoundVersions::default(),
    });
    let episode = ",\"episode_id\":\"ep_00000000000000000000000009\"";
    let wanted = block(0, "response_id", "0.5", "") + &block(1, "episode", "0.5", episode);
    assert_eq!(projected(started, V05), wanted);
}

// S1-034, S1-022, D-04
#[test]
fn relayed_turn_starts_with_its_route() {
    let started = Body::TurnStarted(TurnStarted {
        relayed_to: Some("relay:desk".into()),
        answers: Vec::new(),
        resumes: None,
        user_message_id: MessageId(Ulid(3)),
        input: Vec::new(),
        kind: TurnKind::Chat,
        origin: None,
        dm_type: None,
        episode_id: EpisodeId(Ulid(9)),
        locale: "en".into(),
        wire_version: Some("0.5".into()),
        history_omitted: 0,
        versions: BoundVersions::default(),
    });
    assert_eq!(projected(started, V05), "");
    let response = RelayedResponse {
        response_id: Some("resp_abc".parse().expect("an id")),
        episode_id: EpisodeId(Ulid(9)),
        unanswered: false,
    };
    let mut routed = event(Body::RouteDecided(RouteDecided::relayed(
        "relay:desk".into(),
        response.clone(),
    )));
    let frames = |event: &Event| {
        let mut out = Vec::new();
        project(event, V05, &mut out);
        String::from_utf8(out).expect("text")
    };
    let episode = ",\"episode_id\":\"ep_00000000000000000000000009\"";
    let own = block(0, "response_id", "0.5", "")
        + &block(1, "episode", "0.5", episode)
        + &block(2, "thinking", "0.5", ",\"role\":\"reasoning\"");
    assert_eq!(frames(&routed), own);
    routed.response_id.clone_from(&response.response_id);
    let own_id = format!(
        "\"response_id\":\"resp_{}\"",
        routed.turn_id.expect("a turn")
    );
    let given = own.replace(&own_id, "\"response_id\":\"resp_abc\"");
    assert_ne!(given, own);
    assert_eq!(frames(&routed), given);
    // Nobody waits for the text of a turn that ended first.
    let response = RelayedResponse {
        response_id: None,
        unanswered: true,
        ..response
    };
    let route = RouteDecided::relayed("relay:desk".into(), response);
    let unanswered = frames(&event(Body::RouteDecided(route)));
    assert!(own.starts_with(&unanswered) && unanswered.contains("episode"));
    assert!(!unanswered.contains("thinking"), "{unanswered}");
}

// S1-016, D-08
#[test]
fn first_model_call_has_a_thinking_frame() {
    let wanted = block(0, "thinking", "0.5", ",\"role\":\"reasoning\"");
    assert_eq!(projected(llm_call_started(true), V05), wanted);
    assert_eq!(projected(llm_call_started(false), V05), "");
}

// C-10, S1-035
#[test]
fn reasoning_before_text_is_thinking() {
    let before = projected(thinking_delta("hm", false), V05);
    assert!(before.contains("event: thinking\n"), "{before}");
    assert!(
        before.ends_with(",\"content\":\"hm\",\"role\":\"reasoning\"}\n\n"),
        "{before}"
    );
    let after = projected(thinking_delta("hm", true), V05);
    assert!(after.contains("event: reasoning\n"), "{after}");
    assert!(
        after.ends_with(",\"type\":\"chunk\",\"chunk\":\"hm\"}\n\n"),
        "{after}"
    );
    assert_eq!(
        projected(thinking_delta("", false), V05) + &projected(thinking_delta("", true), V05),
        ""
    );
}

// S1-014, D-07
#[test]
fn text_is_sent_as_chunks() {
    let text = projected(text_delta("a\nb\u{2028}\0"), V05);
    assert!(
        text.starts_with("id: evt_00010000000003.000001-0-0001\nevent: text\ndata: {"),
        "{text}"
    );
    assert!(
        text.ends_with(",\"type\":\"chunk\",\"chunk\":\"a\\nb\u{2028}\\u0000\"}\n\n"),
        "{text}"
    );
    assert_eq!(projected(text_delta(""), V05), "");
}

// S1-017, S1-018, S1-046
#[test]
fn tool_has_a_start_frame_and_an_end_frame() {
    let triple = ",\"tool_call\":{\"id\":\"tu_00000000000000000000000004\",\"name\":\"clock\",\
                  \"type\":\"sub_agent\"}";
    let called = Body::ToolCalled(tool::ToolCalled {
        upstream_id: None,
        tool_use_id: ToolUseId(Ulid(4)),
        tool_name: "clock".into(),
        tool_type: ToolType::SubAgent,
        input_summary: "secret".into(),
    });
    assert_eq!(projected(called, V05), block(0, "tool_call", "0.5", triple));
    let completed = Body::ToolCompleted(tool::ToolCompleted {
        upstream_id: None,
        tool_use_id: ToolUseId(Ulid(4)),
        tool_name: "clock".into(),
        tool_type: ToolType::SubAgent,
        duration_ms: 1,
        result_summary: "secret".into(),
        result_sha256: "0".into(),
    });
    let end = block(0, "tool_completed", "0.5", triple);
    assert_eq!(projected(completed, V05), end);
    assert_eq!(projected(failed_tool(true), V05), end);
    assert_eq!(projected(failed_tool(false), V05), "");
}

// S1-024, S1-027
#[test]
fn turn_ends_with_usage_and_terminal_frame() {
    for status in [TurnStatus::Ok, TurnStatus::Degraded, TurnStatus::Paused] {
        let wanted = block(0, "usage", "0.5", USAGE) + &block(1, "completed", "0.5", "") + DONE;
        assert_eq!(projected(turn_completed(status, None), V05), wanted);
    }
}

// S1-030, S1-055
#[test]
fn suppressed_internal_and_turnless_events_have_no_frame() {
    let mut out = Vec::new();
    let mut hidden = event(text_delta("hi"));
    hidden.render = Some(RenderPolicy::Suppress.into());
    assert_eq!(project(&hidden, V05, &mut out), FrameKinds::NONE);
    let mut lost = event(text_delta("hi"));
    lost.turn_id = None::<TurnId>;
    assert_eq!(project(&lost, V05, &mut out), FrameKinds::NONE);
    let cancel_requested = CancelRequested::new("user", "x");
    let cancel_requested = event(Body::TurnCancelRequested(cancel_requested));
    assert_eq!(project(&cancel_requested, V05, &mut out), FrameKinds::NONE);
    let noted = Body::SupportNoted(SupportNoted {
        sub_agent_id: "shop".into(),
        text: "likes oat milk".into(),
    });
    assert_eq!(project(&event(noted), V05, &mut out), FrameKinds::NONE);
    assert_eq!(out, b"");
}

// S1-103
#[test]
fn end_of_turn_cannot_be_suppressed() {
    for body in [
        turn_completed(TurnStatus::Ok, None),
        turn_cancelled(CancelCode::RequestCancelled),
    ] {
        let mut end = event(body.clone());
        end.render = Some(RenderPolicy::Suppress.into());
        let mut out = Vec::new();
        project(&end, V05, &mut out);
        assert_eq!(out, projected(body, V05).into_bytes());
    }
}

/// A status with a mark of the rendering policy.
fn status(render: Option<RenderDecision>, version: WireVersion) -> String {
    let mut emitted = event(Body::StatusEmitted(status::StatusEmitted {
        event_id: "searching_offers".into(),
        message: "Searching for offers...".into(),
        invocation_id: None,
    }));
    emitted.render = render;
    let mut out = Vec::new();
    project(&emitted, version, &mut out);
    String::from_utf8(out).expect("text")
}

fn grouped(message: Option<&str>, event_ids: &[&str]) -> Option<RenderDecision> {
    Some(RenderDecision {
        policy: RenderPolicy::Batch,
        group: Some(1),
        message: message.map(str::to_owned),
        event_ids: event_ids.iter().map(|id| (*id).to_owned()).collect(),
    })
}

const ALONE: &str =
    ",\"data\":{\"event_id\":\"searching_offers\",\"message\":\"Searching for offers...\"}";

// S1-025, S1-053, S1-054, D-06, D-86
#[test]
fn status_has_id_and_message_in_0_5_only() {
    let stamps = [
        None,
        Some(RenderPolicy::Forward),
        Some(RenderPolicy::Transform),
    ];
    for policy in stamps.into_iter().chain([Some(RenderPolicy::Batch)]) {
        let render = policy.map(RenderDecision::from);
        assert_eq!(
            status(render.clone(), V05),
            block(0, "status", "0.5", ALONE)
        );
        assert_eq!(status(render, V04), "");
    }
    assert_eq!(status(Some(RenderPolicy::Suppress.into()), V05), "");
}

// S1-056, S1-057, D-12
#[test]
fn last_status_of_a_group_has_the_combined_frame() {
    assert_eq!(status(grouped(None, &[]), V05), "");
    let both = grouped(
        Some("Searching for offers and looking up your points…"),
        &["looking_up_points_balance", "searching_offers"],
    );
    let data = ",\"data\":{\"event_id\":\"looking_up_points_balance\",\
                \"event_ids\":[\"looking_up_points_balance\",\"searching_offers\"],\
                \"message\":\"Searching for offers and looking up your points…\"}";
    assert_eq!(status(both.clone(), V05), block(0, "status", "0.5", data));
    assert_eq!(status(both, V04), "");
    let one = grouped(Some("Searching for offers..."), &["searching_offers"]);
    assert_eq!(status(one, V05), block(0, "status", "0.5", ALONE));
}

// S1-019, S1-020, S1-082
#[test]
fn collection_has_a_placeholder_then_items() {
    let ids = ["OFF_1", "OFF_2"].map(|id| ItemKey { id: id.into() });
    let key = CollectionKey { ids: ids.to_vec() };
    let items: Vec<Value> = vec![json!({"id": "OFF_1", "n": 1.50}), json!({"id": "OFF_2"})];
    let place = "{\"id\":\"data_1\",\"type\":\"offer_list\",\
                 \"key\":{\"ids\":[{\"id\":\"OFF_1\"},{\"id\":\"OFF_2\"}]}";
    for (version, name) in [(V05, "0.5"), (V04, "0.4")] {
        let loading = Body::DataLoading(DataLoading {
            id: "data_1".into(),
            data_type: "offer_list".into(),
            key: key.clone(),
        });
        let wanted = block(0, "data_loading", name, &format!(",\"data\":{place}}}"));
        assert_eq!(projected(loading, version), wanted);
        let loaded = Body::DataLoaded(DataLoaded {
            id: "data_1".into(),
            data_type: "offer_list".into(),
            key: key.clone(),
            items: items.clone(),
        });
        let items = json!(items);
        let payload = format!(",\"data\":{place},\"items\":{items}}}");
        assert_eq!(
            projected(loaded, version),
            block(0, "data_loaded", name, &payload)
        );
    }
}

// S1-021, S1-085
#[test]
fn component_frame_has_its_json_and_tool_call() {
    let card = json!({"title": "Oat milk", "lines": ["a\nb", null]});
    let rendered = Body::ComponentRendered(component::ComponentRendered {
        component: card.clone(),
        tool_call: component::RenderingToolCall {
            upstream_id: None,
            id: ToolUseId(Ulid(4)),
            name: "render_card".into(),
            tool_type: ToolType::Render,
        },
    });
    let payload = format!(
        ",\"chunk\":{card},\"tool_call\":{{\"id\":\"tu_00000000000000000000000004\",\
         \"name\":\"render_card\",\"type\":\"render\"}}"
    );
    for (version, name) in [(V05, "0.5"), (V04, "0.4")] {
        let wanted = block(0, "component", name, &payload);
        assert_eq!(projected(rendered.clone(), version), wanted);
    }
}

// S1-029
#[test]
fn mcp_server_frames_are_in_both_versions() {
    let server = || mcp::McpServerRef {
        server: "files".into(),
    };
    let progressed = |total| {
        Body::McpSessionProgressed(mcp::McpCallProgressed {
            server: "files".into(),
            progress: 0.5,
            total,
        })
    };
    let listed = Body::McpListToolsCompleted(mcp::McpToolsListed {
        server: "files".into(),
        tool_count: 3,
    });
    for (body, event_type, more) in [
        (Body::McpSessionStarted(server()), "mcp_session_start", ""),
        (
            Body::McpListToolsStarted(server()),
            "mcp_list_tools_start",
            "",
        ),
        (listed, "mcp_list_tools_completed", ",\"tool_count\":3"),
        (
            progressed(None),
            "mcp_session_progress",
            ",\"progress\":0.5",
        ),
        (
            progressed(Some(2.0)),
            "mcp_session_progress",
            ",\"progress\":0.5,\"total\":2.0",
        ),
    ] {
        for version in [V04, V05] {
            let text = projected(body.clone(), version);
            let head = format!("id: evt_00010000000003.000001-0-0001\nevent: {event_type}\n");
            assert!(text.starts_with(&head), "{text}");
            assert!(
                text.ends_with(&format!(",\"server\":\"files\"{more}}}\n\n")),
                "{text}"
            );
        }
    }
}

// LAW-2
#[test]
fn frames_after_a_cursor_keep_their_ids() {
    let end = event(turn_completed(TurnStatus::Ok, None));
    let mut all_frames = Vec::new();
    let all = project(&end, V05, &mut all_frames);
    assert_eq!(
        all.iter().collect::<Vec<_>>(),
        [FrameKind::Usage, FrameKind::Completed]
    );
    let usage = block(0, "usage", "0.5", USAGE).len();
    for (cursor, rest, frames) in [
        ("evt_00010000000002", &all_frames[..], 2),
        ("evt_00010000000002.000007-0", &all_frames[..], 2),
        ("evt_00010000000003-0", &all_frames[usage..], 1),
        ("evt_00010000000003-1", b"", 0),
        ("evt_00010000000003-9", b"", 0),
        ("evt_00010000000003", b"", 0),
        ("evt_00010000000003.000001-0", b"", 0),
    ] {
        let cursor: FrameCursor = cursor.parse().expect("a cursor");
        let mut out = b"before".to_vec();
        let projected = project_after(&end, V05, &cursor, &mut out);
        assert_eq!(&out[b"before".len()..], rest, "{cursor}");
        assert_eq!(projected.len(), frames, "{cursor}");
    }
}

#[test]
fn paused_turn_names_its_questions_and_its_successor() {
    use turnwire_event::body::approval::ApprovalRequested;
    use turnwire_event::body::turn::PauseDetail;
    use turnwire_event::{ApprovalId, TurnId, Ulid};
    let Body::TurnCompleted(mut paused) = turn_completed(TurnStatus::Paused, None) else {
        panic!("not an end")
    };
    paused.paused = Some(PauseDetail {
        approvals: vec![ApprovalRequested {
            approval_id: ApprovalId(Ulid(7)),
            tool_use_id: ToolUseId(Ulid(8)),
            tool_name: "note".into(),
            input_summary: "{}".into(),
            input_truncated: false,
            input_bytes: Some(2),
            input_sha256: None,
        }],
        next_turn_id: TurnId(Ulid(9)),
    });
    let detail = ",\"paused\":{\"approvals\":[{\"approval_id\":\"appr_00000000000000000000000007\",\
                  \"tool_use_id\":\"tu_00000000000000000000000008\",\"tool_name\":\"note\",\
                  \"input_summary\":\"{}\",\"input_bytes\":2}],\
                  \"next_response_id\":\"resp_00000000000000000000000009\"}";
    for (version, detail) in [(WireVersion::V05, detail), (WireVersion::V04, "")] {
        let name = version.as_str();
        let wanted = block(0, "usage", name, USAGE) + &block(1, "completed", name, detail) + DONE;
        assert_eq!(
            projected(Body::TurnCompleted(paused.clone()), version),
            wanted
        );
    }
}

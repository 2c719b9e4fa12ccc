//! Each type's bytes, in both versions, as the page of the wire says them.

use serde_json::{Value, json};
use turnwire_event::body::data::{ItemKey, Key, Loaded, Loading};
use turnwire_event::body::llm::CallStarted;
use turnwire_event::body::stream::{TextDelta, ThinkingDelta};
use turnwire_event::body::support::Noted;
use turnwire_event::body::tool;
use turnwire_event::body::turn::{CancelRequested, Versions};
use turnwire_event::code::{CallPurpose, CancelCode, ToolErrorClass, TurnKind};
use turnwire_event::{CallId, EpisodeId, MessageId, TurnId, Ulid};

use super::*;
use crate::pc3::sample::{DONE, USAGE, block, ended, event, stopped, told};
use Version::{V04, V05};

fn thought(text: &str, after_text: bool) -> Body {
    Body::ThinkingDelta(ThinkingDelta {
        message_id: MessageId(Ulid(3)),
        content_block_index: 0,
        text: text.into(),
        signature: Some("c2VhbA==".into()),
        after_text,
    })
}

fn words(text: &str) -> Body {
    Body::TextDelta(TextDelta {
        message_id: MessageId(Ulid(3)),
        content_block_index: 0,
        text: text.into(),
    })
}

fn failed_tool(called: bool) -> Body {
    Body::ToolFailed(tool::Failed {
        tool_use_id: ToolUseId(Ulid(4)),
        tool_name: "clock".into(),
        tool_type: ToolType::SubAgent,
        error_class: ToolErrorClass::Internal,
        called,
    })
}

fn call(first: bool) -> Body {
    Body::LlmCallStarted(CallStarted {
        call_id: CallId(Ulid(5)),
        model: "m".into(),
        purpose: CallPurpose::Orchestrate,
        attempt: 1,
        first,
    })
}

#[test]
fn s1_022_s1_023_a_turn_opens_with_its_name_and_its_episode() {
    let started = Body::TurnStarted(Started {
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
        versions: Versions::default(),
    });
    let episode = ",\"episode_id\":\"ep_00000000000000000000000009\"";
    let wanted = block(0, "response_id", "0.5", "") + &block(1, "episode", "0.5", episode);
    assert_eq!(told(started, V05), wanted);
}

#[test]
fn s1_016_d_08_the_first_call_of_a_turn_shows_that_it_thinks() {
    let wanted = block(0, "thinking", "0.5", ",\"role\":\"reasoning\"");
    assert_eq!(told(call(true), V05), wanted);
    assert_eq!(told(call(false), V05), "");
}

#[test]
fn c_10_reasoning_is_thinking_until_there_are_words() {
    let before = told(thought("hm", false), V05);
    assert!(before.contains("event: thinking\n"), "{before}");
    assert!(
        before.ends_with(",\"content\":\"hm\",\"role\":\"reasoning\"}\n\n"),
        "{before}"
    );
    let after = told(thought("hm", true), V05);
    assert!(after.contains("event: reasoning\n"), "{after}");
    assert!(
        after.ends_with(",\"type\":\"chunk\",\"chunk\":\"hm\"}\n\n"),
        "{after}"
    );
    assert_eq!(
        told(thought("", false), V05) + &told(thought("", true), V05),
        ""
    );
}

#[test]
fn s1_014_d_07_words_are_chunks() {
    let text = told(words("a\nb\u{2028}\0"), V05);
    assert!(
        text.starts_with("id: evt_00010000000003.000001-0\nevent: text\ndata: {"),
        "{text}"
    );
    assert!(
        text.ends_with(",\"type\":\"chunk\",\"chunk\":\"a\\nb\u{2028}\\u0000\"}\n\n"),
        "{text}"
    );
    assert_eq!(told(words(""), V05), "");
}

#[test]
fn s1_017_s1_018_s1_046_a_tool_has_one_frame_at_its_start_and_one_at_its_end() {
    let triple = ",\"tool_call\":{\"id\":\"tu_00000000000000000000000004\",\"name\":\"clock\",\
                  \"type\":\"sub_agent\"}";
    let called = Body::ToolCalled(tool::Called {
        tool_use_id: ToolUseId(Ulid(4)),
        tool_name: "clock".into(),
        tool_type: ToolType::SubAgent,
        input_summary: "secret".into(),
    });
    assert_eq!(told(called, V05), block(0, "tool_call", "0.5", triple));
    let completed = Body::ToolCompleted(tool::Completed {
        tool_use_id: ToolUseId(Ulid(4)),
        tool_name: "clock".into(),
        tool_type: ToolType::SubAgent,
        duration_ms: 1,
        result_summary: "secret".into(),
        result_sha256: "0".into(),
    });
    let end = block(0, "tool_completed", "0.5", triple);
    assert_eq!(told(completed, V05), end);
    assert_eq!(told(failed_tool(true), V05), end);
    assert_eq!(told(failed_tool(false), V05), "");
}

#[test]
fn s1_024_s1_027_a_turn_ends_with_its_cost_and_then_its_terminal() {
    for status in [TurnStatus::Ok, TurnStatus::Degraded, TurnStatus::Paused] {
        let wanted = block(0, "usage", "0.5", USAGE) + &block(1, "completed", "0.5", "") + DONE;
        assert_eq!(told(ended(status, None), V05), wanted);
    }
}

#[test]
fn s1_030_s1_055_what_is_suppressed_internal_or_of_no_turn_gives_nothing() {
    let mut out = Vec::new();
    let mut hidden = event(words("hi"));
    hidden.render = Some(RenderPolicy::Suppress.into());
    assert_eq!(project(&hidden, V05, &mut out), Marks::NONE);
    let mut lost = event(words("hi"));
    lost.turn_id = None::<TurnId>;
    assert_eq!(project(&lost, V05, &mut out), Marks::NONE);
    let asked = CancelRequested {
        by: "user".into(),
        reason: "x".into(),
    };
    let asked = event(Body::TurnCancelRequested(asked));
    assert_eq!(project(&asked, V05, &mut out), Marks::NONE);
    let noted = Body::SupportNoted(Noted {
        sub_agent_id: "shop".into(),
        text: "likes oat milk".into(),
    });
    assert_eq!(project(&event(noted), V05, &mut out), Marks::NONE);
    assert_eq!(out, b"");
}

#[test]
fn s1_103_the_end_of_a_turn_cannot_be_hidden() {
    for body in [
        ended(TurnStatus::Ok, None),
        stopped(CancelCode::RequestCancelled),
    ] {
        let mut end = event(body.clone());
        end.render = Some(RenderPolicy::Suppress.into());
        let mut out = Vec::new();
        project(&end, V05, &mut out);
        assert_eq!(out, told(body, V05).into_bytes());
    }
}

/// A status with the stamp of the interceptor, in a version.
fn status(render: Option<Render>, version: Version) -> String {
    let mut emitted = event(Body::StatusEmitted(status::Emitted {
        event_id: "searching_offers".into(),
        message: "Searching for offers...".into(),
    }));
    emitted.render = render;
    let mut out = Vec::new();
    project(&emitted, version, &mut out);
    String::from_utf8(out).expect("text")
}

fn grouped(message: Option<&str>, event_ids: &[&str]) -> Option<Render> {
    Some(Render {
        policy: RenderPolicy::Batch,
        group: Some(1),
        message: message.map(str::to_owned),
        event_ids: event_ids.iter().map(|id| (*id).to_owned()).collect(),
    })
}

const ALONE: &str =
    ",\"data\":{\"event_id\":\"searching_offers\",\"message\":\"Searching for offers...\"}";

#[test]
fn s1_025_s1_053_s1_054_d_06_d_86_a_status_is_its_name_and_its_words_and_not_in_0_4() {
    let stamps = [
        None,
        Some(RenderPolicy::Forward),
        Some(RenderPolicy::Transform),
    ];
    for policy in stamps.into_iter().chain([Some(RenderPolicy::Batch)]) {
        let render = policy.map(Render::from);
        assert_eq!(
            status(render.clone(), V05),
            block(0, "status", "0.5", ALONE)
        );
        assert_eq!(status(render, V04), "");
    }
    assert_eq!(status(Some(RenderPolicy::Suppress.into()), V05), "");
}

#[test]
fn s1_056_s1_057_d_12_the_last_of_a_group_speaks_for_all_and_one_alone_for_itself() {
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

#[test]
fn s1_019_s1_020_s1_082_a_collection_has_a_place_and_then_its_items_in_both_versions() {
    let ids = ["OFF_1", "OFF_2"].map(|id| ItemKey { id: id.into() });
    let key = Key { ids: ids.to_vec() };
    let items: Vec<Value> = vec![json!({"id": "OFF_1", "n": 1.50}), json!({"id": "OFF_2"})];
    let place = "{\"id\":\"data_1\",\"type\":\"offer_list\",\
                 \"key\":{\"ids\":[{\"id\":\"OFF_1\"},{\"id\":\"OFF_2\"}]}";
    for (version, name) in [(V05, "0.5"), (V04, "0.4")] {
        let loading = Body::DataLoading(Loading {
            id: "data_1".into(),
            data_type: "offer_list".into(),
            key: key.clone(),
        });
        let wanted = block(0, "data_loading", name, &format!(",\"data\":{place}}}"));
        assert_eq!(told(loading, version), wanted);
        let loaded = Body::DataLoaded(Loaded {
            id: "data_1".into(),
            data_type: "offer_list".into(),
            key: key.clone(),
            items: items.clone(),
        });
        let items = json!(items);
        let payload = format!(",\"data\":{place},\"items\":{items}}}");
        assert_eq!(
            told(loaded, version),
            block(0, "data_loaded", name, &payload)
        );
    }
}

#[test]
fn s1_021_s1_085_a_single_component_is_its_json_and_the_tool_that_made_it() {
    let card = json!({"title": "Oat milk", "lines": ["a\nb", null]});
    let rendered = Body::ComponentRendered(component::Rendered {
        component: card.clone(),
        tool_call: component::ToolCall {
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
        assert_eq!(told(rendered.clone(), version), wanted);
    }
}

#[test]
fn s1_029_the_life_of_a_tool_server_is_told_in_both_versions() {
    let server = || mcp::Server {
        server: "files".into(),
    };
    let progressed = |total| {
        Body::McpSessionProgressed(mcp::Progressed {
            server: "files".into(),
            progress: 0.5,
            total,
        })
    };
    let listed = Body::McpListToolsCompleted(mcp::Listed {
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
            let text = told(body.clone(), version);
            let head = format!("id: evt_00010000000003.000001-0\nevent: {event_type}\n");
            assert!(text.starts_with(&head), "{text}");
            assert!(
                text.ends_with(&format!(",\"server\":\"files\"{more}}}\n\n")),
                "{text}"
            );
        }
    }
}

#[test]
fn law_2_after_a_cursor_only_the_rest_is_told_with_the_same_ids() {
    let end = event(ended(TurnStatus::Ok, None));
    let mut whole = Vec::new();
    let all = project(&end, V05, &mut whole);
    assert_eq!(
        all.iter().collect::<Vec<_>>(),
        [Mark::Usage, Mark::Completed]
    );
    let usage = block(0, "usage", "0.5", USAGE).len();
    for (cursor, rest, marks) in [
        ("evt_00010000000002", &whole[..], 2),
        ("evt_00010000000002.000007-0", &whole[..], 2),
        ("evt_00010000000003-0", &whole[usage..], 1),
        ("evt_00010000000003-1", b"", 0),
        ("evt_00010000000003-9", b"", 0),
        ("evt_00010000000003", b"", 0),
        ("evt_00010000000003.000001-0", b"", 0),
    ] {
        let cursor: Cursor = cursor.parse().expect("a cursor");
        let mut out = b"before".to_vec();
        let told = project_after(&end, V05, &cursor, &mut out);
        assert_eq!(&out[b"before".len()..], rest, "{cursor}");
        assert_eq!(told.len(), marks, "{cursor}");
    }
}

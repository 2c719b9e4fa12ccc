//! Turns with sub-agents on the chat wire, by scenario.

use serde_json::{Value, json};
use turnwire_event::{Event, EventFilter, EventType, FilterSpec};
use turnwire_wire::pc3::WireVersion;

use super::{ParsedFrame, all_turns, frames, stream};
use crate::scenario::dispatch::BOTH;

/// The first turn of a scenario and its frames in version 0.5.
fn first_turn(name: &str) -> (Vec<Event>, Vec<ParsedFrame>) {
    let name = format!("{name}, turn 1");
    let scenario_turn = all_turns().into_iter().find(|(n, _)| *n == name);
    let (_, turn) = scenario_turn.expect("a scenario");
    let frames_05 = frames(&stream(&turn, WireVersion::V05));
    (turn, frames_05)
}

/// The type of each frame, with the name for a tool frame.
fn frame_labels(frames: &[ParsedFrame]) -> Vec<String> {
    let word = |frame: &ParsedFrame| match frame.data.get("tool_call") {
        Some(tool) => format!("{} {}", frame.event, tool["name"].as_str().unwrap_or("")),
        None => frame.event.clone(),
    };
    frames.iter().map(word).collect()
}

fn frames_of_type<'a>(frames: &'a [ParsedFrame], event: &str) -> Vec<&'a ParsedFrame> {
    frames.iter().filter(|frame| frame.event == event).collect()
}

/// The `error` objects that do not end the turn, and the one that does.
fn errors(frames: &[ParsedFrame]) -> (Vec<&Value>, Option<&Value>) {
    let (ends, goes_on): (Vec<&ParsedFrame>, Vec<&ParsedFrame>) = frames_of_type(frames, "error")
        .into_iter()
        .partition(|frame| frame.data["is_final"] == true);
    (
        goes_on.iter().map(|frame| &frame.data["error"]).collect(),
        ends.first().map(|frame| &frame.data["error"]),
    )
}

// S1-031, S1-138, S1-039
#[test]
fn reference_turn_has_the_reference_order() {
    let (_, frames_05) = first_turn("reference_turn");
    assert_eq!(
        frame_labels(&frames_05),
        [
            "response_id",
            "episode",
            "thinking",
            "tool_call ask_shop",
            "status",
            "tool_call search_offers",
            "data_loading",
            "tool_completed search_offers",
            "tool_call render_offer_list",
            "data_loaded",
            "tool_completed render_offer_list",
            "tool_completed ask_shop",
            "text",
            "text",
            "usage",
            "completed",
        ]
    );
    let status = json!({"event_id": "searching_offers", "message": "Searching for offers..."});
    assert_eq!(frames_of_type(&frames_05, "status")[0].data["data"], status);
    let items = json!([{"id": "OFF_1", "title": "Oat milk"}, {"id": "OFF_2", "title": "Granola"}]);
    assert_eq!(
        frames_of_type(&frames_05, "data_loaded")[0].data["data"]["items"],
        items
    );
}

// S1-056, S1-057, C-16
#[test]
fn grouped_statuses_are_one_chat_frame_and_several_events() {
    let (turn, frames_05) = first_turn("batched_statuses");
    let visible: Vec<&Value> = frames_of_type(&frames_05, "status")
        .iter()
        .map(|f| &f.data["data"])
        .collect();
    let both = json!({
        "event_id": "searching_offers",
        "event_ids": ["searching_offers", "looking_up_points_balance"],
        "message": BOTH,
    });
    let one = json!({"event_id": "searching_offers", "message": "Searching for offers..."});
    assert_eq!(visible, [&both, &one]);
    let chat = EventFilter::chat();
    let emitted = turn.iter().filter(|event| {
        event.body.kind() == EventType::StatusEmitted && chat.matches(&event.head())
    });
    assert_eq!(emitted.count(), 3);
}

// S1-053, S1-054, S1-055, D-86
#[test]
fn policies_change_frames_and_not_the_log() {
    let (turn, frames_05) = first_turn("rendering_policies");
    let visible: Vec<&Value> = frames_of_type(&frames_05, "status")
        .iter()
        .map(|f| &f.data["data"])
        .collect();
    assert_eq!(visible.len(), 2);
    assert!(
        visible
            .iter()
            .all(|data| data["event_id"] == "searching_offers")
    );
    assert_eq!(visible[0]["message"], "Buscando ofertas...");
    assert_eq!(visible[1]["message"], "Searching for offers...");
    assert!(
        !frame_labels(&frames_05)
            .iter()
            .any(|word| word.contains("search_offers"))
    );
    let seen = |include_suppressed| {
        let spec = FilterSpec {
            include_suppressed,
            ..FilterSpec::default()
        };
        let filter = EventFilter::resolve(&spec).expect("a filter");
        turn.iter()
            .filter(|event| filter.matches(&event.head()))
            .count()
    };
    assert_eq!(seen(true), turn.len());
    assert_eq!(seen(false), turn.len() - 3);
}

// S1-021, S1-085
#[test]
fn collections_are_data_and_single_items_components() {
    let (_, frames_05) = first_turn("component_and_collections");
    let component = frames_of_type(&frames_05, "component")[0];
    assert_eq!(component.data["chunk"]["title"], "Oat milk");
    assert_eq!(component.data["tool_call"]["type"], "render");
    assert_eq!(frames_of_type(&frames_05, "data_loading").len(), 2);
    assert_eq!(frames_of_type(&frames_05, "data_loaded").len(), 2);
}

// S1-089, S1-094, D-10
#[test]
fn sub_agent_failure_alone_is_text_then_terminal() {
    for name in ["axis_1_alone", "axis_1_timeout"] {
        let (_, frames_05) = first_turn(name);
        let failed = json!({"code": "SUB_AGENT_FAILED", "sub_agent_id": "shop"});
        assert_eq!(errors(&frames_05), (vec![], Some(&failed)), "{name}");
        let frame_labels = frame_labels(&frames_05);
        let tail = ["tool_completed ask_shop", "text", "text", "usage", "error"];
        assert_eq!(frame_labels[frame_labels.len() - 5..], tail, "{name}");
    }
}

// S1-095, D-30
#[test]
fn data_service_failure_is_reported_and_turn_continues() {
    for (name, reason) in [
        ("axis_2", "upstream_timeout"),
        ("principal_mismatch", "unauthorized"),
    ] {
        let (_, frames_05) = first_turn(name);
        let failed = json!({
            "code": "CCS_ENVELOPE_ERROR", "enricher_id": "offer_search", "reason": reason,
        });
        assert_eq!(errors(&frames_05), (vec![&failed], None), "{name}");
        assert_eq!(
            frames_05.last().map(|frame| frame.event.as_str()),
            Some("completed")
        );
        assert_eq!(frames_of_type(&frames_05, "text").len(), 1, "{name}");
        assert!(
            frames_of_type(&frames_05, "data_loaded").is_empty(),
            "{name}"
        );
    }
}

// S1-102
#[test]
fn data_service_failure_can_be_terminal() {
    let (_, frames_05) = first_turn("axis_2_terminal");
    let failed = json!({
        "code": "CCS_ENVELOPE_ERROR", "enricher_id": "offer_search", "reason": "upstream_timeout",
    });
    assert_eq!(errors(&frames_05), (vec![], Some(&failed)));
    assert!(frames_of_type(&frames_05, "completed").is_empty());
    assert_eq!(frames_of_type(&frames_05, "text").len(), 1);
}

// S1-092, S1-096, D-11, C-07
#[test]
fn fan_out_failures_are_reported_singly_then_together() {
    for (name, records) in [
        (
            "axis_3_mixed",
            vec![
                json!({"code": "SUB_AGENT_FAILED", "sub_agent_id": "rewards"}),
                json!({
                    "code": "CCS_ENVELOPE_ERROR", "enricher_id": "offer_search",
                    "reason": "upstream_unavailable",
                }),
            ],
        ),
        (
            "axis_3_no_success",
            vec![
                json!({"code": "SUB_AGENT_FAILED", "sub_agent_id": "rewards"}),
                json!({"code": "SUB_AGENT_FAILED", "sub_agent_id": "shop"}),
            ],
        ),
    ] {
        let (_, frames_05) = first_turn(name);
        let (reported, end) = errors(&frames_05);
        assert_eq!(end, None, "{name}");
        let all = json!({"code": "PARTIAL_FAN_OUT", "failed": records});
        let expected: Vec<&Value> = records.iter().chain([&all]).collect();
        assert_eq!(reported, expected, "{name}");
        assert_eq!(frames_of_type(&frames_05, "completed").len(), 1, "{name}");
        assert_eq!(frames_of_type(&frames_05, "text").len(), 1, "{name}");
    }
}

// S1-098
#[test]
fn text_for_users_contains_no_code() {
    for (name, turn) in all_turns() {
        for frame in frames_of_type(&frames(&stream(&turn, WireVersion::V05)), "text") {
            let text = frame.text("chunk");
            for code in ["_ERROR", "_FAILED", "FAN_OUT", "upstream_", "SUBRAW"] {
                assert!(!text.contains(code), "{name}: {text}");
            }
        }
    }
}

// S1-046, C-04, D-79
#[test]
fn cancel_in_a_fan_out_closes_open_tools_only() {
    let (turn, frames_05) = first_turn("cancel_in_fan_out");
    let cancel_requested = turn
        .iter()
        .position(|e| e.body.kind() == EventType::TurnCancelRequested);
    let before = stream(
        &turn[..cancel_requested.expect("a cancel")],
        WireVersion::V05,
    );
    let after = &frame_labels(&frames_05)[frames(&before).len()..];
    let expected = [
        "tool_completed search_offers",
        "tool_completed ask_shop",
        "tool_completed ask_rewards",
        "cancelled",
    ];
    assert_eq!(after, expected);
}

#[test]
fn restart_in_a_fan_out_closes_open_tools() {
    let (_, frames_05) = first_turn("sweep_in_fan_out");
    let expected = [
        "data_loading",
        "tool_completed render_offer_list",
        "tool_completed ask_shop",
        "tool_completed ask_rewards",
        "usage",
        "error",
    ];
    assert_eq!(frame_labels(&frames_05)[frames_05.len() - 6..], expected);
}

// D-28
#[test]
fn sub_agents_over_the_cap_have_no_frames() {
    let (_, frames_05) = first_turn("over_cap");
    assert!(
        !frame_labels(&frames_05)
            .iter()
            .any(|word| word.contains("ask_support"))
    );
    assert_eq!(frames_of_type(&frames_05, "tool_call").len(), 2);
}

// C-38, D-46
#[test]
fn sub_agent_events_are_on_the_session_wire_only() {
    let (turn, frames_05) = first_turn("batched_statuses");
    let spec = FilterSpec {
        actors: Some(vec!["subagent:shop".into()]),
        ..FilterSpec::default()
    };
    let filter = EventFilter::resolve(&spec).expect("a filter");
    let matching = turn.iter().filter(|event| filter.matches(&event.head()));
    let matching: Vec<&str> = matching.map(|event| event.body.kind().name()).collect();
    let expected = [
        "subagent.started",
        "llm.call_started",
        "status.emitted",
        "llm.call_completed",
        "status.emitted",
        "subagent.completed",
    ];
    assert_eq!(matching, expected);
    // One thinking indicator for the orchestrator's first call, none for those of sub-agents.
    assert_eq!(frames_of_type(&frames_05, "thinking").len(), 1);
}

// D-35
#[test]
fn chat_preset_is_for_users_full_preset_for_operators() {
    let (turn, _) = first_turn("axis_3_mixed");
    let kinds = |filter: EventFilter| {
        let seen = turn
            .iter()
            .filter(move |event| filter.matches(&event.head()));
        seen.map(|event| event.body.kind().name())
            .collect::<Vec<_>>()
    };
    let (chat, full) = (kinds(EventFilter::chat()), kinds(EventFilter::full()));
    assert!(chat.contains(&"status.emitted") && chat.contains(&"error.reported"));
    for inner in [
        "dispatch.traced",
        "subagent.started",
        "subagent.completed",
        "subagent.failed",
        "plan.step_started",
        "plan.step_completed",
        "agent.error_emit",
    ] {
        assert!(full.contains(&inner), "{inner}");
        assert!(!chat.contains(&inner), "{inner}");
    }
    let (turn, _) = first_turn("component_and_collections");
    let chat = EventFilter::chat();
    let visible = turn.iter().filter(|event| chat.matches(&event.head()));
    let visible: Vec<&str> = visible.map(|event| event.body.kind().name()).collect();
    for kind in ["data.loading", "data.loaded", "component.rendered"] {
        assert!(visible.contains(&kind), "{kind}");
    }
}

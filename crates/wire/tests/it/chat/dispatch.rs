//! What turns with sub-agents look like on this wire, story by story.

use serde_json::{Value, json};
use turnwire_event::{Event, EventType, Filter, FilterSpec};
use turnwire_wire::pc3::Version;

use super::{Frame, all_turns, frames, stream};
use crate::scenario::dispatch::BOTH;

/// The first turn of a story, and its frames in 0.5.
fn story(name: &str) -> (Vec<Event>, Vec<Frame>) {
    let wanted = format!("{name}, turn 1");
    let found = all_turns().into_iter().find(|(n, _)| *n == wanted);
    let (_, turn) = found.expect("a scenario");
    let told = frames(&stream(&turn, Version::V05));
    (turn, told)
}

/// A frame in a word: its type, and of a tool its name.
fn words(frames: &[Frame]) -> Vec<String> {
    let word = |frame: &Frame| match frame.data.get("tool_call") {
        Some(tool) => format!("{} {}", frame.event, tool["name"].as_str().unwrap_or("")),
        None => frame.event.clone(),
    };
    frames.iter().map(word).collect()
}

fn of<'a>(frames: &'a [Frame], event: &str) -> Vec<&'a Frame> {
    frames.iter().filter(|frame| frame.event == event).collect()
}

/// The `error` objects that do not end the turn, and the one that does.
fn errors(frames: &[Frame]) -> (Vec<&Value>, Option<&Value>) {
    let (ends, goes_on): (Vec<&Frame>, Vec<&Frame>) = of(frames, "error")
        .into_iter()
        .partition(|frame| frame.data["is_final"] == true);
    (
        goes_on.iter().map(|frame| &frame.data["error"]).collect(),
        ends.first().map(|frame| &frame.data["error"]),
    )
}

#[test]
fn s1_031_s1_138_the_reference_turn_is_in_the_order_of_the_reference() {
    let (_, told) = story("reference_turn");
    assert_eq!(
        words(&told),
        [
            "response_id",
            "episode",
            "thinking",
            "tool_call ask_shop",
            "status",
            "tool_call search_offers",
            "tool_completed search_offers",
            "tool_call render_offer_list",
            "data_loading",
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
    assert_eq!(of(&told, "status")[0].data["data"], status);
    let items = json!([{"id": "OFF_1", "title": "Oat milk"}, {"id": "OFF_2", "title": "Granola"}]);
    assert_eq!(of(&told, "data_loaded")[0].data["data"]["items"], items);
}

#[test]
fn s1_056_s1_057_c_16_statuses_of_a_group_are_one_frame_here_and_events_of_their_own_there() {
    let (turn, told) = story("batched_statuses");
    let shown: Vec<&Value> = of(&told, "status")
        .iter()
        .map(|f| &f.data["data"])
        .collect();
    let both = json!({
        "event_id": "searching_offers",
        "event_ids": ["searching_offers", "looking_up_points_balance"],
        "message": BOTH,
    });
    let one = json!({"event_id": "searching_offers", "message": "Searching for offers..."});
    assert_eq!(shown, [&both, &one]);
    let chat = Filter::chat();
    let emitted = turn.iter().filter(|event| {
        event.body.kind() == EventType::StatusEmitted && chat.matches(&event.head())
    });
    assert_eq!(emitted.count(), 3);
}

#[test]
fn s1_053_s1_054_s1_055_d_86_policies_change_what_is_shown_and_not_what_is_recorded() {
    let (turn, told) = story("rendering_policies");
    let shown: Vec<&Value> = of(&told, "status")
        .iter()
        .map(|f| &f.data["data"])
        .collect();
    assert_eq!(shown.len(), 2);
    assert!(
        shown
            .iter()
            .all(|data| data["event_id"] == "searching_offers")
    );
    assert_eq!(shown[0]["message"], "Buscando ofertas...");
    assert_eq!(shown[1]["message"], "Searching for offers...");
    assert!(
        !words(&told)
            .iter()
            .any(|word| word.contains("search_offers"))
    );
    let seen = |include_suppressed| {
        let spec = FilterSpec {
            include_suppressed,
            ..FilterSpec::default()
        };
        let filter = Filter::resolve(&spec).expect("a filter");
        turn.iter()
            .filter(|event| filter.matches(&event.head()))
            .count()
    };
    assert_eq!(seen(true), turn.len());
    assert_eq!(seen(false), turn.len() - 3);
}

#[test]
fn s1_021_s1_085_collections_are_data_and_a_single_one_is_a_component() {
    let (_, told) = story("component_and_collections");
    let component = of(&told, "component")[0];
    assert_eq!(component.data["chunk"]["title"], "Oat milk");
    assert_eq!(component.data["tool_call"]["type"], "render");
    assert_eq!(of(&told, "data_loading").len(), 2);
    assert_eq!(of(&told, "data_loaded").len(), 2);
}

#[test]
fn s1_089_s1_094_d_10_axis_1_alone_is_words_and_then_the_end() {
    for name in ["axis_1_alone", "axis_1_timeout"] {
        let (_, told) = story(name);
        let failed = json!({"code": "SUB_AGENT_FAILED", "sub_agent_id": "shop"});
        assert_eq!(errors(&told), (vec![], Some(&failed)), "{name}");
        let words = words(&told);
        let tail = ["tool_completed ask_shop", "text", "text", "usage", "error"];
        assert_eq!(words[words.len() - 5..], tail, "{name}");
    }
}

#[test]
fn s1_095_d_30_axis_2_is_told_and_the_turn_goes_on_to_its_end() {
    for (name, reason) in [
        ("axis_2", "upstream_timeout"),
        ("principal_mismatch", "unauthorized"),
    ] {
        let (_, told) = story(name);
        let failed = json!({
            "code": "CCS_ENVELOPE_ERROR", "enricher_id": "offer_search", "reason": reason,
        });
        assert_eq!(errors(&told), (vec![&failed], None), "{name}");
        assert_eq!(
            told.last().map(|frame| frame.event.as_str()),
            Some("completed")
        );
        assert_eq!(of(&told, "text").len(), 1, "{name}");
        assert!(of(&told, "data_loaded").is_empty(), "{name}");
    }
}

#[test]
fn s1_102_axis_2_can_be_made_the_end() {
    let (_, told) = story("axis_2_terminal");
    let failed = json!({
        "code": "CCS_ENVELOPE_ERROR", "enricher_id": "offer_search", "reason": "upstream_timeout",
    });
    assert_eq!(errors(&told), (vec![], Some(&failed)));
    assert!(of(&told, "completed").is_empty());
    assert_eq!(of(&told, "text").len(), 1);
}

#[test]
fn s1_092_s1_096_d_11_c_07_every_failure_of_a_fan_out_is_told_and_then_all_together() {
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
        let (_, told) = story(name);
        let (reported, end) = errors(&told);
        assert_eq!(end, None, "{name}");
        let all = json!({"code": "PARTIAL_FAN_OUT", "failed": records});
        let wanted: Vec<&Value> = records.iter().chain([&all]).collect();
        assert_eq!(reported, wanted, "{name}");
        assert_eq!(of(&told, "completed").len(), 1, "{name}");
        assert_eq!(of(&told, "text").len(), 1, "{name}");
    }
}

#[test]
fn s1_098_words_for_the_person_name_no_code() {
    for (name, turn) in all_turns() {
        for frame in of(&frames(&stream(&turn, Version::V05)), "text") {
            let said = frame.text("chunk");
            for code in ["_ERROR", "_FAILED", "FAN_OUT", "upstream_", "SUBRAW"] {
                assert!(!said.contains(code), "{name}: {said}");
            }
        }
    }
}

#[test]
fn s1_046_c_04_d_79_a_cancel_in_a_fan_out_closes_what_is_open_and_adds_nothing() {
    let (turn, told) = story("cancel_in_fan_out");
    let asked = turn
        .iter()
        .position(|e| e.body.kind() == EventType::TurnCancelRequested);
    let before = stream(&turn[..asked.expect("a cancel")], Version::V05);
    let after = &words(&told)[frames(&before).len()..];
    let wanted = [
        "tool_completed search_offers",
        "tool_completed ask_shop",
        "tool_completed ask_rewards",
        "cancelled",
    ];
    assert_eq!(after, wanted);
}

#[test]
fn a_restart_in_a_fan_out_closes_what_is_open() {
    let (_, told) = story("sweep_in_fan_out");
    let wanted = [
        "data_loading",
        "tool_completed render_offer_list",
        "tool_completed ask_shop",
        "tool_completed ask_rewards",
        "usage",
        "error",
    ];
    assert_eq!(words(&told)[told.len() - 6..], wanted);
}

#[test]
fn d_28_what_is_over_the_cap_has_no_frames() {
    let (_, told) = story("over_cap");
    assert!(!words(&told).iter().any(|word| word.contains("ask_support")));
    assert_eq!(of(&told, "tool_call").len(), 2);
}

#[test]
fn c_38_d_46_what_sub_agents_do_is_on_the_session_wire_under_their_names_and_not_here() {
    let (turn, told) = story("batched_statuses");
    let spec = FilterSpec {
        actors: Some(vec!["subagent:shop".into()]),
        ..FilterSpec::default()
    };
    let filter = Filter::resolve(&spec).expect("a filter");
    let theirs = turn.iter().filter(|event| filter.matches(&event.head()));
    let theirs: Vec<&str> = theirs.map(|event| event.body.kind().name()).collect();
    let wanted = [
        "subagent.started",
        "llm.call_started",
        "status.emitted",
        "llm.call_completed",
        "status.emitted",
        "subagent.completed",
    ];
    assert_eq!(theirs, wanted);
    // One indicator for the orchestrator's first call, none for theirs.
    assert_eq!(of(&told, "thinking").len(), 1);
}

#[test]
fn d_35_chat_shows_what_people_see_and_full_what_operators_do() {
    let (turn, _) = story("axis_3_mixed");
    let kinds = |filter: Filter| {
        let seen = turn
            .iter()
            .filter(move |event| filter.matches(&event.head()));
        seen.map(|event| event.body.kind().name())
            .collect::<Vec<_>>()
    };
    let (chat, full) = (kinds(Filter::chat()), kinds(Filter::full()));
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
    let (turn, _) = story("component_and_collections");
    let chat = Filter::chat();
    let shown = turn.iter().filter(|event| chat.matches(&event.head()));
    let shown: Vec<&str> = shown.map(|event| event.body.kind().name()).collect();
    for kind in ["data.loading", "data.loaded", "component.rendered"] {
        assert!(shown.contains(&kind), "{kind}");
    }
}

//! What is held, for how long, and what it must stand before.

use turnwire_event::body::subagent::Completed;
use turnwire_event::code::{DispatchOutcome, ErrorCode};
use turnwire_event::port::Emission;
use turnwire_event::{Actor, Body, EventType, InvocationId, RenderPolicy, ToolUseId, Ulid};
use turnwire_pack::{OverrideTarget, RenderOverride};

use crate::hold::{HELD_STATUSES_MAX, HELD_TEXT_BYTES_MAX};
use crate::stage::{
    BATCH, Stage, called, loading, message_start, noted, pack, status, text, text_in, thinking,
};

const SHOP: &str = "searching_offers \"Searching for offers...\" batch 1";
const REWARDS: &str = "looking_up_points \"Looking up your points...\" batch 1 \
                       \"Searching for offers and looking up your points…\" \
                       searching_offers+looking_up_points";
const SHOP_ALONE: &str = "searching_offers \"Searching for offers...\" batch 1 \
                          \"Searching for offers...\" searching_offers";

fn ended(agent: &str) -> Emission {
    let completed = Completed {
        invocation_id: InvocationId(Ulid(1)),
        sub_agent_id: agent.into(),
        tool_use_id: ToolUseId(Ulid(1)),
        outcome: DispatchOutcome::Success,
        latency_ms: 1,
        status_events: 1,
    };
    Emission::new(Actor::subagent(agent), Body::SubagentCompleted(completed))
}

/// With text gathered too.
fn gathering_text() -> Stage {
    let mut pack = pack();
    pack.overrides.push(RenderOverride {
        flag: BATCH.into(),
        target: OverrideTarget::Type(EventType::TextDelta),
        policy: Some(RenderPolicy::Batch),
        render_key: None,
    });
    Stage::new(pack, &[BATCH], "en")
}

#[test]
fn s1_056_sc_02_two_agents_that_tell_at_once_are_told_of_as_one_and_their_tools_do_not_wait() {
    let mut stage = Stage::new(pack(), &[BATCH], "en");
    stage.take(status("shop", "searching_offers"));
    stage.take(called("search_offers"));
    stage.wait(20);
    stage.take(status("rewards", "looking_up_points"));
    stage.take(called("search_points"));
    stage.wait(129);
    assert_eq!(stage.told(), ["tool.called", "tool.called"]);
    stage.wait(1);
    assert_eq!(stage.told(), ["tool.called", "tool.called", SHOP, REWARDS]);
    assert_eq!(stage.gate.due(), None);
}

#[test]
fn s1_061_without_the_flag_statuses_go_on_at_once_in_the_order_they_came() {
    let mut stage = Stage::new(pack(), &[], "en");
    stage.take(status("rewards", "looking_up_points"));
    stage.take(status("shop", "searching_offers"));
    assert_eq!(
        stage.told(),
        [
            "looking_up_points \"Looking up your points...\" transform",
            "searching_offers \"Searching for offers...\" transform",
        ]
    );
}

#[test]
fn a_group_of_one_keeps_its_own_message() {
    let mut stage = Stage::new(pack(), &[BATCH], "en");
    stage.take(status("shop", "searching_offers"));
    stage.wait(150);
    assert_eq!(stage.told(), [SHOP_ALONE]);
}

#[test]
fn an_id_that_comes_twice_is_named_once() {
    let mut stage = Stage::new(pack(), &[BATCH], "en");
    stage.take(status("shop", "searching_offers"));
    stage.take(status("shop", "searching_offers"));
    stage.wait(150);
    assert_eq!(stage.told(), [SHOP, SHOP_ALONE]);
}

#[test]
fn groups_of_a_turn_are_numbered() {
    let mut stage = Stage::new(pack(), &[BATCH], "en");
    for _ in 0..2 {
        stage.take(status("shop", "searching_offers"));
        stage.wait(150);
    }
    let groups: Vec<_> = stage
        .out
        .iter()
        .map(|(_, render)| render.as_ref()?.group)
        .collect();
    assert_eq!(groups, [Some(1), Some(2)]);
}

#[test]
fn the_window_is_that_of_the_first_and_a_late_timer_does_not_stretch_it() {
    let mut stage = Stage::new(pack(), &[BATCH], "en");
    stage.take(status("shop", "searching_offers"));
    let due = stage.gate.due();
    // The clock moves, the timer has not fired.
    stage.now += std::time::Duration::from_millis(160);
    stage.take(status("rewards", "looking_up_points"));
    assert_eq!(stage.told(), [SHOP_ALONE]);
    assert!(stage.gate.due() > due);
}

#[test]
fn c_41_whatever_is_shown_later_stands_behind_what_is_held() {
    let error = Body::ErrorReported(ErrorCode::SubAgentFailed.into());
    for emission in [
        text("Here are"),
        thinking(),
        loading(),
        Emission::new(Actor::ORCHESTRATOR, error),
        ended("shop"),
        status("shop", "comparing_prices"),
    ] {
        let mut stage = Stage::new(pack(), &[BATCH], "en");
        stage.take(status("shop", "searching_offers"));
        stage.take(emission.clone());
        let told = stage.told();
        assert_eq!(
            (told.len(), told[0].as_str()),
            (2, SHOP_ALONE),
            "{emission:?}"
        );
    }
}

#[test]
fn what_nobody_sees_or_what_is_about_another_does_not_end_the_window() {
    for emission in [
        noted(),
        message_start(),
        called("search"),
        ended("rewards"),
        status("shop", "counting_shelves"),
        status("shop", "unheard_of"),
    ] {
        let mut stage = Stage::new(pack(), &[BATCH], "en");
        stage.take(status("shop", "searching_offers"));
        stage.take(emission.clone());
        assert_eq!(stage.out.len(), 1, "{emission:?}");
        stage.wait(150);
        assert_eq!(stage.told()[1], SHOP_ALONE);
    }
}

#[test]
fn what_is_held_is_bounded() {
    let mut stage = Stage::new(pack(), &[BATCH], "en");
    for _ in 1..HELD_STATUSES_MAX {
        stage.take(status("shop", "searching_offers"));
    }
    assert!(stage.out.is_empty());
    stage.take(status("shop", "searching_offers"));
    assert_eq!(stage.out.len(), HELD_STATUSES_MAX);
    assert_eq!(stage.gate.due(), None);
}

#[test]
fn d_86_text_of_a_window_is_one_delta() {
    let mut stage = gathering_text();
    for words in ["Here ", "are ", "some"] {
        stage.take(text(words));
        stage.wait(40);
    }
    assert!(stage.out.is_empty());
    stage.wait(30);
    assert_eq!(stage.told(), ["\"Here are some\" batch"]);
    stage.take(text(" offers"));
    stage.flush();
    assert_eq!(stage.told()[1..], ["\" offers\" batch"]);
}

#[test]
fn gathered_text_ends_with_its_block_and_before_anything_that_is_seen() {
    for emission in [
        text_in(1, "b"),
        thinking(),
        message_start(),
        called("search"),
        loading(),
    ] {
        let mut stage = gathering_text();
        stage.take(text("a"));
        stage.take(emission.clone());
        stage.flush();
        assert_eq!(
            (stage.out.len(), stage.told()[0].as_str()),
            (2, "\"a\" batch"),
            "{emission:?}"
        );
    }
}

#[test]
fn gathered_text_and_statuses_keep_their_order() {
    let mut stage = gathering_text();
    stage.take(text("a"));
    stage.take(status("shop", "searching_offers"));
    stage.take(text("b"));
    stage.take(text("c"));
    stage.wait(150);
    assert_eq!(stage.told(), ["\"a\" batch", SHOP_ALONE, "\"bc\" batch"]);
}

#[test]
fn gathered_text_is_bounded() {
    let mut stage = gathering_text();
    stage.take(text(&"a".repeat(HELD_TEXT_BYTES_MAX)));
    stage.take(text("b"));
    assert_eq!(stage.out.len(), 1);
}

#[test]
fn the_time_is_asked_for_where_something_may_be_held() {
    let plain = Stage::new(pack(), &[], "en");
    assert!(!plain.gate.times(EventType::TextDelta));
    let mut stage = Stage::new(pack(), &[BATCH], "en");
    assert!(!stage.gate.times(EventType::TextDelta));
    stage.take(status("shop", "searching_offers"));
    assert!(stage.gate.times(EventType::TextDelta), "a status is held");
    assert!(gathering_text().gate.times(EventType::TextDelta));
    assert!(!gathering_text().gate.times(EventType::ThinkingDelta));
}

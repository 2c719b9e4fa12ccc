//! Batching: which events are buffered, for how long, and which events release them.

use turnwire_event::body::subagent::{SubagentCompleted, SubagentFailed};
use turnwire_event::code::{AgentErrorClass, DispatchOutcome, ErrorCode};
use turnwire_event::port::Emission;
use turnwire_event::{Actor, Body, EventType, InvocationId, RenderPolicy, ToolUseId, Ulid};
use turnwire_pack::{OverrideTarget, RenderOverride};

use crate::buffer::{BUFFERED_STATUSES_MAX, BUFFERED_TEXT_BYTES_MAX};
use crate::tests::support::{
    BATCH, GateHarness, called, loading, message_start, noted, pack, rendered, status, text,
    text_in, thinking,
};

const SHOP: &str = "searching_offers \"Searching for offers...\" batch 1";
const REWARDS: &str = "looking_up_points \"Looking up your points...\" batch 1 \
                       \"Searching for offers and looking up your points…\" \
                       searching_offers+looking_up_points";
const SHOP_ALONE: &str = "searching_offers \"Searching for offers...\" batch 1 \
                          \"Searching for offers...\" searching_offers";

fn subagent_completed(agent: &str) -> Emission {
    let completed = SubagentCompleted {
        invocation_id: InvocationId(Ulid(1)),
        sub_agent_id: agent.into(),
        tool_use_id: ToolUseId(Ulid(1)),
        outcome: DispatchOutcome::Success,
        latency_ms: 1,
        status_events: 1,
    };
    Emission::new(Actor::subagent(agent), Body::SubagentCompleted(completed))
}

fn subagent_failed(agent: &str) -> Emission {
    let failed = SubagentFailed {
        invocation_id: InvocationId(Ulid(1)),
        sub_agent_id: agent.into(),
        tool_use_id: ToolUseId(Ulid(1)),
        latency_ms: 1,
        error_class: AgentErrorClass::Timeout,
        status_events: 1,
    };
    Emission::new(Actor::subagent(agent), Body::SubagentFailed(failed))
}

/// A gate that batches text too, and hides the events of `hidden` types.
fn text_batching_harness(hidden: &[EventType]) -> GateHarness {
    let mut pack = pack();
    let with_policy = |kind, policy| RenderOverride {
        flag: BATCH.into(),
        target: OverrideTarget::Type(kind),
        policy: Some(policy),
        render_key: None,
    };
    let text = with_policy(EventType::TextDelta, RenderPolicy::Batch);
    pack.overrides.push(text);
    let hidden = hidden.iter();
    let hidden = hidden.map(|kind| with_policy(*kind, RenderPolicy::Suppress));
    pack.overrides.extend(hidden);
    GateHarness::new(pack, &[BATCH], "en")
}

// S1-056, SC-02
#[test]
fn concurrent_statuses_are_batched_into_one() {
    let mut harness = GateHarness::new(pack(), &[BATCH], "en");
    harness.take(status("shop", "searching_offers"));
    harness.take(called("search_offers"));
    harness.wait(20);
    harness.take(status("rewards", "looking_up_points"));
    harness.take(called("search_points"));
    harness.wait(129);
    assert_eq!(harness.output(), ["tool.called", "tool.called"]);
    harness.wait(1);
    assert_eq!(
        harness.output(),
        ["tool.called", "tool.called", SHOP, REWARDS]
    );
    assert_eq!(harness.gate.due(), None);
}

// S1-061
#[test]
fn statuses_without_flag_are_emitted_at_once_in_order() {
    let mut harness = GateHarness::new(pack(), &[], "en");
    harness.take(status("rewards", "looking_up_points"));
    harness.take(status("shop", "searching_offers"));
    assert_eq!(
        harness.output(),
        [
            "looking_up_points \"Looking up your points...\" transform",
            "searching_offers \"Searching for offers...\" transform",
        ]
    );
}

#[test]
fn group_of_one_keeps_its_own_message() {
    let mut harness = GateHarness::new(pack(), &[BATCH], "en");
    harness.take(status("shop", "searching_offers"));
    harness.wait(150);
    assert_eq!(harness.output(), [SHOP_ALONE]);
}

#[test]
fn repeated_id_is_named_once_in_its_group() {
    let mut harness = GateHarness::new(pack(), &[BATCH], "en");
    harness.take(status("shop", "searching_offers"));
    harness.take(status("shop", "searching_offers"));
    harness.wait(150);
    assert_eq!(harness.output(), [SHOP, SHOP_ALONE]);
}

#[test]
fn groups_of_a_turn_are_numbered_from_one() {
    let mut harness = GateHarness::new(pack(), &[BATCH], "en");
    for _ in 0..2 {
        harness.take(status("shop", "searching_offers"));
        harness.wait(150);
    }
    let groups: Vec<_> = harness
        .out
        .iter()
        .map(|(_, render)| render.as_ref()?.group)
        .collect();
    assert_eq!(groups, [Some(1), Some(2)]);
}

#[test]
fn window_starts_at_first_status_despite_late_timer() {
    let mut harness = GateHarness::new(pack(), &[BATCH], "en");
    harness.take(status("shop", "searching_offers"));
    let due = harness.gate.due();
    // The clock advances before the timer fires.
    harness.now += std::time::Duration::from_millis(160);
    harness.take(status("rewards", "looking_up_points"));
    assert_eq!(harness.output(), [SHOP_ALONE]);
    assert!(harness.gate.due() > due);
}

// C-41
#[test]
fn visible_event_releases_buffered_statuses() {
    let error = Body::ErrorReported(ErrorCode::SubAgentFailed.into());
    for emission in [
        text("Here are"),
        thinking(),
        rendered(),
        Emission::new(Actor::ORCHESTRATOR, error),
        subagent_completed("shop"),
        subagent_failed("shop"),
        status("shop", "comparing_prices"),
    ] {
        let mut harness = GateHarness::new(pack(), &[BATCH], "en");
        harness.take(status("shop", "searching_offers"));
        harness.take(emission.clone());
        let output = harness.output();
        assert_eq!(
            (output.len(), output[0].as_str()),
            (2, SHOP_ALONE),
            "{emission:?}"
        );
    }
}

#[test]
fn hidden_or_unrelated_event_keeps_the_window_open() {
    for emission in [
        noted(),
        message_start(),
        called("search"),
        // A placeholder, which comes as soon as the data is asked for.
        loading(),
        subagent_completed("rewards"),
        subagent_failed("rewards"),
        status("shop", "counting_shelves"),
        status("shop", "unheard_of"),
    ] {
        let mut harness = GateHarness::new(pack(), &[BATCH], "en");
        harness.take(status("shop", "searching_offers"));
        harness.take(emission.clone());
        assert_eq!(harness.out.len(), 1, "{emission:?}");
        harness.wait(150);
        assert_eq!(harness.output()[1], SHOP_ALONE);
    }
}

#[test]
fn buffered_statuses_are_bounded() {
    let mut harness = GateHarness::new(pack(), &[BATCH], "en");
    for _ in 1..BUFFERED_STATUSES_MAX {
        harness.take(status("shop", "searching_offers"));
    }
    assert!(harness.out.is_empty());
    harness.take(status("shop", "searching_offers"));
    assert_eq!(harness.out.len(), BUFFERED_STATUSES_MAX);
    assert_eq!(harness.gate.due(), None);
}

// D-86
#[test]
fn text_of_a_window_is_one_delta() {
    let mut harness = text_batching_harness(&[]);
    for words in ["Here ", "are ", "some"] {
        harness.take(text(words));
        harness.wait(40);
    }
    assert!(harness.out.is_empty());
    harness.wait(30);
    assert_eq!(harness.output(), ["\"Here are some\" batch"]);
    harness.take(text(" offers"));
    harness.flush();
    assert_eq!(harness.output()[1..], ["\" offers\" batch"]);
}

#[test]
fn buffered_text_is_released_at_block_end_or_visible_event() {
    for emission in [
        text_in(1, "b"),
        thinking(),
        message_start(),
        called("search"),
        loading(),
    ] {
        let mut harness = text_batching_harness(&[]);
        harness.take(text("a"));
        harness.take(emission.clone());
        harness.flush();
        assert_eq!(
            (harness.out.len(), harness.output()[0].as_str()),
            (2, "\"a\" batch"),
            "{emission:?}"
        );
    }
}

#[test]
fn suppressed_event_releases_no_text_and_no_status() {
    let hidden = [EventType::ToolCalled, EventType::DataLoading];
    for emission in [called("search"), loading()] {
        for held in [text("a"), status("shop", "searching_offers")] {
            let mut harness = text_batching_harness(&hidden);
            harness.take(held);
            harness.take(emission.clone());
            let name = format!("{} suppress", emission.body.kind().name());
            assert_eq!(harness.output(), [name]);
            harness.flush();
            assert_eq!(harness.out.len(), 2);
        }
    }
}

#[test]
fn buffered_text_and_statuses_keep_their_order() {
    let mut harness = text_batching_harness(&[]);
    harness.take(text("a"));
    harness.take(status("shop", "searching_offers"));
    harness.take(text("b"));
    harness.take(text("c"));
    harness.wait(150);
    assert_eq!(
        harness.output(),
        ["\"a\" batch", SHOP_ALONE, "\"bc\" batch"]
    );
}

#[test]
fn buffered_text_is_bounded() {
    let mut harness = text_batching_harness(&[]);
    harness.take(text(&"a".repeat(BUFFERED_TEXT_BYTES_MAX)));
    harness.take(text("b"));
    assert_eq!(harness.out.len(), 1);
}

#[test]
fn clock_is_needed_only_where_events_may_be_buffered() {
    let plain = GateHarness::new(pack(), &[], "en");
    assert!(!plain.gate.times(EventType::TextDelta));
    let mut harness = GateHarness::new(pack(), &[BATCH], "en");
    assert!(!harness.gate.times(EventType::TextDelta));
    harness.take(status("shop", "searching_offers"));
    assert!(harness.gate.times(EventType::TextDelta), "a status is held");
    assert!(text_batching_harness(&[]).gate.times(EventType::TextDelta));
    assert!(
        !text_batching_harness(&[])
            .gate
            .times(EventType::ThinkingDelta)
    );
}

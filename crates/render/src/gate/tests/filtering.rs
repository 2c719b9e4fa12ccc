//! The text filter within a gate.

use std::sync::Arc;
use std::time::Duration;

use turnwire_event::port::Emission;
use turnwire_event::{Actor, Body, EventType, RenderPolicy, TraceContext};
use turnwire_pack::{OverrideTarget, RenderOverride};

use crate::tests::support::{
    BATCH, GateHarness, called, message_start, pack, status, text, text_in, thinking,
};

fn harness(flags: &[&str]) -> GateHarness {
    let mut pack = pack();
    pack.orchestrator.deny_words = vec!["acme".into(), "acme gold".into()];
    pack.overrides.push(RenderOverride {
        flag: "ai_assistant_chunks".into(),
        target: OverrideTarget::Type(EventType::TextDelta),
        policy: Some(RenderPolicy::Batch),
        render_key: None,
    });
    GateHarness::new(pack, flags, "en")
}

// S1-011
#[test]
fn denied_word_split_over_deltas_is_masked() {
    let mut harness = harness(&[]);
    for words in ["Buy A", "CM", "E, or ", "not."] {
        harness.take(text(words));
    }
    harness.flush();
    assert_eq!(harness.output(), ["\"Buy \"", "\"•••, or \"", "\"not.\""]);
}

#[test]
fn delayed_text_is_released_before_other_message_parts() {
    for emission in [text_in(1, "next"), thinking(), message_start()] {
        let mut harness = harness(&[]);
        harness.take(text("Ac"));
        assert!(harness.out.is_empty());
        harness.take(emission.clone());
        let output = harness.output();
        assert_eq!(
            (output.len(), output[0].as_str()),
            (2, "\"Ac\""),
            "{emission:?}"
        );
    }
}

#[test]
fn delayed_text_keeps_actor_block_and_trace() {
    let trace = Arc::new(TraceContext {
        trace_id: "1".into(),
        span_id: "2".into(),
        parent_span_id: None,
    });
    let traced = |words| Emission {
        trace: Some(trace.clone()),
        ..text_in(3, words)
    };
    let mut harness = harness(&[]);
    harness.take(traced("Ac"));
    harness.flush();
    assert_eq!(harness.out, [(traced("Ac"), None)]);
}

#[test]
fn delayed_text_stays_during_tool_events_and_window_end() {
    let mut harness = harness(&[BATCH]);
    harness.take(text("Ac"));
    harness.take(called("search"));
    harness.take(status("shop", "searching_offers"));
    harness.wait(150);
    harness.take(text("me!"));
    harness.flush();
    let output = harness.output();
    assert_eq!(output[0], "tool.called");
    assert!(output[1].starts_with("searching_offers"));
    assert_eq!(output[2..], ["\"•••!\""]);
}

#[test]
fn batched_text_is_filtered() {
    let mut harness = harness(&["ai_assistant_chunks"]);
    for words in ["By A", "cm", "e gol", "d and ac"] {
        harness.take(text(words));
        harness.now += Duration::from_millis(10);
    }
    harness.flush();
    assert_eq!(harness.output(), ["\"By ••• and ac\" batch"]);
}

#[test]
fn only_orchestrator_text_is_filtered() {
    let mut harness = harness(&[]);
    let mut other = text("acme ");
    other.actor = Actor::subagent("shop");
    harness.take(other);
    let mut reasoning = thinking();
    if let Body::ThinkingDelta(delta) = &mut reasoning.body {
        delta.text = "acme ".into();
    }
    harness.take(reasoning.clone());
    assert_eq!(harness.output(), ["\"acme \"", "thinking.delta"]);
    assert_eq!(harness.out[1].0, reasoning);
}

#[test]
fn empty_delta_is_emitted() {
    let mut harness = harness(&[]);
    harness.take(text(""));
    assert_eq!(harness.output(), ["\"\""]);
}

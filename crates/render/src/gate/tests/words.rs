//! What the filter does to the text of a message, as it passes the gate.

use std::time::Duration;

use turnwire_event::{Actor, Body, EventType, RenderPolicy};
use turnwire_pack::{OverrideTarget, RenderOverride};

use crate::stage::{BATCH, Stage, called, message_start, pack, status, text, text_in, thinking};

fn stage(flags: &[&str]) -> Stage {
    let mut pack = pack();
    pack.orchestrator.deny_words = vec!["acme".into(), "acme gold".into()];
    pack.overrides.push(RenderOverride {
        flag: "ai_assistant_chunks".into(),
        target: OverrideTarget::Type(EventType::TextDelta),
        policy: Some(RenderPolicy::Batch),
        render_key: None,
    });
    Stage::new(pack, flags, "en")
}

#[test]
fn s1_011_a_word_split_over_deltas_is_never_sent() {
    let mut stage = stage(&[]);
    for words in ["Buy A", "CM", "E, or ", "not."] {
        stage.take(text(words));
    }
    stage.flush();
    assert_eq!(stage.told(), ["\"Buy \"", "\"•••, or \"", "\"not.\""]);
}

#[test]
fn what_is_kept_back_goes_on_before_the_message_goes_on_otherwise() {
    for emission in [text_in(1, "next"), thinking(), message_start()] {
        let mut stage = stage(&[]);
        stage.take(text("Ac"));
        assert!(stage.out.is_empty());
        stage.take(emission.clone());
        let told = stage.told();
        assert_eq!(
            (told.len(), told[0].as_str()),
            (2, "\"Ac\""),
            "{emission:?}"
        );
    }
}

#[test]
fn what_is_kept_back_stays_while_others_work_and_when_a_window_ends() {
    let mut stage = stage(&[BATCH]);
    stage.take(text("Ac"));
    stage.take(called("search"));
    stage.take(status("shop", "searching_offers"));
    stage.wait(150);
    stage.take(text("me!"));
    stage.flush();
    let told = stage.told();
    assert_eq!(told[0], "tool.called");
    assert!(told[1].starts_with("searching_offers"));
    assert_eq!(told[2..], ["\"•••!\""]);
}

#[test]
fn gathered_text_is_filtered_text() {
    let mut stage = stage(&["ai_assistant_chunks"]);
    for words in ["By A", "cm", "e gol", "d and ac"] {
        stage.take(text(words));
        stage.now += Duration::from_millis(10);
    }
    stage.flush();
    assert_eq!(stage.told(), ["\"By ••• and ac\" batch"]);
}

#[test]
fn only_what_the_orchestrator_says_passes_the_filter() {
    let mut stage = stage(&[]);
    let mut other = text("acme ");
    other.actor = Actor::subagent("shop");
    stage.take(other);
    let mut thought = thinking();
    if let Body::ThinkingDelta(delta) = &mut thought.body {
        delta.text = "acme ".into();
    }
    stage.take(thought.clone());
    assert_eq!(stage.told(), ["\"acme \"", "thinking.delta"]);
    assert_eq!(stage.out[1].0, thought);
}

#[test]
fn a_delta_without_words_passes() {
    let mut stage = stage(&[]);
    stage.take(text(""));
    assert_eq!(stage.told(), ["\"\""]);
}

//! Properties of a gate that hold for every sequence of emissions.

use proptest::prelude::*;
use turnwire_event::port::Emission;
use turnwire_event::{Body, EventType, RenderPolicy};
use turnwire_pack::{OverrideTarget, RenderOverride};

use crate::tests::support::{
    BATCH, GateHarness, called, loading, noted, pack, status, text_in, thinking,
};

#[derive(Clone, Debug)]
enum Action {
    Take(Box<Emission>),
    Wait(u64),
    Flush,
}

fn take(emission: Emission) -> Action {
    Action::Take(Box::new(emission))
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let agent = prop_oneof![Just("shop"), Just("rewards"), Just("receipts")];
    let id = prop_oneof![
        Just("searching_offers"),
        Just("looking_up_points"),
        Just("matching_receipt"),
        Just("counting_shelves"),
        Just("one_moment"),
        Just("nothing"),
    ];
    let action = prop_oneof![
        4 => (agent, id).prop_map(|(agent, id)| take(status(agent, id))),
        4 => (0..2_u32, "[a-c ]{1,6}").prop_map(|(block, words)| take(text_in(block, &words))),
        1 => Just(take(called("search"))),
        1 => Just(take(noted())),
        1 => Just(take(loading())),
        1 => Just(take(thinking())),
        2 => (0..200_u64).prop_map(Action::Wait),
        1 => Just(Action::Flush),
    ];
    proptest::collection::vec(action, 0..60)
}

/// The part of the emissions that a gate must preserve: one line per emission, text by block.
fn preserved_parts<'a>(events: impl Iterator<Item = &'a Emission>) -> (Vec<String>, Vec<String>) {
    let mut texts = vec![String::new(); 2];
    let mut others = Vec::new();
    for event in events {
        match &event.body {
            Body::TextDelta(delta) => texts[delta.content_block_index as usize] += &delta.text,
            // The gate may replace the id of a status, but not its actor.
            Body::StatusEmitted(_) => others.push(format!("status {}", event.actor)),
            body => others.push(format!("{body:?}")),
        }
    }
    others.sort();
    (others, texts)
}

fn apply(actions: &[Action], harness: &mut GateHarness) {
    for action in actions {
        match action {
            Action::Take(emission) => harness.take((**emission).clone()),
            Action::Wait(ms) => harness.wait(*ms),
            Action::Flush => harness.flush(),
        }
    }
    harness.flush();
}

fn emissions(actions: &[Action]) -> Vec<&Emission> {
    let emissions = actions.iter().filter_map(|action| match action {
        Action::Take(emission) => Some(&**emission),
        Action::Wait(_) | Action::Flush => None,
    });
    emissions.collect()
}

fn harness(text: RenderPolicy) -> GateHarness {
    let mut pack = pack();
    pack.overrides.push(RenderOverride {
        flag: BATCH.into(),
        target: OverrideTarget::Type(EventType::TextDelta),
        policy: Some(text),
        render_key: None,
    });
    GateHarness::new(pack, &[BATCH], "en")
}

fn policy() -> impl Strategy<Value = RenderPolicy> {
    prop_oneof![
        Just(RenderPolicy::Forward),
        Just(RenderPolicy::Batch),
        Just(RenderPolicy::Suppress),
    ]
}

proptest! {
    // S1-042
    #[test]
    fn every_emission_is_emitted_exactly_once(actions in actions(), text in policy()) {
        let mut harness = harness(text);
        apply(&actions, &mut harness);
        let emitted = preserved_parts(harness.out.iter().map(|(event, _)| event));
        prop_assert_eq!(emitted, preserved_parts(emissions(&actions).into_iter()));
        prop_assert_eq!(harness.gate.due(), None);
        let count = harness.out.len();
        harness.flush();
        prop_assert_eq!(harness.out.len(), count);
    }

    #[test]
    fn unbuffered_events_keep_their_order(actions in actions(), text in policy()) {
        let mut harness = harness(text);
        apply(&actions, &mut harness);
        let is_never_buffered = |event: &&Emission| {
            !matches!(event.body, Body::TextDelta(_) | Body::StatusEmitted(_))
        };
        let emissions = emissions(&actions);
        let before: Vec<_> = emissions.iter().copied().filter(is_never_buffered).collect();
        let after: Vec<_> = harness.out.iter().map(|(event, _)| event).filter(is_never_buffered).collect();
        prop_assert_eq!(before, after);
        // Shown statuses keep their order, across actors.
        let status_id = |event: &Emission| match &event.body {
            Body::StatusEmitted(status) => Some(status.event_id.clone()),
            _ => None,
        };
        let is_registered = |agent: &str, id: &str| matches!(
            (agent, id),
            ("subagent:shop", "searching_offers" | "one_moment")
                | ("subagent:rewards", "looking_up_points")
                | ("subagent:receipts", "matching_receipt")
        );
        let before: Vec<_> = emissions
            .iter()
            .filter_map(|event| status_id(event).filter(|id| is_registered(&event.actor.to_string(), id)))
            .collect();
        let is_suppressed = |render: &Option<turnwire_event::RenderDecision>| {
            render.as_ref().is_some_and(|render| render.policy == RenderPolicy::Suppress)
        };
        let after: Vec<_> = harness
            .out
            .iter()
            .filter(|(_, render)| !is_suppressed(render))
            .filter_map(|(event, _)| status_id(event))
            .collect();
        prop_assert_eq!(before, after);
    }

    // C-41
    #[test]
    fn text_is_never_shown_before_an_earlier_status(actions in actions()) {
        let mut harness = harness(RenderPolicy::Batch);
        // A letter for each status and each piece of text, in order of emission.
        let mut gate_in = Vec::new();
        for emission in emissions(&actions) {
            match &emission.body {
                Body::StatusEmitted(status) if status.event_id == "searching_offers"
                    && emission.actor.is_subagent("shop") => gate_in.push('s'),
                Body::TextDelta(_) => gate_in.push('t'),
                _ => {}
            }
        }
        apply(&actions, &mut harness);
        let mut gate_out = Vec::new();
        for (event, render) in &harness.out {
            match &event.body {
                Body::StatusEmitted(status) if status.event_id == "searching_offers" => {
                    prop_assert!(render.is_some());
                    gate_out.push('s');
                }
                Body::TextDelta(_) => gate_out.push('t'),
                _ => {}
            }
        }
        // The gate may join text, so runs of text compare equal at any length.
        gate_in.dedup();
        gate_out.dedup();
        prop_assert_eq!(gate_in, gate_out);
    }

    // I-21
    #[test]
    fn agent_text_never_becomes_a_status_message(actions in actions(), text in policy()) {
        let mut harness = harness(text);
        apply(&actions, &mut harness);
        let output = format!("{:?}", harness.out);
        prop_assert!(!output.contains("own words"));
        prop_assert!(!output.contains("nothing"));
    }
}

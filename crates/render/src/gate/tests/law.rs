//! Laws that hold for every sequence of emissions.

use proptest::prelude::*;
use turnwire_event::port::Emission;
use turnwire_event::{Body, EventType, RenderPolicy};
use turnwire_pack::{OverrideTarget, RenderOverride};

use crate::stage::{BATCH, Stage, called, loading, noted, pack, status, text_in, thinking};

#[derive(Clone, Debug)]
enum Step {
    Take(Box<Emission>),
    Wait(u64),
    Flush,
}

fn take(emission: Emission) -> Step {
    Step::Take(Box::new(emission))
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let agent = prop_oneof![Just("shop"), Just("rewards"), Just("receipts")];
    let id = prop_oneof![
        Just("searching_offers"),
        Just("looking_up_points"),
        Just("matching_receipt"),
        Just("counting_shelves"),
        Just("one_moment"),
        Just("nothing"),
    ];
    let step = prop_oneof![
        4 => (agent, id).prop_map(|(agent, id)| take(status(agent, id))),
        4 => (0..2_u32, "[a-c ]{1,6}").prop_map(|(block, words)| take(text_in(block, &words))),
        1 => Just(take(called("search"))),
        1 => Just(take(noted())),
        1 => Just(take(loading())),
        1 => Just(take(thinking())),
        2 => (0..200_u64).prop_map(Step::Wait),
        1 => Just(Step::Flush),
    ];
    proptest::collection::vec(step, 0..60)
}

/// What must come out of what went in: one line for every emission, text by block and in full.
fn essence<'a>(events: impl Iterator<Item = &'a Emission>) -> (Vec<String>, Vec<String>) {
    let mut texts = vec![String::new(); 2];
    let mut others = Vec::new();
    for event in events {
        match &event.body {
            Body::TextDelta(delta) => texts[delta.content_block_index as usize] += &delta.text,
            // Their ids may be replaced; who emitted them may not.
            Body::StatusEmitted(_) => others.push(format!("status {}", event.actor)),
            body => others.push(format!("{body:?}")),
        }
    }
    others.sort();
    (others, texts)
}

fn run(steps: &[Step], stage: &mut Stage) {
    for step in steps {
        match step {
            Step::Take(emission) => stage.take((**emission).clone()),
            Step::Wait(ms) => stage.wait(*ms),
            Step::Flush => stage.flush(),
        }
    }
    stage.flush();
}

fn taken(steps: &[Step]) -> Vec<&Emission> {
    let emissions = steps.iter().filter_map(|step| match step {
        Step::Take(emission) => Some(&**emission),
        Step::Wait(_) | Step::Flush => None,
    });
    emissions.collect()
}

fn stage(text: RenderPolicy) -> Stage {
    let mut pack = pack();
    pack.overrides.push(RenderOverride {
        flag: BATCH.into(),
        target: OverrideTarget::Type(EventType::TextDelta),
        policy: Some(text),
        render_key: None,
    });
    Stage::new(pack, &[BATCH], "en")
}

fn policy() -> impl Strategy<Value = RenderPolicy> {
    prop_oneof![
        Just(RenderPolicy::Forward),
        Just(RenderPolicy::Batch),
        Just(RenderPolicy::Suppress),
    ]
}

proptest! {
    #[test]
    fn s1_042_every_emission_comes_out_exactly_once(steps in steps(), text in policy()) {
        let mut stage = stage(text);
        run(&steps, &mut stage);
        let came = essence(stage.out.iter().map(|(event, _)| event));
        prop_assert_eq!(came, essence(taken(&steps).into_iter()));
        prop_assert_eq!(stage.gate.due(), None);
        let count = stage.out.len();
        stage.flush();
        prop_assert_eq!(stage.out.len(), count);
    }

    #[test]
    fn what_is_not_held_keeps_its_order(steps in steps(), text in policy()) {
        let mut stage = stage(text);
        run(&steps, &mut stage);
        let plain = |event: &&Emission| {
            !matches!(event.body, Body::TextDelta(_) | Body::StatusEmitted(_))
        };
        let taken = taken(&steps);
        let before: Vec<_> = taken.iter().copied().filter(plain).collect();
        let after: Vec<_> = stage.out.iter().map(|(event, _)| event).filter(plain).collect();
        prop_assert_eq!(before, after);
        // Statuses keep their order among those that are shown, whoever emitted them.
        let shown = |event: &Emission| match &event.body {
            Body::StatusEmitted(status) => Some(status.event_id.clone()),
            _ => None,
        };
        let of = |agent: &str, id: &str| matches!(
            (agent, id),
            ("subagent:shop", "searching_offers" | "one_moment")
                | ("subagent:rewards", "looking_up_points")
                | ("subagent:receipts", "matching_receipt")
        );
        let before: Vec<_> = taken
            .iter()
            .filter_map(|event| shown(event).filter(|id| of(&event.actor.to_string(), id)))
            .collect();
        let hidden = |render: &Option<turnwire_event::Render>| {
            render.as_ref().is_some_and(|render| render.policy == RenderPolicy::Suppress)
        };
        let after: Vec<_> = stage
            .out
            .iter()
            .filter(|(_, render)| !hidden(render))
            .filter_map(|(event, _)| shown(event))
            .collect();
        prop_assert_eq!(before, after);
    }

    #[test]
    fn c_41_no_text_is_shown_before_a_status_that_was_emitted_before_it(steps in steps()) {
        let mut stage = stage(RenderPolicy::Batch);
        // Each status and each piece of text gets a number, in the order they went in.
        let mut gate_in = Vec::new();
        for emission in taken(&steps) {
            match &emission.body {
                Body::StatusEmitted(status) if status.event_id == "searching_offers"
                    && emission.actor.is_subagent("shop") => gate_in.push('s'),
                Body::TextDelta(_) => gate_in.push('t'),
                _ => {}
            }
        }
        run(&steps, &mut stage);
        let mut gate_out = Vec::new();
        for (event, render) in &stage.out {
            match &event.body {
                Body::StatusEmitted(status) if status.event_id == "searching_offers" => {
                    prop_assert!(render.is_some());
                    gate_out.push('s');
                }
                Body::TextDelta(_) => gate_out.push('t'),
                _ => {}
            }
        }
        // Joined text is one: runs of text are the same, whatever their length.
        gate_in.dedup();
        gate_out.dedup();
        prop_assert_eq!(gate_in, gate_out);
    }

    #[test]
    fn i_21_no_word_of_an_agent_is_ever_a_status(steps in steps(), text in policy()) {
        let mut stage = stage(text);
        run(&steps, &mut stage);
        let told = format!("{:?}", stage.out);
        prop_assert!(!told.contains("own words"));
        prop_assert!(!told.contains("nothing"));
    }
}

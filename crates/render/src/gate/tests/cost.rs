//! What a decision costs.

use std::time::Instant;

use allocation_counter::measure;
use turnwire_event::port::Emission;

use crate::policies::Policies;
use crate::stage::{BATCH, Stage, called, loading, noted, pack, text};

/// Allocations of so many passes of one event that comes back every time.
fn allocations(stage: &mut Stage, emission: Emission) -> u64 {
    let mut slot = Some(emission);
    let now = Instant::now();
    let mut pass = || {
        if let Some(emission) = slot.take() {
            let mut out = |event, _| slot = Some(event);
            stage.gate.take(emission, now, &mut out);
        }
    };
    // The first of a kind looks its counter up.
    pass();
    measure(|| (0..200).for_each(|_| pass())).count_total
}

#[test]
fn s1_058_the_forward_path_allocates_nothing() {
    for mut stage in [
        Stage::new(pack(), &[BATCH], "en"),
        Stage::of(Policies::plain("plain@1")),
    ] {
        for emission in [text("words"), called("search"), loading(), noted()] {
            assert_eq!(allocations(&mut stage, emission), 0);
        }
    }
}

#[test]
fn a_gate_of_a_known_cohort_is_cheap() {
    let policies = Policies::new(std::sync::Arc::new(pack()));
    let cohort = crate::stage::cohort(&[BATCH]);
    drop(policies.gate(&cohort, "en"));
    let cost = measure(|| drop(policies.gate(&cohort, "en")));
    assert!(cost.count_total <= 4, "{cost:?}");
}

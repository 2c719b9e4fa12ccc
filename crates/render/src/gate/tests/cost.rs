//! The cost of a decision in allocations.

use std::time::Instant;

use allocation_counter::measure;
use turnwire_event::port::Emission;

use crate::policies::RenderPolicies;
use crate::tests::support::{BATCH, GateHarness, called, loading, noted, pack, text};

/// The number of allocations of 200 passes of the same event.
fn allocations(harness: &mut GateHarness, emission: Emission) -> u64 {
    let mut slot = Some(emission);
    let now = Instant::now();
    let mut pass = || {
        if let Some(emission) = slot.take() {
            let mut out = |event, _| slot = Some(event);
            harness.gate.take(emission, now, &mut out);
        }
    };
    // The first event of a type looks up its counter.
    pass();
    measure(|| (0..200).for_each(|_| pass())).count_total
}

// S1-058
#[test]
fn forward_path_allocates_nothing() {
    for mut harness in [
        GateHarness::new(pack(), &[BATCH], "en"),
        GateHarness::of(RenderPolicies::default_gate("plain@1")),
    ] {
        for emission in [text("words"), called("search"), loading(), noted()] {
            assert_eq!(allocations(&mut harness, emission), 0);
        }
    }
}

#[test]
fn gate_of_cached_cohort_allocates_at_most_four_times() {
    let policies = RenderPolicies::new(std::sync::Arc::new(pack()));
    let cohort = crate::tests::support::cohort(&[BATCH]);
    drop(policies.gate(&cohort, "en", ""));
    let cost = measure(|| drop(policies.gate(&cohort, "en", "")));
    assert!(cost.count_total <= 4, "{cost:?}");
}

//! The policy of an event, how the gate marks it, and what the metrics count.

use std::sync::Arc;

use turnwire_event::port::Emission;
use turnwire_event::{Actor, EventType, RenderPolicy, metric};
use turnwire_pack::{OverrideTarget, RenderOverride, StatusLifecycle};

use crate::gate::loggable_id;
use crate::policies::RenderPolicies;
use crate::tests::support::{
    BATCH, CountingRecorder, GateHarness, called, cohort, loading, noted, pack, rendered, status,
    status_by, status_override, text, thinking,
};

const APPLIED: &str = metric::STREAM_RENDERING_POLICY_APPLIED_TOTAL;

// S1-053
#[test]
fn forwarded_event_is_unchanged_and_unmarked() {
    let mut harness = GateHarness::new(pack(), &[], "en");
    for emission in [text("words"), called("search"), loading(), thinking()] {
        harness.take(emission.clone());
        assert_eq!(harness.out.pop(), Some((emission, None)));
    }
}

// S1-054
#[test]
fn status_text_uses_the_locale_of_the_turn() {
    for (locale, message) in [
        ("en", "Searching for offers..."),
        ("de", "Angebote werden gesucht …"),
        ("de-AT", "Angebote werden gesucht …"),
        ("es_MX", "Buscando ofertas…"),
        ("xx", "Searching for offers..."),
        ("\u{1b}[31m", "Searching for offers..."),
    ] {
        let mut harness = GateHarness::new(pack(), &[], locale);
        harness.take(status("shop", "searching_offers"));
        let expected = format!("searching_offers {message:?} transform");
        assert_eq!(harness.output(), [expected], "{locale}");
    }
}

// D-86
#[test]
fn forwarded_status_uses_default_locale_and_registry_text() {
    let mut pack = pack();
    let flag = "ai_assistant_hunt";
    pack.overrides.push(status_override(
        flag,
        "comparing_prices",
        None,
        Some("status.hunting"),
    ));
    let mut harness = GateHarness::new(pack, &[flag], "de");
    harness.take(status("shop", "comparing_prices"));
    assert_eq!(
        harness.output(),
        ["comparing_prices \"Comparing prices...\" forward"]
    );
}

// S1-055
#[test]
fn suppressed_event_is_marked_and_emitted() {
    let mut harness = GateHarness::new(pack(), &[], "en");
    harness.take(status("shop", "counting_shelves"));
    harness.take(noted());
    assert_eq!(
        harness.output(),
        [
            "counting_shelves \"Counting shelves...\" suppress",
            "support.noted suppress"
        ]
    );
}

// A note is hidden from clients, and stored for the sub-agents of later turns.
#[test]
fn suppressed_note_keeps_its_message() {
    let mut harness = GateHarness::new(pack(), &[], "en");
    let note = Emission {
        message: rendered().message,
        ..noted()
    };
    harness.take(note.clone());
    let suppressed = Some(RenderPolicy::Suppress.into());
    assert_eq!(harness.out, [(note, suppressed)]);
}

// S1-055
#[test]
fn suppressed_component_has_no_message() {
    let emitted_component = |pack| {
        let mut harness = GateHarness::new(pack, &["ai_assistant_bare"], "en");
        harness.take(rendered());
        let (emission, render) = harness.out.pop().expect("it goes on");
        (emission.message.is_some(), render)
    };
    assert_eq!(emitted_component(pack()), (true, None));
    let mut bare = pack();
    bare.overrides.push(RenderOverride {
        flag: "ai_assistant_bare".into(),
        target: OverrideTarget::Type(EventType::ComponentRendered),
        policy: Some(RenderPolicy::Suppress),
        render_key: None,
    });
    assert_eq!(
        emitted_component(bare),
        (false, Some(RenderPolicy::Suppress.into()))
    );
}

// S1-069, S1-070, S2-082, I-15
#[test]
fn status_with_unknown_or_foreign_id_is_withheld() {
    let recorder = CountingRecorder::default();
    let cases = [
        status("shop", "Searching offers…"),
        status("shop", "made_up_at_run_time"),
        status("rewards", "searching_offers"),
        status_by(Actor::ORCHESTRATOR, "searching_offers"),
        status_by(Actor::tool("emit_status"), "searching_offers"),
        status("nobody", "one_moment"),
        status("shop", ""),
    ];
    let count = cases.len() as f64;
    metrics::with_local_recorder(&recorder, || {
        for emission in cases {
            let mut harness = GateHarness::new(pack(), &[BATCH], "en");
            harness.take(emission);
            assert_eq!(harness.output(), ["unregistered \"\" suppress"]);
        }
    });
    assert_eq!(
        recorder.sum(metric::STATUS_EVENT_UNREGISTERED_ID_TOTAL, &[]),
        count
    );
    assert_eq!(
        recorder.sum(APPLIED, &["policy=suppress", "event_type=status"]),
        count
    );
    assert_eq!(
        recorder.sum(metric::STREAM_STATUS_EVENT_EMITTED_TOTAL, &[]),
        0.0
    );
}

#[test]
fn platform_id_is_allowed_for_orchestrator_and_emitters() {
    let mut harness = GateHarness::new(pack(), &[], "en");
    harness.take(status_by(Actor::ORCHESTRATOR, "one_moment"));
    harness.take(status("shop", "one_moment"));
    harness.take(status("rewards", "one_moment"));
    assert_eq!(
        harness.output(),
        [
            "one_moment \"One moment...\" transform",
            "one_moment \"One moment...\" transform",
            "unregistered \"\" suppress",
        ]
    );
}

#[test]
fn deprecated_id_is_still_shown() {
    let mut pack = pack();
    for entry in &mut pack.registry.entries {
        entry.lifecycle = StatusLifecycle::Deprecated;
    }
    let mut harness = GateHarness::new(pack, &[], "en");
    harness.take(status("shop", "searching_offers"));
    assert_eq!(
        harness.output(),
        ["searching_offers \"Searching for offers...\" transform"]
    );
}

#[test]
fn status_without_text_is_withheld() {
    let mut pack = pack();
    for entry in &mut pack.registry.entries {
        entry.render_key = "status.nowhere".into();
    }
    let mut harness = GateHarness::new(pack, &[], "en");
    harness.take(status("shop", "searching_offers"));
    assert_eq!(harness.output(), ["unregistered \"\" suppress"]);
}

// S1-059
#[test]
fn flag_overrides_text_or_policy_only_while_active() {
    let mut pack = pack();
    let (hunt, hide) = ("ai_assistant_hunt", "ai_assistant_hide");
    pack.overrides = vec![
        status_override(hunt, "searching_offers", None, Some("status.hunting")),
        status_override(hide, "searching_offers", Some(RenderPolicy::Suppress), None),
    ];
    let policies = RenderPolicies::new(Arc::new(pack));
    for (flags, output) in [
        (
            &[][..],
            "searching_offers \"Searching for offers...\" transform",
        ),
        (
            &[hunt][..],
            "searching_offers \"Hunting for bargains...\" transform",
        ),
        (
            &[hide][..],
            "searching_offers \"Searching for offers...\" suppress",
        ),
        (
            &[hide, hunt][..],
            "searching_offers \"Hunting for bargains...\" suppress",
        ),
        (
            &["ai_assistant_other"][..],
            "searching_offers \"Searching for offers...\" transform",
        ),
    ] {
        let mut harness = GateHarness::of(policies.gate(&cohort(flags), "en", ""));
        harness.take(status("shop", "searching_offers"));
        assert_eq!(harness.output(), [output], "{flags:?}");
    }
}

#[test]
fn type_override_applies_to_statuses_without_own_override() {
    let mut pack = pack();
    let flag = "ai_assistant_quiet";
    let type_override = |kind, policy| RenderOverride {
        flag: flag.into(),
        target: OverrideTarget::Type(kind),
        policy: Some(policy),
        render_key: None,
    };
    pack.overrides = vec![
        status_override(
            flag,
            "looking_up_points",
            Some(RenderPolicy::Transform),
            None,
        ),
        type_override(EventType::StatusEmitted, RenderPolicy::Suppress),
        type_override(EventType::ToolCalled, RenderPolicy::Suppress),
        type_override(EventType::SupportNoted, RenderPolicy::Forward),
    ];
    let mut harness = GateHarness::new(pack, &[flag], "en");
    harness.take(status("shop", "searching_offers"));
    harness.take(status("rewards", "looking_up_points"));
    harness.take(called("search"));
    harness.take(noted());
    assert_eq!(
        harness.output(),
        [
            "searching_offers \"Searching for offers...\" suppress",
            "looking_up_points \"Looking up your points...\" transform",
            "tool.called suppress",
            "support.noted suppress",
        ]
    );
}

#[test]
fn gate_without_pack_forwards_and_withholds_statuses() {
    let mut harness = GateHarness::of(RenderPolicies::default_gate("plain@1"));
    harness.take(text("words"));
    harness.take(called("search"));
    harness.take(noted());
    harness.take(status("shop", "searching_offers"));
    assert_eq!(
        harness.output(),
        [
            "\"words\"",
            "tool.called",
            "support.noted suppress",
            "unregistered \"\" suppress"
        ]
    );
    assert_eq!(harness.gate.due(), None);
}

// S1-050
#[test]
fn every_event_is_counted_once_with_policy_and_labels() {
    let recorder = CountingRecorder::default();
    metrics::with_local_recorder(&recorder, || {
        let mut harness = GateHarness::new(pack(), &[BATCH], "en");
        for emission in [
            text("a"),
            text("b"),
            called("search"),
            noted(),
            status("shop", "searching_offers"),
            status("rewards", "looking_up_points"),
            status("shop", "counting_shelves"),
            status("shop", "comparing_prices"),
            status("shop", "nothing"),
        ] {
            harness.take(emission);
        }
        harness.flush();
        assert_eq!(harness.out.len(), 9);
    });
    let applied = |labels: &[&str]| recorder.sum(APPLIED, labels);
    assert_eq!(applied(&[]), 9.0);
    assert_eq!(applied(&["event_type=text", "policy=forward"]), 2.0);
    assert_eq!(
        applied(&["event_type=support_content", "policy=suppress"]),
        1.0
    );
    assert_eq!(applied(&["policy=batch"]), 2.0);
    assert_eq!(
        applied(&["policy=batch", "sub_agent_id=shop", "vertical=shop"]),
        1.0
    );
    assert_eq!(applied(&["event_type=status", "policy=suppress"]), 2.0);
    assert_eq!(applied(&["agent_definition_version=market@1.0.0"]), 9.0);
    let emitted = |labels: &[&str]| recorder.sum(metric::STREAM_STATUS_EVENT_EMITTED_TOTAL, labels);
    assert_eq!(
        emitted(&["event_id=searching_offers", "sub_agent_id=shop"]),
        1.0
    );
    assert_eq!(emitted(&[]), 4.0);
    // One decision in 64 is timed, starting with the first.
    assert_eq!(
        recorder.sum(metric::STREAM_POLICY_DECISION_SECONDS, &[]),
        1.0
    );
    assert_eq!(recorder.sum(metric::STREAM_REGISTRY_SIZE, &[]), 6.0);
}

#[test]
fn only_well_formed_ids_are_logged() {
    let longest = "a".repeat(64);
    for id in ["searching_offers", "x", "a1_", &longest] {
        assert_eq!(loggable_id(id), Some(id));
    }
    let too_long = "a".repeat(65);
    for prose in [
        "",
        "Ada owes 300 euros",
        "ada's pills",
        "1st",
        "_a",
        "Searching",
        "straße",
        &too_long,
    ] {
        assert_eq!(loggable_id(prose), None);
    }
}

//! Which policy an event gets, what it is stamped with, and what is counted.

use std::sync::Arc;

use turnwire_event::{Actor, EventType, RenderPolicy, metric};
use turnwire_pack::{OverrideTarget, RenderOverride, StatusLifecycle};

use crate::gate::nameable;
use crate::policies::Policies;
use crate::stage::{
    BATCH, Counts, Stage, called, change, cohort, loading, noted, pack, rendered, status,
    status_by, text, thinking,
};

const APPLIED: &str = metric::STREAM_RENDERING_POLICY_APPLIED_TOTAL;

#[test]
fn s1_053_forward_changes_nothing_and_stamps_nothing() {
    let mut stage = Stage::new(pack(), &[], "en");
    for emission in [text("words"), called("search"), loading(), thinking()] {
        stage.take(emission.clone());
        assert_eq!(stage.out.pop(), Some((emission, None)));
    }
}

#[test]
fn s1_054_a_status_is_worded_in_the_language_of_the_turn() {
    for (locale, message) in [
        ("en", "Searching for offers..."),
        ("de", "Angebote werden gesucht …"),
        ("de-AT", "Angebote werden gesucht …"),
        ("es_MX", "Buscando ofertas…"),
        ("xx", "Searching for offers..."),
        ("\u{1b}[31m", "Searching for offers..."),
    ] {
        let mut stage = Stage::new(pack(), &[], locale);
        stage.take(status("shop", "searching_offers"));
        let expected = format!("searching_offers {message:?} transform");
        assert_eq!(stage.told(), [expected], "{locale}");
    }
}

#[test]
fn d_86_forward_on_a_status_is_the_default_language_without_an_override() {
    let mut pack = pack();
    let flag = "ai_assistant_hunt";
    pack.overrides.push(change(
        flag,
        "comparing_prices",
        None,
        Some("status.hunting"),
    ));
    let mut stage = Stage::new(pack, &[flag], "de");
    stage.take(status("shop", "comparing_prices"));
    assert_eq!(
        stage.told(),
        ["comparing_prices \"Comparing prices...\" forward"]
    );
}

#[test]
fn s1_055_suppressed_is_stamped_and_passed_on() {
    let mut stage = Stage::new(pack(), &[], "en");
    stage.take(status("shop", "counting_shelves"));
    stage.take(noted());
    assert_eq!(
        stage.told(),
        [
            "counting_shelves \"Counting shelves...\" suppress",
            "support.noted suppress"
        ]
    );
}

#[test]
fn s1_055_a_component_that_is_suppressed_is_in_no_message_either() {
    let shown = |pack| {
        let mut stage = Stage::new(pack, &["ai_assistant_bare"], "en");
        stage.take(rendered());
        let (emission, render) = stage.out.pop().expect("it goes on");
        (emission.message.is_some(), render)
    };
    assert_eq!(shown(pack()), (true, None));
    let mut bare = pack();
    bare.overrides.push(RenderOverride {
        flag: "ai_assistant_bare".into(),
        target: OverrideTarget::Type(EventType::ComponentRendered),
        policy: Some(RenderPolicy::Suppress),
        render_key: None,
    });
    assert_eq!(shown(bare), (false, Some(RenderPolicy::Suppress.into())));
}

#[test]
fn s1_069_s1_070_an_id_that_is_unknown_or_for_someone_else_is_withheld_without_its_words() {
    let counts = Counts::default();
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
    metrics::with_local_recorder(&counts, || {
        for emission in cases {
            let mut stage = Stage::new(pack(), &[BATCH], "en");
            stage.take(emission);
            assert_eq!(stage.told(), ["unregistered \"\" suppress"]);
        }
    });
    assert_eq!(counts.of(metric::STATUS_EVENT_UNREGISTERED_ID, &[]), count);
    assert_eq!(
        counts.of(APPLIED, &["policy=suppress", "event_type=status.emitted"]),
        count
    );
    assert_eq!(
        counts.of(metric::STREAM_STATUS_EVENT_EMITTED_TOTAL, &[]),
        0.0
    );
}

#[test]
fn an_id_of_the_platform_is_for_the_orchestrator_and_for_those_it_lists() {
    let mut stage = Stage::new(pack(), &[], "en");
    stage.take(status_by(Actor::ORCHESTRATOR, "one_moment"));
    stage.take(status("shop", "one_moment"));
    stage.take(status("rewards", "one_moment"));
    assert_eq!(
        stage.told(),
        [
            "one_moment \"One moment...\" transform",
            "one_moment \"One moment...\" transform",
            "unregistered \"\" suppress",
        ]
    );
}

#[test]
fn a_deprecated_id_is_still_shown() {
    let mut pack = pack();
    for entry in &mut pack.registry.entries {
        entry.lifecycle = StatusLifecycle::Deprecated;
    }
    let mut stage = Stage::new(pack, &[], "en");
    stage.take(status("shop", "searching_offers"));
    assert_eq!(
        stage.told(),
        ["searching_offers \"Searching for offers...\" transform"]
    );
}

#[test]
fn a_status_without_a_text_is_withheld() {
    let mut pack = pack();
    for entry in &mut pack.registry.entries {
        entry.render_key = "status.nowhere".into();
    }
    let mut stage = Stage::new(pack, &[], "en");
    stage.take(status("shop", "searching_offers"));
    assert_eq!(stage.told(), ["unregistered \"\" suppress"]);
}

#[test]
fn s1_059_a_flag_changes_words_or_hides_and_without_it_the_default_is_back() {
    let mut pack = pack();
    let (hunt, hide) = ("ai_assistant_hunt", "ai_assistant_hide");
    pack.overrides = vec![
        change(hunt, "searching_offers", None, Some("status.hunting")),
        change(hide, "searching_offers", Some(RenderPolicy::Suppress), None),
    ];
    let policies = Policies::new(Arc::new(pack));
    for (flags, told) in [
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
        let mut stage = Stage::of(policies.gate(&cohort(flags), "en"));
        stage.take(status("shop", "searching_offers"));
        assert_eq!(stage.told(), [told], "{flags:?}");
    }
}

#[test]
fn an_override_of_the_type_is_for_all_statuses_but_those_with_their_own() {
    let mut pack = pack();
    let flag = "ai_assistant_quiet";
    let on = |kind, policy| RenderOverride {
        flag: flag.into(),
        target: OverrideTarget::Type(kind),
        policy: Some(policy),
        render_key: None,
    };
    pack.overrides = vec![
        change(
            flag,
            "looking_up_points",
            Some(RenderPolicy::Transform),
            None,
        ),
        on(EventType::StatusEmitted, RenderPolicy::Suppress),
        on(EventType::ToolCalled, RenderPolicy::Suppress),
        on(EventType::SupportNoted, RenderPolicy::Forward),
    ];
    let mut stage = Stage::new(pack, &[flag], "en");
    stage.take(status("shop", "searching_offers"));
    stage.take(status("rewards", "looking_up_points"));
    stage.take(called("search"));
    stage.take(noted());
    assert_eq!(
        stage.told(),
        [
            "searching_offers \"Searching for offers...\" suppress",
            "looking_up_points \"Looking up your points...\" transform",
            "tool.called suppress",
            "support.noted suppress",
        ]
    );
}

#[test]
fn a_gate_without_a_pack_forwards_and_knows_no_status() {
    let mut stage = Stage::of(Policies::plain("plain@1"));
    stage.take(text("words"));
    stage.take(called("search"));
    stage.take(noted());
    stage.take(status("shop", "searching_offers"));
    assert_eq!(
        stage.told(),
        [
            "\"words\"",
            "tool.called",
            "support.noted suppress",
            "unregistered \"\" suppress"
        ]
    );
    assert_eq!(stage.gate.due(), None);
}

#[test]
fn s1_050_every_event_is_counted_once_with_its_policy_and_dimensions() {
    let counts = Counts::default();
    metrics::with_local_recorder(&counts, || {
        let mut stage = Stage::new(pack(), &[BATCH], "en");
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
            stage.take(emission);
        }
        stage.flush();
        assert_eq!(stage.out.len(), 9);
    });
    let applied = |labels: &[&str]| counts.of(APPLIED, labels);
    assert_eq!(applied(&[]), 9.0);
    assert_eq!(applied(&["event_type=text.delta", "policy=forward"]), 2.0);
    assert_eq!(
        applied(&["event_type=support_content", "policy=suppress"]),
        1.0
    );
    assert_eq!(applied(&["policy=batch"]), 2.0);
    assert_eq!(
        applied(&["policy=batch", "sub_agent_id=shop", "vertical=shop"]),
        1.0
    );
    assert_eq!(
        applied(&["event_type=status.emitted", "policy=suppress"]),
        2.0
    );
    assert_eq!(applied(&["agent_definition_version=market@1.0.0"]), 9.0);
    let emitted = |labels: &[&str]| counts.of(metric::STREAM_STATUS_EVENT_EMITTED_TOTAL, labels);
    assert_eq!(
        emitted(&["event_id=searching_offers", "sub_agent_id=shop"]),
        1.0
    );
    assert_eq!(emitted(&[]), 4.0);
    // One in 64 is timed, the first of them.
    assert_eq!(counts.of(metric::STREAM_POLICY_DECISION_US, &[]), 1.0);
    assert_eq!(counts.of(metric::STREAM_REGISTRY_SIZE, &[]), 6.0);
}

#[test]
fn the_servers_log_names_what_looks_like_an_id_and_never_prose() {
    let longest = "a".repeat(64);
    for id in ["searching_offers", "x", "a1_", &longest] {
        assert_eq!(nameable(id), Some(id));
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
        assert_eq!(nameable(prose), None);
    }
}

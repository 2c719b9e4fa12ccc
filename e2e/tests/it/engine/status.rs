//! Statuses at run time: policies and overrides, unregistered ids, suppression, and the public
//! registry (S1 1.5, 1.6; S2-056..058; D-12b).

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_e2e::chat::{MetricsSnapshot, until};
use turnwire_e2e::data_service::{ServiceReply, envelope};
use turnwire_e2e::engine::{EngineFixture, ORCHESTRATOR, asks, json_of, of, only, working};
use turnwire_testkit::chat::ChatSubmit;
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::watch::SubscribeOptions;

const FLAG: &str = "ai_assistant_words";
const PLAIN: &str = "Searching for offers...";

fn overridden(pack: TestPack, what: &str) -> TestPack {
    pack.flag(FLAG, "true").put(
        "overrides.yaml",
        &format!("{FLAG}: {{searching_offers: {{{what}}}}}\n"),
    )
}

fn script() -> ModelScript {
    working(asks(&["shop"], "Here."))
}

// S1-055, S1-059, S1-136
#[tokio::test]
async fn override_changes_or_hides_text_with_its_flag() {
    let mut engine = EngineFixture::with(script(), |pack| {
        overridden(pack, "render_key: status.asking_support")
    })
    .await;
    let reply = engine.ask("offers").await;
    assert_eq!(
        reply.statuses(),
        [(
            "searching_offers".to_owned(),
            "Asking support...".to_owned()
        )]
    );
    let pack = |engine: &EngineFixture| TestPack::market(&engine.ccs.url()).script(&script());
    let hidden = overridden(pack(&engine), "policy: suppress");
    engine.server.repack(hidden);
    engine.server.restart().await;
    let all = SubscribeOptions::live().filter(json!({"include_suppressed": true}));
    let mut all = engine.watch("all", all).await;
    let mut watcher = engine.watch("shown", SubscribeOptions::live()).await;
    let reply = engine.ask("offers").await;
    assert_eq!(reply.count("status"), 0);
    let seen = json_of(&watcher.turn(reply.turn).await.expect("the turn"));
    assert_eq!(of(&seen, "status.emitted").count(), 0);
    let seen = json_of(&all.turn(reply.turn).await.expect("the turn"));
    let status = only(&seen, "status.emitted");
    assert_eq!(
        (&status["payload"]["event_id"], &status["render"]["policy"]),
        (&json!("searching_offers"), &json!("suppress"))
    );
    let metrics = MetricsSnapshot::read(&engine.api).await;
    let suppressed = metrics.by("turnwire_stream_rendering_policy_applied_total", "policy");
    assert!(
        suppressed.get("suppress").is_some_and(|n| *n >= 1),
        "{suppressed:?}"
    );
    // Without the flag, also without a restart, the default is back.
    let plain = pack(&engine);
    engine.server.repack(plain);
    engine.server.signal(rustix::process::Signal::HUP);
    until("the default is back", || async {
        let reply = engine.ask("offers").await;
        reply.statuses() == [("searching_offers".to_owned(), PLAIN.to_owned())]
    })
    .await;
    engine.check_history().await;
}

// S1-040
#[tokio::test]
async fn event_type_hidden_from_cohort_stays_in_log() {
    let hide = |pack: TestPack| {
        let types = "tool_call: {policy: suppress}";
        pack.flag(FLAG, "{principals: [user-42]}")
            .put("overrides.yaml", &format!("{FLAG}: {{{types}}}\n"))
    };
    let engine = EngineFixture::with(script(), hide).await;
    let reply = engine.ask("offers").await;
    assert_eq!(
        (reply.count("tool_call"), reply.count("tool_completed")),
        (0, 0),
        "{:?}",
        reply.labels()
    );
    reply.assert_order(&["status", "data_loaded", "text", "completed"]);
    let events = engine.events(reply.turn).await;
    assert_eq!(
        (
            of(&events, "tool.called").count(),
            of(&events, "tool.completed").count()
        ),
        (3, 3),
        "s1_045"
    );
    engine.check_history().await;
}

// SC-08, S1-047, S1-069, S2-058, S1-132, S2-085, S1-043
#[tokio::test]
async fn unregistered_status_is_dropped_counted_and_logged() {
    let emit = |id: &str| ScriptStep::tool("look_up", json!({"event_id": id}));
    let script = asks(&["shop"], "Here.")
        .call(
            "shop",
            1,
            [
                emit("searching_x"),
                emit("Searching offers…"),
                emit("asking_support"),
                emit("searching_offers"),
            ],
        )
        .call("shop", 2, [ScriptStep::text("SUBRAW")]);
    let engine = EngineFixture::new(script).await;
    let reply = engine.ask("offers").await;
    assert_eq!(reply.last().event(), "completed");
    let ids: Vec<String> = reply.statuses().into_iter().map(|(id, _)| id).collect();
    assert_eq!(
        ids,
        ["searching_offers"],
        "another agent's id is no better than none (s1_070)"
    );
    reply.assert_absent(&["searching_x", "Searching offers…", "asking_support"]);
    let metrics = MetricsSnapshot::read(&engine.api).await;
    assert_eq!(
        metrics.sum("turnwire_status_event_unregistered_id_total"),
        3.0
    );
    let log = engine.server.stderr();
    let warned = log
        .lines()
        .filter(|line| line.contains("WARN") && line.contains("searching_x"));
    assert_eq!(warned.count(), 1, "{log}");
    assert_eq!(
        metrics
            .by("turnwire_stream_status_event_emitted_total", "event_id")
            .len(),
        1
    );
    engine.check_history().await;
}

/// Milliseconds between two stored events.
fn between(from: &Value, to: &Value) -> i64 {
    let at = |event: &Value| {
        let text = event["timestamp"].as_str().expect("a time").to_owned();
        let (_, time) = text.split_once('T').expect("a time");
        let parts: Vec<f64> = time
            .trim_end_matches('Z')
            .split(':')
            .filter_map(|p| p.parse().ok())
            .collect();
        ((parts[0] * 60.0 + parts[1]) * 60.0 + parts[2]) * 1_000.0
    };
    (at(to) - at(from)) as i64
}

// S2-057, D-12b
#[tokio::test]
async fn silent_sub_agent_gets_default_status_in_two_seconds() {
    let script = asks(&["shop"], "Here.")
        .call("shop", 1, [ScriptStep::tool("nap", json!({"ms": 2_400}))])
        .call("shop", 2, [ScriptStep::text("SUBRAW")]);
    let engine = EngineFixture::with(script, |pack| pack.function("shop", "nap", "sleep")).await;
    let reply = engine.ask("offers").await;
    assert_eq!(
        reply.statuses(),
        [("searching_offers".to_owned(), PLAIN.to_owned())]
    );
    reply.assert_order(&["tool_call nap", "status", "tool_completed nap", "text"]);
    let events = engine.events(reply.turn).await;
    let waited = between(
        only(&events, "subagent.started"),
        only(&events, "status.emitted"),
    );
    println!("a silent sub-agent: its default status after {waited} ms");
    assert!((1_400..2_000).contains(&waited), "{waited}");
    engine.check_history().await;
}

// S2-056
// serial: on a busy machine the status of the sub-agent comes after the time of the default one
#[tokio::test]
async fn sub_agent_with_status_in_time_gets_no_default() {
    let engine = EngineFixture::new(script()).await;
    engine.ccs.set(
        "offer_search",
        ServiceReply::envelope(&envelope("offer_search")).after(1_300),
    );
    let reply = engine.ask("offers").await;
    assert_eq!(reply.count("status"), 1, "{:?}", reply.statuses());
    assert!(reply.elapsed > Duration::from_millis(1_300));
}

// S1-064, S1-065, S1-073
#[tokio::test]
async fn registry_is_readable_with_emission_counts() {
    let deprecated = "\
- id: waving
  description: Says hello.
  default_render_key: status.asking_support
  default_policy: suppress
  emitter_subagents: [shop, rewards]
  lifecycle: deprecated
  note: Use words.
";
    let mut engine = EngineFixture::with(script(), |pack| {
        pack.put("platform/status_events.yaml", deprecated)
    })
    .await;
    for _ in 0..2 {
        engine.ask("offers").await;
    }
    let read = |engine: &EngineFixture| {
        let api = engine.api.clone();
        async move {
            let answer = api.get("/status-events").await.expect("an answer");
            assert_eq!(answer.status, 200, "{}", answer.body);
            answer.json()
        }
    };
    let list = read(&engine).await;
    let entry = |list: &Value, id: &str| {
        let entries = list["status_events"].as_array().expect("entries");
        entries
            .iter()
            .find(|e| e["id"] == id)
            .unwrap_or_else(|| panic!("no {id}"))
            .clone()
    };
    assert_eq!(list["status_events"].as_array().map(Vec::len), Some(4));
    let offers = entry(&list, "searching_offers");
    assert_eq!(offers["fragment"], "verticals/shop/status_events.yaml");
    assert_eq!(offers["default_render_key"], "status.searching_offers");
    assert_eq!(
        (&offers["default_policy"], &offers["lifecycle"]),
        (&json!("transform"), &json!("active"))
    );
    assert_eq!(offers["emitter_subagents"], json!(["shop"]));
    assert_eq!(offers["messages"]["de"], "Angebote werden gesucht …");
    assert_eq!(offers["emissions"]["total"], 2, "{offers}");
    assert_eq!(
        offers["emissions"]["days"].as_object().map(|d| d.len()),
        Some(1)
    );
    let waving = entry(&list, "waving");
    assert_eq!(
        (&waving["fragment"], &waving["note"]),
        (&json!("platform/status_events.yaml"), &json!("Use words."))
    );
    assert_eq!(waving["emissions"]["total"], 0);
    let log = engine.log(engine.session).await;
    let bound =
        &of(&log, "turn.started").next().expect("a turn")["payload"]["versions"]["registry"];
    assert_eq!(&list["version"], bound);
    // Counted in the commit: a crash forgets nothing.
    engine.server.restart().await;
    assert_eq!(
        entry(&read(&engine).await, "searching_offers")["emissions"]["total"],
        2
    );
}

// S1-133, S2-067, S2-071
#[tokio::test]
async fn stream_metrics_have_their_dimensions() {
    let engine = EngineFixture::new(script()).await;
    engine.submit(ChatSubmit::new("offers")).await;
    let metrics = MetricsSnapshot::read(&engine.api).await;
    let dimensions = [
        "vertical",
        "sub_agent_id",
        "dm_type",
        "experiment_arm",
        "agent_definition_version",
    ];
    for name in [
        "turnwire_stream_status_event_emitted_total",
        "turnwire_stream_rendering_policy_applied_total",
        "turnwire_stream_events_emitted_total",
    ] {
        let series: Vec<_> = metrics
            .series(name)
            .filter(|(_, value)| *value > 0.0)
            .collect();
        assert!(!series.is_empty(), "{name}");
        for (labels, _) in series {
            for dimension in dimensions {
                assert!(
                    labels.contains_key(dimension),
                    "{name} lacks {dimension}: {labels:?}"
                );
            }
        }
    }
    let (labels, _) = metrics
        .series("turnwire_stream_status_event_emitted_total")
        .find(|(_, value)| *value > 0.0)
        .expect("one");
    assert_eq!(
        (labels["vertical"].as_str(), labels["sub_agent_id"].as_str()),
        ("shop", "shop")
    );
    // Of the sub-agent are its statuses and its tools; `ask_shop` is a tool of the orchestrator.
    for name in [
        "turnwire_stream_events_emitted_total",
        "turnwire_stream_rendering_policy_applied_total",
    ] {
        let of_agent = |event_type: &str, agent: &str| -> f64 {
            let series = metrics.series(name);
            let own = series.filter(|(labels, _)| {
                labels["event_type"] == event_type
                    && (labels["vertical"].as_str(), labels["sub_agent_id"].as_str())
                        == (agent, agent)
            });
            own.map(|(_, value)| value).sum()
        };
        let counts = [
            "status",
            "tool_call",
            "tool_completed",
            "data_loading",
            "data_loaded",
        ]
        .map(|event_type| (of_agent(event_type, "shop"), of_agent(event_type, "")));
        let expected = [(1.0, 0.0), (2.0, 1.0), (2.0, 1.0), (1.0, 0.0), (1.0, 0.0)];
        assert_eq!(counts, expected, "{name}");
    }
    for name in [
        "turnwire_dispatch_intents_count",
        "turnwire_dispatch_subagent_latency_seconds_count",
        "turnwire_dispatch_overhead_seconds_count",
        "turnwire_dispatch_status_events_per_invocation_count",
        "turnwire_stream_policy_decision_seconds_count",
    ] {
        assert!(metrics.sum(name) >= 1.0, "{name}");
    }
    assert_eq!(metrics.sum("turnwire_stream_registry_size"), 3.0, "s1_077");
}

// S1-133, R-26
#[tokio::test]
async fn metrics_tell_experiments_apart() {
    let engine = EngineFixture::with(script(), |pack| {
        pack.flag("ai_assistant_axis2_terminal", "{principals: [user-42]}")
    })
    .await;
    engine.submit(ChatSubmit::new("offers")).await;
    let metrics = MetricsSnapshot::read(&engine.api).await;
    for name in [
        "turnwire_stream_events_emitted_total",
        "turnwire_stream_rendering_policy_applied_total",
        "turnwire_stream_ttfe_seconds_count",
        "turnwire_dispatch_subagent_latency_seconds_count",
        "turnwire_dispatch_overhead_seconds_count",
    ] {
        let arms: Vec<String> = metrics.by(name, "experiment_arm").into_keys().collect();
        assert_eq!(arms, ["ai_assistant_axis2_terminal"], "{name}");
    }
}

// S1-125
#[tokio::test]
async fn frames_and_policies_are_counted_by_the_same_words() {
    let script = ModelScript::new()
        .on("^break", [ScriptStep::error("internal")])
        .call(
            ORCHESTRATOR,
            1,
            [ScriptStep::tool("ask_shop", json!({"query": "oat milk"}))],
        )
        .call(ORCHESTRATOR, 2, [ScriptStep::text("Here.")]);
    let engine = EngineFixture::new(working(script)).await;
    engine.submit(ChatSubmit::new("offers")).await;
    let failed = engine.submit(ChatSubmit::new("break")).await;
    assert_eq!(failed.last().event(), "error");
    let metrics = MetricsSnapshot::read(&engine.api).await;
    let frames = metrics.by("turnwire_stream_events_emitted_total", "event_type");
    let policies = metrics.by(
        "turnwire_stream_rendering_policy_applied_total",
        "event_type",
    );
    for end in ["completed", "error"] {
        assert_eq!(
            (frames.get(end), policies.get(end)),
            (Some(&1), Some(&1)),
            "{end}"
        );
    }
    for word in ["text", "status", "tool_call", "tool_completed"] {
        assert!(frames.contains_key(word), "{word}: {frames:?}");
        assert!(policies.contains_key(word), "{word}: {policies:?}");
    }
    for event in ["text.delta", "status.emitted", "tool.called"] {
        assert!(!policies.contains_key(event), "{event}: {policies:?}");
    }
}

//! Which model serves a turn: the routing policy when the turn is bound, and the fallbacks for a model
//! that fails without output.

use std::sync::Arc;
use std::time::Duration;

use turnwire_event::code::{ErrorCode, TurnKind, TurnStatus};
use turnwire_event::port::{TurnContext, TurnOutcome};
use turnwire_event::{Body, TenantId};
use turnwire_model::routing::ModelRouter;
use turnwire_model::{ModelProvider as _, ModelScript, ScriptedProvider};
use turnwire_pack::{
    ApiKeySource, DialectName, ModelChoice, Pack, ProviderDef, RetriesDef, RoutingCondition,
    RoutingPolicy, RoutingRule,
};

use super::pack_harness::PackHarness;
use super::turn_harness::RecordingProvider;

const HELLO: &str = "- steps: [{text: Hello.}]";

fn rule(name: &str, when: RoutingCondition, models: &[&str]) -> RoutingRule {
    let mut models = models.iter().map(|model| (*model).to_owned());
    RoutingRule {
        name: name.into(),
        when,
        choice: ModelChoice {
            model: models.next().expect("a model"),
            fallbacks: models.collect(),
        },
    }
}

fn routing(rules: Vec<RoutingRule>) -> Option<ModelRouter> {
    Some(ModelRouter::new(&RoutingPolicy {
        version: "v7".into(),
        rules,
        default: None,
    }))
}

/// The models of every agent.
fn all(models: &[&str]) -> Option<ModelRouter> {
    routing(vec![rule("any", RoutingCondition::default(), models)])
}

/// The script of each model, by name.
fn plays(harness: &mut PackHarness, scripts: &[(&'static str, &str)]) {
    let scripts: Vec<(&str, ScriptedProvider)> = scripts
        .iter()
        .map(|(name, yaml)| (*name, ModelScript::parse("s.yaml", yaml).expect("a script")))
        .map(|(name, script)| (name, ScriptedProvider::new(script)))
        .collect();
    harness.provider = Arc::new(RecordingProvider::new(move |request| {
        let mine = scripts.iter().find(|(name, _)| *name == request.model);
        mine.expect("a model of the test").1.stream(request)
    }));
}

/// The routing decisions and calls, in order.
fn course(harness: &PackHarness) -> Vec<String> {
    let bodies = harness.recorder.bodies().into_iter();
    bodies
        .filter_map(|(actor, body)| match body {
            Body::RouteDecided(route) => Some(format!(
                "{} by {}: {} of {:?}",
                route.model, route.routing_policy_version, route.reason, route.candidates
            )),
            Body::LlmCallStarted(call) => {
                Some(format!("{actor} asks {} {}", call.model, call.attempt))
            }
            Body::LlmCallFailed(_) => Some(format!("{actor} fails")),
            Body::MessageComplete(_) => Some(format!("{actor} says")),
            _ => None,
        })
        .collect()
}

fn failed(code: ErrorCode) -> TurnOutcome {
    TurnOutcome {
        cancelled: None,
        reason: None,
        status: TurnStatus::Failed,
        error: Some(code.into()),
    }
}

#[tokio::test]
async fn model_of_the_agent_is_used_without_rules() {
    let harness = PackHarness::new(HELLO);
    harness.run().await;
    assert_eq!(
        course(&harness),
        [
            "scripted:trial by builtin-1: only model of []",
            "orchestrator asks scripted:trial 1",
            "orchestrator says",
        ]
    );
}

// R-16, D-47
#[tokio::test]
async fn routing_rule_chooses_the_model_with_a_reason() {
    let wanted = RoutingCondition {
        tenants: vec![TenantId(7).to_string()],
        agents: vec!["orchestrator".into()],
        locales: vec!["de".into()],
        kinds: vec![TurnKind::Scheduled],
        cost_above_usd: Some(0.5),
    };
    let models = ["scripted:a", "scripted:b", "scripted:a"];
    let rules = routing(vec![rule("dear", wanted, &models)]);
    let mut harness = PackHarness::new(HELLO);
    harness.routing.clone_from(&rules);
    harness.run().await;
    let other = &course(&harness)[0];
    assert_eq!(other, "scripted:trial by v7: the agent's own of []");
    let mut harness = PackHarness::new(HELLO);
    harness.routing = rules;
    harness.input.owner.tenant = TenantId(7);
    harness.input.locale = "de-AT".into();
    harness.input.kind = TurnKind::Scheduled;
    harness.input.cost_usd = 0.75;
    harness.run().await;
    assert_eq!(
        course(&harness)[..2],
        [
            r#"scripted:a by v7: rule dear of ["scripted:a", "scripted:b"]"#,
            "orchestrator asks scripted:a 1",
        ]
    );
}

#[tokio::test]
async fn sub_agent_model_is_seen_in_its_calls() {
    let shop = RoutingCondition {
        agents: vec!["shop".into()],
        ..RoutingCondition::default()
    };
    let mut harness = PackHarness::new(
        "- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_shop, input: {query: a}}}]}\n\
         - steps: [{text: Found.}]\n",
    );
    harness.routing = routing(vec![rule("shop", shop, &["scripted:small"])]);
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    assert_eq!(
        course(&harness),
        [
            "scripted:trial by v7: the agent's own of []",
            "orchestrator asks scripted:trial 1",
            "orchestrator says",
            "subagent:shop asks scripted:small 1",
            "orchestrator asks scripted:trial 1",
            "orchestrator says",
        ]
    );
}

// S2-001
#[tokio::test]
async fn bound_turn_keeps_its_model_after_a_reload() {
    let mut harness = PackHarness::new(HELLO);
    harness.routing = all(&["scripted:a"]);
    let cohort = harness.pack.cohort("local");
    let bound = harness.factory().bind(&harness.input, &cohort);
    harness.routing = all(&["scripted:b"]);
    let next = harness.factory().bind(&harness.input, &cohort);
    for work in [bound.work, next.work] {
        let turn = TurnContext {
            delegate: Arc::new(turnwire_event::port::NoChildTasks),
            child_tasks: Arc::new(turnwire_event::port::NoChildTasks),
            input: harness.input.clone(),
            emitter: Arc::clone(&harness.recorder) as _,
            history: Arc::new(harness.memory.clone()),
        };
        assert_eq!(work(turn).await.status, TurnStatus::Ok);
    }
    let requests: Vec<_> = harness.requests_of("orchestrator");
    let models: Vec<&str> = requests
        .iter()
        .map(|request| request.model.as_str())
        .collect();
    assert_eq!(models, ["scripted:a", "scripted:b"]);
}

#[tokio::test]
async fn unavailable_model_is_skipped() {
    let mut harness = PackHarness::new(HELLO);
    harness.routing = all(&["nobody:x", "scripted:b"]);
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    assert_eq!(
        course(&harness)[..2],
        [
            r#"scripted:b by v7: rule any; nobody:x is not served of ["nobody:x", "scripted:b"]"#,
            "orchestrator asks scripted:b 1",
        ]
    );
}

#[tokio::test]
async fn no_available_model_fails_the_agent() {
    let mut harness = PackHarness::new(HELLO);
    harness.routing = all(&["nobody:x", "nobody:y"]);
    assert_eq!(harness.run().await, failed(ErrorCode::InternalError));
    let course = course(&harness);
    assert_eq!(
        course[1..3],
        ["orchestrator asks nobody:x 1", "orchestrator fails"]
    );

    let shop = RoutingCondition {
        agents: vec!["shop".into()],
        ..RoutingCondition::default()
    };
    let mut harness = PackHarness::new(
        "- {when: {call: 1}, steps: [{tool: {name: ask_shop, input: {query: a}}}]}\n\
         - steps: [{text: Sorry.}]\n",
    );
    harness.routing = routing(vec![rule("shop", shop, &["nobody:x"])]);
    harness.run().await;
    let expected = "subagent:shop subagent.failed instantiation".to_owned();
    assert!(
        harness.story().contains(&expected),
        "{:#?}",
        harness.story()
    );
}

#[tokio::test(start_paused = true)]
async fn fallback_replaces_a_failed_model_for_the_turn() {
    let mut harness = PackHarness::new(HELLO);
    harness.routing = all(&["scripted:a", "scripted:b"]);
    plays(
        &mut harness,
        &[
            (
                "scripted:a",
                "- steps: [{error: rate_limited, retry: true}]",
            ),
            (
                "scripted:b",
                "- steps: [{tool: {name: llm_feedback}}, {text: Done.}]",
            ),
        ],
    );
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    let both = r#"["scripted:a", "scripted:b"]"#;
    assert_eq!(
        course(&harness),
        [
            &format!("scripted:a by v7: rule any of {both}"),
            "orchestrator asks scripted:a 1",
            "orchestrator fails",
            "orchestrator asks scripted:a 2",
            "orchestrator fails",
            "orchestrator asks scripted:a 3",
            "orchestrator fails",
            &format!("scripted:b by v7: fallback after rate_limited of {both}"),
            "orchestrator asks scripted:b 4",
            "orchestrator says",
            "orchestrator asks scripted:b 1",
            "orchestrator says",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn error_class_decides_about_a_fallback() {
    for (class, tries) in [
        ("rate_limited", 2),
        ("timeout", 2),
        ("transport", 2),
        ("provider", 2),
        // The house's own mistake is not another model's to mend.
        ("internal", 1),
    ] {
        let mut harness = PackHarness::new(HELLO);
        harness.routing = all(&["scripted:a", "scripted:b"]);
        let fails = format!("- steps: [{{error: {class}}}]");
        plays(
            &mut harness,
            &[("scripted:a", &fails), ("scripted:b", HELLO)],
        );
        let ended = harness.run().await;
        assert_eq!(harness.requests_of("orchestrator").len(), tries, "{class}");
        assert_eq!(ended.status == TurnStatus::Ok, tries == 2, "{class}");
        let reason = format!("fallback after {class}");
        let has_fallback = course(&harness).iter().any(|line| line.contains(&reason));
        assert_eq!(has_fallback, tries == 2, "{class}");
    }
}

#[tokio::test(start_paused = true)]
async fn model_that_failed_after_output_has_no_fallback() {
    let mut harness = PackHarness::new(HELLO);
    harness.routing = all(&["scripted:a", "scripted:b"]);
    let breaks = "- steps: [{text: Hal}, {error: transport, retry: true}]";
    plays(
        &mut harness,
        &[("scripted:a", breaks), ("scripted:b", HELLO)],
    );
    assert_eq!(harness.run().await, failed(ErrorCode::ModelUnavailable));
    assert_eq!(harness.requests_of("orchestrator").len(), 1);
}

// S1-099
#[tokio::test(start_paused = true)]
async fn last_fallback_decides_the_error() {
    let mut harness = PackHarness::new(HELLO);
    harness.routing = all(&["scripted:a", "scripted:b", "scripted:c"]);
    plays(
        &mut harness,
        &[
            ("scripted:a", "- steps: [{error: transport}]"),
            // Longer than anyone waits: the next one is asked at once.
            (
                "scripted:b",
                "- steps: [{error: timeout, retry_after_ms: 60000}]",
            ),
            ("scripted:c", "- steps: [{error: rate_limited}]"),
        ],
    );
    let started = tokio::time::Instant::now();
    assert_eq!(harness.run().await, failed(ErrorCode::RateLimitError));
    assert_eq!(started.elapsed(), Duration::ZERO);
    let requests = harness.requests_of("orchestrator");
    let requests: Vec<_> = requests.iter().map(|r| (&*r.model, r.attempt)).collect();
    assert_eq!(
        requests,
        [("scripted:a", 1), ("scripted:b", 2), ("scripted:c", 3)]
    );
}

#[tokio::test(start_paused = true)]
async fn sub_agent_fallback_keeps_the_session_model() {
    let mut harness = PackHarness::new(HELLO);
    let shop = RoutingCondition {
        agents: vec!["shop".into()],
        ..RoutingCondition::default()
    };
    harness.routing = routing(vec![rule("shop", shop, &["scripted:a", "scripted:b"])]);
    let speaker = "- {when: {call: 1}, steps: [{tool: {name: ask_shop, input: {query: a}}}]}\n\
                   - steps: [{text: Done.}]\n";
    plays(
        &mut harness,
        &[
            ("scripted:trial", speaker),
            ("scripted:a", "- steps: [{error: provider}]"),
            (
                "scripted:b",
                "- steps: [{tool: {name: search}}, {text: Found.}]",
            ),
        ],
    );
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    let course = course(&harness);
    assert_eq!(
        course[3..7],
        [
            "subagent:shop asks scripted:a 1",
            "subagent:shop fails",
            "subagent:shop asks scripted:b 2",
            "subagent:shop asks scripted:b 1",
        ]
    );
    let routes = course.iter().filter(|line| line.contains(" by ")).count();
    assert_eq!(routes, 1, "{course:#?}");
}

#[tokio::test(start_paused = true)]
async fn pack_sets_the_attempts_of_a_provider() {
    let fails = "- steps: [{error: timeout, retry: true}]";
    let mut harness = PackHarness::new(fails);
    let mut pack = Pack::clone(&harness.pack);
    let mut provider = ProviderDef::new(DialectName::OpenaiChat, "http://x", ApiKeySource::None);
    provider.retries = RetriesDef {
        attempts: Some(5),
        ..RetriesDef::default()
    };
    pack.providers.insert("scripted".into(), provider);
    harness.pack = Arc::new(pack);
    harness.run().await;
    assert_eq!(harness.requests_of("orchestrator").len(), 5);
}

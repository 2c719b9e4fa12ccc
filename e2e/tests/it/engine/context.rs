//! What sub-agents and the orchestrator see of earlier turns: references of constant size, a short
//! note when the subject changes, their own memory, the notes of support, within the budget (SC-17,
//! S2-015..018, S1-144).

use serde_json::{Value, json};
use turnwire_e2e::engine::{EngineFixture, ORCHESTRATOR, of, only};
use turnwire_testkit::chat::ChatSubmit;
use turnwire_testkit::script::{ModelScript, ScriptStep};

/// The person names whom to ask; each sub-agent sends what it was shown to its data service.
fn script() -> ModelScript {
    let ask = |agent: &str| {
        [ScriptStep::tool(
            &format!("ask_{agent}"),
            json!({"query": format!("QUERY about {agent}")}),
        )]
    };
    let mixed = [
        ScriptStep::tool("ask_shop", json!({"query": "x"})),
        ScriptStep::tool("ask_support", json!({"query": "x"})),
    ];
    ModelScript::new()
        .on_call(ORCHESTRATOR, "^shop", 1, ask("shop"))
        .on_call(ORCHESTRATOR, "^rewards", 1, ask("rewards"))
        .on_call(ORCHESTRATOR, "^mixed", 1, mixed)
        .on_call(ORCHESTRATOR, "^probe", 1, [ScriptStep::text("{{request}}")])
        .call(ORCHESTRATOR, 2, [ScriptStep::text("Here is the answer.")])
        .call(ORCHESTRATOR, 1, [ScriptStep::text("Just words.")])
        .call(
            "shop",
            1,
            [ScriptStep::tool(
                "search_offers",
                json!({"query": "{{request}}"}),
            )],
        )
        .call("shop", 2, [ScriptStep::text("SUBRAW of shop")])
        .call(
            "rewards",
            1,
            [ScriptStep::tool(
                "points_balance",
                json!({"query": "{{request}}"}),
            )],
        )
        .call("rewards", 2, [ScriptStep::text("SUBRAW of rewards")])
        .call(
            "support",
            1,
            [ScriptStep::tool("support_answer", json!({}))],
        )
        .call("support", 2, [ScriptStep::text("SUBRAW of support")])
}

async fn context(engine: &EngineFixture, question: ChatSubmit) -> Value {
    let reply = engine.submit(question).await;
    let events = engine.events(reply.turn).await;
    let started = only(&events, "subagent.started");
    let context = started["payload"]["context"].clone();
    assert_eq!(
        (&context["principal"], &context["user_id"]),
        (&json!("user-42"), &json!("user-42"))
    );
    let episode = reply
        .of("episode")
        .next()
        .expect("an episode")
        .field("episode_id");
    assert_eq!(&context["episode_id"], episode);
    context
}

/// What the newest request of an enricher says that its agent was shown.
fn shown(engine: &EngineFixture, enricher: &str) -> Value {
    let params = engine.ccs.params(enricher).pop().expect("a call");
    let text = params["query"].as_str().expect("a request");
    serde_json::from_str(text).unwrap_or_else(|why| panic!("{why}: {text}"))
}

// SC-17, S2-015, S2-016, S2-017, S2-083
#[tokio::test]
async fn sub_agent_inherits_references_and_prior_turns() {
    let engine = EngineFixture::new(script()).await;
    let berlin = |words: &str| {
        ChatSubmit::new(words)
            .field("locale", "de")
            .field("location", "Berlin")
    };
    let first = context(&engine, ChatSubmit::new("shop for oats")).await;
    assert_eq!(
        (
            &first["prior_context"],
            &first["location"],
            &first["locale"]
        ),
        (&Value::Null, &Value::Null, &json!("en"))
    );
    let switched = context(&engine, berlin("rewards please")).await;
    assert_eq!(
        (&switched["locale"], &switched["location"]),
        (&json!("de"), &json!("Berlin"))
    );
    let prior = switched["prior_context"]
        .as_str()
        .expect("what went before");
    assert!(
        !prior.is_empty() && prior.chars().count() <= 2_000,
        "{prior}"
    );
    assert!(
        !prior.contains("SUBRAW"),
        "in the orchestrator's words: {prior}"
    );
    let same = context(&engine, berlin("rewards again")).await;
    assert_eq!(same["prior_context"], Value::Null);
    let keys: Vec<&String> = same.as_object().expect("an object").keys().collect();
    assert_eq!(keys.len(), 6, "r_31: {keys:?}");
    // A long session later the bundle is as small as it was.
    for _ in 0..95 {
        engine.ask("words").await;
    }
    context(&engine, ChatSubmit::new("shop for oats")).await;
    let late = context(&engine, berlin("rewards please")).await;
    let (before, after) = (
        switched.to_string().len() as f64,
        late.to_string().len() as f64,
    );
    assert!((after / before - 1.0).abs() < 0.05, "{switched} {late}");
    assert!(engine.messages().await.len() >= 200);
    engine.check_history().await;
}

// S2-018, D-46
#[tokio::test]
async fn sub_agent_remembers_only_its_own_exchanges() {
    let engine = EngineFixture::new(script()).await;
    engine.ask("shop for the FIRST time").await;
    engine.ask("rewards too").await;
    engine.ask("shop again").await;
    let shop = shown(&engine, "offer_search");
    let text = shop["messages"].to_string();
    assert!(text.contains("SUBRAW of shop"), "its own answer: {text}");
    assert!(
        text.matches("QUERY about shop").count() >= 2,
        "both of its tasks: {text}"
    );
    assert!(
        !text.contains("SUBRAW of rewards") && !text.contains("QUERY about rewards"),
        "{text}"
    );
    assert!(
        !text.contains("Here is the answer."),
        "not the orchestrator's history: {text}"
    );
    let rewards = shown(&engine, "points");
    assert!(!rewards["messages"].to_string().contains("SUBRAW of shop"));
    engine.check_history().await;
}

// S1-030, S1-144
#[tokio::test]
async fn support_notes_are_kept_in_memory_and_on_no_wire() {
    let engine = EngineFixture::new(script()).await;
    let everything = turnwire_testkit::watch::SubscribeOptions::live()
        .filter(json!({"include_suppressed": true}));
    let mut watcher = engine.watch("everything", everything).await;
    let reply = engine.ask("mixed question").await;
    reply.assert_absent(&["Wait a day.", "support_content", "support.noted"]);
    let first = shown(&engine, "offer_search");
    assert!(!first.to_string().contains("Wait a day."));
    let next = engine.ask("shop again").await;
    let second = shown(&engine, "offer_search");
    assert!(
        second.to_string().contains("Wait a day."),
        "the next turn's sub-agent knows it: {second}"
    );
    let mut seen = watcher.turn(reply.turn).await.expect("the turn");
    seen.extend(watcher.turn(next.turn).await.expect("the turn"));
    let log = engine.log(engine.session).await;
    let text = format!("{seen:?} {} {}", json!(log), json!(engine.messages().await));
    assert!(
        !text.contains("Wait a day.") && !text.contains("support.noted"),
        "{text}"
    );
    let metrics = turnwire_e2e::chat::MetricsSnapshot::read(&engine.api).await;
    let counted = metrics
        .series("turnwire_stream_rendering_policy_applied_total")
        .find(|(labels, _)| {
            let has = |name: &str, value: &str| labels.get(name).is_some_and(|v| v == value);
            has("policy", "suppress")
                && labels
                    .get("event_type")
                    .is_some_and(|t| t.contains("support"))
        });
    assert_eq!(counted.map(|(_, value)| value), Some(1.0), "s1_030");
    engine.check_history().await;
}

#[tokio::test]
async fn oldest_turns_are_dropped_whole_over_history_budget() {
    let engine = EngineFixture::with(script(), |pack| {
        pack.change("orchestrator.yaml", "max_messages: 60", "max_messages: 8")
    })
    .await;
    for _ in 0..5 {
        engine.ask("shop for oats").await;
    }
    let reply = engine.ask("probe").await;
    let request: Value = serde_json::from_str(&reply.text()).expect("the request");
    let messages = request["messages"].as_array().expect("messages");
    assert!(messages.len() <= 8 + 1, "{}", messages.len());
    assert_eq!(
        messages[0]["role"], "user",
        "it begins at the border of a turn"
    );
    let text = request["messages"].to_string();
    let count = |word: &str| text.matches(word).count();
    assert_eq!(
        count("\"tool_use\""),
        count("\"tool_result\""),
        "no call without its result: {text}"
    );
    let events = engine.events(reply.turn).await;
    let omitted = only(&events, "turn.started")["payload"]["history_omitted"].as_u64();
    assert!(omitted.is_some_and(|n| n > 0), "{omitted:?}");
    let log = engine.log(engine.session).await;
    let first = of(&log, "turn.started").next().expect("a turn");
    assert_eq!(first["payload"]["history_omitted"], 0);
    engine.check_history().await;
}

// S2-005, R-08
#[tokio::test]
async fn orchestrator_records_feedback_without_sub_agents() {
    let script = ModelScript::new()
        .call(
            ORCHESTRATOR,
            1,
            [ScriptStep::tool(
                "llm_feedback",
                json!({"rating": "up", "comment": "quick"}),
            )],
        )
        .call(ORCHESTRATOR, 2, [ScriptStep::text("Thank you.")]);
    let engine = EngineFixture::new(script).await;
    let reply = engine.ask("that was good").await;
    assert_eq!(
        (reply.text().as_str(), reply.last().event()),
        ("Thank you.", "completed")
    );
    let events = engine.events(reply.turn).await;
    // Feedback is about a turn and no part of it.
    let log = engine.log(engine.session).await;
    let payload = &only(&log, "feedback.recorded")["payload"];
    assert_eq!(
        (&payload["rating"], &payload["comment"]),
        (&json!("up"), &json!("quick"))
    );
    assert_eq!(payload["turn_id"], json!(reply.turn));
    assert_eq!(of(&events, "subagent.started").count(), 0);
    assert_eq!(of(&events, "plan.step_started").count(), 0);
    assert_eq!(
        only(&events, "dispatch.traced")["payload"]["intent_count"],
        0
    );
    engine.check_history().await;
}

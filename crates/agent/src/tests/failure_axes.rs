//! Failures in events: a sub-agent (axis 1), a data service (axis 2), some of several sub-agents
//! (axis 3). The text is the orchestrator's; codes are in events only.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::{Reason, ToolType, TurnStatus};
use turnwire_event::port::{BoxFuture, TurnOutcome};
use turnwire_model::{ModelProvider as _, ModelScript, ScriptedProvider};
use turnwire_tool::{Tool, ToolFailure, ToolInvocation};

use super::pack_harness::{PackHarness, TestTool, pack, results, service, unavailable};
use super::turn_harness::RecordingProvider;

/// A script that calls the sub-agent shop alone; `SHOP` is replaced by its rules.
const SINGLE: &str = "
- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_shop, input: {query: milk}}}]}
- {when: {agent: orchestrator}, steps: [{text: I could not look that up.}]}
- {when: {agent: shop}, steps: [SHOP]}
";

/// A script that calls shop and rewards; `SHOP` is replaced by the rules of shop.
const BOTH: &str = "
- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_shop, input: {query: a}}}, {tool: {name: ask_rewards, input: {query: b}}}]}
- {when: {agent: orchestrator}, steps: [{text: 'Points I have, offers I do not.'}]}
- {when: {agent: shop}, steps: [SHOP]}
- {when: {agent: rewards}, steps: [{tool: {name: points}}, {text: REWARDS}]}
";

const COULD_NOT: &str = "The shop assistant could not answer. Say so in your own words; do not \
                         name causes or codes.";

fn ended(status: TurnStatus, error: Option<TurnError>) -> TurnOutcome {
    TurnOutcome {
        cancelled: None,
        reason: None,
        status,
        error,
    }
}

fn shop_failed() -> TurnOutcome {
    ended(TurnStatus::Failed, Some(TurnError::sub_agent("shop")))
}

fn doing<W>(name: &'static str, work: fn(ToolInvocation) -> W) -> Arc<dyn Tool>
where
    W: Future<Output = Result<Value, ToolFailure>> + Send + 'static,
{
    Arc::new(TestTool {
        name,
        tool_type: ToolType::Function,
        status: None,
        remember: false,
        work: move |call| -> BoxFuture<'static, _> { Box::pin(work(call)) },
    })
}

/// The events from the start of the plan step on.
fn from_step(harness: &PackHarness) -> Vec<String> {
    let story = harness.story().into_iter();
    story
        .skip_while(|line| !line.contains("subagent.started"))
        .collect()
}

// S2-059, D-10, SC-04
#[tokio::test(start_paused = true)]
async fn failure_of_the_only_sub_agent_ends_the_turn() {
    // Its model fails, or never answers.
    for (shop, class, call) in [
        ("{error: provider}", "model", "provider"),
        ("{stall: true}", "timeout", "timeout"),
    ] {
        let harness = PackHarness::new(&SINGLE.replace("SHOP", shop));
        assert_eq!(harness.run().await, shop_failed(), "{shop}");
        let tool_class = if class == "timeout" {
            "timeout"
        } else {
            "internal"
        };
        let mut expected = vec![
            "subagent:shop subagent.started".to_owned(),
            "subagent:shop llm.call_started subagent".to_owned(),
        ];
        if class == "timeout" {
            // D-12b: it was silent for too long before that.
            expected.push("subagent:shop status.emitted searching_shop".to_owned());
        }
        expected.extend([
            format!("subagent:shop llm.call_failed {call}"),
            format!("subagent:shop subagent.failed {class}"),
            format!("tool:ask_shop tool.failed {tool_class}"),
            "orchestrator plan.step_completed failed".to_owned(),
            "orchestrator llm.call_started compose".to_owned(),
            "says \"I could not look that up.\"".to_owned(),
            "orchestrator llm.call_completed".to_owned(),
            "subagent:shop agent.error_emit axis 1 final".to_owned(),
        ]);
        assert_eq!(from_step(&harness), expected, "{shop}");
        let tool_results = results(&harness.requests_of("orchestrator")[1]);
        let record = json!({"sub_agent_id": "shop", "outcome": "failure", "note": COULD_NOT});
        assert_eq!(tool_results, [(record, true)]);
    }
}

// S2-059
#[tokio::test(start_paused = true)]
async fn every_sub_agent_failure_is_axis_1() {
    let mad = doing("search", |_| async {
        Err(ToolFailure::internal("no").fatal())
    });
    let cases = [
        // S2-089: a tool beyond repair.
        ("{tool: {name: search}}, {text: x}", "tool"),
        // It says nothing, or never stops asking.
        ("{text: ''}", "model"),
        ("{tool: {name: show}}", "model"),
    ];
    for (shop, class) in cases {
        let harness = PackHarness::new(&SINGLE.replace("SHOP", shop)).tool(Arc::clone(&mad));
        assert_eq!(harness.run().await, shop_failed(), "{shop}");
        let failed = format!("subagent:shop subagent.failed {class}");
        assert!(
            harness.story().contains(&failed),
            "{shop}: {:#?}",
            harness.story()
        );
    }
}

// S2-059
#[tokio::test]
async fn unavailable_sub_agent_model_fails_at_dispatch() {
    let mut harness = PackHarness::new(&SINGLE.replace("SHOP", "{text: never}"));
    let mut pack = turnwire_pack::Pack::clone(&harness.pack);
    pack.agents[0].model = "nobody:none".into();
    harness.pack = Arc::new(pack);
    assert_eq!(harness.run().await, shop_failed());
    let story = harness.story();
    assert!(story.contains(&"subagent:shop subagent.failed instantiation".to_owned()));
    assert!(harness.requests_of("shop").is_empty());
}

// S2-030, S2-085
#[tokio::test]
async fn sub_agent_panic_fails_that_sub_agent_alone() {
    let mut harness = PackHarness::new(&BOTH.replace("SHOP", "{text: x}"));
    let yaml = BOTH.replace("SHOP", "{text: x}");
    let scripted = ScriptedProvider::new(ModelScript::parse("test.yaml", &yaml).expect("a script"));
    harness.provider = Arc::new(RecordingProvider::new(move |request| {
        assert_ne!(request.agent, "shop", "PLANTED panic text");
        scripted.stream(request)
    }));
    assert_eq!(harness.run().await, ended(TurnStatus::Degraded, None));
    let story = harness.story();
    assert!(story.contains(&"subagent:shop subagent.failed internal".to_owned()));
    assert!(
        story.contains(&"subagent:shop llm.call_failed internal".to_owned()),
        "its call is closed"
    );
    assert!(story.contains(&"subagent:rewards subagent.completed success".to_owned()));
    assert!(!harness.everything().contains("PLANTED"));
}

// S2-021, S2-085
#[tokio::test(start_paused = true)]
async fn sub_agent_timeout_closes_its_open_work() {
    let stuck = doing("search", |_| std::future::pending());
    let harness =
        PackHarness::new(&SINGLE.replace("SHOP", "{tool: {name: search}}, {text: x}")).tool(stuck);
    let started = Instant::now();
    assert_eq!(harness.run().await, shop_failed());
    assert_eq!(started.elapsed(), Duration::from_secs(5));
    let story = from_step(&harness);
    let failed = story
        .iter()
        .position(|line| line.contains("subagent.failed timeout"));
    let failed = failed.expect("it timed out");
    assert_eq!(
        story[failed - 1],
        "tool:search tool.failed timeout",
        "S1-046: pairs are closed first"
    );
}

// S2-089
#[tokio::test]
async fn recoverable_tool_failure_is_a_result() {
    let sad = doing("search", |_| async {
        Err(ToolFailure::internal("Not today."))
    });
    let harness =
        PackHarness::new(&SINGLE.replace("SHOP", "{tool: {name: search}}, {text: Other way.}"))
            .tool(sad);
    assert_eq!(harness.run().await, ended(TurnStatus::Ok, None));
    assert_eq!(
        results(&harness.requests_of("shop")[1]),
        [(json!("Not today."), true)]
    );
}

// S2-031, S2-060, SC-03
#[tokio::test]
async fn data_service_failure_is_reported_at_once() {
    let harness = PackHarness::new(
        &SINGLE.replace("SHOP", "{tool: {name: search}}, {text: No data.}"),
    )
    .tool(service(
        "search",
        Some("searching_shop"),
        Err(unavailable("offer_search")),
    ));
    assert_eq!(harness.run().await, ended(TurnStatus::Degraded, None));
    assert_eq!(
        from_step(&harness),
        [
            "subagent:shop subagent.started",
            "subagent:shop llm.call_started subagent",
            "subagent:shop llm.call_completed",
            "subagent:shop status.emitted searching_shop",
            "tool:search tool.called",
            "tool:search tool.failed envelope_error",
            "subagent:shop error.reported CCS_ENVELOPE_ERROR(offer_search)",
            "subagent:shop agent.error_emit axis 2",
            "subagent:shop llm.call_started subagent",
            "subagent:shop llm.call_completed",
            "subagent:shop subagent.completed status_error",
            "tool:ask_shop tool.completed",
            "orchestrator plan.step_completed failed",
            "orchestrator llm.call_started compose",
            "says \"I could not look that up.\"",
            "orchestrator llm.call_completed",
        ]
    );
    assert_eq!(
        results(&harness.requests_of("shop")[1]),
        [(json!("data unavailable"), true)]
    );
    // The outcome record, for the composing model.
    let (result, is_error) = results(&harness.requests_of("orchestrator")[1]).remove(0);
    assert!(!is_error);
    assert_eq!(result["outcome"], "status_error");
    assert_eq!(result["text"], "No data.");
    let note = result["note"].as_str().unwrap_or_default();
    assert!(note.starts_with("Some data was not available"), "{note}");
    // S2-022: nobody tries again by itself.
    assert_eq!(harness.requests_of("shop").len(), 2);
}

#[tokio::test]
async fn later_data_makes_an_answer_complete() {
    let shop = "{tool: {name: search}}, {text: Again.}, {tool: {name: show}}, {text: Found.}";
    let harness = PackHarness::new(&SINGLE.replace("SHOP", shop)).tool(service(
        "search",
        None,
        Err(unavailable("offer_search")),
    ));
    assert_eq!(harness.run().await, ended(TurnStatus::Degraded, None));
    let story = harness.story();
    assert!(story.contains(&"subagent:shop subagent.completed success".to_owned()));
    assert!(story.contains(&"orchestrator plan.step_completed success".to_owned()));
}

// S1-102
#[tokio::test]
async fn flag_makes_data_service_failure_end_the_turn() {
    let flags = "flags: {ai_assistant_axis2_terminal: true}\n";
    let script = SINGLE.replace("SHOP", "{tool: {name: search}}, {text: No data.}");
    let harness = PackHarness::of(pack(flags, "support"), &script).tool(service(
        "search",
        None,
        Err(unavailable("offer_search")),
    ));
    let error = TurnError::envelope("offer_search", Reason::UpstreamTimeout);
    assert_eq!(harness.run().await, ended(TurnStatus::Failed, Some(error)));
    let story = from_step(&harness);
    assert!(!story.join("\n").contains("error.reported"), "{story:#?}");
    assert_eq!(
        story[story.len() - 3..],
        [
            "says \"I could not look that up.\"",
            "orchestrator llm.call_completed",
            "subagent:shop agent.error_emit axis 2 final",
        ]
    );

    let script = BOTH.replace("SHOP", "{tool: {name: search}}, {text: No data.}");
    let harness = PackHarness::of(pack(flags, "support"), &script).tool(service(
        "search",
        None,
        Err(unavailable("offer_search")),
    ));
    assert_eq!(
        harness.run().await,
        ended(TurnStatus::Degraded, None),
        "only of a single one"
    );
}

// S2-061, D-11
#[tokio::test(start_paused = true)]
async fn fan_out_failures_are_reported_singly_then_together() {
    let late = doing("points", |_| async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Ok(json!(7))
    });
    let shop = "{pause_ms: 10}, {error: transport}";
    let harness = PackHarness::new(&BOTH.replace("SHOP", shop)).tool(late);
    assert_eq!(harness.run().await, ended(TurnStatus::Degraded, None));
    let story = harness.story();
    let from = story
        .iter()
        .position(|line| line.contains("shop llm.call_failed"));
    assert_eq!(
        story[from.expect("it failed")..],
        [
            "subagent:shop llm.call_failed transport",
            "subagent:shop subagent.failed model",
            "tool:ask_shop tool.failed internal",
            "subagent:shop error.reported SUB_AGENT_FAILED(shop)",
            "subagent:shop agent.error_emit axis 1",
            "tool:points tool.completed",
            "subagent:rewards llm.call_started subagent",
            "subagent:rewards llm.call_completed",
            "subagent:rewards subagent.completed success",
            "tool:ask_rewards tool.completed",
            "orchestrator plan.step_completed partial_failure",
            "orchestrator error.reported PARTIAL_FAN_OUT[SUB_AGENT_FAILED(shop)]",
            "orchestrator agent.error_emit axis 3",
            "orchestrator llm.call_started compose",
            "says \"Points I have, offers I do not.\"",
            "orchestrator llm.call_completed",
        ]
    );
}

// S1-092
#[tokio::test]
async fn turn_with_failures_on_both_axes_completes() {
    let harness = PackHarness::new(&BOTH.replace("SHOP", "{error: transport}")).tool(service(
        "points",
        None,
        Err(unavailable("points_balance")),
    ));
    assert_eq!(harness.run().await, ended(TurnStatus::Degraded, None));
    let story = harness.story().join("\n");
    assert!(story.contains("plan.step_completed failed"), "{story}");
    let records = "PARTIAL_FAN_OUT[SUB_AGENT_FAILED(shop), CCS_ENVELOPE_ERROR(points_balance)]";
    assert!(story.contains(records), "{story}");
}

#[tokio::test]
async fn second_dispatch_after_a_failure_ends_degraded() {
    let harness = PackHarness::new(
        "
- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_shop, input: {query: milk}}}]}
- {when: {agent: orchestrator, call: 2}, steps: [{tool: {name: ask_support, input: {query: milk}}}]}
- {when: {agent: orchestrator}, steps: [{text: Support says hello.}]}
- {when: {agent: shop}, steps: [{error: provider}]}
- {when: {agent: support}, steps: [{text: hello}]}
",
    );
    assert_eq!(harness.run().await, ended(TurnStatus::Degraded, None));
    let story = harness.story();
    let at = story
        .iter()
        .position(|line| line.contains("error.reported"))
        .expect("told");
    assert_eq!(
        story[at..at + 3],
        [
            "subagent:shop error.reported SUB_AGENT_FAILED(shop)",
            "subagent:shop agent.error_emit axis 1",
            "orchestrator plan.step_started",
        ]
    );
    assert!(
        !story.join("\n").contains("PARTIAL"),
        "one at a time is no fan-out"
    );
}

// S1-098, S2-062
#[tokio::test]
async fn no_error_code_reaches_a_model_or_the_text() {
    let harness = PackHarness::new(&BOTH.replace("SHOP", "{error: transport}")).tool(service(
        "points",
        None,
        Err(unavailable("points_balance")),
    ));
    harness.run().await;
    let requests = format!("{:?}", harness.provider.requests.lock());
    for code in [
        "SUB_AGENT_FAILED",
        "CCS_ENVELOPE_ERROR",
        "PARTIAL_FAN_OUT",
        "upstream_timeout",
        "UpstreamTimeout",
        "points_balance",
        "transport",
    ] {
        assert!(!requests.contains(code), "{code}");
    }
}

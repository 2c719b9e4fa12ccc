//! Failures of several data services at once: missing data, and faults that are deferred (S1-102).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::{ToolType, TurnStatus};
use turnwire_event::port::{BoxFuture, TurnOutcome};
use turnwire_tool::{Tool, ToolFailure};

use super::pack_harness::{PackHarness, TestTool, pack, unavailable};

/// A script that calls the sub-agent shop alone; `SHOP` is replaced by its rules.
const SINGLE: &str = "
- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_shop, input: {query: milk}}}]}
- {when: {agent: orchestrator}, steps: [{text: I could not look that up.}]}
- {when: {agent: shop}, steps: [SHOP]}
";

fn ended(status: TurnStatus, error: Option<TurnError>) -> TurnOutcome {
    TurnOutcome {
        cancelled: None,
        reason: None,
        status,
        error,
    }
}

/// A data tool that returns `given` after a while.
fn later(name: &'static str, ms: u64, given: Result<Value, ToolFailure>) -> Arc<dyn Tool> {
    Arc::new(TestTool {
        name,
        tool_type: ToolType::Ccs,
        status: None,
        remember: false,
        work: move |_| -> BoxFuture<'static, _> {
            let result = given.clone();
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                result
            })
        },
    })
}

#[tokio::test(start_paused = true)]
async fn missing_data_does_not_depend_on_tool_order() {
    for (lost, found) in [(10, 20), (20, 10)] {
        let shop = "{tool: {name: search}}, {tool: {name: show}}, {text: Half of it.}";
        let harness = PackHarness::new(&SINGLE.replace("SHOP", shop))
            .tool(later("search", lost, Err(unavailable("offer_search"))))
            .tool(later("show", found, Ok(json!("given"))));
        assert_eq!(harness.run().await, ended(TurnStatus::Degraded, None));
        let story = harness.story();
        let expected = "subagent:shop subagent.completed status_error".to_owned();
        assert!(story.contains(&expected), "{lost} {found}: {story:#?}");
    }
}

// S1-102
#[tokio::test(start_paused = true)]
async fn deferred_fault_survives_its_sub_agent() {
    let flags = "flags: {ai_assistant_axis2_terminal: true}\n";
    let shop = "{tool: {name: search}}, {tool: {name: show}}, {text: Never.}";
    let harness = PackHarness::of(pack(flags, "support"), &SINGLE.replace("SHOP", shop))
        .tool(later("search", 10, Err(unavailable("offer_search"))))
        .tool(later("show", 60_000, Ok(json!("given"))));
    assert_eq!(
        harness.run().await,
        ended(TurnStatus::Failed, Some(TurnError::sub_agent("shop")))
    );
    let story = harness.story();
    let expected = "subagent:shop error.reported CCS_ENVELOPE_ERROR(offer_search)".to_owned();
    assert!(story.contains(&expected), "{story:#?}");
}

// S1-102
#[tokio::test(start_paused = true)]
async fn deferred_faults_are_reported_when_the_turn_goes_on() {
    let flags = "flags: {ai_assistant_axis2_terminal: true}\n";
    let script = SINGLE.replace(
        "SHOP",
        "{tool: {name: search}}, {tool: {name: show}}, {text: No.}",
    );
    let service = |name, id| later(name, 10, Err(unavailable(id)));
    let play = async |script: &str| {
        let harness = PackHarness::of(pack(flags, "support"), script)
            .tool(service("search", "offer_search"))
            .tool(service("show", "offer_show"));
        let outcome = harness.run().await;
        (outcome, harness.story().join("\n"))
    };
    let (outcome, story) = play(&script).await;
    assert_eq!(outcome.status, TurnStatus::Failed);
    assert_eq!(story.matches("agent.error_emit axis 2").count(), 2);
    assert_eq!(story.matches("agent.error_emit axis 2 final").count(), 1);
    assert!(!story.contains("error.reported"), "{story}");

    let asks = "- {when: {agent: orchestrator, call: 2}, steps: [{tool: {name: ask_support, \
                input: {query: a}}}]}\n- {when: {agent: orchestrator}, steps";
    let script = script.replace("- {when: {agent: orchestrator}, steps", asks);
    let script = format!("{script}\n- {{when: {{agent: support}}, steps: [{{text: Hello.}}]}}\n");
    let (outcome, story) = play(&script).await;
    assert_eq!(outcome, ended(TurnStatus::Degraded, None));
    for id in ["offer_search", "offer_show"] {
        let expected = format!("error.reported CCS_ENVELOPE_ERROR({id})");
        assert_eq!(story.matches(&expected).count(), 1, "{story}");
    }
}

//! The bounds of a turn: calls, tokens and cost, for all of its agents together. The call after the
//! bound does not start.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::iter;
use serde_json::json;
use turnwire_event::code::{ErrorCode, LlmErrorClass, TurnStatus};
use turnwire_event::port::TurnOutcome;
use turnwire_event::{StopReason, TokenUsage};
use turnwire_model::{Delta, ModelError};

use super::pack_harness::{PackHarness, pack};
use super::turn_harness::TurnHarness;

fn limited(reason: &str) -> TurnOutcome {
    TurnOutcome {
        cancelled: None,
        reason: Some(reason.into()),
        status: TurnStatus::Failed,
        error: Some(ErrorCode::InternalError.into()),
    }
}

/// A model that calls a tool in every reply, with the usage of each call.
fn circles(usage: &str) -> TurnHarness {
    let steps = format!("{{tool: {{name: again}}}}, {{stop: tool_use, usage: {{{usage}}}}}");
    let harness = TurnHarness::script(&format!("- steps: [{steps}]"));
    harness.tool("again", |_| async { Ok(json!(1)) })
}

// G7
#[tokio::test]
async fn token_limit_ends_the_turn() {
    let mut harness = circles("input_tokens: 40, output_tokens: 10");
    harness.options.turn_tokens_max = 101;
    let (provider, recorder) = (Arc::clone(&harness.provider), Arc::clone(&harness.recorder));
    assert_eq!(harness.run().await, limited("limit_tokens"));
    assert_eq!(provider.requests.lock().len(), 3);
    // What was asked for before was done: every tool that was called has ended.
    let types = recorder.types();
    assert_eq!(types.last().map(String::as_str), Some("tool.completed"));
}

// G7
#[tokio::test]
async fn cost_limit_ends_the_turn() {
    let mut harness = circles("cost_usd: 0.2");
    harness.options.turn_cost_max_usd = Some(0.4);
    let provider = Arc::clone(&harness.provider);
    assert_eq!(harness.run().await, limited("limit_cost"));
    assert_eq!(provider.requests.lock().len(), 2);
}

// G7
#[tokio::test]
async fn call_limit_ends_the_turn() {
    let mut harness = circles("cost_usd: 0.2");
    harness.options.calls_max = 4;
    let provider = Arc::clone(&harness.provider);
    assert_eq!(harness.run().await, limited("limit_calls"));
    assert_eq!(provider.requests.lock().len(), 4);
}

/// A model whose calls report usage and then fail.
fn fails(usage: TokenUsage) -> TurnHarness {
    let mut harness = TurnHarness::of(move |_| {
        let error = ModelError::transient(LlmErrorClass::Provider);
        iter([Ok(Delta::PartialUsage { usage }), Err(error)]).boxed()
    });
    harness.options.retries.attempts = 10;
    harness
}

// G7
#[tokio::test(start_paused = true)]
async fn failed_calls_spend_budget_and_end_retries() {
    let mut harness = fails(TokenUsage {
        input_tokens: 50,
        ..TokenUsage::default()
    });
    harness.options.turn_tokens_max = 101;
    let provider = Arc::clone(&harness.provider);
    assert_eq!(harness.run().await, limited("limit_tokens"));
    assert_eq!(provider.requests.lock().len(), 3);

    let mut harness = fails(TokenUsage {
        cost_usd: 0.25,
        ..TokenUsage::default()
    });
    harness.options.turn_cost_max_usd = Some(0.5);
    let (provider, recorder) = (Arc::clone(&harness.provider), Arc::clone(&harness.recorder));
    assert_eq!(harness.run().await, limited("limit_cost"));
    assert_eq!(provider.requests.lock().len(), 2);
    // Nobody hears of it, and the session's cost has the calls that were completed alone.
    let types = recorder.types();
    assert!(!types.contains(&"message.start".to_owned()), "{types:?}");
}

#[tokio::test]
async fn complete_answer_is_paid_once() {
    let usage = TokenUsage {
        total_tokens: 50,
        ..TokenUsage::default()
    };
    let mut harness = TurnHarness::of(move |request| {
        let use_tool = Delta::ToolStart {
            block: 0,
            name: "again".into(),
            provider_id: None,
        };
        let first = match request.call {
            1 => use_tool,
            _ => Delta::Text {
                block: 0,
                text: "Done.".into(),
            },
        };
        let stop = Delta::Stop {
            reason: StopReason::EndTurn,
            usage,
        };
        iter([first, Delta::PartialUsage { usage }, stop].map(Ok)).boxed()
    });
    harness.options.turn_tokens_max = 51;
    let harness = harness.tool("again", |_| async { Ok(json!(1)) });
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
}

#[tokio::test]
async fn answer_that_uses_the_last_token_counts() {
    let mut harness = TurnHarness::script(
        "- steps: [{text: Done.}, {stop: end_turn, usage: {total_tokens: 100, cost_usd: 1.0}}]",
    );
    harness.options.turn_tokens_max = 100;
    harness.options.turn_cost_max_usd = Some(0.5);
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
}

/// The orchestrator calls one sub-agent, which loops.
const SHARED: &str = "
- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_shop, input: {query: milk}}}, {stop: tool_use, usage: {total_tokens: 40, cost_usd: 0.1}}]}
- {when: {agent: orchestrator}, steps: [{text: Composed.}]}
- {when: {agent: shop}, steps: [{tool: {name: search}}, {stop: tool_use, usage: {total_tokens: 30, cost_usd: 0.1}}]}
";

// G7
#[tokio::test]
async fn sub_agents_share_the_budget_of_the_turn() {
    for (limits, reason) in [
        ("turn_tokens_max: 100", "limit_tokens"),
        ("turn_cost_max_usd: 0.3", "limit_cost"),
    ] {
        let pack = pack(&format!("limits: {{{limits}}}\n"), "support");
        let harness = PackHarness::of(pack, SHARED);
        assert_eq!(harness.run().await, limited(reason));
        assert_eq!(harness.requests_of("shop").len(), 2, "{limits}");
        assert_eq!(harness.requests_of("orchestrator").len(), 1, "{limits}");
        let story = harness.story();
        assert_eq!(
            story[story.len() - 9..],
            [
                "tool:search tool.completed",
                "subagent:shop subagent.failed model",
                "tool:ask_shop tool.failed internal",
                "orchestrator plan.step_completed failed",
                "subagent:shop error.reported SUB_AGENT_FAILED(shop)",
                "subagent:shop agent.error_emit axis 1",
                "orchestrator llm.call_started compose",
                "says \"Something went wrong on my side. Please try again.\"",
                "orchestrator llm.call_completed",
            ],
            "{limits}"
        );
    }
}

// G7
#[tokio::test]
async fn looping_sub_agent_fails_alone() {
    let harness = PackHarness::of(pack("limits: {calls_max: 3}\n", "support"), SHARED);
    let ended = harness.run().await;
    assert_eq!((ended.status, ended.reason), (TurnStatus::Failed, None));
    assert_eq!(harness.requests_of("shop").len(), 3);
    let says = "says \"Composed.\"".to_owned();
    assert!(harness.story().contains(&says), "{:#?}", harness.story());
}

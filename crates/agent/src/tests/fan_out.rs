//! Several sub-agents at once: they overlap, fail alone, and are never more than the cap.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use turnwire_event::code::{StepStatus, ToolType, TurnStatus};
use turnwire_event::port::BoxFuture;
use turnwire_event::row::MessageScope;
use turnwire_event::{Body, ContentBlock, Role};
use turnwire_model::{Delta, ModelProvider as _};
use turnwire_tool::{Tool, ToolInvocation};

use super::pack_harness::{PackHarness, TestTool, pack, results, words};
use super::turn_harness::RecordingProvider;

/// All three are called at once; each calls its tool and replies with its name.
const ALL: &str = "
- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_shop, input: {query: a}}}, {tool: {name: ask_rewards, input: {query: b}}}, {tool: {name: ask_support, input: {query: c}}}]}
- {when: {agent: orchestrator}, steps: [{text: All of it.}]}
- {when: {agent: shop}, steps: [{tool: {name: search}}, {text: SHOP}]}
- {when: {agent: rewards}, steps: [{tool: {name: points}}, {text: REWARDS}]}
- {when: {agent: support}, steps: [{tool: {name: ticket}}, {text: SUPPORT}]}
";

fn slow(name: &'static str, ms: u64) -> Arc<dyn Tool> {
    Arc::new(TestTool {
        name,
        tool_type: ToolType::Ccs,
        status: None,
        remember: true,
        work: move |_: ToolInvocation| -> BoxFuture<'static, _> {
            Box::pin(async move {
                sleep(Duration::from_millis(ms)).await;
                Ok(json!({"from": name}))
            })
        },
    })
}

fn texts(told: &[(Value, bool)]) -> Vec<String> {
    let text = |(told, _): &(Value, bool)| match &told["text"] {
        Value::String(text) => text.clone(),
        _ => told.as_str().unwrap_or_default().to_owned(),
    };
    told.iter().map(text).collect()
}

// S2-023, S2-024, S2-034
#[tokio::test(start_paused = true)]
async fn parallel_sub_agents_take_as_long_as_the_slowest() {
    let harness = PackHarness::new(ALL)
        .tool(slow("search", 1_000))
        .tool(slow("points", 200))
        .tool(slow("ticket", 1_400));
    let started = Instant::now();
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    assert_eq!(started.elapsed().as_millis(), 1_400);
    let story = harness.story();
    let at = |line: &str| story.iter().position(|told| told == line).expect("told");
    let started = at("subagent:support subagent.started");
    let first = at("subagent:rewards subagent.completed success");
    assert!(started < first, "all began before the first ended");
    // S2-025: composing waits for the slowest and is shown all, in the order they came.
    assert!(
        at("subagent:support subagent.completed success")
            < at("orchestrator llm.call_started compose")
    );
    let tool_results = results(&harness.requests_of("orchestrator")[1]);
    assert_eq!(texts(&tool_results), ["REWARDS", "SHOP", "SUPPORT"]);
    let step = harness
        .recorder
        .bodies()
        .into_iter()
        .find_map(|(_, body)| match body {
            Body::PlanStepCompleted(step) => Some(step),
            _ => None,
        });
    let step = step.expect("a step");
    assert_eq!((step.status, step.slots.len()), (StepStatus::Success, 3));
}

#[tokio::test]
async fn all_starts_precede_the_work_of_any_sub_agent() {
    let harness = PackHarness::new(ALL);
    harness.run().await;
    let types = harness.recorder.types();
    let step = types.iter().position(|kind| kind == "plan.step_started");
    let from = step.expect("a step") + 1;
    let pair = ["tool.called", "subagent.started"];
    assert_eq!(types[from..from + 6], [pair, pair, pair].concat());
    assert_eq!(types[from + 6], "llm.call_started");
}

// S2-027, S2-029, SC-14, S2-082
#[tokio::test]
async fn calls_beyond_the_cap_get_a_result_and_do_not_run() {
    let harness = PackHarness::of(pack("fan_out: {cap: 2}\n", "support"), ALL);
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    assert!(harness.requests_of("support").is_empty());
    let started = harness
        .recorder
        .bodies()
        .into_iter()
        .find_map(|(_, body)| match body {
            Body::PlanStepStarted(step) => Some(step),
            _ => None,
        });
    let step = started.expect("a step");
    assert_eq!(step.expected_subagents, ["shop", "rewards"]);
    assert_eq!((step.cap, step.dropped), (2, vec!["support".to_owned()]));
    assert_eq!(
        step.plan_step_id,
        format!("turn-{}-1", harness.input.turn_id)
    );
    let compose = &harness.requests_of("orchestrator")[1];
    let mut called: Vec<_> = compose
        .messages
        .iter()
        .flat_map(|said| &said.content)
        .collect();
    called.retain(|block| matches!(block, ContentBlock::ToolUse { .. }));
    assert_eq!(called.len(), 3);
    let tool_results = results(compose);
    assert_eq!(tool_results.len(), 3, "one for each call");
    let dropped: Vec<_> = tool_results.iter().filter(|(_, error)| *error).collect();
    assert_eq!(
        dropped,
        [&(
            json!("not executed: at most 2 assistants can be asked at once."),
            true
        )]
    );
    let story = harness.story();
    assert!(!story.contains(&"tool:ask_support tool.called".to_owned()));
    assert!(story.contains(&"tool:ask_support tool.failed not_executed".to_owned()));
    assert!(
        !story.join("\n").contains("error.reported"),
        "nothing failed"
    );
}

#[tokio::test]
async fn broken_sub_agent_call_is_declined_privately() {
    let mut harness = PackHarness::new(ALL);
    let inner = Arc::clone(&harness.provider);
    harness.provider = Arc::new(RecordingProvider::new(move |request| {
        let first = request.agent == "orchestrator" && request.call == 1;
        let stream = inner.stream(request);
        if !first {
            return stream;
        }
        // The inputs are cut as they come.
        let cut = |delta| match delta {
            Ok(Delta::ToolInput { block, .. }) => Ok(Delta::ToolInput {
                block,
                fragment: "{".into(),
            }),
            other => other,
        };
        stream.map(cut).boxed()
    }));
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    let story = harness.story().join("\n");
    assert!(
        !story.contains("tool.called") && !story.contains("plan."),
        "{story}"
    );
    assert_eq!(story.matches("tool.failed invalid_input").count(), 3);
    let messages = harness.recorder.messages();
    assert_eq!(messages.len(), 3);
    for (message, id) in messages.iter().zip(["shop", "rewards", "support"]) {
        assert_eq!(message.scope, MessageScope::Private);
        let mark = json!({"sub_agent_id": id, "not_executed": true});
        assert_eq!(json!(message.metadata), mark);
    }
    let tool_results = results(&harness.requests_of("orchestrator")[1]);
    assert!(tool_results.len() == 3 && tool_results.iter().all(|(_, error)| *error));
}

// D-82, C-28
#[tokio::test(start_paused = true)]
async fn sub_agent_timeout_is_within_the_turn() {
    let stuck = ALL.replace("{text: SHOP}", "{stall: true}");
    // The definition allows 5 s; a second is left for the answer.
    let cases = [(60_000, 5_000), (4_000, 3_000), (1_050, 100), (0, 100)];
    for (turn_ms, expected) in cases {
        let mut harness = PackHarness::new(&stuck);
        harness.input.turn_timeout = Duration::from_millis(turn_ms);
        let started = Instant::now();
        assert_eq!(harness.run().await.status, TurnStatus::Degraded);
        assert_eq!(started.elapsed().as_millis(), expected, "{turn_ms}");
        let bodies = harness.recorder.bodies().into_iter();
        let mut deadlines = bodies.filter_map(|(_, body)| match body {
            Body::PlanStepStarted(step) => Some(step.deadline_ms),
            _ => None,
        });
        assert_eq!(deadlines.next().map(u128::from), Some(expected));
    }
}

// D-82
#[tokio::test(start_paused = true)]
async fn elapsed_time_shortens_the_sub_agent_timeout() {
    let slow = ALL.replace(
        "steps: [{tool: {name: ask_shop",
        "steps: [{pause_ms: 2000}, {tool: {name: ask_shop",
    );
    let mut harness = PackHarness::new(&slow.replace("{text: SHOP}", "{stall: true}"));
    harness.input.turn_timeout = Duration::from_millis(6_000);
    let started = Instant::now();
    harness.run().await;
    assert_eq!(started.elapsed().as_millis(), 5_000);
}

// S2-030
#[tokio::test(start_paused = true)]
async fn failed_sub_agent_stops_no_other() {
    let harness = PackHarness::new(&ALL.replace("{text: SHOP}", "{error: provider}"))
        .tool(slow("points", 300));
    assert_eq!(harness.run().await.status, TurnStatus::Degraded);
    let tool_results = results(&harness.requests_of("orchestrator")[1]);
    assert!(texts(&tool_results).contains(&"REWARDS".to_owned()));
    assert!(texts(&tool_results).contains(&"SUPPORT".to_owned()));
}

#[tokio::test]
async fn platform_tools_run_beside_and_do_not_count() {
    let script = ALL.replace(
        "steps: [{tool: {name: ask_shop",
        "steps: [{tool: {name: llm_feedback}}, {tool: {name: ask_shop",
    );
    let harness = PackHarness::new(&script);
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    let story = harness.story().join("\n");
    assert_eq!(story.matches("subagent.started").count(), 3);
    assert!(story.contains("tool:llm_feedback tool.completed"));
    assert_eq!(results(&harness.requests_of("orchestrator")[1]).len(), 4);
}

// S1-144
#[tokio::test(start_paused = true)]
async fn notes_are_stored_after_a_mixed_turn_only() {
    let harness = PackHarness::new(ALL)
        .tool(slow("search", 10))
        .tool(slow("ticket", 20));
    harness.run().await;
    let notes: Vec<_> = harness
        .recorder
        .emissions()
        .into_iter()
        .filter(|emission| matches!(emission.body, Body::SupportNoted(_)))
        .filter_map(|emission| emission.message)
        .map(|message| (message.role, message.scope, words(&message.content)))
        .collect();
    let note = |name: &str| {
        (
            Role::System,
            MessageScope::Agents,
            format!("{{\"from\":\"{name}\"}}"),
        )
    };
    assert_eq!(notes, [note("search"), note("ticket")]);

    let single = ALL.replace(", {tool: {name: ask_rewards, input: {query: b}}}, {tool: {name: ask_support, input: {query: c}}}", "");
    let harness = PackHarness::new(&single).tool(slow("search", 10));
    harness.run().await;
    assert!(
        !harness
            .recorder
            .types()
            .contains(&"support.noted".to_owned())
    );
}

// S1-144
#[tokio::test(start_paused = true)]
async fn sequential_dispatches_are_a_mixed_turn() {
    let harness = PackHarness::new(
        "
- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_support, input: {query: a}}}]}
- {when: {agent: orchestrator, call: 2}, steps: [{tool: {name: ask_shop, input: {query: b}}}]}
- {when: {agent: orchestrator}, steps: [{text: Done.}]}
- {when: {agent: shop}, steps: [{tool: {name: search}}, {text: SHOP}]}
- {when: {agent: support}, steps: [{tool: {name: ticket}}, {text: SUPPORT}]}
",
    )
    .tool(slow("search", 10))
    .tool(slow("ticket", 20));
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    let noted = harness.recorder.bodies().into_iter();
    let noted: Vec<_> = noted
        .filter_map(|(_, body)| match body {
            Body::SupportNoted(note) => Some((note.sub_agent_id, note.text)),
            _ => None,
        })
        .collect();
    let note = |id: &str, name: &str| (id.to_owned(), format!("{{\"from\":\"{name}\"}}"));
    assert_eq!(noted, [note("support", "ticket"), note("shop", "search")]);
}

#[tokio::test]
async fn sub_agent_called_twice_has_two_slots() {
    let harness = PackHarness::new(
        &ALL.replace("ask_rewards", "ask_shop")
            .replace("ask_support", "ask_shop"),
    );
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    assert_eq!(results(&harness.requests_of("orchestrator")[1]).len(), 3);
}

//! Bad tool calls of a model: a thousand at once, unknown tools, input that is no JSON, another
//! principal. Each gets a result, within the bounds of the turn.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, iter};
use parking_lot::Mutex;
use serde_json::{Value, json};
use turnwire_event::code::{ToolType, TurnStatus};
use turnwire_event::port::BoxFuture;
use turnwire_event::row::MessageScope;
use turnwire_event::{Body, ContentBlock, Role, StopReason, TokenUsage};
use turnwire_model::{Delta, ModelError, ModelProvider as _, ModelRequest};

use super::pack_harness::{PackHarness, TestTool, pack, results};
use super::turn_harness::{RecordingProvider, TurnHarness};
use crate::tool_call::tool_request::BROKEN_INPUT;

/// Asserts that every tool use in a request has one result.
fn assert_paired(request: &ModelRequest) {
    let mut uses = Vec::new();
    let mut ends = Vec::new();
    for block in request.messages.iter().flat_map(|said| &said.content) {
        match block {
            ContentBlock::ToolUse { id, .. } => uses.push(*id),
            ContentBlock::ToolResult { tool_use_id, .. } => ends.push(*tool_use_id),
            _ => {}
        }
    }
    uses.sort_unstable();
    ends.sort_unstable();
    assert_eq!(uses, ends);
}

fn asks(times: usize, tool: &str) -> String {
    format!(
        "- steps: [{}{{text: done}}]",
        format!("{{tool: {tool}}}, ").repeat(times)
    )
}

// G7
#[tokio::test]
async fn tool_calls_beyond_the_limit_are_declined() {
    let harness = TurnHarness::script(&asks(999, "{name: look}"));
    let recorder = Arc::clone(&harness.recorder);
    let provider = Arc::clone(&harness.provider);
    let harness = harness.tool("look", |_| async { Ok(json!(1)) });
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    let types = recorder.types();
    let count = |kind: &str| types.iter().filter(|t| *t == kind).count();
    assert_eq!(count("tool.called"), 32);
    assert_eq!((count("tool.completed"), count("tool.failed")), (32, 967));
    let requests = provider.requests.lock();
    assert_eq!(requests.len(), 2);
    assert_paired(&requests[1]);
    let tool_results = results(&requests[1]);
    let excess_result = json!("not executed: at most 32 tools can be asked for at once.");
    let (ran, refused): (Vec<_>, Vec<_>) = tool_results.iter().partition(|(_, is_error)| !is_error);
    assert!(ran.iter().all(|(tool_results, _)| *tool_results == 1) && ran.len() == 32);
    assert!(
        refused
            .iter()
            .all(|(tool_results, _)| *tool_results == excess_result)
    );
}

#[tokio::test]
async fn last_tool_calls_are_the_excess() {
    let mut harness = TurnHarness::script(
        "- steps: [{tool: {name: a}}, {tool: {name: b}}, {tool: {name: c}}, {text: done}]",
    );
    harness.options.tool_calls_max = 2;
    let recorder = Arc::clone(&harness.recorder);
    let harness = harness
        .tool("a", |_| async { Ok(json!("a")) })
        .tool("b", |_| async { Ok(json!("b")) })
        .tool("c", |_| async { Ok(json!("c")) });
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    let lines = recorder.lines();
    let refused = lines.iter().position(|line| line.starts_with("tool:c"));
    let refused = refused.expect("it is told");
    assert_eq!(
        lines[refused..refused + 3],
        [
            r#"tool:c tool.failed {"tool_use_id":"tu_05","tool_name":"c","tool_type":"function","error_class":"not_executed","called":false}"#,
            r#"tool:a tool.called {"tool_use_id":"tu_03","tool_name":"a","tool_type":"function","input_summary":"{}"}"#,
            r#"tool:b tool.called {"tool_use_id":"tu_04","tool_name":"b","tool_type":"function","input_summary":"{}"}"#,
        ]
    );
    let message = recorder.messages().swap_remove(0);
    assert_eq!(
        (message.role, message.scope),
        (Role::Tool, MessageScope::Shared)
    );
    assert_eq!(message.metadata.get("not_executed"), Some(true.into()));
}

#[tokio::test]
async fn excess_sub_agents_are_not_called() {
    let harness = PackHarness::of(
        pack("limits: {tool_calls_max: 2}\n", "support"),
        "- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: llm_feedback}}, {tool: {name: ask_shop, input: {query: a}}}, {tool: {name: ask_rewards, input: {query: b}}}]}\n\
         - steps: [{text: Done.}]\n",
    );
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    assert!(harness.requests_of("rewards").is_empty());
    assert_eq!(
        harness.story()[2],
        "tool:ask_rewards tool.failed not_executed"
    );
    assert_paired(&harness.requests_of("orchestrator")[1]);
    let message = harness.recorder.messages().swap_remove(0);
    assert_eq!(message.scope, MessageScope::Private);
    assert_eq!(message.metadata.get("not_executed"), Some(true.into()));
}

/// A script that calls the sub-agent shop alone; `SHOP` is replaced by its rules.
const SINGLE: &str = "
- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_shop, input: {query: milk, principal: mallory, user_id: mallory}}}]}
- {when: {agent: orchestrator}, steps: [{text: Done.}]}
- {when: {agent: shop}, steps: [SHOP, {text: Found.}]}
";

// G7
#[tokio::test]
async fn sub_agent_tool_calls_are_limited_privately() {
    let shop = "{tool: {name: search}}, {tool: {name: SECRET}}, {tool: {name: search}}";
    let harness = PackHarness::of(
        pack("limits: {tool_calls_max: 1}\n", "support"),
        &SINGLE.replace("SHOP", shop),
    );
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    let story = harness.story().join("\n");
    assert_eq!(
        story.matches("tool:search tool.called").count(),
        1,
        "{story}"
    );
    assert!(
        story.contains("tool:unknown tool.failed not_executed"),
        "{story}"
    );
    assert!(!story.contains("SECRET"), "{story}");
    let request = &harness.requests_of("shop")[1];
    assert_paired(request);
    assert_eq!(
        results(request).iter().filter(|(_, error)| *error).count(),
        2
    );
    let messages = harness.recorder.messages();
    let declined = messages
        .iter()
        .filter(|messages| messages.metadata.get("not_executed").is_some());
    let scopes: Vec<&MessageScope> = declined.map(|messages| &messages.scope).collect();
    let own = MessageScope::Agent("shop".into());
    assert_eq!(scopes, [&own, &own]);
}

#[tokio::test]
async fn input_that_is_no_object_is_declined() {
    for raw in ["'{\"a\": '", "'[1, 2]'", "'null'", "'say hi'", "''"] {
        let harness = TurnHarness::script(&asks(1, &format!("{{name: look, input: {raw}}}")));
        let provider = Arc::clone(&harness.provider);
        let ran = Arc::new(Mutex::new(0));
        let count = Arc::clone(&ran);
        let harness = harness.tool("look", move |_| {
            *count.lock() += 1;
            async { Ok(json!(1)) }
        });
        assert_eq!(harness.run().await.status, TurnStatus::Ok, "{raw}");
        let tool_result = &results(&provider.requests.lock()[1])[0];
        // A model that says nothing at all means an empty object.
        let broken = raw != "''";
        assert_eq!(
            (tool_result.1, *ran.lock()),
            (broken, u32::from(!broken)),
            "{raw}"
        );
    }
}

/// A model that calls the tool `name` without input and stops for `reason`; then it replies with
/// text.
fn bare(name: &'static str, call: u32, reason: StopReason) -> Told {
    let deltas = match call {
        1 => vec![
            Delta::ToolStart {
                block: 0,
                name: name.into(),
                provider_id: None,
            },
            Delta::ToolEnd { block: 0 },
            stop(reason),
        ],
        _ => {
            let text = "Done.".into();
            vec![Delta::Text { block: 0, text }, stop(StopReason::EndTurn)]
        }
    };
    iter(deltas.into_iter().map(Ok)).boxed()
}

fn stop(reason: StopReason) -> Delta {
    let usage = TokenUsage::default();
    Delta::Stop { reason, usage }
}

type Told = BoxStream<'static, Result<Delta, ModelError>>;

#[tokio::test]
async fn truncated_tool_use_without_input_does_not_run() {
    for (reason, runs) in [(StopReason::ToolUse, 1), (StopReason::MaxTokens, 0)] {
        let harness = TurnHarness::of(move |request| bare("look", request.call, reason));
        let provider = Arc::clone(&harness.provider);
        let ran = Arc::new(Mutex::new(0));
        let count = Arc::clone(&ran);
        let harness = harness.tool("look", move |_| {
            *count.lock() += 1;
            async { Ok(json!(1)) }
        });
        assert_eq!(harness.run().await.status, TurnStatus::Ok, "{reason:?}");
        let tool_result = results(&provider.requests.lock()[1]).swap_remove(0);
        assert_eq!(
            (tool_result.1, *ran.lock()),
            (runs == 0, runs),
            "{reason:?}"
        );
    }
}

#[tokio::test]
async fn truncated_sub_agent_tool_use_does_not_run() {
    let mut harness = PackHarness::new("- steps: [{text: unused}]");
    let orchestrator = PackHarness::new(&SINGLE.replace("SHOP, ", "")).provider;
    harness.provider = Arc::new(RecordingProvider::new(move |request| {
        match request.agent.as_str() {
            "shop" => bare("search", request.call, StopReason::MaxTokens),
            _ => orchestrator.stream(request),
        }
    }));
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    let tool_results = results(&harness.requests_of("shop")[1]);
    assert_eq!(tool_results, [(json!(BROKEN_INPUT), true)]);
}

#[tokio::test]
async fn calls_of_unknown_tools_end_at_the_call_limit() {
    let mut harness = TurnHarness::script("- steps: [{tool: {name: drop_tables}}]");
    harness.options.calls_max = 3;
    let provider = Arc::clone(&harness.provider);
    let ended = harness.run().await;
    assert_eq!(ended.reason.as_deref(), Some("limit_calls"));
    let requests = provider.requests.lock();
    assert_eq!(requests.len(), 3);
    let expected = json!("There is no such tool; there are none.");
    assert_eq!(
        results(&requests[2]),
        [(expected.clone(), true), (expected, true)]
    );
}

// G7, LAW-9
#[tokio::test]
async fn principal_in_a_tool_input_is_ignored() {
    let seen: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
    let notes = Arc::clone(&seen);
    let search = TestTool {
        name: "search",
        tool_type: ToolType::Ccs,
        status: None,
        remember: false,
        work: move |call: turnwire_tool::ToolInvocation| -> BoxFuture<'static, _> {
            let principal = call.context.owner.principal.to_string();
            notes.lock().push((principal, call.input));
            Box::pin(async { Ok(json!("given")) })
        },
    };
    let shop = "{tool: {name: search, input: {principal: mallory}}}";
    let harness = PackHarness::new(&SINGLE.replace("SHOP", shop)).tool(Arc::new(search));
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    let expected = ("local".to_owned(), json!({"principal": "mallory"}));
    assert_eq!(*seen.lock(), [expected]);
    let bodies = harness.recorder.bodies().into_iter();
    let contexts: Vec<_> = bodies
        .filter_map(|(_, body)| match body {
            Body::SubagentStarted(started) => Some(started.context),
            _ => None,
        })
        .collect();
    assert_eq!(contexts.len(), 1);
    assert_eq!(contexts[0].principal, "local");
    assert_eq!(contexts[0].user_id, "local");
    let system = harness.requests_of("shop")[0]
        .system
        .clone()
        .unwrap_or_default();
    assert!(!system.contains("mallory"), "{system}");
}

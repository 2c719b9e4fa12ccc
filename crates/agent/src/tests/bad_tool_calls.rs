//! A model that goes astray, or was led there: a thousand tools at once, tools that do not exist,
//! input that is no JSON, another person's name. It is answered in the turn, within bounds.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, iter};
use parking_lot::Mutex;
use serde_json::{Value, json};
use turnwire_event::code::{ToolType, TurnStatus};
use turnwire_event::port::BoxFuture;
use turnwire_event::row::Scope;
use turnwire_event::{Body, ContentBlock, Role, StopReason, Usage};
use turnwire_model::{Delta, ModelError, Provider as _, Request};

use super::pack_stage::{Double, Troupe, pack, results};
use super::stage::{Asked, Stage};
use crate::tool_call::tool_request::BROKEN_INPUT;

/// Every tool use that a request shows has one result.
fn assert_paired(request: &Request) {
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
    let stage = Stage::script(&asks(999, "{name: look}"));
    let recorder = Arc::clone(&stage.recorder);
    let provider = Arc::clone(&stage.provider);
    let stage = stage.tool("look", |_| async { Ok(json!(1)) });
    assert_eq!(stage.play().await.status, TurnStatus::Ok);
    let types = recorder.types();
    let count = |kind: &str| types.iter().filter(|t| *t == kind).count();
    assert_eq!(count("tool.called"), 32);
    assert_eq!((count("tool.completed"), count("tool.failed")), (32, 967));
    let requests = provider.requests.lock();
    assert_eq!(requests.len(), 2);
    assert_paired(&requests[1]);
    let told = results(&requests[1]);
    let left = json!("not executed: at most 32 tools can be asked for at once.");
    let (ran, refused): (Vec<_>, Vec<_>) = told.iter().partition(|(_, is_error)| !is_error);
    assert!(ran.iter().all(|(told, _)| *told == 1) && ran.len() == 32);
    assert!(refused.iter().all(|(told, _)| *told == left));
}

#[tokio::test]
async fn last_tool_calls_are_the_excess() {
    let mut stage = Stage::script(
        "- steps: [{tool: {name: a}}, {tool: {name: b}}, {tool: {name: c}}, {text: done}]",
    );
    stage.options.tool_calls_max = 2;
    let recorder = Arc::clone(&stage.recorder);
    let stage = stage
        .tool("a", |_| async { Ok(json!("a")) })
        .tool("b", |_| async { Ok(json!("b")) })
        .tool("c", |_| async { Ok(json!("c")) });
    assert_eq!(stage.play().await.status, TurnStatus::Ok);
    let lines = recorder.lines();
    let refused = lines.iter().position(|line| line.starts_with("tool:c"));
    let refused = refused.expect("it is told");
    assert_eq!(
        lines[refused..refused + 3],
        [
            r#"tool:c tool.failed {"tool_use_id":"tu_05","tool_name":"c","tool_type":"function","error_class":"invalid_input","called":false}"#,
            r#"tool:a tool.called {"tool_use_id":"tu_03","tool_name":"a","tool_type":"function","input_summary":"{}"}"#,
            r#"tool:b tool.called {"tool_use_id":"tu_04","tool_name":"b","tool_type":"function","input_summary":"{}"}"#,
        ]
    );
    let said = recorder.said().swap_remove(0);
    assert_eq!((said.role, said.scope), (Role::Tool, Scope::Shared));
    assert_eq!(said.metadata["not_executed"], true);
}

#[tokio::test]
async fn excess_sub_agents_are_not_called() {
    let troupe = Troupe::of(
        pack("limits: {tool_calls_max: 2}\n", "support"),
        "- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: llm_feedback}}, {tool: {name: ask_shop, input: {query: a}}}, {tool: {name: ask_rewards, input: {query: b}}}]}\n\
         - steps: [{text: Done.}]\n",
    );
    assert_eq!(troupe.play().await.status, TurnStatus::Ok);
    assert!(troupe.asked("rewards").is_empty());
    assert_eq!(
        troupe.story()[2],
        "tool:ask_rewards tool.failed invalid_input"
    );
    assert_paired(&troupe.asked("orchestrator")[1]);
    let said = troupe.recorder.said().swap_remove(0);
    assert_eq!(said.scope, Scope::Private);
    assert_eq!(said.metadata["not_executed"], true);
}

/// Shop is asked alone; what it does is put in for `SHOP`.
const SINGLE: &str = "
- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_shop, input: {query: milk, principal: mallory, user_id: mallory}}}]}
- {when: {agent: orchestrator}, steps: [{text: Done.}]}
- {when: {agent: shop}, steps: [SHOP, {text: Found.}]}
";

// G7
#[tokio::test]
async fn sub_agent_tool_calls_are_limited_privately() {
    let shop = "{tool: {name: search}}, {tool: {name: SECRET}}, {tool: {name: search}}";
    let troupe = Troupe::of(
        pack("limits: {tool_calls_max: 1}\n", "support"),
        &SINGLE.replace("SHOP", shop),
    );
    assert_eq!(troupe.play().await.status, TurnStatus::Ok);
    let story = troupe.story().join("\n");
    assert_eq!(
        story.matches("tool:search tool.called").count(),
        1,
        "{story}"
    );
    assert!(
        story.contains("tool:unknown tool.failed invalid_input"),
        "{story}"
    );
    assert!(!story.contains("SECRET"), "{story}");
    let asked = &troupe.asked("shop")[1];
    assert_paired(asked);
    assert_eq!(results(asked).iter().filter(|(_, error)| *error).count(), 2);
    let said = troupe.recorder.said();
    let left = said
        .iter()
        .filter(|said| said.metadata.contains_key("not_executed"));
    let scopes: Vec<&Scope> = left.map(|said| &said.scope).collect();
    let own = Scope::Agent("shop".into());
    assert_eq!(scopes, [&own, &own]);
}

#[tokio::test]
async fn input_that_is_no_object_is_declined() {
    for raw in ["'{\"a\": '", "'[1, 2]'", "'null'", "'say hi'", "''"] {
        let stage = Stage::script(&asks(1, &format!("{{name: look, input: {raw}}}")));
        let provider = Arc::clone(&stage.provider);
        let ran = Arc::new(Mutex::new(0));
        let count = Arc::clone(&ran);
        let stage = stage.tool("look", move |_| {
            *count.lock() += 1;
            async { Ok(json!(1)) }
        });
        assert_eq!(stage.play().await.status, TurnStatus::Ok, "{raw}");
        let told = &results(&provider.requests.lock()[1])[0];
        // A model that says nothing at all means an empty object.
        let broken = raw != "''";
        assert_eq!((told.1, *ran.lock()), (broken, u32::from(!broken)), "{raw}");
    }
}

/// A model that asks for the tool `name` with no input at all, and stops for `reason`; then it
/// says something.
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
    let usage = Usage::default();
    Delta::Stop { reason, usage }
}

type Told = BoxStream<'static, Result<Delta, ModelError>>;

#[tokio::test]
async fn truncated_tool_use_without_input_does_not_run() {
    for (reason, runs) in [(StopReason::ToolUse, 1), (StopReason::MaxTokens, 0)] {
        let stage = Stage::of(move |request| bare("look", request.call, reason));
        let provider = Arc::clone(&stage.provider);
        let ran = Arc::new(Mutex::new(0));
        let count = Arc::clone(&ran);
        let stage = stage.tool("look", move |_| {
            *count.lock() += 1;
            async { Ok(json!(1)) }
        });
        assert_eq!(stage.play().await.status, TurnStatus::Ok, "{reason:?}");
        let told = results(&provider.requests.lock()[1]).swap_remove(0);
        assert_eq!((told.1, *ran.lock()), (runs == 0, runs), "{reason:?}");
    }
}

#[tokio::test]
async fn truncated_sub_agent_tool_use_does_not_run() {
    let mut troupe = Troupe::new("- steps: [{text: unused}]");
    let orchestrator = Troupe::new(&SINGLE.replace("SHOP, ", "")).provider;
    troupe.provider = Arc::new(Asked::new(move |request| match request.agent.as_str() {
        "shop" => bare("search", request.call, StopReason::MaxTokens),
        _ => orchestrator.stream(request),
    }));
    assert_eq!(troupe.play().await.status, TurnStatus::Ok);
    let told = results(&troupe.asked("shop")[1]);
    assert_eq!(told, [(json!(BROKEN_INPUT), true)]);
}

#[tokio::test]
async fn calls_of_unknown_tools_end_at_the_call_limit() {
    let mut stage = Stage::script("- steps: [{tool: {name: drop_tables}}]");
    stage.options.calls_max = 3;
    let provider = Arc::clone(&stage.provider);
    let ended = stage.play().await;
    assert_eq!(ended.reason.as_deref(), Some("limit_calls"));
    let requests = provider.requests.lock();
    assert_eq!(requests.len(), 3);
    let told = json!("There is no such tool; there are none.");
    assert_eq!(results(&requests[2]), [(told.clone(), true), (told, true)]);
}

// G7, LAW-9
#[tokio::test]
async fn principal_in_a_tool_input_is_ignored() {
    let seen: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
    let notes = Arc::clone(&seen);
    let search = Double {
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
    let troupe = Troupe::new(&SINGLE.replace("SHOP", shop)).tool(Arc::new(search));
    assert_eq!(troupe.play().await.status, TurnStatus::Ok);
    let given = ("local".to_owned(), json!({"principal": "mallory"}));
    assert_eq!(*seen.lock(), [given]);
    let bodies = troupe.recorder.bodies().into_iter();
    let contexts: Vec<_> = bodies
        .filter_map(|(_, body)| match body {
            Body::SubagentStarted(started) => Some(started.context),
            _ => None,
        })
        .collect();
    assert_eq!(contexts.len(), 1);
    assert_eq!(contexts[0].principal, "local");
    assert_eq!(contexts[0].user_id, "local");
    let system = troupe.asked("shop")[0].system.clone().unwrap_or_default();
    assert!(!system.contains("mallory"), "{system}");
}

//! A turn without output has failed, even if its model stopped properly. Components are output without
//! text.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, iter};
use serde_json::{Value, json};
use turnwire_event::body::component::{ComponentRendered, RenderingToolCall};
use turnwire_event::code::{ErrorCode, ToolType, TurnStatus};
use turnwire_event::port::Emission;
use turnwire_event::{Actor, Body, StopReason, TokenUsage};
use turnwire_model::{Delta, ModelError, ModelRequest};
use turnwire_tool::{ToolFailure, ToolInvocation};

use super::pack_harness::PackHarness;
use super::turn_harness::{RecordingProvider, TurnHarness};

fn text(text: &str) -> Delta {
    let text = text.into();
    Delta::Text { block: 0, text }
}

fn thinking() -> Delta {
    Delta::Thinking {
        block: 0,
        text: "hm".into(),
        signature: None,
    }
}

fn tool(block: u32, name: &str) -> [Delta; 2] {
    let start = Delta::ToolStart {
        block,
        name: name.into(),
        provider_id: None,
    };
    [start, Delta::ToolEnd { block }]
}

/// A model that streams `deltas` and stops.
fn says(deltas: Vec<Delta>) -> BoxStream<'static, Result<Delta, ModelError>> {
    let stop = Delta::Stop {
        reason: StopReason::EndTurn,
        usage: TokenUsage::default(),
    };
    iter(deltas.into_iter().chain([stop]).map(Ok)).boxed()
}

#[tokio::test]
async fn turn_without_output_has_failed() {
    for said in [vec![], vec![text(""), text(" \n")], vec![thinking()]] {
        let deltas = said.clone();
        let harness = TurnHarness::of(move |_| says(deltas.clone()));
        let ended = harness.run().await;
        assert_eq!(ended.status, TurnStatus::Failed, "{said:?}");
        assert_eq!(ended.error, Some(ErrorCode::InternalError.into()));
    }
}

/// A model that streams `before`, calls the tool `look`, and then stops without output.
fn looking(before: Option<&'static str>) -> TurnHarness {
    TurnHarness::of(move |request: ModelRequest| match request.call {
        1 => says(
            before
                .map(text)
                .into_iter()
                .chain(tool(1, "look"))
                .collect(),
        ),
        _ => says(Vec::new()),
    })
}

/// A tool that shows a component.
async fn show(call: ToolInvocation) -> Result<Value, ToolFailure> {
    let rendered = Body::ComponentRendered(ComponentRendered {
        component: json!({"type": "card"}),
        tool_call: RenderingToolCall {
            upstream_id: None,
            id: call.tool_use_id,
            name: "look".into(),
            tool_type: ToolType::Function,
        },
    });
    let emission = Emission::new(Actor::tool("look"), rendered);
    call.emitter.emit(emission).expect("taken");
    Ok(json!(1))
}

#[tokio::test]
async fn earlier_output_of_the_turn_is_an_answer() {
    let gives = |harness: TurnHarness| harness.tool("look", |_| async { Ok(json!(1)) });
    let silent = gives(looking(None)).run().await;
    assert_eq!(silent.status, TurnStatus::Failed);
    let spoken = gives(looking(Some("Done, I look."))).run().await;
    assert_eq!(spoken.status, TurnStatus::Ok);
    let outcome = looking(None).tool("look", show).run().await;
    assert_eq!(outcome.status, TurnStatus::Ok);
}

// C-06
#[tokio::test]
async fn empty_orchestrator_reply_gets_a_text() {
    let script = "
- {when: {agent: orchestrator}, steps: [{tool: {name: ask_shop, input: {query: milk}}}]}
- {when: {agent: shop}, steps: [{text: Found.}]}
";
    let mut harness = PackHarness::new(script);
    let scripted = Arc::clone(&harness.provider);
    harness.provider = Arc::new(RecordingProvider::new(move |request| {
        match (request.agent.as_str(), request.call) {
            ("orchestrator", 2) => says(vec![text(" ")]),
            _ => turnwire_model::ModelProvider::stream(&*scripted, request),
        }
    }));
    let ended = harness.run().await;
    assert_eq!(ended.error, Some(ErrorCode::InternalError.into()));
    let line = harness.pack.locales.line("en", "failure.internal");
    let line = line.expect("built in").message;
    let story = harness.story();
    assert!(story.contains(&format!("says {line:?}")), "{story:#?}");
}

//! Data that a provider wants back is in the next call of the turn and is stored with the message, for
//! the orchestrator and for sub-agents.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, iter};
use serde_json::{Value, json};
use turnwire_event::code::TurnStatus;
use turnwire_event::{ContentBlock, ProviderState, Role, StopReason, TokenUsage};
use turnwire_model::{Delta, ModelError, ModelMessage, ModelRequest};

use super::pack_harness::PackHarness;
use super::turn_harness::{RecordingProvider, TurnHarness};

fn keep(block: u32, data: Value) -> Delta {
    Delta::ProviderData { block, data }
}

/// A reply with a signature, hidden data, a tool use, and data behind the last block.
fn asks(tool: &str, input: &str) -> Vec<Delta> {
    vec![
        Delta::Started {
            response_id: "resp_1".into(),
        },
        Delta::Thinking {
            block: 0,
            text: "hm".into(),
            signature: None,
        },
        keep(0, json!({"seal": "early"})),
        keep(0, json!({"seal": "late"})),
        keep(1, json!({"hidden": "x"})),
        Delta::ToolStart {
            block: 2,
            name: tool.into(),
            provider_id: Some("toolu_7".into()),
        },
        keep(2, json!({"id": "toolu_7"})),
        Delta::ToolInput {
            block: 2,
            fragment: input.into(),
        },
        Delta::ToolEnd { block: 2 },
        keep(4, json!({"tail": 1})),
        stop(StopReason::ToolUse),
    ]
}

fn stop(reason: StopReason) -> Delta {
    Delta::Stop {
        reason,
        usage: TokenUsage::default(),
    }
}

fn answers() -> Vec<Delta> {
    let text = Delta::Text {
        block: 0,
        text: "Found.".into(),
    };
    vec![text, stop(StopReason::EndTurn)]
}

fn play(deltas: Vec<Delta>) -> BoxStream<'static, Result<Delta, ModelError>> {
    iter(deltas.into_iter().map(Ok)).boxed()
}

fn kept() -> ProviderState {
    let blocks = [
        (0, json!({"seal": "late"})),
        (1, json!({"hidden": "x"})),
        (2, json!({"id": "toolu_7"})),
        // No block is there: it stands behind the last one.
        (4, json!({"tail": 1})),
    ];
    ProviderState {
        by: "scripted".into(),
        blocks: blocks.into(),
    }
}

/// The reply of the previous call.
fn before(request: &ModelRequest) -> &ModelMessage {
    let newest_first = request.messages.iter().rev();
    let mut assistants = newest_first.filter(|newest_first| newest_first.role == Role::Assistant);
    assistants.next().expect("it has spoken")
}

#[tokio::test]
async fn provider_data_is_in_the_next_call() {
    let harness = TurnHarness::of(|request| match request.call {
        1 => play(asks("look", "{}")),
        _ => play(answers()),
    });
    let provider = Arc::clone(&harness.provider);
    let harness = harness.tool("look", |_| async { Ok(json!(1)) });
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    let requests = provider.requests.lock();
    let reply = before(&requests[1]);
    assert_eq!(reply.provider_data, kept());
    assert_eq!(reply.content.len(), 3);
    assert_eq!(reply.content[1], ContentBlock::text(""));
}

#[tokio::test]
async fn provider_data_of_a_sub_agent_is_in_its_next_call() {
    let mut harness = PackHarness::new("- steps: [{text: unused}]");
    harness.provider = Arc::new(RecordingProvider::new(|request| {
        match (request.agent.as_str(), request.call) {
            ("orchestrator", 1) => play(asks("ask_shop", r#"{"query":"milk"}"#)),
            ("shop", 1) => play(asks("search", "{}")),
            _ => play(answers()),
        }
    }));
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    for agent in ["orchestrator", "shop"] {
        let requests = harness.requests_of(agent);
        assert_eq!(before(&requests[1]).provider_data, kept(), "{agent}");
    }
    let stored = harness.recorder.messages();
    let mut stored = stored
        .iter()
        .filter(|said| !said.provider_state.blocks.is_empty());
    let shop = stored.next().map(|said| (&said.provider_state, said.role));
    assert_eq!(shop, Some((&kept(), Role::Assistant)));
}

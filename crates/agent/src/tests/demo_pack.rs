//! The demo pack with its own script and test doubles for its data services: one intent, several, and
//! more than the cap.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use turnwire_event::ContentBlock;
use turnwire_event::code::{ToolType, TurnStatus};
use turnwire_event::port::{BoxFuture, EventEmitter, TurnContext};
use turnwire_model::{ModelScript, ProviderLookup, ProviderTable, ScriptedProvider};
use turnwire_pack::{Pack, PackFiles, check};
use turnwire_tool::{ToolInvocation, Toolbox};

use super::pack_harness::{AgentHistory, TestTool, unavailable};
use super::recording_emitter::RecordingEmitter;
use super::turn_harness::{CountingIdGenerator, input};
use crate::turn_factory::TurnFactory;

/// The result of every data tool.
fn item() -> Value {
    let item = json!({
        "id": "X_1", "label": "LABEL", "title": "TITLE", "tier": "gold", "missing": "9 points",
        "answer": "ANSWER", "ticket": "T-1",
    });
    json!({"items": [item]})
}

/// The demo pack and its models, loaded once.
fn demo() -> (Arc<Pack>, Arc<dyn ProviderLookup>) {
    static DEMO: OnceLock<(Arc<Pack>, Arc<ProviderTable>)> = OnceLock::new();
    let (pack, models) = DEMO.get_or_init(|| {
        let vars = |_: &str| Some("http://127.0.0.1:9".to_owned());
        let report = check(&PackFiles::market(), &vars);
        let pack = Arc::new(report.pack.expect("the demo is sound"));
        let script = ModelScript::parse_many(&pack.scripts).expect("the demo's script");
        (
            pack,
            Arc::new(ProviderTable::new(Some(ScriptedProvider::new(script)))),
        )
    });
    (
        Arc::clone(pack),
        Arc::clone(models) as Arc<dyn ProviderLookup>,
    )
}

/// Runs one turn of the demo; returns its outcome, its text and the sub-agents it called.
async fn say(words: &str, down: &str) -> (TurnStatus, String, Vec<String>) {
    let (pack, models) = demo();
    let mut tools = Toolbox::new();
    for def in &pack.tools {
        let name: &'static str = def.name.clone().leak();
        let fails = name == down;
        let double = TestTool {
            name,
            tool_type: ToolType::Ccs,
            status: None,
            remember: false,
            work: move |_: ToolInvocation| -> BoxFuture<'static, _> {
                Box::pin(async move {
                    if fails {
                        return Err(unavailable("PLANTED"));
                    }
                    Ok(item())
                })
            },
        };
        tools = tools.with(Arc::new(double)).expect("names differ");
    }
    let factory = TurnFactory::with_tools(
        Arc::clone(&pack),
        models,
        &tools,
        Arc::new(CountingIdGenerator::default()),
    );
    let mut input = input();
    input.content = vec![ContentBlock::text(words)];
    let bound = factory.bind(&input, &pack.cohort("local"));
    let recorder = Arc::new(RecordingEmitter::default());
    let outcome = (bound.work)(TurnContext {
        delegate: Arc::new(turnwire_event::port::NoChildTasks),
        child_tasks: Arc::new(turnwire_event::port::NoChildTasks),
        input,
        emitter: Arc::clone(&recorder) as Arc<dyn EventEmitter>,
        history: Arc::new(AgentHistory::default()),
    });
    let status = outcome.await.status;
    let mut text = String::new();
    let mut called = Vec::new();
    for (_, body) in recorder.bodies() {
        match body {
            turnwire_event::Body::TextDelta(delta) => text.push_str(&delta.text),
            turnwire_event::Body::SubagentStarted(started) => called.push(started.sub_agent_id),
            _ => {}
        }
    }
    (status, text, called)
}

#[tokio::test(start_paused = true)]
async fn demo_calls_sub_agents_and_composes_their_answers() {
    let (status, text, asked) = say("offers for oat milk", "").await;
    assert_eq!((status, asked), (TurnStatus::Ok, vec!["shop".to_owned()]));
    assert!(text.contains("I found LABEL."), "{text}");

    let (status, text, asked) = say("offers for oat milk and my points", "").await;
    assert_eq!(status, TurnStatus::Ok);
    assert_eq!(asked, ["shop", "rewards"]);
    assert!(
        text.contains("I found LABEL.") && text.contains("gold"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn demo_tells_what_is_missing() {
    let both = "offers for oat milk and my points";
    let (status, text, _) = say(both, "get_points_balance").await;
    assert_eq!(status, TurnStatus::Degraded);
    assert!(text.contains("I found LABEL."), "{text}");
    assert!(
        !text.contains("PLANTED") && !text.contains("gold"),
        "{text}"
    );

    let all = "offers for oat milk, my points, my receipts and a complaint for customer support";
    let (status, text, asked) = say(all, "").await;
    assert_eq!((status, asked.len()), (TurnStatus::Ok, 3), "{text}");
}

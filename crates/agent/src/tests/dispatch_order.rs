//! A turn with one sub-agent: the order, the scope and the spans of its events.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::iter;
use serde_json::{Value, json};
use turnwire_event::body::data::{CollectionKey, DataLoaded, ItemKey};
use turnwire_event::code::{CallPurpose, ToolType, TurnStatus};
use turnwire_event::port::{BoxFuture, Emission};
use turnwire_event::row::MessageScope;
use turnwire_event::{Actor, Body, Role, StopReason, TokenUsage};
use turnwire_model::{Delta, ModelProvider as _, ModelScript, ScriptedProvider};
use turnwire_tool::{Tool, deliver};

use super::pack_harness::{PackHarness, TestTool, results, service, words};
use super::spans::SpanNames;
use super::turn_harness::RecordingProvider;

/// The reference turn: shop searches, shows its results and answers; the orchestrator composes.
const TURN: &str = "
- {when: {agent: orchestrator, call: 1}, steps: [{tool: {name: ask_shop, input: {query: oat milk}}}]}
- {when: {agent: orchestrator}, steps: [{text: COMPOSED}]}
- {when: {agent: shop}, steps: [{text: SUBPLAN}, {tool: {name: search, input: {q: milk}}}, {text: SUBSHOW}, {tool: {name: show}}, {text: SUBRAW secret voice}]}
";

fn show() -> Arc<dyn Tool> {
    Arc::new(TestTool {
        name: "show",
        tool_type: ToolType::Render,
        status: None,
        remember: false,
        work: |call: turnwire_tool::ToolInvocation| -> BoxFuture<'static, _> {
            Box::pin(async move {
                let id = |id: &str| ItemKey { id: id.to_owned() };
                let loaded = Body::DataLoaded(DataLoaded {
                    id: "data_1".into(),
                    data_type: "offer_list".into(),
                    key: CollectionKey {
                        ids: vec![id("OFF_1"), id("OFF_2")],
                    },
                    items: vec![json!({"id": "OFF_1"}), json!({"id": "OFF_2"})],
                });
                let emission = Emission::new(Actor::tool("show"), loaded);
                let done = deliver(&*call.emitter, emission).await;
                done.expect("the turn goes on");
                Ok(json!({"shown": 2}))
            })
        },
    })
}

fn reference() -> PackHarness {
    let offers = json!({"items": ["OFF_1", "OFF_2"]});
    PackHarness::new(TURN)
        .tool(service("search", Some("searching_shop"), Ok(offers)))
        .tool(show())
}

// SC-01, S2-011
#[tokio::test]
async fn dispatch_emits_its_six_steps_in_order() {
    let harness = reference();
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    assert_eq!(
        harness.story(),
        [
            "orchestrator llm.call_started orchestrate",
            "orchestrator llm.call_completed",
            "orchestrator plan.step_started",
            "tool:ask_shop tool.called",
            "subagent:shop subagent.started",
            "subagent:shop llm.call_started subagent",
            "subagent:shop llm.call_completed",
            "subagent:shop status.emitted searching_shop",
            "tool:search tool.called",
            "tool:search tool.completed",
            "subagent:shop llm.call_started subagent",
            "subagent:shop llm.call_completed",
            "tool:show tool.called",
            "tool:show data.loaded",
            "tool:show tool.completed",
            "subagent:shop llm.call_started subagent",
            "subagent:shop llm.call_completed",
            "subagent:shop subagent.completed success",
            "tool:ask_shop tool.completed",
            "orchestrator plan.step_completed success",
            "orchestrator llm.call_started compose",
            "says \"COMPOSED\"",
            "orchestrator llm.call_completed",
        ]
    );
}

#[tokio::test]
async fn sub_agent_runs_after_its_start_is_durable() {
    let harness = reference();
    harness.run().await;
    let types = harness.recorder.types();
    let started = types.iter().position(|t| t == "subagent.started");
    let started = started.expect("it was asked");
    let lines = harness.recorder.lines();
    assert!(lines[started + 1].starts_with("committed "), "{lines:#?}");
    assert_eq!(types[started + 2], "llm.call_started");
}

// S2-012, S2-013, SC-12
#[tokio::test]
async fn only_the_orchestrator_streams_text() {
    let harness = reference();
    harness.run().await;
    let story = harness.story().join("\n");
    for once in [
        "tool:ask_shop tool.called",
        "subagent.started",
        "subagent.completed",
        "llm.call_started compose",
    ] {
        assert_eq!(story.matches(once).count(), 1, "{once}");
    }
    assert_eq!(harness.requests_of("orchestrator").len(), 2);
    for (actor, body) in harness.recorder.bodies() {
        let mut json = Vec::new();
        body.write(&mut json);
        let json = String::from_utf8(json).expect("JSON");
        assert!(!json.contains("SUB"), "{actor} {json}");
        assert!(
            !json.contains("oat milk") || actor == Actor::ORCHESTRATOR,
            "{json}"
        );
        assert!(
            !json.contains("OFF_1") || matches!(body, Body::DataLoaded(_)),
            "{json}"
        );
    }
}

// S2-014
#[tokio::test]
async fn result_has_the_text_and_the_shown_components() {
    let harness = reference();
    harness.run().await;
    assert_eq!(
        results(&harness.requests_of("orchestrator")[1]),
        [(
            json!({
                "text": "SUBRAW secret voice",
                "components": [{"type": "offer_list", "ids": ["OFF_1", "OFF_2"]}],
            }),
            false
        )]
    );
    let completed = harness
        .recorder
        .bodies()
        .into_iter()
        .find_map(|(_, body)| match body {
            Body::ToolCompleted(tool) if tool.tool_name == "ask_shop" => Some(tool),
            _ => None,
        });
    let summary = completed.expect("it answered").result_summary;
    let json = results(&harness.requests_of("orchestrator")[1])[0]
        .0
        .to_string();
    assert_eq!(summary, format!("success, {} bytes", json.len()));
}

// D-46
#[tokio::test]
async fn private_message_names_its_owner_and_scope() {
    let harness = reference();
    harness.run().await;
    let shop = || MessageScope::Agent("shop".into());
    let rows: Vec<_> = harness
        .recorder
        .emissions()
        .into_iter()
        .filter_map(|emission| Some((emission.body.kind().to_string(), emission.message?)))
        .map(|(kind, message)| {
            (
                kind,
                message.role,
                message.scope,
                Value::Object(message.metadata.to_map()),
            )
        })
        .collect();
    let started = harness.recorder.bodies().into_iter();
    let mut started = started.filter_map(|(_, body)| match body {
        Body::SubagentStarted(started) => Some(started.invocation_id.to_string()),
        _ => None,
    });
    let invocation = started.next().expect("it was asked");
    let marked = |scope: &MessageScope| match scope {
        MessageScope::Private => json!({"sub_agent_id": "shop"}),
        _ => json!({"sub_agent_id": "shop", "invocation_id": invocation}),
    };
    let expected = [
        ("subagent.started", Role::User, shop()),
        ("llm.call_completed", Role::Assistant, shop()),
        ("tool.completed", Role::Tool, shop()),
        ("llm.call_completed", Role::Assistant, shop()),
        ("tool.completed", Role::Tool, shop()),
        ("llm.call_completed", Role::Assistant, shop()),
        ("tool.completed", Role::Tool, MessageScope::Private),
    ];
    let expected: Vec<_> = expected
        .into_iter()
        .map(|(kind, role, scope)| {
            let mark = marked(&scope);
            (kind.to_owned(), role, scope, mark)
        })
        .collect();
    assert_eq!(rows, expected);
    let messages = harness.recorder.messages();
    assert_eq!(words(&messages[0].content), "oat milk");
    assert_eq!(words(&messages[5].content), "SUBRAW secret voice");
}

// D-46
#[tokio::test]
async fn sub_agent_tool_events_show_sizes_only() {
    let harness = reference();
    harness.run().await;
    for (_, body) in harness.recorder.bodies() {
        match body {
            Body::ToolCalled(tool) if tool.tool_name == "search" => {
                assert_eq!(tool.input_summary, "12 bytes");
            }
            Body::ToolCompleted(tool) if tool.tool_name == "search" => {
                assert_eq!(tool.result_summary, "27 bytes");
            }
            _ => {}
        }
    }
}

// D-46, S2-013
#[tokio::test]
async fn made_up_tool_name_stays_private() {
    let script = TURN.replace("{name: search, input", "{name: PLANTED_TEXT, input");
    let harness = PackHarness::new(&script);
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    let story = harness.story();
    assert!(story.contains(&"tool:unknown tool.called".to_owned()));
    assert!(story.contains(&"tool:unknown tool.failed invalid_input".to_owned()));
    assert!(!harness.recorder.lines().join("\n").contains("PLANTED"));
    for message in harness.recorder.messages() {
        let words = format!("{:?}", message.content);
        let named = words.contains("PLANTED");
        assert!(!named || message.scope == MessageScope::Agent("shop".into()));
    }
    let messages_text = format!("{:?}", harness.requests_of("shop")[1].messages);
    assert!(
        messages_text.contains("PLANTED_TEXT"),
        "its own model is shown it"
    );
}

// S2-011
#[tokio::test]
async fn every_step_has_a_span_below_the_turn() {
    let mut harness = reference();
    let turn = turnwire_event::TraceContext {
        trace_id: "0af7651916cd43dd8448eb211c80319c".into(),
        span_id: "b7ad6b7169203331".into(),
        parent_span_id: None,
    };
    harness.input.trace = Some(Arc::new(turn.clone()));
    harness.run().await;
    let span = |wanted: &str| {
        let emissions = harness.recorder.emissions();
        let emission = emissions.into_iter().find(|emission| match &emission.body {
            Body::LlmCallStarted(call) if wanted == "compose" => {
                call.purpose == CallPurpose::Compose
            }
            body => body.kind().to_string() == wanted,
        });
        let trace = emission.expect("it was told").trace.expect("a span");
        assert_eq!(trace.trace_id, turn.trace_id);
        assert_eq!(trace.parent_span_id.as_ref(), Some(&turn.span_id));
        assert_eq!(trace.span_id.len(), 16);
        trace.span_id.clone()
    };
    let resolve = span("tool.called");
    let instantiate = span("subagent.started");
    let run = span("status.emitted");
    let result = span("subagent.completed");
    let compose = span("compose");
    let spans = [&resolve, &instantiate, &run, &result, &compose];
    for (n, one) in spans.iter().enumerate() {
        assert!(!spans[..n].contains(one), "{spans:?}");
    }
    assert_eq!(
        span("data.loaded"),
        run,
        "tools work in the run of their agent"
    );
}

// S2-011
#[tokio::test]
async fn spans_are_named_and_ordered() {
    let names = SpanNames::default();
    let seen = names.clone();
    // With one subscriber alone, a span that another test's thread meets first would be taken for
    // one that nobody wants.
    let _other = tracing::Dispatch::new(SpanNames::default());
    let guard = tracing::subscriber::set_default(names);
    tracing::callsite::rebuild_interest_cache();
    reference().run().await;
    drop(guard);
    assert_eq!(
        seen.taken(),
        [
            "dispatch.resolve",
            "dispatch.instantiate",
            "subagent.run",
            "dispatch.result",
            "orchestrator.compose"
        ]
    );
}

// S2-039
#[tokio::test]
async fn data_caveat_reaches_the_orchestrator() {
    let part = json!({"data": {"items": []}, "caveat": true});
    let harness = PackHarness::new(TURN).tool(service("search", None, Ok(part)));
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    let tool_results = results(&harness.requests_of("orchestrator")[1]);
    assert_eq!(tool_results[0].0["caveat"], json!(true));
}

#[tokio::test]
async fn components_without_text_are_an_answer() {
    let mut harness = reference();
    let silent = TURN.replace("{text: SUBPLAN}, ", "").replace("SUBRAW", "x");
    let silent = silent.replace(
        "{tool: {name: search, input: {q: milk}}}, {text: SUBSHOW}, ",
        "",
    );
    let script = ScriptedProvider::new(ModelScript::parse("test.yaml", &silent).expect("a script"));
    harness.provider = Arc::new(RecordingProvider::new(move |request| {
        if request.agent == "shop" && request.call == 2 {
            let stop = Delta::Stop {
                reason: StopReason::EndTurn,
                usage: TokenUsage::default(),
            };
            return iter([Ok(stop)]).boxed();
        }
        script.stream(request)
    }));
    assert_eq!(harness.run().await.status, TurnStatus::Ok);
    let components = json!([{"type": "offer_list", "ids": ["OFF_1", "OFF_2"]}]);
    assert_eq!(
        results(&harness.requests_of("orchestrator")[1]),
        [(json!({"text": "", "components": components}), false)]
    );
}

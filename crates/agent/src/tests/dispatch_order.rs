//! A turn with one sub-agent: the order, the scope and the spans of its events.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::iter;
use serde_json::{Value, json};
use turnwire_event::body::data::{CollectionKey, DataLoaded, DataLoading, ItemKey};
use turnwire_event::code::{CallPurpose, ToolType, TurnStatus};
use turnwire_event::port::{BoxFuture, Emission};
use turnwire_event::row::MessageScope;
use turnwire_event::{Actor, Body, Role, StopReason, TokenUsage};
use turnwire_model::{Delta, ModelProvider as _, ModelScript, ScriptedProvider};
use turnwire_tool::{Tool, deliver};

use super::pack_harness::{PackHarness, TestTool, pack, results, service, words};
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
async fn sub_agent_calls_its_model_while_its_start_is_written() {
    let harness = reference();
    harness.run().await;
    let types = harness.recorder.types();
    let started = types.iter().position(|t| t == "subagent.started");
    let started = started.expect("it was asked");
    assert_eq!(types[started + 1], "llm.call_started");
    let lines = harness.recorder.lines();
    let tool = types.iter().position(|kind| kind == "tool.completed");
    let before_tool = &lines[started..tool.expect("a tool")];
    let waits = |line: &&String| line.starts_with("committed ");
    assert_eq!(before_tool.iter().filter(waits).count(), 0, "{lines:#?}");
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
                "sub_agent_id": "shop",
                "outcome": "success",
                "text": "SUBRAW secret voice",
                "components": [{
                    "type": "offer_list",
                    "ids": ["OFF_1", "OFF_2"],
                    "items": [{"id": "OFF_1"}, {"id": "OFF_2"}],
                }],
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

// FR-16
#[tokio::test(start_paused = true)]
async fn placeholder_left_open_is_ended_with_its_sub_agent() {
    // The data is never shown, or does not come in time.
    for (shop, end) in [
        (
            "{tool: {name: search}}, {text: Nothing.}",
            "subagent.completed success",
        ),
        (
            "{tool: {name: search}}, {text: Wait.}, {stall: true}",
            "subagent.failed timeout",
        ),
    ] {
        let announces: Arc<dyn Tool> = Arc::new(TestTool {
            name: "search",
            tool_type: ToolType::Ccs,
            status: None,
            remember: false,
            work: |call: turnwire_tool::ToolInvocation| -> BoxFuture<'static, _> {
                Box::pin(async move {
                    let loading = Body::DataLoading(DataLoading {
                        id: "data_1".into(),
                        data_type: "offer_list".into(),
                        key: CollectionKey { ids: Vec::new() },
                    });
                    let emission = Emission::new(Actor::tool("search"), loading);
                    let done = deliver(&*call.emitter, emission).await;
                    done.expect("the turn goes on");
                    Ok(json!({"items": []}))
                })
            },
        });
        let script = format!(
            "
- {{when: {{agent: orchestrator, call: 1}}, steps: [{{tool: {{name: ask_shop, input: {{query: x}}}}}}]}}
- {{when: {{agent: orchestrator}}, steps: [{{text: Done.}}]}}
- {{when: {{agent: shop}}, steps: [{shop}]}}
"
        );
        let harness = PackHarness::new(&script).tool(announces);
        harness.run().await;
        let loaded: Vec<DataLoaded> = harness
            .recorder
            .bodies()
            .into_iter()
            .filter_map(|(_, body)| match body {
                Body::DataLoaded(data) => Some(data),
                _ => None,
            })
            .collect();
        let empty = DataLoaded {
            id: "data_1".into(),
            data_type: "offer_list".into(),
            key: CollectionKey { ids: Vec::new() },
            items: Vec::new(),
        };
        assert_eq!(loaded, [empty]);
        let story = harness.story();
        let place = story.iter().position(|line| line.ends_with("data.loaded"));
        let ended = story.iter().position(|line| line.ends_with(end));
        assert!(place.is_some() && place < ended, "{story:#?}");
        let results = results(&harness.requests_of("orchestrator")[1]);
        let components = results[0].0.get("components").cloned();
        assert!(components.is_none_or(|shown| shown == json!([])));
    }
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
    let (result, is_error) = results(&harness.requests_of("orchestrator")[1]).remove(0);
    assert!(!is_error);
    assert_eq!(
        (&result["text"], &result["outcome"]),
        (&json!(""), &json!("success"))
    );
    assert_eq!(result["components"][0]["ids"], json!(["OFF_1", "OFF_2"]));
}

// S2-014
#[tokio::test]
async fn components_for_the_orchestrator_are_bounded_in_bytes() {
    let (first, second) = (json!({"id": "OFF_1"}), json!({"id": "OFF_2"}));
    let both = json!(["OFF_1", "OFF_2"]);
    // An id has 7 bytes, an item 14.
    for (bytes, ids, items, omitted) in [
        (42, both.clone(), json!([first, second]), Value::Null),
        (41, both.clone(), json!([first]), json!(1)),
        (27, both.clone(), json!([]), json!(2)),
        (14, both, json!([]), json!(2)),
        (13, json!(["OFF_1"]), json!([]), json!(2)),
        (0, json!([]), json!([]), json!(2)),
    ] {
        let mut harness = reference();
        harness.pack = pack(
            &format!("limits: {{component_bytes: {bytes}}}\n"),
            "support",
        );
        harness.run().await;
        let (result, _) = results(&harness.requests_of("orchestrator")[1]).remove(0);
        let component = &result["components"][0];
        let sent_omitted = component.get("omitted").unwrap_or(&Value::Null);
        assert_eq!(
            (&component["ids"], &component["items"], sent_omitted),
            (&ids, &items, &omitted),
            "{bytes}"
        );
    }
}

//! A correct server: listing, calls, progress and cancels.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use turnwire_event::Body;
use turnwire_event::code::{ToolErrorClass, ToolType};
use turnwire_event::port::Emission;
use turnwire_pack::{DataService, Enricher, McpTransport};

use super::support::{ServerFixture, run, tool, tool_def, until};
use crate::data_service::{Connector, NoVerifier, ServiceData, ServiceRequest, ServiceTrace};
use crate::tests::support::{EventSink, call, context};

#[tokio::test]
async fn traced_call_has_the_span_of_its_tool_in_meta() {
    let fixture = ServerFixture::new();
    let tools = fixture.open_mode("good", &[]).await;
    let sink = EventSink::with_room(1_000);
    for is_exporting in [false, true] {
        let mut call = call(json!({"words": "hi"}), &sink);
        let mut context = context();
        context.propagation.is_exporting = is_exporting;
        context.propagation.sampled = true;
        call.context = Arc::new(context);
        let _ = tool(&tools, "echo").run(call).await;
    }
    let messages = fixture.messages();
    let calls = messages.iter().filter(|it| it["method"] == "tools/call");
    let traces: Vec<_> = calls
        .map(|it| &it["params"]["_meta"]["traceparent"])
        .collect();
    let parent = json!("00-0af7651916cd43dd8448eb211c80319c-0000000000000007-01");
    assert_eq!(traces, [&Value::Null, &parent]);
}

// S2-001
#[tokio::test]
async fn tools_are_listed_at_load_and_never_in_a_call() {
    let fixture = ServerFixture::new();
    let tools = fixture.open_mode("good", &[]).await;
    let servers: Vec<_> = tools.servers().collect();
    assert_eq!(servers, [("small", 16)]);
    let echo = tool(&tools, "echo");
    assert_eq!(echo.name(), "my_echo");
    assert_eq!(echo.description(), "Does echo.");
    assert_eq!(echo.tool_type(), ToolType::Mcp);
    assert_eq!(echo.server(), Some("small"));
    assert_eq!(
        echo.input_schema()["properties"],
        json!({"text": {"type": "string"}})
    );
    assert_eq!(fixture.count("tools/list"), 2);
    for _ in 0..3 {
        let text = run(&tools, "echo", json!({"text": "hi"})).await;
        assert_eq!(text, Ok(json!("hi")));
    }
    assert_eq!(fixture.count("tools/list"), 2);
    let first = fixture.messages();
    assert_eq!(first[0]["method"], "initialize");
    assert_eq!(first[0]["params"]["capabilities"], json!({}));
    assert_eq!(first[0]["params"]["clientInfo"]["name"], "turnwire");
}

#[tokio::test]
async fn generated_tool_names_are_valid_for_providers() {
    let fixture = ServerFixture::new();
    let tools = fixture.open_mode("good", &[]).await;
    let all = tools.all_tools("small").expect("tools");
    let names: Vec<&str> = all.iter().map(|tool| tool.name()).collect();
    assert_eq!(names.len(), 16);
    assert_eq!(names[..2], ["small_echo", "small_slow"]);
    let none = tools.all_tools("other").map(|_| ());
    let message = none.expect_err("no such server");
    assert!(message.contains("one of `small`"), "{message}");
}

#[tokio::test]
async fn results_are_converted_for_the_model() {
    let fixture = ServerFixture::new();
    let tools = fixture.open_mode("good", &[]).await;
    let structured = run(&tools, "structured", json!({})).await;
    assert_eq!(structured, Ok(json!({"degrees": 20})));
    let picture = run(&tools, "picture", json!({})).await;
    assert_eq!(picture, Ok(json!("[an image, image/png, about 300 bytes]")));
    let env = run(&tools, "env", json!({"name": "SECRET"})).await;
    assert_eq!(env, Ok(json!("told")));
    let failed = run(&tools, "fail", json!({"text": "no such city"})).await;
    let failed = failed.expect_err("a failure");
    assert_eq!(failed.class, ToolErrorClass::Internal);
    assert_eq!(failed.message, "no such city");
    assert!(!failed.fatal);
    let big = run(&tools, "big", json!({"bytes": 2_000_000})).await;
    assert!(big.expect_err("too large").message.contains("too large"));
}

// G6
#[tokio::test]
async fn server_key_is_removed_from_results_and_failures() {
    let fixture = ServerFixture::new();
    let mut def = fixture.def("good", &[]);
    let McpTransport::Stdio { env, .. } = &mut def.transport else {
        panic!("a program")
    };
    env.push(("SMALL_API_TOKEN".to_owned(), "sk-of-a-server".to_owned()));
    let tools = fixture.open(def).await.expect("a server");
    let message = run(&tools, "env", json!({"name": "SMALL_API_TOKEN"})).await;
    assert_eq!(message, Ok(json!("***")));
    let failed = run(&tools, "fail", json!({"text": "no sk-of-a-server"})).await;
    assert_eq!(failed.expect_err("a failure").message, "no ***");
    let service = tools.service("small", &service()).expect("it enriches");
    let request = ServiceRequest {
        owner: context().owner.clone(),
        body: "{}".into(),
        trace: Vec::new(),
    };
    let result = service(request).await.expect("an envelope");
    let result: Value = serde_json::from_slice(&result.body).expect("JSON");
    assert_eq!(result["payload"]["token"], "***");
}

#[tokio::test]
async fn invalid_input_fails_without_a_call() {
    let fixture = ServerFixture::new();
    let tools = fixture.open_mode("good", &[]).await;
    for input in [json!({"text": 5}), json!("text")] {
        let failed = run(&tools, "echo", input).await.expect_err("a failure");
        assert_eq!(failed.class, ToolErrorClass::InvalidInput);
    }
    assert_eq!(fixture.count("tools/call"), 0);
}

fn steps(taken: &[Emission]) -> Vec<(String, f64, Option<f64>)> {
    let steps = taken.iter().filter_map(|emission| match &emission.body {
        Body::McpSessionProgressed(step) => {
            Some((emission.actor.to_string(), step.progress, step.total))
        }
        _ => None,
    });
    steps.collect()
}

#[tokio::test]
async fn progress_events_are_rate_limited_except_the_last() {
    let fixture = ServerFixture::new();
    let tools = fixture.open_mode("good", &[]).await;
    let sink = EventSink::with_room(1_000);
    let mut def = tool_def("slow");
    def.progress_status = Some("mcp_working".to_owned());
    let slow = tools.tool(&def, "small", "slow").expect("a tool");
    let input = json!({"seconds": 2.0, "steps": 40});
    let done = slow.run(call(input.clone(), &sink)).await;
    assert_eq!(done, Ok(json!("slowly done")));
    let taken = sink.emissions();
    let Body::McpSessionStarted(started) = &taken[0].body else {
        panic!("{taken:?}");
    };
    assert_eq!(started.server, "small");
    let message = steps(&taken);
    assert_eq!(
        message.last(),
        Some(&("tool:my_slow".into(), 40.0, Some(40.0)))
    );
    assert!(message.len() >= 3, "{message:?}");
    assert!(message.is_sorted_by(|a, b| a.1 < b.1), "{message:?}");
    // Fewer events than the forty steps; a loaded machine takes longer and emits more.
    assert!(message.len() < 40, "{message:?}");
    let statuses: Vec<_> = taken
        .iter()
        .filter_map(|emission| match &emission.body {
            Body::StatusEmitted(status) => Some((emission.actor.to_string(), status.clone())),
            _ => None,
        })
        .collect();
    assert!(
        !statuses.is_empty() && statuses.len() < message.len(),
        "{statuses:?}"
    );
    let (actor, status) = &statuses[0];
    assert_eq!(
        (actor.as_str(), status.event_id.as_str()),
        ("subagent:shop", "mcp_working")
    );
    assert_eq!(status.message, "");

    // The second call of the turn does not start the session again.
    let again = EventSink::with_room(1_000);
    let input = json!({"seconds": 0.1, "steps": 1});
    assert!(slow.run(call(input, &again)).await.is_ok());
    let begun = again.emissions();
    let begun = begun
        .iter()
        .filter(|e| matches!(e.body, Body::McpSessionStarted(_)));
    assert_eq!(begun.count(), 0);
}

#[tokio::test]
async fn dropped_call_is_cancelled_at_the_server() {
    let fixture = ServerFixture::new();
    let tools = fixture.open_mode("good", &[]).await;
    let slow = tool(&tools, "slow");
    let sink = EventSink::with_room(1_000);
    let running = tokio::spawn(slow.run(call(json!({"seconds": 60, "steps": 600}), &sink)));
    until("the server has the call", || {
        fixture.count("tools/call") == 1
    })
    .await;
    running.abort();
    assert!(running.await.is_err());
    until("the call is cancelled", || {
        fixture.count("notifications/cancelled") == 1
    })
    .await;
    let messages = fixture.messages();
    let asked = messages
        .iter()
        .find(|message| message["method"] == "tools/call");
    let message = messages
        .iter()
        .find(|message| message["method"] == "notifications/cancelled");
    let (asked, message) = (asked.expect("a call"), message.expect("a cancel"));
    assert_eq!(message["params"]["requestId"], asked["id"]);
    // Other calls go on.
    assert_eq!(
        run(&tools, "echo", json!({"text": "a"})).await,
        Ok(json!("a"))
    );
}

#[tokio::test]
async fn late_call_times_out_and_is_cancelled() {
    let fixture = ServerFixture::new();
    let tools = fixture.open_mode("good", &[]).await;
    let mut def = tool_def("mute");
    def.timeout_ms = Some(300);
    let mute = tools.tool(&def, "small", "mute").expect("a tool");
    let sink = EventSink::with_room(10);
    let failed = mute.run(call(json!({}), &sink)).await.expect_err("late");
    assert_eq!(failed.class, ToolErrorClass::Timeout);
    until("the call is cancelled", || {
        fixture.count("notifications/cancelled") == 1
    })
    .await;
    // Progress does not extend the deadline.
    let mut def = tool_def("slow");
    def.timeout_ms = Some(1_000);
    let slow = tools.tool(&def, "small", "slow").expect("a tool");
    let sink = EventSink::with_room(1_000);
    let input = json!({"seconds": 60.0, "steps": 300});
    let failed = slow.run(call(input, &sink)).await.expect_err("late");
    assert_eq!(failed.class, ToolErrorClass::Timeout);
}

#[tokio::test]
async fn timeout_of_a_tool_overrides_that_of_its_server() {
    let fixture = ServerFixture::new();
    let mut server = fixture.def("good", &[]);
    server.call_timeout_ms = 500;
    let opened = fixture.open(server).await;
    let tools = opened.unwrap_or_else(|errors| panic!("{errors:?}"));
    let input = json!({"seconds": 3.0, "steps": 1});
    let failed = run(&tools, "slow", input.clone()).await;
    let failed = failed.expect_err("the server's time is over");
    assert_eq!(failed.class, ToolErrorClass::Timeout);
    let mut def = tool_def("slow");
    def.timeout_ms = Some(90_000);
    let slow = tools.tool(&def, "small", "slow").expect("a tool");
    assert_eq!(slow.timeout(), Some(Duration::from_secs(93)));
    let sink = EventSink::with_room(1_000);
    assert_eq!(slow.run(call(input, &sink)).await, Ok(json!("slowly done")));
}

#[tokio::test]
async fn server_requests_are_refused_except_ping() {
    let fixture = ServerFixture::new();
    let tools = fixture.open_mode("good", &[]).await;
    let answers = run(&tools, "ask", json!({})).await;
    let answers = answers.unwrap_or_else(|reason| panic!("{reason}: {:?}", fixture.messages()));
    let answers: Value = serde_json::from_str(answers.as_str().expect("text")).expect("JSON");
    assert_eq!(answers, json!([-32601, -32601, -32601, "answered"]));
}

#[tokio::test]
async fn ten_concurrent_calls_get_their_own_results() {
    let fixture = ServerFixture::new();
    let tools = fixture.open_mode("good", &[]).await;
    let calls = (0..10).map(|n| {
        let tools = tools.clone();
        async move {
            let text = format!("word {n}");
            let result = run(&tools, "echo", json!({"text": text})).await;
            assert_eq!(result, Ok(json!(text)));
        }
    });
    futures_util::future::join_all(calls).await;
}

/// A data service behind the server.
fn service() -> DataService {
    DataService {
        url: String::new(),
        mcp: Some("small".to_owned()),
        timeout_ms: 10_000,
        max_bytes: 1_048_576,
        ..DataService::default()
    }
}

// S2-044, S2-053
#[tokio::test]
async fn data_service_behind_a_server_uses_the_connector() {
    let fixture = ServerFixture::new();
    let tools = fixture.open_mode("good", &[]).await;
    let enricher = Enricher {
        enricher_id: "offer_search".to_owned(),
        domain_type: "offer_list".to_owned(),
        service: "market".to_owned(),
        version: "1.2.0".to_owned(),
        items: "items".to_owned(),
        item_id: "id".to_owned(),
        payload_schema: None,
    };
    let services = BTreeMap::from([("market".to_owned(), service())]);
    let connector = Connector::with_transports(
        &services,
        &[enricher],
        Arc::new(NoVerifier),
        |_, service| tools.service("small", service),
    );
    let connector = connector.expect("a connector");
    let enricher = connector
        .registry
        .get("offer_list", "offer_search")
        .expect("it");
    let mut params = Map::new();
    params.insert("query".to_owned(), json!("oat milk"));
    let wait = Duration::from_secs(20);
    let context = Arc::new(context());
    let trace = ServiceTrace::new(&context, None);
    let result = connector
        .call(&context, enricher, &params, wait, trace)
        .await;
    let expected = json!({"offers": [{"offer_id": "o-1", "title": "One"}]});
    assert_eq!(result, Ok(ServiceData::Complete(expected)));
    let messages = fixture.messages();
    let asked = messages
        .iter()
        .find(|message| message["method"] == "tools/call");
    let asked = &asked.expect("a call")["params"];
    assert_eq!(asked["name"], "enrich");
    assert_eq!(asked["arguments"]["principal"], "user-42");
    assert_eq!(asked["arguments"]["params"], json!({"query": "oat milk"}));
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
    assert_eq!(asked["_meta"]["traceparent"], parent);
    assert_ne!(asked["_meta"]["progressToken"], Value::Null, "{asked}");

    // A server without that tool has no data service behind it.
    let other = ServerFixture::new();
    let tools = other.open_mode("schema", &[]).await;
    let refused = tools.service("small", &services["market"]).map(|_| ());
    assert!(
        refused
            .expect_err("it does not")
            .contains("no tool `enrich`")
    );
}

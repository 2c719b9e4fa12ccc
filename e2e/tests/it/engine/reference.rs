//! The reference turn (SC-01, SC-12): one message, one sub-agent, one answer, on every wire and in
//! every list.

use serde_json::{Value, json};
use turnwire_e2e::chat::{MetricsSnapshot, assert_no_errors_logged, until};
use turnwire_e2e::data_service::offers;
use turnwire_e2e::engine::{
    EngineFixture, HIDDEN, ORCHESTRATOR, json_of, kinds, of, only, reference,
};
use turnwire_testkit::chat::ChatSubmit;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::watch::SubscribeOptions;

// SC-01, S1-031, S1-052, S1-063, S2-083
#[tokio::test]
async fn chat_wire_shows_reference_turn_in_order() {
    let engine = EngineFixture::new(reference()).await;
    let reply = engine
        .submit(ChatSubmit::new("oat milk offers").field("locale", "en"))
        .await;
    let expected = [
        "response_id",
        "episode",
        "thinking",
        "tool_call ask_shop",
        "status",
        "tool_call search_offers",
        "data_loading",
        "tool_completed search_offers",
        "tool_call render_offer_list",
        "data_loaded",
        "tool_completed render_offer_list",
        "tool_completed ask_shop",
        "text",
        "usage",
        "completed",
    ];
    assert_eq!(reply.labels(), expected);
    let types: Vec<&Value> = reply
        .of("tool_call")
        .map(|f| &f.field("tool_call")["type"])
        .collect();
    assert_eq!(types, ["sub_agent", "ccs", "render"]);
    let status = reply.of("status").next().expect("a status");
    let data = json!({"event_id": "searching_offers", "message": "Searching for offers..."});
    assert_eq!(status.field("data"), &data);
    let loading = reply
        .of("data_loading")
        .next()
        .expect("a place")
        .field("data");
    let loaded = reply.of("data_loaded").next().expect("data").field("data");
    let key = json!({"ids": [{"id": "OFF_1"}, {"id": "OFF_2"}]});
    // Announced when the data is requested: which items there are is not known yet.
    assert_eq!(
        (&loading["type"], &loading["key"]),
        (&json!("offer_list"), &json!({"ids": []}))
    );
    assert_eq!(loading["items"], Value::Null);
    assert_eq!(
        (&loaded["type"], &loaded["key"]),
        (&json!("offer_list"), &key)
    );
    assert_eq!(loaded["id"], loading["id"], "s1_082");
    assert_eq!(loaded["items"], offers()["items"], "s1_020");
    assert_eq!(reply.text(), "Here are some offers");
    reply.assert_absent(&HIDDEN);
    reply.assert_tools_paired();
    assert_no_errors_logged(&engine.server);
    engine.check_history().await;
}

// SC-01, S1-124, S1-125, S1-126, S2-067
#[tokio::test]
async fn reference_turn_is_counted_once() {
    let engine = EngineFixture::new(reference()).await;
    engine.ask("oat milk offers").await;
    // The numbers of a dispatch are those of its trace: counted when it is stored.
    until("the dispatch is counted", || async {
        let metrics = MetricsSnapshot::read(&engine.api).await;
        metrics.sum("turnwire_dispatch_intents_count") == 1.0
    })
    .await;
    let metrics = MetricsSnapshot::read(&engine.api).await;
    let one = |name: &str, label: &str, key: &str| {
        assert_eq!(metrics.by(name, label).get(key), Some(&1), "{name} {key}");
    };
    one(
        "turnwire_stream_terminal_frame_emitted_total",
        "type",
        "completed",
    );
    one(
        "turnwire_stream_status_event_emitted_total",
        "event_id",
        "searching_offers",
    );
    one(
        "turnwire_stream_rendering_policy_applied_total",
        "policy",
        "transform",
    );
    one(
        "turnwire_dispatch_subagent_latency_seconds_count",
        "sub_agent_id",
        "shop",
    );
}

/// The persisted types of the reference turn.
const LOGGED: [&str; 27] = [
    "turn.started",
    "route.decided",
    "llm.call_started orchestrate",
    "llm.call_completed",
    "plan.step_started",
    "tool.called ask_shop",
    "subagent.started shop",
    "llm.call_started subagent",
    "llm.call_completed",
    "status.emitted",
    "tool.called search_offers",
    "data.loading",
    "tool.completed search_offers",
    "llm.call_started subagent",
    "llm.call_completed",
    "tool.called render_offer_list",
    "data.loaded",
    "tool.completed render_offer_list",
    "llm.call_started subagent",
    "llm.call_completed",
    "subagent.completed shop",
    "tool.completed ask_shop",
    "plan.step_completed",
    "llm.call_started compose",
    "llm.call_completed",
    "dispatch.traced",
    "turn.completed",
];

/// The events that are stored.
fn persisted(events: &[Value]) -> Vec<Value> {
    let own = events.iter().filter(|e| e["persisted"] == true);
    own.cloned().collect()
}

/// The events that are not.
fn transient(events: &[Value]) -> Vec<Value> {
    let own = events.iter().filter(|e| e["persisted"] == false);
    own.cloned().collect()
}

// SC-01, S1-088
#[tokio::test]
async fn watchers_and_log_agree_on_reference_turn() {
    let engine = EngineFixture::new(reference()).await;
    let mut full = engine.watch("full", SubscribeOptions::live()).await;
    let everything = json!({"include_suppressed": true});
    let mut all_events = engine
        .watch(
            "suppressed too",
            SubscribeOptions::live().filter(everything),
        )
        .await;
    let mut chat = engine
        .watch("chat", SubscribeOptions::live().filter("preset:chat"))
        .await;
    let reply = engine.ask("oat milk offers").await;
    let full = json_of(&full.turn(reply.turn).await.expect("the turn"));
    let all_events = json_of(&all_events.turn(reply.turn).await.expect("the turn"));
    let chat = json_of(&chat.turn(reply.turn).await.expect("the turn"));
    let logged = engine.events(reply.turn).await;
    assert_eq!(kinds(&logged), LOGGED);
    assert_eq!(
        persisted(&full),
        logged,
        "nothing of the reference turn is suppressed"
    );
    assert_eq!(persisted(&all_events), logged);
    let expected = [
        "message.start",
        "tool.use_start ask_shop",
        "tool.use_input_delta",
        "tool.use_end",
        "message.complete",
        "message.start",
        "text.delta",
        "message.complete",
    ];
    assert_eq!(
        kinds(&transient(&full)),
        expected,
        "s2_013: only the orchestrator's messages stream"
    );
    let hidden = ["plan.", "subagent.", "dispatch.", "agent."];
    let seen: Vec<Value> = full
        .iter()
        .filter(|e| {
            !hidden
                .iter()
                .any(|h| e["type"].as_str().is_some_and(|t| t.starts_with(h)))
        })
        .cloned()
        .collect();
    assert_eq!(chat, seen, "d_35");
    for events in [&full, &all_events, &chat, &logged] {
        let text = json!(events).to_string();
        for word in ["SUBRAW", "LEAK_CACHE", "cache_meta", "total_ms"] {
            assert!(!text.contains(word), "{word} in {text}");
        }
        let data = only(events, "data.loaded");
        assert_eq!(data["payload"]["items"], offers()["items"]);
    }
    for tool in of(&logged, "tool.called").filter(|e| e["payload"]["tool_type"] != "sub_agent") {
        let summary = tool["payload"]["input_summary"]
            .as_str()
            .expect("a summary");
        assert!(summary.ends_with(" bytes"), "d_46: {tool}");
    }
    engine.check_history().await;
}

// SC-01, S1-088
#[tokio::test]
async fn messages_show_components_but_no_sub_agent_text() {
    let engine = EngineFixture::new(reference()).await;
    let reply = engine.ask("oat milk offers").await;
    let messages = engine.messages().await;
    let roles: Vec<&str> = messages.iter().filter_map(|m| m["role"].as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
    let data = &messages[2];
    assert_eq!(data["turn_id"], json!(reply.turn));
    assert_eq!(data["content"][0]["type"], "data");
    assert_eq!(data["content"][0]["data_type"], "offer_list");
    assert_eq!(data["content"][0]["items"], offers()["items"]);
    let id = &reply.of("data_loaded").next().expect("data").field("data")["id"];
    assert_eq!(&data["content"][0]["data_id"], id);
    assert_eq!(messages[3]["content"][0]["text"], "Here are some offers");
    let text = json!(messages).to_string();
    for word in HIDDEN {
        assert!(!text.contains(word), "{word} in {text}");
    }
    let path = format!("/sessions/{}/tool-calls", engine.session);
    let rows = engine.api.get(&path).await.expect("an answer").json();
    let rows = rows["tool_calls"].as_array().expect("rows");
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert!(
        rows.iter().all(|row| row["status"] == "completed"),
        "{rows:?}"
    );
    let row = engine.api.turn(reply.turn).await.expect("a turn");
    assert_eq!(
        (&row["state"], &row["terminal"]["payload"]["status"]),
        (&json!("completed"), &json!("ok")),
        "{row}"
    );
}

// SC-12, S2-012, S2-013, S2-083, I-08
#[tokio::test]
async fn only_orchestrator_speaks_and_each_step_happens_once() {
    let script = ModelScript::new()
        .call(
            ORCHESTRATOR,
            1,
            [ScriptStep::tool("ask_shop", json!({"query": "x"}))],
        )
        .call(ORCHESTRATOR, 2, [ScriptStep::slow("COMPOSED", 1, 1)])
        .call("shop", 1, [ScriptStep::slow("SUBRAW secret voice ", 1, 1)]);
    let engine = EngineFixture::new(script).await;
    let mut full = engine.watch("full", SubscribeOptions::live()).await;
    let reply = engine.ask("anything").await;
    assert_eq!(reply.text(), "COMPOSED");
    let seen = json_of(&full.turn(reply.turn).await.expect("the turn"));
    let streamed_text: String = of(&seen, "text.delta")
        .filter_map(|e| e["payload"]["text"].as_str())
        .collect();
    assert_eq!(streamed_text, "COMPOSED");
    assert!(!json!(seen).to_string().contains("secret voice"));
    reply.assert_absent(&["SUBRAW", "secret voice"]);
    let called = only(&seen, "tool.called");
    let started = only(&seen, "subagent.started");
    assert_eq!(
        called["payload"]["tool_use_id"],
        started["payload"]["tool_use_id"]
    );
    only(&seen, "subagent.completed");
    only(&seen, "tool.completed");
    let purposes: Vec<&Value> = of(&seen, "llm.call_started")
        .map(|e| &e["payload"]["purpose"])
        .collect();
    assert_eq!(purposes, ["orchestrate", "subagent", "compose"]);
    let traced = &only(&seen, "dispatch.traced")["payload"];
    assert_eq!(traced["sub_agents_invoked"], json!(["shop"]));
    assert_eq!(
        (
            &traced["intent_count"],
            &traced["cap"],
            &traced["cap_behavior"]
        ),
        (&json!(1), &json!(3), &json!("within"))
    );
    assert_eq!(traced["outcomes"][0]["outcome"], "success");
    engine.check_history().await;
}

// D-37
#[tokio::test]
async fn rows_have_the_fields_of_their_contract() {
    let engine = EngineFixture::new(reference()).await;
    engine.ask("oat milk offers").await;
    let has = |row: &Value, fields: &[&str]| {
        let row = row
            .as_object()
            .unwrap_or_else(|| panic!("no object: {row}"));
        for field in fields {
            assert!(row.contains_key(*field), "no `{field}` in {row:?}");
        }
    };
    let messages = engine.messages().await;
    let message = [
        "id",
        "session_id",
        "turn_id",
        "role",
        "status",
        "content",
        "model",
        "stop_reason",
        "usage",
        "created_at",
        "metadata",
    ];
    for row in &messages {
        has(row, &message);
        assert_eq!(row["status"], "complete", "{row}");
    }
    let block = |kind: &str| {
        let blocks = messages.iter().filter_map(|row| row["content"].as_array());
        let mut blocks = blocks.flatten();
        blocks
            .find(|block| block["type"] == kind)
            .unwrap_or_else(|| panic!("no block of type {kind}"))
    };
    has(block("text"), &["text"]);
    has(block("tool_use"), &["id", "name", "input"]);
    has(block("data"), &["data_id", "data_type", "key", "items"]);
    let tokens = [
        "input_tokens",
        "output_tokens",
        "total_tokens",
        "reasoning_tokens",
        "cached_tokens",
        "cost_usd",
    ];
    has(&messages[3]["usage"], &tokens);
    let path = format!("/sessions/{}/tool-calls", engine.session);
    let rows = engine.api.get(&path).await.expect("an answer").json();
    let tool_call = [
        "tool_use_id",
        "turn_id",
        "tool_name",
        "tool_type",
        "status",
        "started_at",
        "ended_at",
    ];
    for row in rows["tool_calls"].as_array().expect("rows") {
        has(row, &tool_call);
    }
}

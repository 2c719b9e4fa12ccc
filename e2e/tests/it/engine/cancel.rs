//! A cancel while sub-agents run: calls to data services finish and are discarded, nothing new
//! starts, everything is closed; and a crash in the middle (SC-07, S1-110, S1-111).

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use turnwire_e2e::chat::{MetricsSnapshot, assert_no_errors_logged, say, until};
use turnwire_e2e::data_service::{ServiceReply, envelope};
use turnwire_e2e::engine::{
    EngineFixture, asks, check_dispatch_rules, json_of, label, of, only, working,
};
use turnwire_event::{ResponseId, TurnId};
use turnwire_testkit::chat::{ChatStream, ChatSubmit};
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::watch::SubscribeOptions;

/// What a slow data service takes.
const SLOW_MS: u64 = 1_500;

async fn slow(script: ModelScript) -> EngineFixture {
    let engine = EngineFixture::new(working(script)).await;
    for enricher in ["offer_search", "points", "answers"] {
        engine.ccs.set(
            enricher,
            ServiceReply::envelope(&envelope(enricher)).after(SLOW_MS),
        );
    }
    engine
}

/// Asks, and waits until the data services have `calls` requests.
async fn begun(engine: &EngineFixture, calls: usize) -> ChatStream {
    let question = ChatSubmit::new("oat milk offers")
        .session(engine.session)
        .grace_ms(0);
    let stream = say(&engine.api, "a person", &question).await;
    until("the data service is asked", || async {
        engine.ccs.calls().len() == calls
    })
    .await;
    stream
}

/// The calls that were in flight are answered in full, and none follows.
async fn finished(engine: &EngineFixture, calls: usize) {
    until("the calls are answered", || async {
        engine
            .ccs
            .calls()
            .iter()
            .all(|call| call.answered.is_some() || call.cut)
    })
    .await;
    let seen = engine.ccs.calls();
    assert_eq!(seen.len(), calls, "s1_110: no new one");
    for call in seen {
        assert!(
            !call.cut && call.answered.is_some(),
            "s1_111: {} was cut",
            call.enricher
        );
    }
}

/// What is left of a turn that was cancelled while its data services were asked.
async fn closed(engine: &EngineFixture, turn: TurnId, agents: &[&str]) -> Vec<Value> {
    let events = engine.events(turn).await;
    assert_eq!(of(&events, "data.loaded").count(), 0);
    assert_eq!(of(&events, "tool.completed").count(), 0);
    let end = &only(&events, "turn.cancelled")["payload"];
    assert_eq!(
        (&end["code"], &end["phase"]),
        (&json!("REQUEST_CANCELLED"), &json!("tool")),
        "{end}"
    );
    let receipt = end["receipt"].as_array().expect("a receipt");
    let of_kind = |kind: &str| -> Vec<&Value> {
        receipt.iter().filter(|line| line["kind"] == kind).collect()
    };
    assert_eq!(of_kind("subagent").len(), agents.len(), "{receipt:?}");
    let started: Vec<&Value> = of(&events, "subagent.started")
        .map(|e| &e["payload"]["invocation_id"])
        .collect();
    for line in of_kind("subagent") {
        assert!(started.contains(&&line["id"]), "{line}");
    }
    let ccs = |id: &Value| {
        of(&events, "tool.called")
            .any(|e| &e["payload"]["tool_use_id"] == id && e["payload"]["tool_type"] == "ccs")
    };
    let discarded: Vec<&Value> = of_kind("tool")
        .into_iter()
        .filter(|line| ccs(&line["id"]))
        .collect();
    assert_eq!(discarded.len(), agents.len(), "{receipt:?}");
    for line in discarded {
        assert_eq!(line["outcome"], "discarded", "s1_110: {line}");
    }
    let trace = &only(&events, "dispatch.traced")["payload"];
    assert_eq!(trace["intent_count"], json!(agents.len()));
    for outcome in trace["outcomes"].as_array().expect("outcomes") {
        assert_eq!(outcome["outcome"], "discarded", "{trace}");
    }
    for failed in of(&events, "subagent.failed").chain(of(&events, "tool.failed")) {
        assert_eq!(failed["payload"]["error_class"], "cancelled", "{failed}");
    }
    let messages = engine.messages().await;
    assert!(
        messages.iter().all(|m| m["status"] != "in_progress"),
        "{messages:?}"
    );
    let path = format!("/sessions/{}/tool-calls", engine.session);
    let rows = engine.api.get(&path).await.expect("an answer").json();
    for row in rows["tool_calls"].as_array().expect("rows") {
        assert_eq!(row["status"], "cancelled", "{row}");
    }
    events
}

/// Asks a turn to stop, by the name that the chat wire gives it.
async fn cancel(engine: &EngineFixture, turn: TurnId) {
    let path = format!("/turns/{}/cancel", ResponseId::from(turn));
    let answer = engine.api.post(&path, json!({})).await;
    assert_eq!(answer.expect("an answer").status, 202);
}

// serial: a cancel ends its turn within 1 s
// SC-07, S1-046, S1-110, S1-111, D-79
#[tokio::test]
async fn cancel_request_ends_turn_but_not_data_service_call() {
    let engine = slow(asks(&["shop"], "never said")).await;
    let mut stream = begun(&engine, 1).await;
    let mut watcher = engine.watch("watcher", SubscribeOptions::live()).await;
    let cancelled_at = Instant::now();
    cancel(&engine, stream.turn()).await;
    let frames = stream.read_to_end().await.expect("an end");
    let took = cancelled_at.elapsed();
    assert!(
        took < Duration::from_millis(1_000),
        "it does not wait for the call: {took:?}"
    );
    let names: Vec<String> = frames.iter().map(label).collect();
    let end = names
        .iter()
        .rposition(|name| name.starts_with("tool_call "))
        .map_or(0, |at| at + 1);
    assert_eq!(
        names[end..],
        [
            "data_loading",
            "tool_completed search_offers",
            "tool_completed ask_shop",
            "cancelled"
        ]
    );
    assert_eq!(
        frames.last().expect("it").field("error"),
        &json!({"code": "REQUEST_CANCELLED"})
    );
    cancel(&engine, stream.turn()).await;
    let events = closed(&engine, stream.turn(), &["shop"]).await;
    let seen = json_of(&watcher.turn(stream.turn()).await.expect("the end"));
    assert!(of(&seen, "text.delta").next().is_none());
    finished(&engine, 1).await;
    assert_eq!(
        engine.events(stream.turn()).await,
        events,
        "the late result adds nothing"
    );
    until("no task is left", || async {
        MetricsSnapshot::read(&engine.api)
            .await
            .sum("turnwire_engine_tasks_live")
            == 0.0
    })
    .await;
    assert_no_errors_logged(&engine.server);
    engine.check_history().await;
}

// serial: a client that leaves cancels within 1 s
// SC-07, S1-105, S1-104
#[tokio::test]
async fn disconnect_cancels_within_a_second_call_ends_itself() {
    let engine = slow(asks(&["shop"], "never said")).await;
    let stream = begun(&engine, 1).await;
    let turn = stream.turn();
    let disconnected_at = Instant::now();
    drop(stream);
    engine.api.ended(turn).await.expect("an end");
    assert!(
        disconnected_at.elapsed() < Duration::from_secs(1),
        "{:?}",
        disconnected_at.elapsed()
    );
    closed(&engine, turn, &["shop"]).await;
    finished(&engine, 1).await;
    assert_no_errors_logged(&engine.server);
    engine.check_history().await;
}

// S1-110, S2-064
#[tokio::test]
async fn cancel_during_fan_out_closes_all_sub_agents() {
    let engine = slow(asks(&["shop", "rewards", "support"], "never said")).await;
    let mut stream = begun(&engine, 3).await;
    engine.api.cancel(stream.turn()).await.expect("an answer");
    let frames = stream.read_to_end().await.expect("an end");
    let ended = frames
        .iter()
        .filter(|f| f.event() == "tool_completed")
        .count();
    assert_eq!(ended, 6, "three tools, and three that asked");
    closed(&engine, stream.turn(), &["shop", "rewards", "support"]).await;
    finished(&engine, 3).await;
    // The session goes on.
    for enricher in ["offer_search", "points", "answers"] {
        engine
            .ccs
            .set(enricher, ServiceReply::envelope(&envelope(enricher)));
    }
    assert_eq!(engine.ask("again").await.last().event(), "completed");
    engine.check_history().await;
}

// S1-110
#[tokio::test]
async fn streaming_sub_agent_and_its_sibling_are_stopped() {
    let script = asks(&["shop", "rewards"], "never said")
        .call("shop", 1, [ScriptStep::slow("SUBRAW ", 2, 20).repeat(500)])
        .call("rewards", 1, [ScriptStep::stall()]);
    let engine = EngineFixture::new(script).await;
    let question = ChatSubmit::new("both").session(engine.session);
    let mut stream = say(&engine.api, "a person", &question).await;
    let turn = stream.turn();
    until("both work", || async {
        let events = engine.events(turn).await;
        of(&events, "llm.call_started")
            .filter(|e| e["payload"]["purpose"] == "subagent")
            .count()
            == 2
    })
    .await;
    engine.api.cancel(turn).await.expect("an answer");
    let frames = stream.read_to_end().await.expect("an end");
    assert_eq!(frames.last().expect("it").event(), "cancelled");
    let events = engine.events(turn).await;
    assert_eq!(of(&events, "llm.call_failed").count(), 2);
    assert_eq!(of(&events, "subagent.failed").count(), 2);
    let end = only(&events, "turn.cancelled");
    let kinds: Vec<&Value> = end["payload"]["receipt"]
        .as_array()
        .expect("a receipt")
        .iter()
        .map(|l| &l["kind"])
        .collect();
    assert_eq!(
        kinds.iter().filter(|kind| **kind == "subagent").count(),
        2,
        "{end}"
    );
    assert!(!json!(events).to_string().contains("SUBRAW"));
    engine.check_history().await;
}

// S2-064
#[tokio::test]
async fn crash_in_fan_out_closes_children_first_with_one_trace() {
    let mut engine = slow(asks(&["shop", "rewards", "support"], "never said")).await;
    let question = ChatSubmit::new("oat milk offers").session(engine.session);
    let stream = say(&engine.api, "a person", &question).await;
    let turn = stream.turn();
    // The service is asked while the calls are being written.
    until("the calls of the data service are on disk", || async {
        let events = engine.events(turn).await;
        let called = of(&events, "tool.called");
        let of_service = called.filter(|event| event["payload"]["tool_type"] == "ccs");
        engine.ccs.calls().len() == 3 && of_service.count() == 3
    })
    .await;
    engine.server.kill().await;
    drop(stream);
    engine.server.run().await.expect("it comes back");
    let row = engine.api.ended(turn).await.expect("an end");
    assert_eq!(
        row["terminal"]["payload"]["reason"], "server_restart",
        "{row}"
    );
    let events = engine.events(turn).await;
    check_dispatch_rules(&events);
    let at = |kind: &str| -> Vec<usize> {
        let own = events.iter().enumerate().filter(|(_, e)| e["type"] == kind);
        own.map(|(at, _)| at).collect()
    };
    let tools = at("tool.failed");
    let own: Vec<bool> = tools
        .iter()
        .map(|&t| events[t]["payload"]["tool_type"] == "ccs")
        .collect();
    assert_eq!(own.iter().filter(|ccs| **ccs).count(), 3, "{own:?}");
    let agents = at("subagent.failed");
    assert_eq!((agents.len(), tools.len()), (3, 6));
    for &agent in &agents {
        let use_id = &events[agent]["payload"]["tool_use_id"];
        let tool_index = tools
            .iter()
            .find(|&&t| &events[t]["payload"]["tool_use_id"] == use_id);
        assert!(
            *tool_index.expect("its ask_ tool") > agent,
            "the parent's tool ends after its child"
        );
    }
    assert_eq!(at("plan.step_completed").len(), 1);
    assert!(at("plan.step_completed")[0] > agents[2]);
    let trace = &only(&events, "dispatch.traced")["payload"];
    assert_eq!(
        trace["sub_agents_invoked"].as_array().map(Vec::len),
        Some(3),
        "{trace}"
    );
    only(&events, "turn.completed");
    // A second restart changes nothing, and the session goes on.
    engine.server.restart().await;
    assert_eq!(engine.events(turn).await, events);
    for enricher in ["offer_search", "points", "answers"] {
        engine
            .ccs
            .set(enricher, ServiceReply::envelope(&envelope(enricher)));
    }
    assert_eq!(engine.ask("again").await.last().event(), "completed");
    engine.check_history().await;
}

// LAW-8
#[tokio::test]
async fn cancel_at_any_moment_of_fan_out_keeps_every_law() {
    let engine = EngineFixture::new(working(asks(
        &["shop", "rewards", "support"],
        "All of it, word by word.",
    )))
    .await;
    for (enricher, ms) in [("offer_search", 20), ("points", 35), ("answers", 50)] {
        engine.ccs.set(
            enricher,
            ServiceReply::envelope(&envelope(enricher)).after(ms),
        );
    }
    let mut cancelled = 0;
    for round in 0..40u64 {
        let question = ChatSubmit::new("everything").session(engine.session);
        let mut stream = say(&engine.api, &format!("round {round}"), &question).await;
        tokio::time::sleep(Duration::from_millis(round * 3)).await;
        engine.api.cancel(stream.turn()).await.expect("an answer");
        let frames = stream.read_to_end().await.expect("an end");
        cancelled += usize::from(frames.last().expect("it").event() == "cancelled");
    }
    println!("40 cancels, one every 3 ms of a fan-out: {cancelled} in time");
    assert!(cancelled >= 10, "{cancelled}");
    assert_no_errors_logged(&engine.server);
    engine.check_history().await;
}

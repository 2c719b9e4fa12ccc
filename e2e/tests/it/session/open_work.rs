//! A client that attaches late learns from the snapshot alone what runs, what waits for a decision
//! and how the last turn ended.

use serde_json::{Value, json};
use turnwire_e2e::approvals::ApprovalFixture;
use turnwire_e2e::engine::{EngineFixture, asks};
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_e2e::workers::{WorkerFixture, delegates, read_by};
use turnwire_event::{Body, Event, SessionId};
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::provider::Dialect;
use turnwire_testkit::script::{ModelScript, ScriptStep, tool};
use turnwire_testkit::server::ServerOptions;
use turnwire_testkit::watch::{SubscribeOptions, WatchClient, WatchFrame};

/// Attaches with a snapshot; returns the frame and the client behind it.
async fn snapshot(api: &ApiClient, session: SessionId, name: &str) -> (Value, WatchClient) {
    let client = WatchClient::connect(api, name, session).await;
    let mut client = client.expect("a connection");
    let ask = SubscribeOptions::snapshot();
    client.subscribed(&ask).await.expect("an acknowledgement");
    match client.next().await.expect("a frame") {
        WatchFrame::Frame(frame) if frame["type"] == "snapshot" => (frame, client),
        other => panic!("no snapshot: {other:?}"),
    }
}

fn nothing() -> Value {
    json!({"tools": [], "sub_agents": [], "workers": [], "approvals": [], "inputs": []})
}

// S3-027, S3-032
#[tokio::test]
async fn snapshot_has_the_running_tool_and_the_last_end() {
    let script = ModelScript::new()
        .on(
            "^nap",
            [ScriptStep::tool(tool::SLEEP, json!({"ms": 60_000}))],
        )
        .on("", [ScriptStep::text("hello")]);
    let fixture = ServerFixture::new(ServerOptions::script(script)).await;
    let (fresh, _) = snapshot(&fixture.api, fixture.session, "fresh").await;
    assert_eq!(fresh["open"], nothing());
    assert_eq!(fresh["last_turn"], Value::Null);
    let first = fixture.turn("hi").await;
    let first = first[0].turn_id.expect("a turn");
    let (idle, _) = snapshot(&fixture.api, fixture.session, "idle").await;
    assert_eq!(idle["open"], nothing());
    // The same as the turn's own resource, terminal included.
    let resource = fixture.api.turn(first).await.expect("the turn");
    assert_eq!(idle["last_turn"], resource);
    assert_eq!(resource["terminal"]["type"], "turn.completed");

    let mut live = fixture.watch("live", SubscribeOptions::live()).await;
    let turn = fixture.submit("nap").await;
    let called = |event: &Event| matches!(event.body, Body::ToolCalled(_));
    let called = live.until(called).await.expect("the tool runs");
    let called = called.last().expect("an event");
    let Body::ToolCalled(call) = &called.body else {
        panic!("not a call: {called:?}")
    };
    let (busy, mut late) = snapshot(&fixture.api, fixture.session, "busy").await;
    let expected = json!({
        "event_id": called.id, "turn_id": turn, "actor": called.actor.to_string(),
        "timestamp": called.timestamp, "tool_use_id": call.tool_use_id, "tool_name": "sleep",
        "tool_type": call.tool_type, "input_summary": call.input_summary,
    });
    assert_eq!(busy["open"]["tools"], json!([expected]));
    assert_eq!(busy["session"]["current_turn_id"], json!(turn));
    assert_eq!(busy["last_turn"]["turn_id"], json!(first));

    fixture.api.cancel(turn).await.expect("an answer");
    late.turn(turn).await.expect("the rest of the turn");
    let (stopped, _) = snapshot(&fixture.api, fixture.session, "stopped").await;
    assert_eq!(stopped["open"], nothing());
    assert_eq!(stopped["last_turn"]["turn_id"], json!(turn));
    assert_eq!(stopped["last_turn"]["state"], "cancelled");
    let receipt = stopped["last_turn"]["receipt"].as_array();
    assert_eq!(receipt.map(Vec::len), Some(1), "{stopped}");
    fixture.check_history().await;
}

// S3-033, S3-057
#[tokio::test]
async fn snapshot_has_the_raw_prefix_of_a_tool_input() {
    let text = "word ".repeat(40);
    let step = ScriptStep::slow_tool(tool::ECHO, json!({"text": text}), 40, 40);
    let script = ModelScript::new().on("", [step]);
    let fixture = ServerFixture::new(ServerOptions::script(script)).await;
    let mut live = fixture.watch("live", SubscribeOptions::live()).await;
    let turn = fixture.submit("go").await;
    let fragment = |event: &Event| matches!(event.body, Body::ToolUseInputDelta(_));
    live.until(fragment).await.expect("a fragment");
    let (frame, mut late) = snapshot(&fixture.api, fixture.session, "late").await;
    let inputs = frame["open"]["inputs"].as_array().expect("a list");
    assert_eq!(inputs.len(), 1, "{frame}");
    let mut raw = inputs[0]["partial_json"].as_str().expect("text").to_owned();
    let whole = json!({"text": text}).to_string();
    assert!(!raw.is_empty() && whole.starts_with(&raw), "{raw}");
    let ended = |event: &Event| matches!(event.body, Body::ToolUseEnd(_));
    let mut final_input = Value::Null;
    for event in late.until(ended).await.expect("the rest of the input") {
        match event.body {
            Body::ToolUseInputDelta(delta) => {
                assert_eq!(json!(delta.tool_use_id), inputs[0]["tool_use_id"]);
                assert_eq!(json!(delta.message_id), inputs[0]["message_id"]);
                raw.push_str(&delta.partial_json);
            }
            Body::ToolUseEnd(end) => final_input = end.final_input,
            _ => {}
        }
    }
    let sum: Value = serde_json::from_str(&raw).expect("prefix and fragments are the input");
    assert_eq!(sum, final_input);
    // The script uses the tool in every call.
    fixture.api.cancel(turn).await.expect("an answer");
    late.turn(turn).await.expect("the rest of the turn");
    fixture.check_history().await;
}

// S3-032
#[tokio::test]
async fn snapshot_has_open_approvals_also_after_a_restart() {
    let mut approvals = ApprovalFixture::new(Dialect::Anthropic).await;
    approvals.wants(&["milk", "bread"]);
    approvals.says("Done.");
    let (turn, open) = approvals.paused("Write it down.").await;
    for restarts in 0..2 {
        let engine = &approvals.setup.engine;
        let name = format!("restarts {restarts}");
        let (frame, _) = snapshot(&engine.api, engine.session, &name).await;
        let asked = frame["open"]["approvals"].as_array().expect("a list");
        let ids: Vec<&Value> = asked.iter().map(|asked| &asked["approval_id"]).collect();
        assert_eq!(json!(ids), json!(open));
        let path = format!("/turns/{turn}/approvals");
        let listed = engine.api.get(&path).await.expect("an answer").json();
        for (asked, listed) in asked
            .iter()
            .zip(listed["approvals"].as_array().expect("a list"))
        {
            let mut expected = listed.clone();
            expected["turn_id"] = json!(turn);
            assert_eq!(asked, &expected, "as in the turn's list");
        }
        assert_eq!(frame["last_turn"]["turn_id"], json!(turn));
        let payload = &frame["last_turn"]["terminal"]["payload"];
        assert_eq!(payload["status"], "paused");
        approvals.setup.engine.server.restart().await;
    }
    let engine = &approvals.setup.engine;
    let decide = json!({"approval_id": open[0], "decision": "reject"});
    let answer = approvals.post(turn, decide).await.expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.json());
    let (frame, _) = snapshot(&engine.api, engine.session, "one decided").await;
    let asked = frame["open"]["approvals"].as_array().expect("a list");
    assert_eq!(asked.len(), 1, "{frame}");
    assert_eq!(asked[0]["approval_id"], json!(open[1]));
}

// S3-032, S3-086
#[tokio::test]
async fn snapshot_has_the_running_worker() {
    let nap = ScriptStep::tool("nap", json!({"ms": 60_000}));
    let script = read_by(delegates("sums", "Done."), [nap]);
    let fixture = WorkerFixture::new(&script).await;
    let turn = fixture.say("go").await;
    let (worker, _) = fixture.working(fixture.session).await;
    let (frame, mut late) = snapshot(&fixture.api, fixture.session, "late").await;
    let log = fixture.log(fixture.session).await;
    let started = log.iter().find(|event| event["type"] == "delegate.started");
    let started = started.expect("a start");
    let mut expected = started["payload"].clone();
    expected["event_id"] = started["id"].clone();
    expected["turn_id"] = json!(turn);
    expected["actor"] = started["actor"].clone();
    expected["timestamp"] = started["timestamp"].clone();
    assert_eq!(frame["open"]["workers"], json!([expected]));
    assert_eq!(expected["worker_session_id"], json!(worker));
    let tools = frame["open"]["tools"].as_array().expect("a list");
    assert_eq!(tools[0]["tool_use_id"], expected["tool_use_id"]);
    fixture.api.cancel(turn).await.expect("an answer");
    late.turn(turn).await.expect("the rest of the turn");
    let (frame, _) = snapshot(&fixture.api, fixture.session, "after").await;
    assert_eq!(frame["open"], nothing());
}

// S3-032
#[tokio::test]
async fn snapshot_has_the_running_sub_agent() {
    // The sub-agent's model never answers.
    let script = asks(&["shop"], "never said").call("shop", 1, [ScriptStep::stall()]);
    let engine = EngineFixture::new(script).await;
    let mut live = engine.watch("live", SubscribeOptions::live()).await;
    let turn = engine.api.submit(engine.session, "oat milk offers").await;
    let turn = turn.expect("accepted").turn_id;
    let started = |event: &Event| matches!(event.body, Body::SubagentStarted(_));
    live.until(started).await.expect("the sub-agent runs");
    let (frame, mut late) = snapshot(&engine.api, engine.session, "late").await;
    let log = engine.events(turn).await;
    let started = log.iter().find(|event| event["type"] == "subagent.started");
    let started = started.expect("a start");
    let mut expected = started["payload"].clone();
    let context = expected["context"].take();
    assert!(context["principal"].is_string(), "{started}");
    expected
        .as_object_mut()
        .expect("a payload")
        .remove("context");
    expected["event_id"] = started["id"].clone();
    expected["turn_id"] = json!(turn);
    expected["actor"] = started["actor"].clone();
    expected["timestamp"] = started["timestamp"].clone();
    assert_eq!(frame["open"]["sub_agents"], json!([expected]));
    let tools = frame["open"]["tools"].as_array().expect("a list");
    assert_eq!(tools.len(), 1, "{frame}");
    assert_eq!(tools[0]["tool_use_id"], expected["tool_use_id"]);
    engine.api.cancel(turn).await.expect("an answer");
    late.turn(turn).await.expect("the rest of the turn");
    let (frame, _) = snapshot(&engine.api, engine.session, "after").await;
    assert_eq!(frame["open"], nothing());
    engine.check_history().await;
}

//! Relayed agents of a pack: the request, keys, stops by URL, statuses, workers.

use serde_json::{Value, json};
use turnwire_e2e::chat::{say, until, whole};
use turnwire_e2e::engine::{EngineFixture, asks, only};
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_testkit::chat::{Block, ChatSubmit};
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::server::ServerOptions;
use turnwire_testkit::upstream::{FakeUpstream, UpstreamStep as Step, stream};

use super::{completed, text};

const KEY: &str = "upstream-key-1234567890";

/// A pack whose orchestrator runs elsewhere, with a status of the platform.
fn pack(upstream: &FakeUpstream, more: &str) -> TestPack {
    let orchestrator = format!(
        "id: orchestrator\nversion: \"1\"\nkind: orchestrator\ndescription: Runs elsewhere.\nrelay:\n  url: {}\n{more}",
        upstream.url()
    );
    let status = "- id: searching_offers\n  description: It searches.\n  default_render_key: status.searching_offers\n  default_policy: transform\n  emitter_subagents: [orchestrator]\n  lifecycle: active\n";
    TestPack::default()
        .put("pack.yaml", "name: remote\nversion: \"1.0.0\"\ndefault_locale: en\n")
        .put("orchestrator.yaml", &orchestrator)
        .put("platform/status_events.yaml", status)
        .put("locales/en.yaml", "status.searching_offers: {message: \"Searching for offers...\", phrase: \"searching for offers\"}\n")
        .put("locales/de.yaml", "status.searching_offers: {message: \"Angebote werden gesucht …\", phrase: \"Angebote werden gesucht\"}\n")
}

async fn fixture(pack: TestPack) -> ServerFixture {
    let mut options = ServerOptions::pack(pack);
    options
        .env
        .push(("UPSTREAM_KEY".to_owned(), KEY.to_owned()));
    ServerFixture::new(options).await
}

// G8
#[tokio::test]
async fn request_has_the_turn_and_the_key_of_the_pack_alone() {
    let upstream = FakeUpstream::start(stream(&[text("Hello"), completed()])).await;
    let more = "  key: ${UPSTREAM_KEY}\n  headers: {x-team: blue}\n  history: {last: 2}\n";
    let fixture = fixture(pack(&upstream, more)).await;
    for message in ["one", "two", "three"] {
        let question = ChatSubmit::new(message)
            .session(fixture.session)
            .field("locale", "de-AT")
            .field("location", "Graz")
            .header("authorization", "Bearer token-of-the-client")
            .header(
                "traceparent",
                "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            );
        whole(&fixture.api, message, &question).await;
    }
    let requests = upstream.requests();
    let last = requests.last().expect("a request");
    assert_eq!(last.header("authorization"), format!("Bearer {KEY}"));
    assert_eq!(last.header("x-team"), "blue");
    assert_eq!(last.header("accept"), "text/event-stream");
    let trace = last.header("traceparent");
    assert!(
        trace.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-"),
        "{trace}"
    );
    assert!(!format!("{requests:?}").contains("token-of-the-client"));
    let body = &last.body;
    assert_eq!(body["version"], "1");
    assert_eq!(body["agent"], "orchestrator");
    assert_eq!(body["session_id"], json!(fixture.session));
    assert_eq!(
        (&body["principal"], &body["locale"]),
        (&json!("local"), &json!("de-AT"))
    );
    assert_eq!(
        (&body["location"], &body["kind"]),
        (&json!("Graz"), &json!("chat"))
    );
    assert_eq!(body["content"], json!([{"type": "text", "text": "three"}]));
    for field in ["turn_id", "tenant", "episode_id"] {
        assert!(body[field].is_string(), "{field}");
    }
    let said =
        |role: &str, text: &str| json!({"role": role, "content": [{"type": "text", "text": text}]});
    assert_eq!(
        body["history"],
        json!([said("user", "two"), said("assistant", "Hello")])
    );
    assert_eq!(requests[0].body["history"], Value::Null);
    fixture.check_history().await;
}

#[tokio::test]
async fn stop_is_posted_to_the_cancel_url_unless_the_answer_has_ended() {
    let upstream = FakeUpstream::start(stream(&[text("Hello"), completed()])).await;
    let more = format!(
        "  cancel_url: {}\n  key: ${{UPSTREAM_KEY}}\n",
        upstream.cancel_url()
    );
    let fixture = fixture(pack(&upstream, &more)).await;
    let question = ChatSubmit::new("hi").session(fixture.session);
    whole(&fixture.api, "whole", &question).await;
    // Nothing runs there that could be stopped.
    for (status, head) in [
        (429, ""),
        (500, ""),
        (200, "content-type: application/json\r\n"),
    ] {
        upstream.answer_next(vec![Step::response(status, head, "{}")]);
        let (_, frames) = whole(&fixture.api, "refused", &question).await;
        assert_eq!(frames.last().map(Block::event), Some("error"), "{status}");
    }
    let sentinel = vec![
        Step::head(),
        Step::event(&text("Hel")),
        Step::done(),
        Step::Stall,
    ];
    upstream.answer_next(sentinel);
    let (_, frames) = whole(&fixture.api, "without an end", &question).await;
    assert_eq!(frames.last().map(Block::event), Some("error"));
    upstream.answer_next(vec![Step::head(), Step::event(&text("Hel")), Step::Stall]);
    let mut stalled = say(&fixture.api, "stopped", &question).await;
    stalled.until("text").await.expect("a beginning");
    fixture.api.cancel(stalled.turn()).await.expect("an answer");
    until("the stop is told", || async {
        upstream.cancels().len() == 1
    })
    .await;
    let cancel = &upstream.cancels()[0];
    assert_eq!(
        cancel.body,
        json!({"session_id": fixture.session, "turn_id": stalled.turn()})
    );
    assert_eq!(cancel.header("authorization"), format!("Bearer {KEY}"));
    let frames = stalled.read_to_end().await.expect("an end");
    assert_eq!(frames.last().map(Block::event), Some("cancelled"));
    fixture.check_history().await;
}

// S1-070
#[tokio::test]
async fn status_of_an_upstream_passes_the_registry_and_the_locale() {
    let upstream = FakeUpstream::start(stream(&[
        json!({"event_type": "searching_offers", "tool_id": null}),
        json!({"event_type": "teleporting", "tool_id": null}),
        text("Found."),
        completed(),
    ]))
    .await;
    let fixture = fixture(pack(&upstream, "")).await;
    for (locale, message) in [
        ("en", "Searching for offers..."),
        ("de", "Angebote werden gesucht …"),
    ] {
        let question = ChatSubmit::new("hi")
            .session(fixture.session)
            .field("locale", locale);
        let (_, frames) = whole(&fixture.api, locale, &question).await;
        let statuses: Vec<&Block> = frames
            .iter()
            .filter(|frame| frame.event() == "status")
            .collect();
        assert_eq!(statuses.len(), 1, "{frames:?}");
        assert_eq!(
            statuses[0].field("data"),
            &json!({"event_id": "searching_offers", "message": message})
        );
        assert!(!format!("{frames:?}").contains("teleporting"));
    }
    let metrics = fixture.api.get("/metrics").await.expect("an answer").body;
    let suppressed = metrics.lines().any(|line| {
        line.starts_with("turnwire_status_event_unregistered_id_total") && line.ends_with(" 2")
    });
    assert!(suppressed);
    assert!(fixture.server.stderr().contains("status withheld"));
    fixture.check_history().await;
}

/// A remote shop in a pack whose other agents run here.
fn remote_shop(upstream: &FakeUpstream, pack: TestPack) -> TestPack {
    let file = "verticals/shop/agent.yaml";
    let lines = pack.text(file).lines().filter(|line| {
        let native = ["model:", "prompt_blocks:", "tools:", "history:"];
        !native.iter().any(|field| line.starts_with(field))
    });
    let relay = format!(
        "relay:\n  url: {}\n  cancel_url: {}\n  history: {{last: 4}}\n",
        upstream.url(),
        upstream.cancel_url()
    );
    let text = lines.collect::<Vec<_>>().join("\n") + "\n" + &relay;
    pack.put(file, &text)
}

async fn shop_elsewhere(steps: Vec<Step>) -> (FakeUpstream, EngineFixture) {
    let upstream = FakeUpstream::start(steps).await;
    let script = asks(&["shop"], "I heard: {{result.ask_shop.text}}");
    let engine = EngineFixture::with(script, |pack| remote_shop(&upstream, pack)).await;
    (upstream, engine)
}

// S2-013, S1-070
#[tokio::test]
async fn words_of_a_remote_sub_agent_go_to_the_orchestrator_only() {
    let (upstream, engine) = shop_elsewhere(stream(&[
        json!({"type": "thinking", "content": "SUBRAW thought"}),
        json!({"event_type": "searching_offers", "sub_agent_id": "rewards"}),
        json!({"type": "tool_call_start", "id": "c1", "name": "render_offer_list"}),
        json!({"type": "tool_result", "id": "c1", "content": {"items": [{"id": "OFF_1"}]}}),
        json!({"type": "tool_call_end", "id": "c1"}),
        text("oat "),
        text("milk"),
        json!({"type": "usage", "input_tokens": 5, "output_tokens": 4}),
        completed(),
    ]))
    .await;
    let reply = engine.ask("offers").await;
    assert_eq!(reply.text(), "I heard: oat milk");
    reply.assert_absent(&["SUBRAW"]);
    reply.assert_order(&[
        "tool_call ask_shop",
        "status",
        "data_loading",
        "data_loaded",
        "tool_completed ask_shop",
        "text",
        "completed",
    ]);
    let events = engine.events(reply.turn).await;
    let completed = &only(&events, "subagent.completed")["payload"];
    assert_eq!(
        (&completed["outcome"], &completed["status_events"]),
        (&json!("success"), &json!(1))
    );
    let body = &upstream.requests()[0].body;
    assert_eq!(body["agent"], "shop");
    assert!(body["invocation_id"].is_string());
    assert!(body["content"][0]["text"].is_string());
    engine.check_history().await;
}

// S2-083, F13
#[tokio::test]
async fn remote_sub_agent_that_fails_is_an_axis_of_its_own() {
    for steps in [
        vec![Step::response(500, "", "null pointer at db-7.internal")],
        vec![Step::head(), Step::event(&text("half"))],
        stream(&[json!({"type": "error", "error": {"code": "RATE_LIMIT_ERROR"}})]),
        stream(&[json!({"type": "cancelled"})]),
        stream(&[completed()]),
    ] {
        let (_upstream, engine) = shop_elsewhere(steps).await;
        let reply = engine.ask("offers").await;
        let failed = json!({"code": "SUB_AGENT_FAILED", "sub_agent_id": "shop"});
        assert_eq!(reply.errors(), [(failed, json!(true))]);
        reply.assert_absent(&["null pointer", "db-7"]);
        reply.assert_valid_answer();
        engine.check_history().await;
    }
}

// S1-104
#[tokio::test]
async fn remote_sub_agent_is_stopped_with_its_turn_and_by_its_timeout() {
    let stalling = vec![Step::head(), Step::event(&text("half")), Step::Stall];
    let (upstream, engine) = shop_elsewhere(stalling.clone()).await;
    let mut stream = say(&engine.api, "stopped", &ChatSubmit::new("offers")).await;
    until("the sub-agent is asked", || async {
        upstream.requests().len() == 1
    })
    .await;
    engine.api.cancel(stream.turn()).await.expect("an answer");
    stream.read_to_end().await.expect("an end");
    until("the connection is closed", || async {
        upstream.open_connections() == 0
    })
    .await;
    until("the stop is told", || async {
        upstream.cancels().len() == 1
    })
    .await;
    engine.check_history().await;

    let upstream = FakeUpstream::start(stalling).await;
    let script = asks(&["shop"], "Nothing.");
    let engine = EngineFixture::with(script, |pack| {
        let pack = remote_shop(&upstream, pack);
        let file = "verticals/shop/agent.yaml";
        let text = format!(
            "{}timeout_ms: 300\n",
            pack.text(file).replace("timeout_ms:", "# timeout_ms:")
        );
        pack.put(file, &text)
    })
    .await;
    let reply = engine.ask("offers").await;
    assert_eq!(reply.errors().len(), 1);
    until("the connection is closed", || async {
        upstream.open_connections() == 0
    })
    .await;
    engine.check_history().await;
}

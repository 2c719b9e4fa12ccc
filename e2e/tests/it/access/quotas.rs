//! Quotas at their edges: the last request that is allowed, the first that is refused and what it is
//! told, and what the others are not affected by.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_e2e::models::ProviderFixture;
use turnwire_testkit::api::{ApiClient, ApiResponse};
use turnwire_testkit::chat::{ChatStream, ChatSubmit, CursorPlacement};
use turnwire_testkit::provider::{Dialect, ModelMessage, TokenCounts};
use turnwire_testkit::server::{ServerOptions, TestServer};
use turnwire_testkit::watch::{SubscribeOptions, WatchClient, WatchEnd};

use super::fixture::{ACME, OTHER, slow_script};

fn caller(server: &TestServer, tenant: &str, principal: &str) -> ApiClient {
    let api = server.api().with("x-tenant-id", tenant);
    api.with("x-turnwire-principal", principal)
}

async fn ask(api: &ApiClient, message: &str) -> ApiResponse {
    let session = api.create().await.expect("a session");
    api.try_submit(session, message).await.expect("an answer")
}

/// Checks a refusal; returns the seconds of its `Retry-After`.
#[track_caller]
fn refused(answer: &ApiResponse, quota: &str, scope: &str, limit: u64) -> u64 {
    assert_eq!(answer.status, 429, "{}", answer.body);
    assert_eq!(answer.header("content-type"), "application/problem+json");
    let problem = answer.json();
    let told = [&problem["code"], &problem["quota"], &problem["scope"]];
    assert_eq!(told, ["quota_exceeded", quota, scope], "{problem}");
    assert_eq!(problem["limit"], limit, "{problem}");
    answer.header("retry-after").parse().expect("seconds")
}

/// What the header `RateLimit` says is left of a quota.
#[track_caller]
fn left(answer: &ApiResponse, name: &str) -> u64 {
    let header = answer.header("ratelimit").to_owned();
    let item = header
        .split(", ")
        .find(|it| it.starts_with(&format!("\"{name}\";")));
    let item = item.unwrap_or_else(|| panic!("no {name} in {header:?}"));
    let left = item.split(';').find_map(|it| it.strip_prefix("r="));
    left.and_then(|left| left.parse().ok()).expect("a number")
}

// G9
#[tokio::test]
async fn turns_of_a_minute_are_counted_for_principal_and_tenant() {
    let options = ServerOptions::script(slow_script())
        .set("quota", "principal_turns_per_minute", 3)
        .set("quota", "tenant_turns_per_minute", 5);
    let server = TestServer::start(options).await;
    let [ann, bob] = ["ann", "bob"].map(|name| caller(&server, ACME, name));
    let eve = caller(&server, OTHER, "ann");
    // A busy session refuses a turn, and a repeated submit creates none: neither counts.
    let session = ann.create().await.expect("a session");
    let path = format!("/sessions/{session}/turns");
    let body = json!({"message": "slow"});
    let keyed = ann.clone().with("idempotency-key", "once");
    let first = keyed.post(&path, body.clone()).await.expect("an answer");
    assert_eq!((first.status, left(&first, "principal-turns")), (202, 2));
    let policy = "\"principal-turns\";q=3;w=60, \"tenant-turns\";q=5;w=60";
    assert_eq!(first.header("ratelimit-policy"), policy);
    let repeated = keyed.post(&path, body.clone()).await.expect("an answer");
    assert_eq!(
        (repeated.status, left(&repeated, "principal-turns")),
        (202, 2)
    );
    assert_eq!(repeated.json()["turn_id"], first.json()["turn_id"]);
    let busy = ann.post(&path, body).await.expect("an answer");
    assert_eq!(busy.code(), "turn_in_flight");
    assert_eq!(left(&busy, "principal-turns"), 2);
    for expected in [1, 0] {
        let answer = ask(&ann, "hi").await;
        assert_eq!(
            (answer.status, left(&answer, "principal-turns")),
            (202, expected)
        );
    }
    let answer = ask(&ann, "hi").await;
    let wait_s = refused(&answer, "turns_per_minute", "principal", 3);
    assert!((15..=20).contains(&wait_s), "a third of a minute: {wait_s}");
    assert_eq!(left(&answer, "principal-turns"), 0);
    let chat = ChatStream::submit(&ann, "above", &ChatSubmit::new("hi")).await;
    assert_eq!(chat.expect_err("refused").status(), 429);
    // The tenant has two left, whoever of it submits them.
    for expected in [1, 0] {
        let answer = ask(&bob, "hi").await;
        assert_eq!(
            (answer.status, left(&answer, "tenant-turns")),
            (202, expected)
        );
    }
    let answer = ask(&bob, "hi").await;
    refused(&answer, "turns_per_minute", "tenant", 5);
    assert_eq!(left(&answer, "principal-turns"), 1, "not counted for bob");
    assert_eq!(ask(&eve, "hi").await.status, 202);
    // What is not a turn is not refused.
    assert_eq!(ann.get("/sessions").await.expect("an answer").status, 200);
    let metrics = server.api().get("/metrics").await.expect("metrics").body;
    for scope in ["principal", "tenant"] {
        let line =
            format!("turnwire_limit_refused_total{{limit=\"turns_per_minute\",scope=\"{scope}\"}}");
        assert!(metrics.contains(&line), "{line}");
    }
}

#[tokio::test]
async fn refused_turn_is_accepted_after_the_announced_time() {
    let options =
        ServerOptions::script(slow_script()).set("quota", "principal_turns_per_minute", 30);
    let server = TestServer::start(options).await;
    let ann = caller(&server, ACME, "ann");
    let mut answer = ask(&ann, "hi").await;
    while answer.status == 202 {
        answer = ask(&ann, "hi").await;
    }
    let wait_s = refused(&answer, "turns_per_minute", "principal", 30);
    assert!((1..=2).contains(&wait_s), "{wait_s}");
    tokio::time::sleep(Duration::from_secs(wait_s)).await;
    assert_eq!(ask(&ann, "hi").await.status, 202);
}

/// A server whose model uses 1,000 tokens for 1,900 millionths of a dollar in each turn.
async fn metered(quotas: &[(&'static str, &str)]) -> ProviderFixture {
    let set = |options: ServerOptions| {
        let quotas = quotas.iter();
        quotas.fold(options, |options, (key, value)| {
            options.set("quota", key, value)
        })
    };
    let setup = ProviderFixture::with(Dialect::Chat, |entry| entry, set).await;
    let usage = TokenCounts {
        input: 900,
        cached: 0,
        cache_write: 0,
        output: 100,
        reasoning: 0,
    };
    let answer = ModelMessage::text(["Yes."]).usage(usage);
    setup.fake.always("", answer);
    setup
}

/// Submits a turn, which is accepted, and waits for its end.
async fn spend(api: &ApiClient) {
    let answer = ask(api, "hi").await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    let turn = answer.json()["turn_id"].as_str().expect("an id").to_owned();
    let turn = api.ended(turn.parse().expect("a turn")).await;
    let turn = turn.expect("its end");
    assert_eq!(turn["state"], "completed", "{turn}");
}

/// What is left of a quota now, from the answer to a submit that starts nothing.
async fn left_now(api: &ApiClient, name: &str) -> u64 {
    let answer = ask(api, "").await;
    assert_eq!(answer.status, 422, "{}", answer.body);
    left(&answer, name)
}

// G9
#[tokio::test]
async fn tokens_of_a_day_are_counted_and_survive_a_restart() {
    let quotas = [
        ("principal_tokens_per_day", "2000"),
        ("tenant_tokens_per_day", "3000"),
    ];
    let mut setup = metered(&quotas).await;
    let server = &mut setup.engine.server;
    let as_of = |server: &TestServer, name| caller(server, ACME, name);
    let ann = as_of(server, "ann");
    assert_eq!(left_now(&ann, "principal-tokens").await, 2_000);
    spend(&ann).await;
    assert_eq!(left_now(&ann, "principal-tokens").await, 1_000);
    spend(&ann).await;
    let answer = ask(&ann, "hi").await;
    let wait_s = refused(&answer, "tokens_per_day", "principal", 2_000);
    assert!((1..=86_400).contains(&wait_s), "{wait_s}");
    assert_eq!(left(&answer, "principal-tokens"), 0);
    server.restart().await;
    let answer = ask(&as_of(server, "ann"), "hi").await;
    refused(&answer, "tokens_per_day", "principal", 2_000);
    let bob = as_of(server, "bob");
    assert_eq!(left_now(&bob, "tenant-tokens").await, 1_000);
    spend(&bob).await;
    assert_eq!(left_now(&bob, "principal-tokens").await, 1_000);
    refused(&ask(&bob, "hi").await, "tokens_per_day", "tenant", 3_000);
    let eve = caller(server, OTHER, "ann");
    assert_eq!(left_now(&eve, "tenant-tokens").await, 3_000);
    spend(&eve).await;
}

// G9
#[tokio::test]
async fn cost_of_a_day_is_counted_for_principal_and_tenant() {
    // A turn costs 1,900 millionths: the first leaves one of the principal's.
    let quotas = [
        ("principal_cost_usd_per_day", "0.001901"),
        ("tenant_cost_usd_per_day", "0.0057"),
    ];
    let setup = metered(&quotas).await;
    let server = &setup.engine.server;
    let [ann, bob] = ["ann", "bob"].map(|name| caller(server, ACME, name));
    spend(&ann).await;
    assert_eq!(left_now(&ann, "principal-cost").await, 1);
    spend(&ann).await;
    let quota = "cost_micro_usd_per_day";
    refused(&ask(&ann, "hi").await, quota, "principal", 1_901);
    assert_eq!(left_now(&bob, "tenant-cost").await, 1_900);
    spend(&bob).await;
    refused(&ask(&bob, "hi").await, quota, "tenant", 5_700);
    let usage = ann.get("/usage").await.expect("an answer").json();
    assert_eq!(usage["totals"]["calls"], 3, "{usage}");
}

/// The close code and its name.
fn closed(end: &WatchEnd) -> (u16, String) {
    match end {
        WatchEnd::Closed(code, _) => (*code, end.code()),
        other => panic!("not closed: {other}"),
    }
}

// G9
#[tokio::test]
async fn streams_of_a_minute_are_counted_on_both_wires() {
    let options =
        ServerOptions::script(slow_script()).set("quota", "principal_subscribes_per_minute", 3);
    let server = TestServer::start(options).await;
    let ann = caller(&server, ACME, "ann");
    let mut chat = ChatStream::submit(&ann, "turn", &ChatSubmit::new("hi"))
        .await
        .expect("a stream");
    chat.read_to_end().await.expect("the end");
    let path = format!("/chat/{}/stream", chat.turn());
    let answer = ann.get(&path).await.expect("an answer");
    assert_eq!(
        (answer.status, left(&answer, "principal-subscribes")),
        (200, 2)
    );
    let mut client = WatchClient::connect(&ann, "watch", chat.session())
        .await
        .expect("connected");
    client
        .subscribed(&SubscribeOptions::live())
        .await
        .expect("subscribed");
    client
        .subscribed(&SubscribeOptions::live())
        .await
        .expect("subscribed");
    let answer = ann.get(&path).await.expect("an answer");
    let wait_s = refused(&answer, "subscribes_per_minute", "principal", 3);
    assert!((15..=20).contains(&wait_s), "{wait_s}");
    client
        .subscribe(&SubscribeOptions::live())
        .await
        .expect("sent");
    assert_eq!(closed(&client.end().await), (1013, "quota_exceeded".into()));
    // Turns are no subscribes, and others have their own.
    assert_eq!(ask(&ann, "hi").await.status, 202);
    let bob = caller(&server, ACME, "bob");
    let session = bob.create().await.expect("a session");
    let mut client = WatchClient::connect(&bob, "other", session)
        .await
        .expect("connected");
    client
        .subscribed(&SubscribeOptions::live())
        .await
        .expect("subscribed");
}

// G9
#[tokio::test]
async fn replayed_bytes_of_a_minute_are_counted_on_every_route() {
    let options = ServerOptions::script(slow_script())
        .set("quota", "tenant_replay_bytes_per_minute", 200_000)
        .set("stream", "ring_events", 16);
    let server = TestServer::start(options).await;
    let [ann, bob] = ["ann", "bob"].map(|name| caller(&server, ACME, name));
    let mut chat = ChatStream::submit(&ann, "turn", &ChatSubmit::new("slow"))
        .await
        .expect("a stream");
    chat.read_to_end().await.expect("the end");
    let session = chat.session();
    let events = format!("/sessions/{session}/events");
    let answer = ann.get(&events).await.expect("an answer");
    assert_eq!(answer.status, 200);
    let after_page = left(&answer, "tenant-replay");
    let used = 200_000 - answer.body.len() as u64;
    assert!(
        (used..used + 5_000).contains(&after_page),
        "{after_page} of {used}"
    );
    // A replay on the session wire, and a snapshot.
    let tail = ann.events(session).await.expect("events");
    let first: Value = serde_json::from_str(&tail[0].text).expect("an event");
    let start = first["id"].as_str().expect("an id").parse().expect("an id");
    let mut client = WatchClient::connect(&ann, "watch", session)
        .await
        .expect("connected");
    client
        .subscribed(&SubscribeOptions::since(start))
        .await
        .expect("subscribed");
    client.turn(chat.turn()).await.expect("the turn");
    client
        .subscribed(&SubscribeOptions::snapshot())
        .await
        .expect("subscribed");
    // The chat stream is read from the store, as the ring is small.
    let stream = format!("/chat/{}/stream", chat.turn());
    let mut wait_s = 0;
    for round in 0.. {
        assert!(round < 1_000, "never refused");
        let answer = ann.get(&stream).await.expect("an answer");
        if answer.status == 429 {
            wait_s = refused(&answer, "replay_bytes_per_minute", "tenant", 200_000);
            break;
        }
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    assert!((1..=60).contains(&wait_s), "{wait_s}");
    refused(
        &bob.get(&events.replace(
            &session.to_string(),
            &bob.create().await.expect("a session").to_string(),
        ))
        .await
        .expect("an answer"),
        "replay_bytes_per_minute",
        "tenant",
        200_000,
    );
    client
        .subscribe(&SubscribeOptions::since(start))
        .await
        .expect("sent");
    let end = loop {
        match client.next().await {
            Ok(_) => {}
            Err(end) => break end,
        }
    };
    assert_eq!(closed(&end), (1013, "quota_exceeded".into()));
    // Live events are no replay: a turn is submitted, streamed and watched.
    let mut chat = ChatStream::submit(&ann, "live", &ChatSubmit::new("slow"))
        .await
        .expect("a stream");
    chat.read_to_end().await.expect("the end");
    let mut other = WatchClient::connect(&ann, "live", session)
        .await
        .expect("connected");
    other
        .subscribed(&SubscribeOptions::live())
        .await
        .expect("subscribed");
    let cursor = chat.last();
    let resumed = ChatStream::resume(
        &ann,
        "resumed",
        chat.turn(),
        cursor,
        CursorPlacement::Header,
        None,
    )
    .await;
    assert_eq!(resumed.expect_err("over").status(), 204);
}

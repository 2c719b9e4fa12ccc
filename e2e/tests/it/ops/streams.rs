//! Streams through nginx: token by token, resumed, cancelled, as WebSockets, and over TLS.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::json;
use turnwire_e2e::chat::{back, say, words};
use turnwire_e2e::server_fixture::{ServerFixture, shape};
use turnwire_event::TurnId;
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::chat::{Block, ChatStream, ChatSubmit};
use turnwire_testkit::environment;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::ServerOptions;
use turnwire_testkit::watch::{SubscribeOptions, WatchClient};

use super::nginx::Nginx;

const ANSWER: &str = "some words of an answer that comes slowly";
/// Characters in a part of the answer, and the pause after each part.
const PART: usize = 5;
const PAUSE: Duration = Duration::from_millis(120);

/// A server behind nginx, with a client that speaks to nginx.
async fn behind_nginx() -> (ServerFixture, Nginx, ApiClient) {
    let pause = PAUSE.as_millis() as u64;
    let script = ModelScript::new()
        .on("^stall", [ScriptStep::text("wait"), ScriptStep::stall()])
        .on("^quick", [ScriptStep::text("quick")])
        .on("", [ScriptStep::slow(ANSWER, PART, pause)]);
    let fixture = ServerFixture::new(ServerOptions::script(script)).await;
    let nginx = Nginx::start(fixture.server.addr());
    let api = nginx.api(fixture.server.journal());
    (fixture, nginx, api)
}

async fn state(api: &ApiClient, turn: TurnId) -> String {
    let row = api.turn(turn).await.expect("the turn");
    row["state"].as_str().expect("a state").to_owned()
}

/// Reads frames up to the end of the stream.
async fn rest(stream: &mut ChatStream) -> Vec<Block> {
    stream.read_to_end().await.expect("the end of the stream")
}

#[tokio::test]
async fn nginx_passes_tokens_on_one_by_one() {
    let (fixture, _nginx, api) = behind_nginx().await;
    let question = ChatSubmit::new("go").session(fixture.session);
    let mut stream = say(&api, "reader", &question).await;
    let first = stream.until("text").await.expect("the first words");
    let state_then = state(&fixture.api, stream.turn()).await;
    assert_eq!(state_then, "running", "the first words come before the end");
    let mut texts = vec![words(&first)];
    let mut arrivals = vec![Instant::now()];
    while let Ok(block) = stream.next().await {
        if block.event() == "text" {
            texts.push(words(std::slice::from_ref(&block)));
            arrivals.push(Instant::now());
        }
    }
    assert_eq!(texts.concat(), ANSWER);
    let gaps = arrivals.windows(2).map(|pair| pair[1] - pair[0]);
    let apart = gaps.filter(|gap| *gap > PAUSE / 4).count();
    assert!(apart >= 4, "the answer came in {apart} parts: {texts:?}");
}

#[tokio::test]
async fn nginx_passes_resume_and_cancel_on() {
    let (fixture, _nginx, api) = behind_nginx().await;
    let question = ChatSubmit::new("go").session(fixture.session);
    let mut stream = say(&api, "first part", &question.continue_on_disconnect()).await;
    let mut frames = stream.until("text").await.expect("the first words");
    let (turn, last) = (stream.turn(), stream.last());
    stream.cut(0);
    let mut stream = back(&api, "second part", turn, last).await;
    frames.extend(rest(&mut stream).await);
    assert_eq!(words(&frames), ANSWER, "no gap and no repetition");

    let question = ChatSubmit::new("stall").session(fixture.session);
    let mut stream = say(&api, "cancelled", &question).await;
    stream.until("text").await.expect("words");
    let answer = api.cancel(stream.turn()).await.expect("an answer");
    assert!([200, 202].contains(&answer.status), "{}", answer.body);
    let events: Vec<String> = rest(&mut stream)
        .await
        .iter()
        .map(|block| block.event().to_owned())
        .collect();
    assert!(events.contains(&"cancelled".to_owned()), "{events:?}");
    fixture.check_history().await;
}

#[tokio::test]
async fn nginx_passes_a_disconnect_on() {
    let (fixture, _nginx, api) = behind_nginx().await;
    let question = ChatSubmit::new("stall").session(fixture.session);
    let question = question.grace_ms(0);
    let mut stream = say(&api, "leaves", &question).await;
    stream.until("text").await.expect("words");
    let turn = stream.turn();
    let left = Instant::now();
    drop(stream);
    let ended = fixture.api.ended(turn).await.expect("its end");
    // Without its help the server would notice at a heartbeat, after 15 s.
    assert!(
        left.elapsed() < Duration::from_secs(8),
        "{:?}",
        left.elapsed()
    );
    assert_eq!(ended["state"], "cancelled", "{ended}");
}

#[tokio::test]
async fn nginx_passes_websockets_on_and_logs_no_token() {
    let (fixture, nginx, api) = behind_nginx().await;
    let client = WatchClient::connect(&api, "watcher", fixture.session).await;
    let mut client = client.expect("a connection through nginx");
    let subscribed = client.subscribed(&SubscribeOptions::live()).await;
    subscribed.expect("an acknowledgement");
    let submitted = api.submit(fixture.session, "quick").await.expect("a turn");
    let events = client.turn(submitted.turn_id).await.expect("its events");
    assert_eq!(shape(&events).last(), Some(&"turn.completed"));
    drop(client);
    fixture.check_history().await;

    let log = nginx.log("turnwire.access.log");
    let path = format!("/sessions/{}", fixture.session);
    assert!(log.contains(&path), "{log}");
    assert!(!log.contains('?') && !log.contains("token"), "{log}");
}

#[tokio::test]
async fn nginx_passes_large_bodies_on_and_refuses_larger_ones() {
    let (fixture, _nginx, api) = behind_nginx().await;
    let message = format!("quick {}", "word ".repeat(200_000));
    assert!(message.len() > 1_000_000 && message.len() < 1 << 20);
    let body = json!({"message": message, "on_busy": "enqueue"});
    let path = format!("/sessions/{}/turns", fixture.session);
    let accepted = api.post(&path, body).await.expect("an answer");
    assert_eq!(accepted.status, 202, "{}", accepted.body);
    let turn = accepted.json()["turn_id"]
        .as_str()
        .expect("a turn")
        .to_owned();
    let turn = turn.parse().expect("an id");
    api.ended(turn).await.expect("its end");
    let path = format!("/sessions/{}/messages", fixture.session);
    let through = api.get(&path).await.expect("the messages");
    let direct = fixture.api.get(&path).await.expect("the messages");
    assert!(through.body.len() > message.len(), "{}", through.body.len());
    assert!(through.body == direct.body, "the same through nginx");

    let body = json!({"message": "x".repeat(1 << 20)});
    let refused = api.post("/chat/stream", body).await.expect("an answer");
    assert_eq!(refused.status, 413);
}

/// Runs curl against the TLS port.
async fn curl(nginx: &Nginx, path: &str, arguments: &[&str]) -> Output {
    let url = format!("https://{}{path}", nginx.tls);
    let mut command = Command::new("curl");
    command.args(["-sN", "-m", "20", "--cacert"]);
    command.arg(nginx.certificate()).args(arguments).arg(url);
    let ran = tokio::task::spawn_blocking(move || command.output());
    ran.await.expect("no panic").expect("curl")
}

#[tokio::test]
async fn nginx_ends_tls_for_streams_and_websockets() {
    let (fixture, nginx, _) = behind_nginx().await;
    let body = json!({"message": "quick"}).to_string();
    let json = "content-type: application/json";
    let arguments = ["--http2", "-i", "-H", json, "-d", body.as_str()];
    let streamed = curl(&nginx, "/chat/stream", &arguments).await;
    let text = environment::text(&streamed);
    assert!(text.starts_with("HTTP/2 200"), "{text}");
    for part in [
        "text/event-stream",
        "strict-transport-security",
        "event: text",
    ] {
        assert!(text.contains(part), "no {part}: {text}");
    }
    assert!(text.contains("data: [DONE]"), "{text}");

    let attached = fixture.api.attach(fixture.session).await.expect("a token");
    let url = attached["ws_url"].as_str().expect("a URL");
    let path = url.splitn(4, '/').nth(3).expect("a path");
    let upgrade = [
        "--http1.1",
        "-i",
        "-m",
        "1",
        "-H",
        "Connection: Upgrade",
        "-H",
        "Upgrade: websocket",
        "-H",
        "Sec-WebSocket-Version: 13",
        "-H",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ];
    let answer = environment::text(&curl(&nginx, &format!("/{path}"), &upgrade).await);
    assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");

    let metrics = environment::text(&curl(&nginx, "/metrics", &["-i"]).await);
    assert!(metrics.starts_with("HTTP/2 404"), "{metrics}");
    let plain = ApiClient::new(nginx.redirect, fixture.server.journal().clone());
    let redirect = plain.get("/sessions?limit=1").await.expect("an answer");
    assert_eq!(redirect.status, 308);
    assert_eq!(
        redirect.header("location"),
        "https://127.0.0.1/sessions?limit=1"
    );
}

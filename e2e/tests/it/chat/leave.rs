//! Disconnecting from a chat stream: the effect on the turn, which viewers count, and how streams
//! end when the server drains (D-05, S1-101, S1-112).

use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use turnwire_e2e::chat::{
    assert_no_errors_logged, back, code, events, say, shape, streams, whole, words,
};
use turnwire_e2e::server_fixture::{ServerFixture, shape as logged_shape};
use turnwire_event::{Event, EventType, TurnId};
use turnwire_testkit::chat::{ChatStream, ChatSubmit};
use turnwire_testkit::script::{ModelScript, ScriptStep, tool};
use turnwire_testkit::server::ServerOptions;
use turnwire_testkit::watch::SubscribeOptions;

fn script() -> ModelScript {
    ModelScript::new()
        .on("^stall", [ScriptStep::text("wait"), ScriptStep::stall()])
        .on(
            "^busy",
            [
                ScriptStep::text("wait"),
                ScriptStep::tool(tool::SLEEP, json!({"ms": 60_000})),
            ],
        )
        .on(
            "^long",
            [
                ScriptStep::text("wait "),
                ScriptStep::pause(5_000),
                ScriptStep::text("and see"),
            ],
        )
        .on(
            "^slow",
            [ScriptStep::slow("a slow answer of some length", 2, 50)],
        )
        .on("", [ScriptStep::text("yes")])
}

async fn fixture() -> ServerFixture {
    ServerFixture::new(ServerOptions::script(script())).await
}

/// Submits a turn and waits until it speaks.
async fn speaking(fixture: &ServerFixture, name: &str, question: ChatSubmit) -> ChatStream {
    let question = question.session(fixture.session);
    let mut stream = say(&fixture.api, name, &question).await;
    stream.until("text").await.expect("words");
    stream
}

/// How a turn that was cancelled ended.
async fn cancelled(fixture: &ServerFixture, turn: TurnId) -> Value {
    let row = fixture.api.ended(turn).await.expect("an end");
    assert_eq!(row["state"], "cancelled", "{row}");
    let payload = row["terminal"]["payload"].clone();
    assert_eq!(payload["code"], "REQUEST_CANCELLED", "{row}");
    payload
}

/// The events of one turn in the log.
async fn logged(fixture: &ServerFixture, turn: TurnId) -> Vec<Event> {
    let mut log = fixture.log().await;
    log.retain(|event| event.turn_id == Some(turn));
    log
}

// S1-101, S1-112, D-05, C-01
#[tokio::test]
async fn disconnect_cancels_and_leaves_nothing_running() {
    let fixture = fixture().await;
    for (name, message) in [("words", "stall"), ("tool", "busy")] {
        let mut stream = speaking(&fixture, name, ChatSubmit::new(message)).await;
        if message == "busy" {
            stream.until("tool_call").await.expect("a tool");
        }
        let turn = stream.turn();
        drop(stream);
        let end = cancelled(&fixture, turn).await;
        assert_eq!(end["reason"], "client_disconnected");
        // Whoever comes later sees it whole.
        let frames = back(&fixture.api, &format!("{name} later"), turn, None)
            .await
            .read_to_end()
            .await;
        let frames = frames.expect("a replay");
        assert_eq!(events(&frames).last(), Some(&"cancelled"));
        assert_eq!(code(&frames), "REQUEST_CANCELLED");
        // The session is free at once.
        let question = ChatSubmit::new("next").session(fixture.session);
        let (_, next) = whole(&fixture.api, &format!("{name} next"), &question).await;
        assert_eq!(events(&next).last(), Some(&"completed"));
    }
    let path = format!("/sessions/{}/messages", fixture.session);
    let messages = fixture.api.get(&path).await.expect("an answer").json();
    let open = |message: &Value| message["status"] == "in_progress";
    let messages = messages["messages"].as_array().expect("a list");
    assert!(!messages.iter().any(open), "{messages:?}");
    assert_no_errors_logged(&fixture.server);
    fixture.check_history().await;
}

// D-05, C-01
#[tokio::test]
async fn session_watchers_do_not_own_the_turn() {
    let fixture = fixture().await;
    let mut watcher = fixture.watch("watching", SubscribeOptions::live()).await;
    let stream = speaking(&fixture, "owner", ChatSubmit::new("stall")).await;
    let turn = stream.turn();
    drop(stream);
    let seen = watcher.turn(turn).await.expect("its events");
    let last = seen.last().expect("an end").body.kind();
    assert_eq!(last, EventType::TurnCancelled);
    assert_eq!(
        cancelled(&fixture, turn).await["reason"],
        "client_disconnected"
    );
    fixture.check_history().await;
}

// D-05
#[tokio::test]
async fn session_turn_ignores_chat_viewers_leaving() {
    let fixture = fixture().await;
    let turn = fixture.submit("slow").await;
    let mut viewer = back(&fixture.api, "viewer", turn, None).await;
    viewer.until("text").await.expect("words");
    drop(viewer);
    streams(&fixture.api, 0).await;
    let row = fixture.api.ended(turn).await.expect("an end");
    assert_eq!(row["state"], "completed", "{row}");
    fixture.check_history().await;
}

// D-05
#[tokio::test]
async fn return_within_grace_keeps_the_turn() {
    let fixture = fixture().await;
    // The turn takes longer than the grace.
    let stream = speaking(&fixture, "viewer", ChatSubmit::new("long").grace_ms(3_000)).await;
    let (turn, last) = (stream.turn(), stream.last());
    drop(stream);
    streams(&fixture.api, 0).await;
    let frames = back(&fixture.api, "viewer", turn, last)
        .await
        .read_to_end()
        .await;
    let frames = frames.expect("the rest");
    assert_eq!(
        events(&frames).last(),
        Some(&"completed"),
        "{:?}",
        shape(&frames)
    );
    assert_eq!(words(&frames), "and see");
    fixture.check_history().await;
}

// D-05
#[tokio::test]
async fn absence_beyond_grace_cancels_the_turn() {
    let fixture = fixture().await;
    let stream = speaking(&fixture, "viewer", ChatSubmit::new("stall").grace_ms(150)).await;
    let turn = stream.turn();
    drop(stream);
    assert_eq!(
        cancelled(&fixture, turn).await["reason"],
        "client_disconnected"
    );
    fixture.check_history().await;
}

// D-05
#[tokio::test]
async fn continuing_turn_ignores_disconnect() {
    let fixture = fixture().await;
    let stream = speaking(
        &fixture,
        "viewer",
        ChatSubmit::new("slow").continue_on_disconnect(),
    )
    .await;
    let (turn, last) = (stream.turn(), stream.last());
    drop(stream);
    streams(&fixture.api, 0).await;
    let row = fixture.api.ended(turn).await.expect("an end");
    assert_eq!(row["state"], "completed", "{row}");
    let frames = back(&fixture.api, "viewer", turn, last)
        .await
        .read_to_end()
        .await;
    assert_eq!(
        events(&frames.expect("the rest")).last(),
        Some(&"completed")
    );
    fixture.check_history().await;
}

// D-05
#[tokio::test]
async fn last_stream_leaving_decides_not_the_first() {
    let fixture = fixture().await;
    let first = speaking(&fixture, "first", ChatSubmit::new("stall")).await;
    let turn = first.turn();
    let mut second = back(&fixture.api, "second", turn, None).await;
    second.until("text").await.expect("words");
    drop(first);
    streams(&fixture.api, 1).await;
    // Had it been cancelled by the leaving, this cancel would come too late to give the reason.
    let path = format!("/turns/{turn}/cancel");
    let answer = fixture.api.post(&path, json!({"reason": "enough"})).await;
    assert_eq!(answer.expect("an answer").status, 202);
    assert_eq!(
        events(&second.read_to_end().await.expect("an end")),
        ["cancelled"]
    );
    assert_eq!(cancelled(&fixture, turn).await["reason"], "enough");

    let first = speaking(&fixture, "third", ChatSubmit::new("stall")).await;
    let turn = first.turn();
    let mut second = back(&fixture.api, "fourth", turn, None).await;
    second.until("text").await.expect("words");
    drop((first, second));
    assert_eq!(
        cancelled(&fixture, turn).await["reason"],
        "client_disconnected"
    );
    fixture.check_history().await;
}

// D-05
#[tokio::test]
async fn queued_turn_is_cancelled_when_its_stream_leaves() {
    let fixture = fixture().await;
    let mut first = speaking(&fixture, "first", ChatSubmit::new("stall")).await;
    let question = ChatSubmit::new("next")
        .session(fixture.session)
        .field("on_busy", "enqueue");
    let waiting = say(&fixture.api, "waiting", &question).await;
    let turn = waiting.turn();
    let row = fixture.api.turn(turn).await.expect("an answer");
    assert_eq!(row["state"], "queued", "{row}");
    drop(waiting);
    let end = cancelled(&fixture, turn).await;
    assert_eq!(
        (&end["phase"], &end["reason"]),
        (&json!("queued"), &json!("client_disconnected"))
    );
    let expected = [
        "turn.started",
        "turn.cancel_requested",
        "dispatch.traced",
        "turn.cancelled",
    ];
    assert_eq!(logged_shape(&logged(&fixture, turn).await), expected);
    let frames = back(&fixture.api, "later", turn, None)
        .await
        .read_to_end()
        .await;
    assert_eq!(
        events(&frames.expect("a replay")),
        ["response_id", "episode", "cancelled"]
    );
    // The one that runs did not notice.
    fixture.api.cancel(first.turn()).await.expect("an answer");
    assert_eq!(
        events(&first.read_to_end().await.expect("an end")),
        ["cancelled"]
    );
    fixture.check_history().await;
}

// F15
#[tokio::test]
async fn streams_of_a_draining_server_get_their_terminal() {
    let mut fixture = fixture().await;
    let mut owner = speaking(&fixture, "owner", ChatSubmit::new("slow")).await;
    // Many viewers are woken later than a few, and receive the ending too.
    let mut viewers = Vec::new();
    for name in 0..16 {
        let name = format!("viewer-{name}");
        viewers.push(back(&fixture.api, &name, owner.turn(), None).await);
    }
    fixture.server.sigterm();
    let frames = owner
        .read_to_end()
        .await
        .expect("the terminal and the sentinel");
    assert_eq!(events(&frames).last(), Some(&"completed"));
    for viewer in &mut viewers {
        let frames = viewer
            .read_to_end()
            .await
            .expect("the terminal and the sentinel");
        assert_eq!(words(&frames), "a slow answer of some length");
    }
    assert!(fixture.server.wait(Duration::from_secs(30)).await.success());
    assert_no_errors_logged(&fixture.server);
    fixture.server.run().await.expect("it comes up again");
    fixture.check_history().await;
}

// F15
#[tokio::test]
async fn unfinished_turn_at_drain_ends_its_streams() {
    let options = ServerOptions::script(script()).set("listen", "drain_ms", 300);
    let mut fixture = ServerFixture::new(options).await;
    let mut stream = speaking(&fixture, "owner", ChatSubmit::new("stall")).await;
    let turn = stream.turn();
    let waiting = ChatSubmit::new("next")
        .session(fixture.session)
        .field("on_busy", "enqueue");
    let mut waiting = say(&fixture.api, "waiting", &waiting.continue_on_disconnect()).await;
    fixture.server.sigterm();
    let frames = stream
        .read_to_end()
        .await
        .expect("the terminal and the sentinel");
    assert_eq!(
        (events(&frames), code(&frames)),
        (vec!["usage", "error"], "INTERNAL_ERROR")
    );
    // A queued turn has no ending yet: its stream breaks, and the turn runs after the restart.
    waiting.next().await.expect_err("nothing, and then the end");
    assert!(fixture.server.wait(Duration::from_secs(30)).await.success());
    fixture.server.run().await.expect("it comes up again");
    let row = fixture.api.turn(turn).await.expect("an answer");
    assert_eq!(row["terminal"]["payload"]["reason"], "server_shutdown");
    let frames = back(&fixture.api, "waiting", waiting.turn(), None)
        .await
        .read_to_end()
        .await;
    assert_eq!(
        events(&frames.expect("its turn")).last(),
        Some(&"completed")
    );
    fixture.check_history().await;
}

// S1-147
#[tokio::test]
async fn stream_of_deleted_session_ends() {
    let fixture = fixture().await;
    let turn = fixture.api.submit(fixture.session, "stall").await;
    let turn = turn.expect("accepted").turn_id;
    let mut socket = TcpStream::connect(fixture.server.addr())
        .await
        .expect("a socket");
    let ask = format!(
        "GET /chat/resp_{turn}/stream HTTP/1.1\r\nhost: {}\r\n\r\n",
        fixture.server.addr()
    );
    socket.write_all(ask.as_bytes()).await.expect("asked");
    let mut got = Vec::new();
    while !String::from_utf8_lossy(&got).contains("event: text\n") {
        assert!(socket.read_buf(&mut got).await.expect("more") > 0);
    }
    let path = format!("/sessions/{}", fixture.session);
    let deleted = fixture.api.send(Method::DELETE, &path, None).await;
    assert_eq!(deleted.expect("an answer").status, 204);
    socket.read_to_end(&mut got).await.expect("the end");
    let text = String::from_utf8(got).expect("text");
    let last = text
        .rsplit("\n\n")
        .nth(2)
        .expect("a frame before the sentinel");
    assert!(text.ends_with("\n\ndata: [DONE]\n\n"), "{text}");
    assert!(last.starts_with("event: error\ndata: {"), "{last}");
    let frame: Value = serde_json::from_str(&last["event: error\ndata: ".len()..]).expect("JSON");
    assert_eq!(frame["error"], json!({"code": "INTERNAL_ERROR"}));
    assert_eq!(
        (&frame["is_final"], &frame["version"]),
        (&json!(true), &json!("0.5"))
    );
}

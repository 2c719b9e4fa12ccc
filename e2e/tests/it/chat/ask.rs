//! Fields of a chat submit: session, locale, origin, version; and what the stream sends besides
//! frames (S1-006, D-09, D-14, D-19).

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use turnwire_e2e::chat::{back, say, shape, whole, words};
use turnwire_e2e::load;
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_event::{Body, SessionId};
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::chat::{Block, ChatStream, ChatSubmit, CursorPlacement, Said};
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{ServerOptions, TestServer};

fn script() -> ModelScript {
    ModelScript::new()
        .on("^stall", [ScriptStep::text("wait"), ScriptStep::stall()])
        .on("", [ScriptStep::text("you said {{user}}")])
}

async fn messages(api: &ApiClient, session: SessionId) -> Vec<Value> {
    let path = format!("/sessions/{session}/messages");
    let mut answer = api.get(&path).await.expect("an answer").json();
    let list = answer["messages"].take();
    serde_json::from_value(list).expect("a list")
}

fn usage(frames: &[Block]) -> u64 {
    let usage = frames.iter().find(|frame| frame.event() == "usage");
    let tokens = usage.and_then(|frame| frame.field("input_tokens").as_u64());
    tokens.expect("what it cost")
}

// D-02, D-04
#[tokio::test]
async fn session_is_created_when_unnamed_and_reused_when_named() {
    let server = TestServer::start(ServerOptions::script(script())).await;
    let api = server.api();
    let mut first = say(&api, "first", &ChatSubmit::new("my name is Ada")).await;
    let session = first.session();
    let one = first.read_to_end().await.expect("a stream");
    assert_eq!(words(&one), "you said my name is Ada");
    let mut second = say(&api, "second", &ChatSubmit::new("go on").session(session)).await;
    assert_eq!(second.session(), session);
    let two = second.read_to_end().await.expect("a stream");
    // The model is shown, and counts, what was said before.
    assert!(
        usage(&two) > usage(&one) + 2,
        "{} then {}",
        usage(&one),
        usage(&two)
    );
    let mut other = say(&api, "other", &ChatSubmit::new("go on")).await;
    assert_ne!(other.session(), session);
    let three = other.read_to_end().await.expect("a stream");
    assert!(usage(&three) < usage(&two));
    let messages = messages(&api, session).await;
    let roles: Vec<&str> = messages.iter().filter_map(|m| m["role"].as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
    load::check_history(&api, &[session, other.session()]).await;
}

#[tokio::test]
async fn unknown_session_is_not_created() {
    let server = TestServer::start(ServerOptions::script(script())).await;
    let api = server.api();
    for id in ["sess_00000000000000000000000001", "sess_nonsense", ""] {
        let question = ChatSubmit::new("hi").field("session_id", id);
        let refused = ChatStream::submit(&api, id, &question)
            .await
            .expect_err("refused");
        assert_eq!(
            (refused.status(), refused.code().as_str()),
            (404, "session_not_found")
        );
    }
    let list = api.get("/sessions").await.expect("an answer").json();
    assert_eq!(list["sessions"], json!([]));
}

// D-19
#[tokio::test]
async fn language_comes_from_body_then_header_then_english() {
    let fixture = ServerFixture::new(ServerOptions::script(script())).await;
    let plain = || ChatSubmit::new("hi").session(fixture.session);
    let accept = |question: ChatSubmit| question.header("accept-language", "es;q=0.5, de-AT;q=0.9");
    for (name, question) in [
        ("en", plain()),
        ("de-AT", accept(plain())),
        ("fr", accept(plain().field("locale", "fr"))),
    ] {
        let (turn, _) = whole(&fixture.api, name, &question).await;
        let event = fixture
            .logged(|event| {
                event.turn_id == Some(turn) && matches!(event.body, Body::TurnStarted(_))
            })
            .await;
        let Body::TurnStarted(started) = event.body else {
            panic!("just found")
        };
        assert_eq!(started.locale, name);
    }
}

#[tokio::test]
async fn attached_data_is_stored_with_the_message() {
    let fixture = ServerFixture::new(ServerOptions::script(script())).await;
    let question = ChatSubmit::new("hi")
        .session(fixture.session)
        .field("location", "Graz")
        .field("metadata", json!({"page": 3, "tags": ["a"]}));
    whole(&fixture.api, "along", &question).await;
    let messages = messages(&fixture.api, fixture.session).await;
    let expected = json!({"page": 3, "tags": ["a"], "location": "Graz"});
    assert_eq!(messages[0]["metadata"], expected, "{}", messages[0]);
    fixture.check_history().await;
}

fn version(frames: &[Block]) -> BTreeSet<&str> {
    let all = frames.iter().map(|frame| frame.field("version").as_str());
    all.map(Option::unwrap_or_default).collect()
}

/// The same server again, on the same data, speaking another version by default.
async fn rolled(mut server: TestServer, options: &ServerOptions, version: &str) -> TestServer {
    server.sigterm();
    assert!(server.wait(Duration::from_secs(30)).await.success());
    let env = vec![("TURNWIRE_WIRE_VERSION".to_owned(), version.to_owned())];
    let options = ServerOptions {
        env,
        ..options.clone()
    };
    TestServer::start(options).await
}

// S1-006, D-09
#[tokio::test]
async fn version_from_header_or_setting_stays_with_the_turn() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = ServerOptions {
        home: Some(folder.path().join("home")),
        ..ServerOptions::script(script())
    };
    let server = TestServer::start(options.clone()).await;
    let api = server.api();
    let (plain, frames) = whole(&api, "plain", &ChatSubmit::new("hi")).await;
    assert_eq!(version(&frames), BTreeSet::from(["0.5"]));
    let (old, frames) = whole(&api, "old", &ChatSubmit::new("hi").version("0.4")).await;
    assert_eq!(version(&frames), BTreeSet::from(["0.4"]));

    let server = rolled(server, &options, "0.4").await;
    let api = server.api();
    for (turn, bound) in [(plain, "0.5"), (old, "0.4")] {
        // Neither what the server says now nor what is asked for changes it.
        let frames = back(&api, bound, turn, None).await.read_to_end().await;
        assert_eq!(version(&frames.expect("a replay")), BTreeSet::from([bound]));
        let other_version = if bound == "0.5" { "0.4" } else { "0.5" };
        let refused = ChatStream::resume(
            &api,
            "wrong",
            turn,
            None,
            CursorPlacement::Header,
            Some(other_version),
        )
        .await;
        let refused = refused.expect_err("refused");
        assert_eq!(
            (refused.status(), refused.code().as_str()),
            (409, "wire_version_mismatch")
        );
    }
    let (_, frames) = whole(&api, "rolled back", &ChatSubmit::new("hi")).await;
    assert_eq!(version(&frames), BTreeSet::from(["0.4"]));
    let question = ChatSubmit::new("stall").version("0.5");
    let mut new = say(&api, "new", &question).await;
    new.until("text").await.expect("words");
    api.cancel(new.turn()).await.expect("an answer");
    let ending = new.read_to_end().await.expect("an end");
    assert_eq!(shape(&ending), ["cancelled"]);
    for unknown in ["0.3", "v0.5", "", "0.5, 0.4"] {
        let question = ChatSubmit::new("hi").version(unknown);
        let refused = ChatStream::submit(&api, "unknown", &question)
            .await
            .expect_err("refused");
        assert_eq!(
            (refused.status(), refused.code().as_str()),
            (422, "invalid_request")
        );
    }
}

/// The milliseconds that a stream's first block tells to wait.
fn retry(block: &Block) -> u64 {
    let line = block
        .text
        .strip_prefix("retry: ")
        .and_then(|tail| tail.split('\n').next());
    line.and_then(|ms| ms.parse().ok())
        .expect("a retry in the first block")
}

// D-14
#[tokio::test]
async fn each_connection_gets_its_own_retry_time() {
    let fixture =
        ServerFixture::new(ServerOptions::script(script()).set("stream", "retry_ms", 700)).await;
    let question = ChatSubmit::new("hi").session(fixture.session);
    let mut stream = say(&fixture.api, "submit", &question).await;
    let mut waits = vec![retry(&stream.block().await.expect("a block"))];
    let turn = stream.turn();
    stream.read_to_end().await.expect("the rest");
    for number in 0..20 {
        let mut stream = back(&fixture.api, &format!("back {number}"), turn, None).await;
        waits.push(retry(&stream.block().await.expect("a block")));
        let next_block = stream.block().await.expect("a block");
        assert!(!next_block.text.contains("retry:"), "{}", next_block.text);
    }
    assert!(
        waits.iter().all(|ms| (700..1_400).contains(ms)),
        "{waits:?}"
    );
    let different: BTreeSet<&u64> = waits.iter().collect();
    assert!(different.len() > 1, "{waits:?}");
}

// D-14
#[tokio::test]
async fn silent_stream_gets_heartbeat_comments() {
    let fixture =
        ServerFixture::new(ServerOptions::script(script()).set("stream", "heartbeat_ms", 20)).await;
    let question = ChatSubmit::new("stall").session(fixture.session);
    let mut stream = say(&fixture.api, "silent", &question).await;
    stream.until("text").await.expect("words");
    for _ in 0..3 {
        let block = stream.block().await.expect("a block");
        assert_eq!(
            (block.text.as_str(), &block.said),
            (": ka\n\n", &Said::Pause)
        );
    }
    // They neither have an id nor hold the turn's frames up.
    fixture.api.cancel(stream.turn()).await.expect("an answer");
    assert_eq!(
        shape(&stream.read_to_end().await.expect("an end")),
        ["cancelled"]
    );
    fixture.check_history().await;
}

//! What a chat is asked with: a session or none, a language, a place, a version; and what the
//! stream says beside its frames (S1-006, D-09, D-14, D-19).

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use turnwire_e2e::chat::{back, say, shape, whole, words};
use turnwire_e2e::load;
use turnwire_e2e::scene::Scene;
use turnwire_event::{Body, SessionId};
use turnwire_testkit::chat::{Block, Carry, Question, Said, Stream};
use turnwire_testkit::rest::Rest;
use turnwire_testkit::script::{Script, Step};
use turnwire_testkit::server::{Options, Server};

fn script() -> Script {
    Script::new()
        .on("^stall", [Step::text("wait"), Step::stall()])
        .on("", [Step::text("you said {{user}}")])
}

async fn messages(rest: &Rest, session: SessionId) -> Vec<Value> {
    let path = format!("/sessions/{session}/messages");
    let mut answer = rest.get(&path).await.expect("an answer").json();
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
    let server = Server::start(Options::script(script())).await;
    let rest = server.rest();
    let mut first = say(&rest, "first", &Question::new("my name is Ada")).await;
    let session = first.session();
    let one = first.rest().await.expect("a stream");
    assert_eq!(words(&one), "you said my name is Ada");
    let mut second = say(&rest, "second", &Question::new("go on").session(session)).await;
    assert_eq!(second.session(), session);
    let two = second.rest().await.expect("a stream");
    // The model is shown, and counts, what was said before.
    assert!(
        usage(&two) > usage(&one) + 2,
        "{} then {}",
        usage(&one),
        usage(&two)
    );
    let mut other = say(&rest, "other", &Question::new("go on")).await;
    assert_ne!(other.session(), session);
    let three = other.rest().await.expect("a stream");
    assert!(usage(&three) < usage(&two));
    let said = messages(&rest, session).await;
    let roles: Vec<&str> = said.iter().filter_map(|m| m["role"].as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
    load::judge(&rest, &[session, other.session()]).await;
}

#[tokio::test]
async fn unknown_session_is_not_created() {
    let server = Server::start(Options::script(script())).await;
    let rest = server.rest();
    for id in ["sess_00000000000000000000000001", "sess_nonsense", ""] {
        let question = Question::new("hi").field("session_id", id);
        let refused = Stream::submit(&rest, id, &question)
            .await
            .expect_err("refused");
        assert_eq!(
            (refused.status(), refused.code().as_str()),
            (404, "session_not_found")
        );
    }
    let list = rest.get("/sessions").await.expect("an answer").json();
    assert_eq!(list["sessions"], json!([]));
}

// D-19
#[tokio::test]
async fn language_comes_from_body_then_header_then_english() {
    let scene = Scene::new(Options::script(script())).await;
    let plain = || Question::new("hi").session(scene.session);
    let accept = |question: Question| question.header("accept-language", "es;q=0.5, de-AT;q=0.9");
    for (name, question) in [
        ("en", plain()),
        ("de-AT", accept(plain())),
        ("fr", accept(plain().field("locale", "fr"))),
    ] {
        let (turn, _) = whole(&scene.rest, name, &question).await;
        let event = scene
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
    let scene = Scene::new(Options::script(script())).await;
    let question = Question::new("hi")
        .session(scene.session)
        .field("location", "Graz")
        .field("metadata", json!({"page": 3, "tags": ["a"]}));
    whole(&scene.rest, "along", &question).await;
    let said = messages(&scene.rest, scene.session).await;
    let expected = json!({"page": 3, "tags": ["a"], "location": "Graz"});
    assert_eq!(said[0]["metadata"], expected, "{}", said[0]);
    scene.judge().await;
}

fn version(frames: &[Block]) -> BTreeSet<&str> {
    let all = frames.iter().map(|frame| frame.field("version").as_str());
    all.map(Option::unwrap_or_default).collect()
}

/// The same server again, on the same data, speaking another version by default.
async fn rolled(mut server: Server, options: &Options, version: &str) -> Server {
    server.sigterm();
    assert!(server.wait(Duration::from_secs(30)).await.success());
    let env = vec![("TURNWIRE_WIRE_VERSION".to_owned(), version.to_owned())];
    let options = Options {
        env,
        ..options.clone()
    };
    Server::start(options).await
}

// S1-006, D-09
#[tokio::test]
async fn version_from_header_or_setting_stays_with_the_turn() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options {
        home: Some(folder.path().join("home")),
        ..Options::script(script())
    };
    let server = Server::start(options.clone()).await;
    let rest = server.rest();
    let (plain, frames) = whole(&rest, "plain", &Question::new("hi")).await;
    assert_eq!(version(&frames), BTreeSet::from(["0.5"]));
    let (old, frames) = whole(&rest, "old", &Question::new("hi").version("0.4")).await;
    assert_eq!(version(&frames), BTreeSet::from(["0.4"]));

    let server = rolled(server, &options, "0.4").await;
    let rest = server.rest();
    for (turn, bound) in [(plain, "0.5"), (old, "0.4")] {
        // Neither what the server says now nor what is asked for changes it.
        let frames = back(&rest, bound, turn, None).await.rest().await;
        assert_eq!(version(&frames.expect("a replay")), BTreeSet::from([bound]));
        let wrong = if bound == "0.5" { "0.4" } else { "0.5" };
        let refused = Stream::resume(&rest, "wrong", turn, None, Carry::Header, Some(wrong)).await;
        let refused = refused.expect_err("refused");
        assert_eq!(
            (refused.status(), refused.code().as_str()),
            (409, "wire_version_mismatch")
        );
    }
    let (_, frames) = whole(&rest, "rolled back", &Question::new("hi")).await;
    assert_eq!(version(&frames), BTreeSet::from(["0.4"]));
    let question = Question::new("stall").version("0.5");
    let mut new = say(&rest, "new", &question).await;
    new.until("text").await.expect("words");
    rest.cancel(new.turn()).await.expect("an answer");
    let ending = new.rest().await.expect("an end");
    assert_eq!(shape(&ending), ["cancelled"]);
    for unknown in ["0.3", "v0.5", "", "0.5, 0.4"] {
        let question = Question::new("hi").version(unknown);
        let refused = Stream::submit(&rest, "unknown", &question)
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
        .and_then(|rest| rest.split('\n').next());
    line.and_then(|ms| ms.parse().ok())
        .expect("a retry in the first block")
}

// D-14
#[tokio::test]
async fn each_connection_gets_its_own_retry_time() {
    let scene = Scene::new(Options::script(script()).set("stream", "retry_ms", 700)).await;
    let question = Question::new("hi").session(scene.session);
    let mut stream = say(&scene.rest, "submit", &question).await;
    let mut waits = vec![retry(&stream.block().await.expect("a block"))];
    let turn = stream.turn();
    stream.rest().await.expect("the rest");
    for number in 0..20 {
        let mut stream = back(&scene.rest, &format!("back {number}"), turn, None).await;
        waits.push(retry(&stream.block().await.expect("a block")));
        let more = stream.block().await.expect("a block");
        assert!(!more.text.contains("retry:"), "{}", more.text);
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
    let scene = Scene::new(Options::script(script()).set("stream", "heartbeat_ms", 20)).await;
    let question = Question::new("stall").session(scene.session);
    let mut stream = say(&scene.rest, "silent", &question).await;
    stream.until("text").await.expect("words");
    for _ in 0..3 {
        let block = stream.block().await.expect("a block");
        assert_eq!(
            (block.text.as_str(), &block.said),
            (": ka\n\n", &Said::Pause)
        );
    }
    // They neither have an id nor hold the turn's frames up.
    scene.rest.cancel(stream.turn()).await.expect("an answer");
    assert_eq!(shape(&stream.rest().await.expect("an end")), ["cancelled"]);
    scene.judge().await;
}

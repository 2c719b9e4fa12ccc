//! `kept_until`: after a crash of the server a client knows how much of the text it saw is stored.

use serde_json::Value;
use turnwire_e2e::chat::{back, events, say, words};
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_event::Position;
use turnwire_testkit::chat::{Block, ChatSubmit};
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::ServerOptions;

/// Bytes of text that the client reads before the server is killed: 40 of the model's 80 pieces, which
/// take longer than the default interval of checkpoints.
const SEEN_BYTES: usize = 200;

/// Kills the server in the middle of an answer. Returns the fixture after the restart, the frames that
/// the client saw, those of its resume included, and the text that is stored.
async fn killed_in_an_answer(checkpoint_ms: u64) -> (ServerFixture, Vec<Block>, String) {
    let answer = [
        ScriptStep::slow("word ", 5, 20).repeat(80),
        ScriptStep::stall(),
    ];
    let options = ServerOptions::script(ModelScript::new().on("", answer));
    let options = options.set("session", "checkpoint_ms", checkpoint_ms);
    let mut fixture = ServerFixture::new(options).await;
    let question = ChatSubmit::new("talk").session(fixture.session);
    let mut stream = say(&fixture.api, "reader", &question.continue_on_disconnect()).await;
    let mut frames = Vec::new();
    while words(&frames).len() < SEEN_BYTES {
        frames.push(stream.next().await.expect("a frame"));
    }
    fixture.server.restart().await;
    while let Ok(frame) = stream.next().await {
        frames.push(frame);
    }
    let mut rest = back(&fixture.api, "reader", stream.turn(), stream.last()).await;
    frames.extend(rest.read_to_end().await.expect("the rest"));
    let messages = fixture
        .api
        .messages(fixture.session)
        .await
        .expect("an answer");
    let answers = messages
        .iter()
        .filter(|message| message["role"] == "assistant");
    let blocks = answers.flat_map(|message| message["content"].as_array().expect("blocks"));
    let stored = blocks.filter_map(|block| block["text"].as_str()).collect();
    (fixture, frames, stored)
}

/// The position in `kept_until` of the terminal frame.
fn kept_until(frames: &[Block]) -> Position {
    let terminal = frames.last().expect("a terminal");
    assert_eq!(terminal.event(), "error", "{:?}", events(frames));
    let kept: &Value = terminal.field("kept_until");
    let kept = kept.as_str().and_then(|id| id.parse().ok());
    kept.unwrap_or_else(|| panic!("no position: {}", terminal.text))
}

/// The text of the frames whose events are at most at `kept`.
fn words_until(frames: &[Block], kept: Position) -> String {
    let is_kept = |frame: &&Block| frame.id().is_some_and(|id| id.position <= kept);
    let kept: Vec<Block> = frames.iter().filter(is_kept).cloned().collect();
    words(&kept)
}

#[tokio::test]
async fn text_up_to_kept_until_is_the_stored_text() {
    let (fixture, frames, stored) = killed_in_an_answer(50).await;
    let kept = kept_until(&frames);
    assert!(!stored.is_empty(), "checkpoints were due");
    assert_eq!(words_until(&frames, kept), stored);
    assert!(words(&frames).starts_with(&stored));
    fixture.check_history().await;
}

#[tokio::test]
async fn kept_until_precedes_all_text_when_none_is_stored() {
    let (fixture, frames, stored) = killed_in_an_answer(60_000).await;
    assert_eq!(stored, "", "no checkpoint was due");
    assert_eq!(words_until(&frames, kept_until(&frames)), "");
    assert!(words(&frames).len() >= SEEN_BYTES);
    fixture.check_history().await;
}

//! The agents of `examples/`, driven as their READMEs say.

use std::path::Path;

use serde_json::json;
use turnwire_e2e::chat::{code, events, say, shape, until, whole, words};
use turnwire_e2e::example_agent::ExampleAgent;
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_testkit::chat::{Block, ChatSubmit};
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::server::ServerOptions;

const QUESTION: &str = "When is it open in Graz?";

/// A server with the pack of the example in front of its agent.
async fn behind(agent: &ExampleAgent) -> ServerFixture {
    let pack = TestPack::read(Path::new(&agent.pack())).expect("its pack");
    let options = ServerOptions::pack(pack).set("relay", "upstream", agent.url());
    ServerFixture::new(options).await
}

fn field<'a>(frames: &'a [Block], event: &str, name: &str) -> &'a serde_json::Value {
    let frame = frames.iter().find(|frame| frame.event() == event);
    frame.unwrap_or_else(|| panic!("no {event}")).field(name)
}

/// The answer in two languages.
async fn answers(fixture: &ServerFixture) {
    for (locale, status) in [
        ("en", "Looking for shops..."),
        ("de", "Geschäfte werden gesucht …"),
    ] {
        let question = ChatSubmit::new(QUESTION)
            .session(fixture.session)
            .field("locale", locale);
        let (_, frames) = whole(&fixture.api, locale, &question).await;
        let mut seen = shape(&frames);
        seen.retain(|event| *event != "thinking");
        assert_eq!(
            seen,
            [
                "response_id",
                "episode",
                "tool_call",
                "status",
                "data_loading",
                "data_loaded",
                "tool_completed",
                "text",
                "usage",
                "completed"
            ]
        );
        let texts = events(&frames)
            .iter()
            .filter(|event| **event == "text")
            .count();
        assert!(texts > 5, "{texts} parts");
        assert!(
            words(&frames).contains("Jakominiplatz from 8 to 19"),
            "{}",
            words(&frames)
        );
        assert_eq!(field(&frames, "status", "data")["message"], status);
        let items = &field(&frames, "data_loaded", "data")["items"];
        assert_eq!(
            items[1],
            json!({"id": "graz-2", "title": "Lendplatz", "hours": "7 to 18"})
        );
        let response = frames[0].field("response_id").as_str().expect("an id");
        assert!(response.starts_with("run-"), "{response}");
    }
}

/// A stop in the middle reaches the agent.
async fn is_stopped(fixture: &ServerFixture, agent: &ExampleAgent) {
    let question = ChatSubmit::new(QUESTION).session(fixture.session);
    let mut stopped = say(&fixture.api, "stopped", &question).await;
    stopped.until("text").await.expect("a beginning");
    let turn = stopped.turn();
    fixture.api.cancel(turn).await.expect("an answer");
    let frames = stopped.read_to_end().await.expect("an end");
    assert_eq!(
        (events(&frames).last(), code(&frames)),
        (Some(&"cancelled"), "REQUEST_CANCELLED")
    );
    until("the agent stops", || async {
        agent.log().contains(&format!("stopped turn {turn}"))
    })
    .await;
}

async fn example(name: &'static str) {
    let mut agent = ExampleAgent::start(name);
    let fixture = behind(&agent).await;
    answers(&fixture).await;
    is_stopped(&fixture, &agent).await;
    let question = ChatSubmit::new(QUESTION).session(fixture.session);
    let mut killed = say(&fixture.api, "killed", &question).await;
    killed.until("text").await.expect("a beginning");
    agent.kill();
    let frames = killed.read_to_end().await.expect("an end");
    assert_eq!(
        (events(&frames).last(), code(&frames)),
        (Some(&"error"), "INTERNAL_ERROR")
    );
    fixture.check_history().await;
}

// S1-042, S1-043
#[tokio::test]
async fn langgraph_agent_answers_and_is_stopped() {
    example("langgraph-upstream").await;
}

// S1-028
#[tokio::test]
async fn adk_agent_answers_and_is_stopped() {
    example("adk-upstream").await;
}

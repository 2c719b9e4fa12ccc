//! An agent behind the Chat Completions API: the same guarantees.

use serde_json::json;
use turnwire_e2e::chat::{code, say, until, whole, words};
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_testkit::chat::{Block, ChatSubmit};
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::provider::{FakeProvider, ProviderAnswer, ProviderError};
use turnwire_testkit::server::ServerOptions;

const KEY: &str = "sk-chat-1234567890";

async fn fixture(provider: &FakeProvider) -> ServerFixture {
    let orchestrator = format!(
        "id: orchestrator\nversion: \"1\"\nkind: orchestrator\ndescription: Runs elsewhere.\nrelay:\n  dialect: openai_chat\n  model: my-agent\n  url: {}/v1/chat/completions\n  key: ${{CHAT_KEY}}\n  idle_ms: 700\n  history: {{last: 2}}\n",
        provider.base_url()
    );
    let pack = TestPack::default()
        .put(
            "pack.yaml",
            "name: chat\nversion: \"1.0.0\"\ndefault_locale: en\n",
        )
        .put("orchestrator.yaml", &orchestrator);
    let mut options = ServerOptions::pack(pack);
    options.env.push(("CHAT_KEY".to_owned(), KEY.to_owned()));
    ServerFixture::new(options).await
}

#[tokio::test]
async fn chat_api_answers_with_history_usage_and_its_key() {
    let provider = FakeProvider::start().await;
    provider.require_key(KEY);
    provider.always("", ProviderAnswer::text(["Two ", "tents."]));
    let fixture = fixture(&provider).await;
    for message in ["one", "two"] {
        let question = ChatSubmit::new(message).session(fixture.session);
        let (_, frames) = whole(&fixture.api, message, &question).await;
        assert_eq!(words(&frames), "Two tents.");
        assert_eq!(frames.last().map(Block::event), Some("completed"));
        let usage = frames
            .iter()
            .find(|frame| frame.event() == "usage")
            .expect("usage");
        assert!(usage.field("total_tokens").as_u64() > Some(0), "{usage:?}");
    }
    let body = &provider.call(1).await.body;
    assert_eq!(
        (&body["model"], &body["stream"]),
        (&json!("my-agent"), &json!(true))
    );
    let said = |role: &str, text: &str| json!({"role": role, "content": text});
    assert_eq!(
        body["messages"],
        json!([
            said("user", "one"),
            said("assistant", "Two tents."),
            said("user", "two")
        ])
    );
    fixture.check_history().await;
}

// F13, S1-103
#[tokio::test]
async fn chat_api_that_fails_ends_the_turn_once() {
    let provider = FakeProvider::start().await;
    let fixture = fixture(&provider).await;
    let text = || ProviderAnswer::text(["Two ", "tents ", "and ", "more."]);
    let cases: [(&str, ProviderAnswer, &str, &str); 5] = [
        (
            "refused",
            ProviderAnswer::refuse(ProviderError::Server),
            "error",
            "MODEL_UNAVAILABLE",
        ),
        (
            "limited",
            ProviderAnswer::refuse(ProviderError::RateLimited),
            "error",
            "RATE_LIMIT_ERROR",
        ),
        (
            "page",
            ProviderAnswer::page(502, "<html>db-7</html>"),
            "error",
            "MODEL_UNAVAILABLE",
        ),
        ("cut", text().cut_inside(3), "error", "INTERNAL_ERROR"),
        ("stalled", text().stall_at(3), "cancelled", "IDLE_TIMEOUT"),
    ];
    for (name, answer, terminal, expected) in cases {
        provider.push(answer);
        let question = ChatSubmit::new(name).session(fixture.session);
        let (_, frames) = whole(&fixture.api, name, &question).await;
        assert_eq!(frames.last().map(Block::event), Some(terminal), "{name}");
        assert_eq!(code(&frames), expected, "{name}");
        let terminals = frames.iter().filter(|frame| frame.is_terminal());
        assert_eq!(terminals.count(), 1, "{name}");
        assert!(!format!("{frames:?}").contains("db-7"), "{name}");
    }
    until("no connection is left", || async {
        provider.open_connections() == 0
    })
    .await;
    fixture.check_history().await;
}

// S1-104
#[tokio::test]
async fn stop_closes_the_connection_to_the_chat_api() {
    let provider = FakeProvider::start().await;
    provider.push(ProviderAnswer::text(["Two ", "tents ", "and ", "more."]).stall_at(3));
    let fixture = fixture(&provider).await;
    let question = ChatSubmit::new("hi").session(fixture.session);
    let mut stream = say(&fixture.api, "stopped", &question).await;
    stream.until("text").await.expect("a beginning");
    fixture.api.cancel(stream.turn()).await.expect("an answer");
    let frames = stream.read_to_end().await.expect("an end");
    assert_eq!(
        frames.last().map(|frame| frame.field("error")),
        Some(&json!({"code": "REQUEST_CANCELLED"}))
    );
    provider.closed(0).await;
    fixture.check_history().await;
}

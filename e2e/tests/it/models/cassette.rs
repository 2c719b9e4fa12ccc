//! The server records provider streams, and another server without key and network replays them:
//! the same text in every format, with a sub-agent and a refusal.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use turnwire_e2e::engine::{EngineFixture, of};
use turnwire_testkit::data_service::FakeDataService;
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::provider::{
    Dialect, FakeProvider, MessagePart, ModelMessage, ProviderAnswer, ProviderError,
};
use turnwire_testkit::server::{ServerOptions, binary};

const KEY: &str = "sk-cassette-51d2f3a9c7";
const ASKED: &str = "Where are the tents?";
/// What the orchestrator asks the shop, which is in no answer of the shop.
const QUERY: &str = "tents please";

fn word(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Anthropic => "anthropic",
        Dialect::Chat => "openai_chat",
        Dialect::Responses => "openai_responses",
        Dialect::Gemini => "gemini",
    }
}

fn providers(dialect: Dialect, url: &str) -> String {
    let path = match dialect {
        Dialect::Chat | Dialect::Responses => "/v1",
        Dialect::Anthropic | Dialect::Gemini => "",
    };
    format!(
        "providers:\n  vendor:\n    dialect: {}\n    base_url: {url}{path}\n    key: ${{CASSETTE_KEY}}\n    \
         retries: {{attempts: 3, base_ms: 5, max_ms: 20}}\n",
        word(dialect)
    )
}

const PRICES: &str = "prices:\n  \"*\": {input: 1.0, output: 10.0}\n";

/// A provider that is overloaded at first, then calls a sub-agent, and then answers with its result.
async fn provider() -> FakeProvider {
    let provider = FakeProvider::start().await;
    provider.require_key(KEY);
    provider.push(ProviderAnswer::refuse(ProviderError::RateLimited));
    let asks = MessagePart::call("call_1", "ask_shop", &json!({"query": QUERY}));
    provider.push(ModelMessage::new([
        MessagePart::text(["One ", "moment. "]),
        asks,
    ]));
    provider.push(ModelMessage::text(["Zwei ", "Zelte ⛺ ", "im Süden."]));
    provider.push(ModelMessage::text(["There are ", "two ⛺."]));
    provider
}

/// The words of a turn, and how its model calls ended.
async fn converse(engine: &EngineFixture) -> (String, Vec<Value>) {
    let reply = engine.ask(ASKED).await;
    assert_eq!(reply.last().event(), "completed", "{:?}", reply.labels());
    let events = engine.events(reply.turn).await;
    let mut ends: Vec<Value> = of(&events, "llm.call_completed")
        .map(|event| json!([event["actor"], event["payload"]["usage"]["output_tokens"]]))
        .collect();
    ends.extend(of(&events, "llm.call_failed").map(|e| e["payload"]["error_class"].clone()));
    (reply.text(), ends)
}

async fn recorded(dialect: Dialect, file: &Path) -> (String, Vec<Value>) {
    let provider = provider().await;
    let ccs = FakeDataService::start().await;
    let pack = TestPack::market(&ccs.url())
        .change("pack.yaml", "scripted:stage", "vendor:small")
        .put("providers.yaml", &providers(dialect, &provider.base_url()))
        .put("prices.yaml", PRICES);
    let options = ServerOptions {
        env: vec![("CASSETTE_KEY".into(), KEY.into())],
        ..ServerOptions::pack(pack)
    };
    let options = options.set("model", "record", file.display());
    let mut engine = EngineFixture::on(ccs, options).await;
    let replayed = converse(&engine).await;
    engine.check_history().await;
    engine.server.sigterm();
    engine.server.wait(Duration::from_secs(30)).await;
    replayed
}

async fn played(cassette: &str) -> (String, Vec<Value>) {
    let ccs = FakeDataService::start().await;
    let pack = TestPack::market(&ccs.url())
        .change("pack.yaml", "scripted:stage", "cassette:tents")
        .put("cassettes/tents.jsonl", cassette)
        .put("prices.yaml", PRICES);
    let options = ServerOptions::pack(pack).set("model", "cassette_pace_percent", 10);
    let engine = EngineFixture::on(ccs, options).await;
    let first = converse(&engine).await;
    // A second conversation plays as the first did.
    let other = engine.api.create().await.expect("a session");
    let question = turnwire_testkit::chat::ChatSubmit::new(ASKED);
    let again = engine.submit_in(other, question).await;
    assert_eq!(again.text(), first.0);
    engine.check_history().await;
    first
}

#[tokio::test]
async fn cassette_replays_every_format_without_provider() {
    let dir = tempfile::tempdir().expect("a folder");
    for dialect in Dialect::ALL {
        let name = word(dialect);
        let file = dir.path().join(format!("{name}.jsonl"));
        let live = recorded(dialect, &file).await;
        assert!(live.0.ends_with("There are two ⛺."), "{name}: {}", live.0);
        let cassette = std::fs::read_to_string(&file).expect("a cassette");
        // Responses repeats the instructions in its answer, and what comes is kept as it came.
        let prompt = (dialect != Dialect::Responses).then_some("You are the market's assistant");
        for secret in [KEY, ASKED, "127.0.0.1"].into_iter().chain(prompt) {
            assert!(!cassette.contains(secret), "{name}: {secret}\n{cassette}");
        }
        let calls = cassette.matches("{\"type\":\"call\"").count();
        assert_eq!(calls, 4, "{name}: {cassette}");
        assert_eq!(played(&cassette).await, live, "{name}");
    }
}

fn turnwire(words: &[&str]) -> String {
    let ran = std::process::Command::new(binary()).args(words).output();
    let ran = ran.expect("the binary runs");
    let stdout = String::from_utf8_lossy(&ran.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{words:?}: {stdout}{stderr}");
    stdout
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_session_replays_from_script() {
    let provider = provider().await;
    let ccs = FakeDataService::start().await;
    let pack = TestPack::market(&ccs.url())
        .change("pack.yaml", "scripted:stage", "vendor:small")
        .put(
            "providers.yaml",
            &providers(Dialect::Anthropic, &provider.base_url()),
        )
        .put("prices.yaml", PRICES);
    let options = ServerOptions {
        env: vec![("CASSETTE_KEY".into(), KEY.into())],
        ..ServerOptions::pack(pack.clone())
    };
    let engine = EngineFixture::on(ccs, options).await;
    let (words, _) = converse(&engine).await;
    assert!(words.ends_with("There are two ⛺."), "{words}");
    let dir = tempfile::tempdir().expect("a folder");
    let out = dir.path().display().to_string();
    let home = engine.server.home().display().to_string();
    let session = engine.session.to_string();
    turnwire(&["record", &session, "--data", &home, "--out", &out]);
    // Nobody is there any more, and there is no key.
    drop(provider);
    let again = ServerOptions::pack(pack).set("script", "file", format!("{out}/script.yaml"));
    let again = EngineFixture::on(engine.ccs, again).await;
    let url = format!("http://{}", again.server.addr());
    let stdout = turnwire(&["rerun", &format!("{out}/case.yaml"), "--server", &url]);
    assert!(stdout.contains("1 of 1 turns as expected"), "{stdout}");
}

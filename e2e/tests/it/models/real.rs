//! A real small model behind llama.cpp's server, called by the real server in three formats: a
//! streamed conversation, a cancel that stops the generation, a cut connection that resumes, and a
//! log that verifies. Its output differs from run to run, so only the form is checked.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use turnwire_e2e::data_service::FakeDataService;
use turnwire_e2e::engine::{EngineFixture, json_of};
use turnwire_e2e::load::wait_until_idle;
use turnwire_e2e::models::{ModelEntry, fields, options, payloads, shape, word};
use turnwire_event::{Event, EventType};
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::provider::Dialect;
use turnwire_testkit::real::RealModel;
use turnwire_testkit::rng::SeededRng;
use turnwire_testkit::server::binary;
use turnwire_testkit::watch::{ResumingReader, SubscribeOptions, WatchClient};

const FORMATS: [Dialect; 3] = [Dialect::Chat, Dialect::Anthropic, Dialect::Responses];

/// An orchestrator without sub-agents: with tools, so small a model answers only in JSON.
const SPEAKER: &str = "\
id: orchestrator
version: '1'
kind: orchestrator
description: Speaks with the person.
model: default
prompt_blocks: [persona]
sub_agents: []
tools: []
history: {max_messages: 20, max_tokens: 1500}
";

/// A server whose words come from the model, at most so many tokens at a time.
async fn engine(model: &RealModel, dialect: Dialect, tokens: u32) -> EngineFixture {
    let entry = ModelEntry::new("local", dialect, model.base_url());
    let entry = entry.with("params", &format!("{{max_tokens: {tokens}}}"));
    let manifest = format!(
        "name: small\nversion: '1'\ndefault_locale: en\nmodels: {{default: 'local:{}'}}\n",
        RealModel::NAME
    );
    let pack = TestPack::default()
        .put("pack.yaml", &manifest)
        .put("orchestrator.yaml", SPEAKER)
        .put("prompts/persona.md", "You are a friendly storyteller.\n")
        .put("locales/en.yaml", "{}\n")
        .put("providers.yaml", &turnwire_e2e::models::providers(&[entry]))
        .put(
            "prices.yaml",
            "prices: {\"local:*\": {input: 0.1, output: 0.4}}\n",
        );
    EngineFixture::on(FakeDataService::start().await, options(pack)).await
}

/// The stored log holds together, seen by the command, from the folder alone.
fn verified(engine: &EngineFixture) {
    let home = engine.server.home();
    let session = engine.session.to_string();
    let mut command = Command::new(binary());
    command.args(["verify", &session, "--principal", "user-42", "--data"]);
    let done = command.arg(home).output().expect("the command runs");
    let stdout = String::from_utf8_lossy(&done.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{stdout}{stderr}");
}

// S3-052, S3-060
#[tokio::test]
async fn real_conversation_streams_in_three_formats() {
    let model = RealModel::start().await;
    for dialect in FORMATS {
        let name = word(dialect);
        let engine = engine(&model, dialect, 24).await;
        let mut cost = 0.0;
        for question in [
            "Tell me about a tent.",
            "And who sleeps in it?",
            "Tell me more about it.",
        ] {
            let mut watcher = engine.watch("watcher", SubscribeOptions::live()).await;
            let reply = engine.ask(question).await;
            let events = json_of(&watcher.turn(reply.turn).await.expect("the turn"));
            let names = shape(&events);
            assert_eq!(
                names,
                [
                    "turn.started",
                    "route.decided",
                    "llm.call_started",
                    "message.start",
                    "text.delta",
                    "message.complete",
                    "llm.call_completed",
                    "dispatch.traced",
                    "turn.completed"
                ],
                "{name}"
            );
            let deltas = fields(&events, "text.delta", "text");
            assert!(deltas.len() > 1, "{name}: it streams");
            let text: String = deltas.iter().filter_map(Value::as_str).collect();
            let end = payloads(&events, "message.complete")[0];
            assert_eq!(
                end["final_content"],
                json!([{"type": "text", "text": text}]),
                "{name}"
            );
            let reason = end["stop_reason"].as_str().unwrap_or_default();
            assert!(
                ["end_turn", "max_tokens"].contains(&reason),
                "{name}: {reason}"
            );
            assert_eq!(reply.text(), text, "c_09: {name}");
            let usage = &end["usage"];
            for part in ["input_tokens", "output_tokens"] {
                assert!(
                    usage[part].as_u64().is_some_and(|n| n > 0),
                    "{name}: {usage}"
                );
            }
            cost += usage["cost_usd"].as_f64().expect("a cost");
        }
        assert_eq!(engine.messages().await.len(), 6, "{name}");
        let row = engine.api.attach(engine.session).await.expect("an answer");
        let sum = row["cost_so_far_usd"].as_f64().expect("a cost");
        assert!(
            cost > 0.0 && (sum - cost).abs() < 1e-9,
            "s3_107: {sum}, {cost}"
        );
        let path = format!("/sessions/{}/llm-calls", engine.session);
        let calls = engine.api.get(&path).await.expect("an answer").json();
        let calls = calls["llm_calls"].as_array().expect("rows").clone();
        assert_eq!(calls.len(), 3, "{name}");
        let named = |call: &Value| call["provider_response_id"].is_string();
        assert!(calls.iter().all(named), "s1_146: {name}: {calls:?}");
        engine.check_history().await;
        verified(&engine);
    }
    assert_eq!(model.stops(), 0, "nobody left early");
}

/// The events of a turn that was cancelled after its first word. A model may end by itself after a
/// few words, before a cancel can come: then it is asked again.
async fn stopped_in_mid_token(engine: &EngineFixture, client: &mut WatchClient) -> Vec<Value> {
    for _ in 0..10 {
        let question = "Count from one to one thousand, in words, and leave nothing out.";
        let accepted = engine.api.submit(engine.session, question).await;
        let turn = accepted.expect("an answer").turn_id;
        let is_word = |e: &Event| e.body.kind() == EventType::TextDelta;
        let mut seen = client.until(is_word).await.expect("words");
        engine.api.cancel(turn).await.expect("an answer");
        seen.extend(client.turn(turn).await.expect("an end"));
        let last = seen.last().map(|event| event.body.kind());
        if last == Some(EventType::TurnCancelled) {
            return json_of(&seen);
        }
    }
    panic!("no generation lasted until its cancel")
}

// SC-22
#[tokio::test]
async fn cancel_mid_token_stops_real_generation() {
    let model = RealModel::start().await;
    for (stops, dialect) in FORMATS.into_iter().enumerate() {
        let name = word(dialect);
        let engine = engine(&model, dialect, 3_000).await;
        let mut client = engine.watch("canceller", SubscribeOptions::live()).await;
        let events = stopped_in_mid_token(&engine, &mut client).await;
        let ends: Vec<&str> = shape(&events).into_iter().rev().take(4).collect();
        assert_eq!(
            ends,
            [
                "turn.cancelled",
                "dispatch.traced",
                "llm.call_failed",
                "message.complete"
            ],
            "{name}"
        );
        let end = payloads(&events, "message.complete")[0];
        assert_eq!(end["stop_reason"], "cancelled", "{name}");
        // The one that computes has stopped, not only the one that listens.
        model.stopped(stops + 1).await;
        engine.check_history().await;
        verified(&engine);
        assert_eq!(model.stops(), stops + 1, "{name}");
    }
}

// I1
#[tokio::test]
async fn cut_stream_resumes_real_conversation_completely() {
    let model = RealModel::start().await;
    let mut rng = SeededRng::from_env();
    for dialect in FORMATS {
        let engine = engine(&model, dialect, 60).await;
        let mut watcher = engine.watch("whole", SubscribeOptions::live()).await;
        let mut reader = ResumingReader::new(&engine.api, "cut", engine.session);
        let accepted = engine
            .api
            .submit(engine.session, "Tell me a long story about a lighthouse.")
            .await;
        let turn = accepted.expect("an answer").turn_id;
        let mut cuts = 0;
        let deadline = Duration::from_millis(500);
        while engine.api.turn(turn).await.expect("an answer")["state"] == "running" {
            let bytes = 1 + rng.index(4_000) as u64;
            cuts += usize::from(reader.cut_after(bytes, deadline).await.is_some());
        }
        let uncut = watcher.turn(turn).await.expect("the turn");
        let last = wait_until_idle(&engine.api, engine.session)
            .await
            .expect("an end");
        reader.finish(last).await;
        drop(reader);
        let deltas = uncut
            .iter()
            .filter(|e| e.body.kind() == EventType::TextDelta);
        let deltas = deltas.count();
        println!(
            "{}: {cuts} cuts in a turn of {deltas} deltas",
            word(dialect)
        );
        assert!(
            cuts > 1 && deltas > 1,
            "{}: {cuts} cuts, {deltas} deltas",
            word(dialect)
        );
        // The checker compares what each reader was given with the log, text with text.
        let history = engine.check_history().await;
        let lines = history
            .connections
            .iter()
            .filter(|c| c.client == "cut")
            .count();
        assert!(lines > cuts, "{lines} lines for {cuts} cuts");
        verified(&engine);
    }
}

//! Fixture of the tests of model providers: a server whose models are fake providers on the
//! loopback, the events of a turn on both wires, and events without the fields that differ from run
//! to run.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use turnwire_testkit::chat::ChatSubmit;
use turnwire_testkit::data_service::FakeDataService;
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::provider::{Dialect, FakeProvider};
use turnwire_testkit::server::ServerOptions;
use turnwire_testkit::watch::SubscribeOptions;

use crate::chat_reply::ChatReply;
use crate::engine::{EngineFixture, json_of};

/// The environment variable with the key of all providers.
pub const KEY_NAME: &str = "STAGE_MODEL_KEY";
/// The key of all providers, which must not leak.
pub const KEY: &str = "sk-stage-7f3a9c51d2";
/// The default model of a provider.
pub const MODEL: &str = "small";

/// The name of a format in packs.
pub const fn word(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Anthropic => "anthropic",
        Dialect::Chat => "openai_chat",
        Dialect::Responses => "openai_responses",
        Dialect::Gemini => "gemini",
    }
}

/// A provider entry of a pack.
#[derive(Clone, Debug)]
pub struct ModelEntry {
    name: String,
    dialect: Dialect,
    url: String,
    lines: BTreeMap<String, String>,
}

impl ModelEntry {
    /// A provider at a base URL. Retries are immediate, to keep tests fast.
    pub fn new(name: &str, dialect: Dialect, url: &str) -> Self {
        let entry = Self {
            name: name.to_owned(),
            dialect,
            url: match dialect {
                Dialect::Chat | Dialect::Responses => format!("{url}/v1"),
                Dialect::Anthropic | Dialect::Gemini => url.to_owned(),
            },
            lines: BTreeMap::new(),
        };
        entry.with("retries", "{attempts: 3, base_ms: 5, max_ms: 20}")
    }

    /// Adds a field, or replaces it.
    #[must_use]
    pub fn with(mut self, field: &str, value: &str) -> Self {
        self.lines.insert(field.to_owned(), value.to_owned());
        self
    }

    fn yaml(&self) -> String {
        let Self { name, url, .. } = self;
        let dialect = word(self.dialect);
        let mut text = format!(
            "  {name}:\n    dialect: {dialect}\n    base_url: {url}\n    key: ${{{KEY_NAME}}}\n"
        );
        for (field, value) in &self.lines {
            text += &format!("    {field}: {value}\n");
        }
        text
    }
}

/// The pack file with these providers.
pub fn providers(entries: &[ModelEntry]) -> String {
    let entries: String = entries.iter().map(ModelEntry::yaml).collect();
    format!("providers:\n{entries}")
}

/// [`TestPack::market`] with these providers; the first serves all agents. The orchestrator
/// also has the tools to echo, sleep and fail.
pub fn pack(ccs: &str, entries: &[ModelEntry]) -> TestPack {
    let first = entries.first().map_or("none", |entry| &entry.name);
    let tools = [("say_back", "echo"), ("nap", "sleep"), ("boom", "fail")];
    let lines = tools.map(|(name, function)| {
        format!(
            "  - {{name: {name}, connector: direct, function: {function}, description: For trying.}}\n"
        )
    });
    TestPack::market(ccs)
        .change("pack.yaml", "scripted:stage", &format!("{first}:{MODEL}"))
        .put("providers.yaml", &providers(entries))
        .put("prices.yaml", PRICES)
        .change(
            "tools.yaml",
            "tools:\n",
            &format!("tools:\n{}", lines.concat()),
        )
        .change(
            "orchestrator.yaml",
            "tools: [llm_feedback]",
            "tools: [say_back, nap, boom, llm_feedback]",
        )
}

/// USD per million tokens, of every model.
const PRICES: &str = "\
prices:
  \"*\": {input: 1.0, output: 10.0, cached_input: 0.5, cache_write: 2.0}
";

/// The cost of a call at the fixture's prices.
pub fn price(input: u64, cached: u64, written: u64, output: u64) -> f64 {
    let fresh = (input - cached - written) as f64;
    (fresh + cached as f64 * 0.5 + written as f64 * 2.0 + output as f64 * 10.0) / 1e6
}

/// Options for a server with the providers' key.
pub fn options(pack: TestPack) -> ServerOptions {
    let mut options = ServerOptions::pack(pack);
    options.env.push((KEY_NAME.to_owned(), KEY.to_owned()));
    options
}

/// A server and the fake provider of its models.
#[derive(Debug)]
pub struct ProviderFixture {
    pub fake: FakeProvider,
    /// The server and its data service.
    pub engine: EngineFixture,
}

impl ProviderFixture {
    /// Starts a server with a provider of this format.
    pub async fn new(dialect: Dialect) -> Self {
        Self::with(dialect, |entry| entry, |options| options).await
    }

    /// Starts a server with changes to the provider entry and the options.
    pub async fn with(
        dialect: Dialect,
        entry: impl FnOnce(ModelEntry) -> ModelEntry,
        change: impl FnOnce(ServerOptions) -> ServerOptions,
    ) -> Self {
        let fake = FakeProvider::start().await;
        fake.require_key(KEY);
        let ccs = FakeDataService::start().await;
        let entry = entry(ModelEntry::new("vendor", dialect, &fake.base_url()));
        let options = change(options(pack(&ccs.url(), &[entry])));
        let engine = EngineFixture::on(ccs, options).await;
        Self { fake, engine }
    }

    /// Submits a message; returns the chat reply and the events that a WebSocket client saw.
    pub async fn ask(&self, message: &str) -> (ChatReply, Vec<Value>) {
        self.submit(ChatSubmit::new(message)).await
    }

    /// Submits; returns the chat reply and the events that a WebSocket client saw.
    pub async fn submit(&self, submit: ChatSubmit) -> (ChatReply, Vec<Value>) {
        let mut watcher = self.engine.watch("watcher", SubscribeOptions::live()).await;
        let watching = async {
            let ends = |e: &turnwire_event::Event| e.body.kind().is_terminal();
            watcher.until(ends).await.expect("the turn's end")
        };
        let (reply, mut seen) = tokio::join!(self.engine.submit(submit), watching);
        seen.retain(|event| event.turn_id == Some(reply.turn));
        (reply, json_of(&seen))
    }

    /// Asserts that the provider rejected no request.
    pub fn assert_no_rejections(&self) {
        for call in self.fake.calls() {
            assert_eq!(call.refused, None, "call {}: {}", call.number, call.text);
        }
    }
}

/// The event types, with repetitions removed: the number of deltas is not promised.
pub fn shape(events: &[Value]) -> Vec<&str> {
    let mut names: Vec<&str> = events.iter().filter_map(|e| e["type"].as_str()).collect();
    names.dedup();
    names
}

/// The payloads of the events of a type.
pub fn payloads<'a>(events: &'a [Value], kind: &'a str) -> Vec<&'a Value> {
    let own = events.iter().filter(move |event| event["type"] == kind);
    own.map(|event| &event["payload"]).collect()
}

/// One field of the payloads of a type.
pub fn fields(events: &[Value], kind: &str, field: &str) -> Vec<Value> {
    let payloads = payloads(events, kind);
    payloads
        .iter()
        .map(|payload| payload[field].clone())
        .collect()
}

/// The messages of a provider request, in any format.
pub fn thread(dialect: Dialect, body: &Value) -> Vec<Value> {
    let field = match dialect {
        Dialect::Anthropic | Dialect::Chat => "messages",
        Dialect::Responses => "input",
        Dialect::Gemini => "contents",
    };
    body[field].as_array().cloned().unwrap_or_default()
}

/// Fields with times, durations, models and hashes: they differ
/// between two runs, or between two providers of the same text.
const VARYING: [&str; 9] = [
    "timestamp",
    "trace",
    "model",
    "duration_ms",
    "total_ms",
    "content_sha256",
    "result_sha256",
    "overhead_ms",
    "latency_ms",
];

/// Events with every id replaced by the number of its first use, without the varying fields.
pub fn canonical(events: &[Value]) -> Vec<Value> {
    let mut ids = BTreeMap::new();
    let events = events.iter().map(|event| {
        let mut event = event.clone();
        // Positions depend on the number of earlier events; the order is compared anyway.
        event["id"] = Value::Null;
        canonical_value(&event, &mut ids)
    });
    events.collect()
}

fn canonical_value(value: &Value, ids: &mut BTreeMap<String, usize>) -> Value {
    match value {
        Value::String(text) if is_id(text) => {
            let next = ids.len();
            json!(format!("id {}", ids.entry(text.clone()).or_insert(next)))
        }
        Value::Array(list) => list
            .iter()
            .map(|value| canonical_value(value, ids))
            .collect(),
        Value::Object(fields) => {
            let stable_fields = fields
                .iter()
                .filter(|(name, _)| !VARYING.contains(&name.as_str()));
            let stable_fields =
                stable_fields.map(|(name, value)| (name.clone(), canonical_value(value, ids)));
            Value::Object(stable_fields.collect::<Map<String, Value>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// True for a Turnwire id: a ULID of 26 characters, with or without a prefix.
fn is_id(text: &str) -> bool {
    let name = text.rsplit('_').next().unwrap_or(text);
    let digits = |c: char| c.is_ascii_digit() || c.is_ascii_uppercase();
    name.len() == 26 && name.chars().all(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renamed_but_equal_histories_compare_equal() {
        let story = |turn: &str, tool: &str| {
            json!([
                {"id": "evt_1", "type": "a", "turn_id": turn, "payload": {"tool_use_id": tool, "model": turn}},
                {"id": "evt_2", "type": "b", "turn_id": turn, "payload": {"tool_use_id": tool, "text": "x"}},
            ])
        };
        let list = |value: Value| value.as_array().cloned().unwrap_or_default();
        let (a, b) = (
            "01K0000000000000000000000A",
            "tu_01K0000000000000000000000B",
        );
        let (c, d) = (
            "01K0000000000000000000000C",
            "tu_01K0000000000000000000000D",
        );
        assert_eq!(canonical(&list(story(a, b))), canonical(&list(story(c, d))));
        assert_ne!(canonical(&list(story(a, b))), canonical(&list(story(a, a))));
        assert!(!is_id("a word") && !is_id("tu_01K"));
    }
}

//! What tests of models that somebody else runs share: a stage whose words come from providers on
//! the loopback, what a turn told on both wires, and events without what differs from run to run.

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

/// The variable that has the key of all providers of a stage.
pub const KEY_NAME: &str = "STAGE_MODEL_KEY";
/// Their key, which must be nowhere else.
pub const KEY: &str = "sk-stage-7f3a9c51d2";
/// The model of a provider that is asked where nothing else is said.
pub const MODEL: &str = "small";

/// What packs call a format.
pub const fn word(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Anthropic => "anthropic",
        Dialect::Chat => "openai_chat",
        Dialect::Responses => "openai_responses",
        Dialect::Gemini => "gemini",
    }
}

/// One provider of a pack.
#[derive(Clone, Debug)]
pub struct ModelEntry {
    name: String,
    dialect: Dialect,
    url: String,
    lines: BTreeMap<String, String>,
}

impl ModelEntry {
    /// A provider at an address without a path. It is tried again at once, so that tests are fast.
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

    /// With a field more, or another in its place.
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

/// The file that names these providers.
pub fn providers(entries: &[ModelEntry]) -> String {
    let entries: String = entries.iter().map(ModelEntry::yaml).collect();
    format!("providers:\n{entries}")
}

/// The pack of the test kit with these providers; the first speaks, for everyone. The one that
/// speaks can say something back, nap and fail by itself.
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

/// What a call costs at the stage's prices.
pub fn price(input: u64, cached: u64, written: u64, output: u64) -> f64 {
    let fresh = (input - cached - written) as f64;
    (fresh + cached as f64 * 0.5 + written as f64 * 2.0 + output as f64 * 10.0) / 1e6
}

/// A server with its key for providers.
pub fn options(pack: TestPack) -> ServerOptions {
    let mut options = ServerOptions::pack(pack);
    options.env.push((KEY_NAME.to_owned(), KEY.to_owned()));
    options
}

/// A stage and the provider of all its words.
#[derive(Debug)]
pub struct ProviderFixture {
    pub fake: FakeProvider,
    /// The rest of the house.
    pub engine: EngineFixture,
}

impl ProviderFixture {
    /// A stage whose provider speaks a format.
    pub async fn new(dialect: Dialect) -> Self {
        Self::with(dialect, |entry| entry, |options| options).await
    }

    /// The same with changes.
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

    /// Says something; gives what the chat wire told, and what one who watches saw.
    pub async fn ask(&self, message: &str) -> (ChatReply, Vec<Value>) {
        self.submit(ChatSubmit::new(message)).await
    }

    /// The same with more to it.
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

    /// The provider refused nothing for what was sent to it.
    pub fn understood(&self) {
        for call in self.fake.calls() {
            assert_eq!(call.refused, None, "call {}: {}", call.number, call.text);
        }
    }
}

/// The types of events, neighbours of one type as one: how many deltas there are is no promise.
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

/// The conversation as a request shows it: its messages, whatever the format calls them.
pub fn thread(dialect: Dialect, body: &Value) -> Vec<Value> {
    let field = match dialect {
        Dialect::Anthropic | Dialect::Chat => "messages",
        Dialect::Responses => "input",
        Dialect::Gemini => "contents",
    };
    body[field].as_array().cloned().unwrap_or_default()
}

/// Fields that say when, how long, which model and what a row's bytes were hashed to: they differ
/// between two runs, or between two providers of the same words.
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

/// Events with every id as the number of its first mention, without what varies.
pub fn canonical(events: &[Value]) -> Vec<Value> {
    let mut ids = BTreeMap::new();
    let events = events.iter().map(|event| {
        let mut event = event.clone();
        // A place is a matter of how many came before, which the order says.
        event["id"] = Value::Null;
        even(&event, &mut ids)
    });
    events.collect()
}

fn even(value: &Value, ids: &mut BTreeMap<String, usize>) -> Value {
    match value {
        Value::String(text) if is_id(text) => {
            let next = ids.len();
            json!(format!("id {}", ids.entry(text.clone()).or_insert(next)))
        }
        Value::Array(list) => list.iter().map(|value| even(value, ids)).collect(),
        Value::Object(fields) => {
            let stable_fields = fields
                .iter()
                .filter(|(name, _)| !VARYING.contains(&name.as_str()));
            let stable_fields = stable_fields.map(|(name, value)| (name.clone(), even(value, ids)));
            Value::Object(stable_fields.collect::<Map<String, Value>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Whether a text is an id of the house: 26 characters of a ULID, with or without what it names.
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

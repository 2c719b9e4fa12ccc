//! Fixture of the worker tests: a pack whose orchestrator delegates to workers, and helpers to read
//! their sessions.

use serde_json::{Value, json};
use turnwire_event::{Epoch, Event, Position, Seq, SessionId, TurnId};
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{ServerOptions, TestServer};
use turnwire_testkit::watch::{SubscribeOptions, WatchClient};

use crate::chat::until;

/// The id of the worker agent.
pub const READER: &str = "reader";
const ORCHESTRATOR: &str = "orchestrator";

/// A server whose orchestrator delegates, with one session.
#[derive(Debug)]
pub struct WorkerFixture {
    pub server: TestServer,
    /// An HTTP client of the server.
    pub api: ApiClient,
    pub session: SessionId,
}

/// An orchestrator that delegates to a reader (`research`, within `limit_ms`) or to another
/// orchestrator (`deeper`).
pub fn pack(script: &ModelScript, limit_ms: u64) -> TestPack {
    TestPack::default()
        .put(
            "pack.yaml",
            "name: crew\nversion: '1.0.0'\ndefault_locale: en\n\
             models: {default: 'scripted:crew'}\nlimits: {workers_max: 6}\n",
        )
        .put(
            "orchestrator.yaml",
            "id: orchestrator\nversion: '1'\nkind: orchestrator\ndescription: Speaks.\n\
             prompt_blocks: [persona]\ntools: [research, deeper]\n",
        )
        .put(
            "tools.yaml",
            &format!(
                "tools:\n  - {{name: research, connector: delegate, agent: reader, \
                 description: Reads up on it., timeout_ms: {limit_ms}}}\n  \
                 - {{name: deeper, connector: delegate, agent: orchestrator, \
                 description: Thinks it over., timeout_ms: 60000}}\n  \
                 - {{name: nap, connector: direct, function: sleep}}\n"
            ),
        )
        .put("prompts/persona.md", "You speak.\n")
        .put("prompts/reader.md", "You read.\n")
        .put(
            "workers/reader/agent.yaml",
            "id: reader\nversion: '1'\nkind: worker\ndescription: Reads.\n\
             prompt_blocks: [reader]\ntools: [nap]\n",
        )
        .script(script)
}

/// A script in which the orchestrator delegates `task` and then answers `last`.
pub fn delegates(task: &str, last: &str) -> ModelScript {
    let step = ScriptStep::tool("research", json!({"task": task}));
    ModelScript::new()
        .call(ORCHESTRATOR, 1, [ScriptStep::text("I ask somebody."), step])
        .call(ORCHESTRATOR, 2, [ScriptStep::text(last)])
}

/// Adds the steps of the reader.
pub fn read_by(script: ModelScript, steps: impl IntoIterator<Item = ScriptStep>) -> ModelScript {
    script.call(READER, 1, steps)
}

impl WorkerFixture {
    /// Starts a server with this script.
    pub async fn new(script: &ModelScript) -> Self {
        Self::on(ServerOptions::pack(pack(script, 60_000))).await
    }

    /// Starts a server with these options.
    pub async fn on(options: ServerOptions) -> Self {
        let server = TestServer::start(options).await;
        let api = server.api();
        let session = api.create().await.expect("a session");
        Self {
            server,
            api,
            session,
        }
    }

    /// Submits a message in the session.
    pub async fn say(&self, message: &str) -> TurnId {
        let accepted = self.api.submit(self.session, message).await;
        accepted.expect("accepted").turn_id
    }

    /// The workers of a session, newest first.
    pub async fn workers(&self, session: SessionId) -> Vec<Value> {
        let path = format!("/sessions/{session}/workers");
        let pages = self.api.pages(&path, "workers").await;
        pages.expect("an answer").concat()
    }

    /// Waits until a session has a running worker; returns its session and its turn.
    pub async fn working(&self, session: SessionId) -> (SessionId, TurnId) {
        until("a worker is at work", || async {
            let workers = self.workers(session).await;
            workers.first().is_some_and(|one| one["turn"].is_object())
        })
        .await;
        let worker = self.workers(session).await.remove(0);
        let id = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let session = id(&worker["session_id"]).parse();
        let turn = id(&worker["turn"]["turn_id"]).parse();
        (session.expect("a session"), turn.expect("a turn"))
    }

    /// Waits until an event of this type is in a session's log.
    pub async fn logged(&self, session: SessionId, kind: &str) {
        until(kind, || async {
            of(&self.log(session).await, kind).is_some()
        })
        .await;
    }

    /// The stored events of a session.
    pub async fn log(&self, session: SessionId) -> Vec<Value> {
        let events = self.api.events(session).await.expect("an answer");
        let read = |text: &str| serde_json::from_str(text).expect("a stored event");
        events.iter().map(|logged| read(&logged.text)).collect()
    }

    /// Subscribes to a session from its first event on.
    pub async fn watch(&self, name: &str, session: SessionId) -> WatchClient {
        self.watch_as(name, session, json!("preset:full")).await
    }

    /// Subscribes to the session and all its workers.
    pub async fn watch_all(&self, name: &str) -> WatchClient {
        let filter = json!({"include_worker_sessions": true});
        self.watch_as(name, self.session, filter).await
    }

    async fn watch_as(&self, name: &str, session: SessionId, filter: Value) -> WatchClient {
        let client = WatchClient::connect(&self.api, name, session).await;
        let mut client = client.expect("a connection");
        let ask = SubscribeOptions::since(Position::persisted(Epoch::FIRST, Seq(0))).filter(filter);
        client.subscribed(&ask).await.expect("an acknowledgement");
        client
    }
}

/// The first event of a type.
pub fn of<'a>(events: &'a [Value], kind: &str) -> Option<&'a Value> {
    events.iter().find(|event| event["type"] == kind)
}

/// The event types of tools, workers, model calls and the end of a turn.
pub fn course(events: &[Value]) -> Vec<&str> {
    let prefixes = ["tool.", "delegate.", "turn.", "llm.", "route."];
    let kinds = events.iter().filter_map(|event| event["type"].as_str());
    kinds
        .filter(|kind| prefixes.iter().any(|prefix| kind.starts_with(prefix)))
        .filter(|kind| !kind.starts_with("tool.use"))
        .collect()
}

/// As [`course`], for events received over a socket.
pub fn streamed_course(events: &[Event]) -> Vec<&'static str> {
    let prefixes = ["tool.", "delegate.", "turn.", "llm.", "route."];
    let kinds = events.iter().map(|event| event.body.kind().name());
    kinds
        .filter(|kind| prefixes.iter().any(|prefix| kind.starts_with(prefix)))
        .filter(|kind| !kind.starts_with("tool.use"))
        .collect()
}

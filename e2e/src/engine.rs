//! Fixtures of the turn engine's tests: a server that runs a pack with a fake data service, scripts
//! for its agents, and the rules of dispatch that every turn must follow.

use std::time::Instant;

use serde_json::{Value, json};
use turnwire_event::{Event, SessionId, TurnId};
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::chat::ChatSubmit;
use turnwire_testkit::history::History;
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{ServerOptions, TestServer};
use turnwire_testkit::watch::{SubscribeOptions, WatchClient};

use crate::{chat, load};
use turnwire_testkit::data_service::FakeDataService;

pub use crate::chat_reply::{ChatReply, label};

/// The principal of all requests.
pub const PRINCIPAL: &str = "user-42";
/// The id of the orchestrator agent.
pub const ORCHESTRATOR: &str = "orchestrator";

/// Texts that must never appear on a wire.
pub const HIDDEN: [&str; 6] = [
    "SUBRAW",
    "LEAK_CACHE",
    "cache_meta",
    "total_ms",
    "principal",
    "domain_type",
];

/// A server that runs a pack, one session, and a fake data service.
#[derive(Debug)]
pub struct EngineFixture {
    pub ccs: FakeDataService,
    pub server: TestServer,
    /// An HTTP client for the principal [`PRINCIPAL`].
    pub api: ApiClient,
    pub session: SessionId,
}

impl EngineFixture {
    /// Runs [`TestPack::market`] with a script.
    pub async fn new(script: ModelScript) -> Self {
        Self::with(script, |pack| pack).await
    }

    /// Runs [`TestPack::market`] with a script and changes.
    pub async fn with(script: ModelScript, change: impl FnOnce(TestPack) -> TestPack) -> Self {
        let ccs = FakeDataService::start().await;
        let pack = change(TestPack::market(&ccs.url()).script(&script));
        Self::on(ccs, ServerOptions::pack(pack)).await
    }

    /// Runs a server with these options beside a data service.
    pub async fn on(ccs: FakeDataService, options: ServerOptions) -> Self {
        let server = TestServer::start(options).await;
        let api = server.api().with("x-turnwire-principal", PRINCIPAL);
        let session = api.create().await.expect("a session");
        Self {
            ccs,
            server,
            api,
            session,
        }
    }

    /// Submits a message in the session and reads the whole reply.
    pub async fn ask(&self, message: &str) -> ChatReply {
        self.submit(ChatSubmit::new(message)).await
    }

    /// Submits in the session and reads the whole reply.
    pub async fn submit(&self, submit: ChatSubmit) -> ChatReply {
        self.submit_in(self.session, submit).await
    }

    /// Submits in another session and reads the whole reply.
    pub async fn submit_in(&self, session: SessionId, question: ChatSubmit) -> ChatReply {
        let question = question.session(session);
        let started = Instant::now();
        let (turn, frames) = chat::whole(&self.api, "a person", &question).await;
        ChatReply {
            turn,
            frames,
            elapsed: started.elapsed(),
        }
    }

    /// Connects a WebSocket to the session and subscribes.
    pub async fn watch(&self, name: &str, ask: SubscribeOptions) -> WatchClient {
        let client = WatchClient::connect(&self.api, name, self.session).await;
        let mut client = client.expect("a connection");
        client.subscribed(&ask).await.expect("an acknowledgement");
        client
    }

    /// The stored events of a turn, as JSON.
    pub async fn events(&self, turn: TurnId) -> Vec<Value> {
        let id = json!(turn);
        let mut events = self.log(self.session).await;
        events.retain(|event| event["turn_id"] == id);
        events
    }

    /// The stored events of a session, as JSON.
    pub async fn log(&self, session: SessionId) -> Vec<Value> {
        let events = self.api.events(session).await.expect("an answer");
        let read = |text: &str| serde_json::from_str(text).expect("a stored event");
        events.iter().map(|logged| read(&logged.text)).collect()
    }

    /// The messages of the session that clients see, oldest first.
    pub async fn messages(&self) -> Vec<Value> {
        self.api.messages(self.session).await.expect("an answer")
    }

    /// The axis and `is_final` of every counted failure of a turn.
    pub async fn axes(&self, turn: TurnId) -> Vec<(u64, bool)> {
        let events = self.events(turn).await;
        let axis = |e: &Value| {
            let payload = &e["payload"];
            let keys: Vec<&String> = payload.as_object().expect("a payload").keys().collect();
            assert_eq!(keys, ["sub_agent_id", "axis", "is_final"], "d_27");
            (
                payload["axis"].as_u64().expect("an axis"),
                payload["is_final"] == true,
            )
        };
        of(&events, "agent.error_emit").map(axis).collect()
    }

    /// Waits until the log has an event of a type for the turn.
    pub async fn reached(&self, turn: TurnId, kind: &str) {
        chat::until(kind, || async {
            of(&self.events(turn).await, kind).next().is_some()
        })
        .await;
    }

    /// Waits until the session is idle, and checks the dispatch rules and the history.
    pub async fn check_history(&self) -> History {
        load::wait_until_idle(&self.api, self.session).await;
        check_dispatch_rules(&self.log(self.session).await);
        load::check_history(&self.api, &[self.session]).await
    }
}

/// The events of a type.
pub fn of<'a>(events: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |event| event["type"] == kind)
}

/// The only event of a type.
pub fn only<'a>(events: &'a [Value], kind: &'a str) -> &'a Value {
    let mut matches = of(events, kind);
    let one = matches
        .next()
        .unwrap_or_else(|| panic!("no {kind}: {:?}", kinds(events)));
    assert_eq!(matches.next(), None, "more than one {kind}");
    one
}

/// The types of events with the tool or the agent they are about.
pub fn kinds(events: &[Value]) -> Vec<String> {
    let mut names: Vec<String> = events.iter().map(kind).collect();
    names.dedup();
    names
}

fn kind(event: &Value) -> String {
    let kind = event["type"].as_str().unwrap_or_default();
    let payload = &event["payload"];
    let about = ["tool_name", "sub_agent_id", "purpose"];
    let about = about.iter().find_map(|field| payload[field].as_str());
    match about {
        Some(about) => format!("{kind} {about}"),
        None => kind.to_owned(),
    }
}

/// Events of a watcher as JSON.
pub fn json_of(events: &[Event]) -> Vec<Value> {
    let read = |event: &Event| serde_json::from_slice(&event.to_bytes()).expect("an event");
    events.iter().map(read).collect()
}

/// A script in which the orchestrator calls `agents` in parallel and then answers `answer`.
pub fn asks(agents: &[&str], answer: &str) -> ModelScript {
    let asks = agents.iter().map(|id| {
        ScriptStep::tool(
            &format!("ask_{id}"),
            json!({"query": format!("about {id}")}),
        )
    });
    ModelScript::new()
        .call(ORCHESTRATOR, 1, asks)
        .call(ORCHESTRATOR, 2, [ScriptStep::text(answer)])
}

/// SC-01: the sub-agent streams text in all of its calls.
pub fn reference() -> ModelScript {
    let offers = json!({"ids": ["OFF_1", "OFF_2"]});
    ModelScript::new()
        .call(
            ORCHESTRATOR,
            1,
            [ScriptStep::tool("ask_shop", json!({"query": "oat milk"}))],
        )
        .call(
            ORCHESTRATOR,
            2,
            [
                ScriptStep::slow("Here are ", 9, 1),
                ScriptStep::slow("some offers", 11, 1),
            ],
        )
        .call(
            "shop",
            1,
            [
                ScriptStep::text("SUBRAW begins"),
                ScriptStep::tool("search_offers", json!({"query": "oat milk"})),
            ],
        )
        .call(
            "shop",
            2,
            [
                ScriptStep::text("SUBRAW shows"),
                ScriptStep::tool("render_offer_list", offers),
            ],
        )
        .call("shop", 3, [ScriptStep::text("SUBRAW")])
}

/// Adds rules in which the sub-agents of the market pack call their tools.
pub fn working(script: ModelScript) -> ModelScript {
    let offers = json!({"ids": ["OFF_1", "OFF_2"]});
    script
        .call(
            "shop",
            1,
            [ScriptStep::tool(
                "search_offers",
                json!({"query": "oat milk"}),
            )],
        )
        .call("shop", 2, [ScriptStep::tool("render_offer_list", offers)])
        .call("shop", 3, [ScriptStep::text("SUBRAW of shop")])
        .call(
            "rewards",
            1,
            [ScriptStep::tool("points_balance", json!({}))],
        )
        .call("rewards", 2, [ScriptStep::text("SUBRAW of rewards")])
        .call(
            "support",
            1,
            [ScriptStep::tool("support_answer", json!({}))],
        )
        .call("support", 2, [ScriptStep::text("SUBRAW of support")])
}

/// Asserts the rules for every ended turn: one trace right before one terminal; everything that
/// started has ended, children before parents.
pub fn check_dispatch_rules(events: &[Value]) {
    let mut turns: Vec<&Value> = of(events, "turn.started").map(|e| &e["turn_id"]).collect();
    turns.dedup();
    for turn in turns {
        let own: Vec<&Value> = events.iter().filter(|e| &e["turn_id"] == turn).collect();
        let at = |kind: &str| -> Vec<usize> {
            let at = own.iter().enumerate().filter(|(_, e)| e["type"] == kind);
            at.map(|(at, _)| at).collect()
        };
        let ends = [at("turn.completed"), at("turn.cancelled")].concat();
        assert_eq!(
            ends,
            [own.len() - 1],
            "one terminal as the last event: {turn}"
        );
        assert_eq!(at("dispatch.traced"), [own.len() - 2], "one trace: {turn}");
        check_nesting(&own);
    }
}

/// Asserts that everything that starts in a turn ends once, and that nothing of a sub-agent is
/// open when the sub-agent ends.
fn check_nesting(turn: &[&Value]) {
    let mut open: Vec<(String, String)> = Vec::new();
    for event in turn {
        let (kind, payload) = (
            event["type"].as_str().unwrap_or_default(),
            &event["payload"],
        );
        let actor = event["actor"].as_str().unwrap_or_default().to_owned();
        let id = |name: &str| payload[name].as_str().unwrap_or_default().to_owned();
        let (opens, key) = match kind {
            "llm.call_started" => (true, id("call_id")),
            "llm.call_completed" | "llm.call_failed" => (false, id("call_id")),
            "tool.called" => (true, id("tool_use_id")),
            "tool.completed" => (false, id("tool_use_id")),
            "tool.failed" if payload["called"] == true => (false, id("tool_use_id")),
            "subagent.started" => (true, id("invocation_id")),
            "subagent.completed" | "subagent.failed" => (false, id("invocation_id")),
            "plan.step_started" => (true, id("plan_step_id")),
            "plan.step_completed" => (false, id("plan_step_id")),
            "turn.completed" | "turn.cancelled" => {
                assert!(open.is_empty(), "left open: {open:?}");
                continue;
            }
            _ => continue,
        };
        if opens {
            assert!(
                !open.iter().any(|(known, _)| *known == key),
                "twice: {event}"
            );
            open.push((key, actor));
            continue;
        }
        let place = open.iter().position(|(known, _)| *known == key);
        open.remove(place.unwrap_or_else(|| panic!("not open: {event}")));
        if kind.starts_with("subagent.") {
            let own = format!("subagent:{}", id("sub_agent_id"));
            // Another invocation of the same sub-agent may run with open work.
            let twin = |(key, actor): &&(String, String)| *actor == own && key.starts_with("inv_");
            if open.iter().any(|one| twin(&one)) {
                continue;
            }
            let unclosed = open.iter().find(|(_, actor)| *actor == own);
            assert_eq!(unclosed, None, "{own} ended with work open: {event}");
        }
        // A step ends after all its tools and their work.
        if kind == "plan.step_completed" {
            assert!(open.is_empty(), "a step ended before {open:?}: {event}");
        }
    }
}

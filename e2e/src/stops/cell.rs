//! One cell of the stop matrix: a turn that is stopped while all of its tools run.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_event::body::turn::TurnCancelled;
use turnwire_event::code::{Phase, ReceiptKind, StopOutcome};
use turnwire_event::{Body, Event, SessionId, TurnId};
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::provider::{ModelMessage, ProviderAnswer};
use turnwire_testkit::stubborn::StubbornPrograms;
use turnwire_testkit::watch::{SubscribeOptions, WatchClient};

use super::expected::{ExpectedEnd, stopped};
use super::fixture::StopFixture;
use super::kind::{FanOut, ToolKind};
use crate::chat;

/// Deadline for all tools of a case to run.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a turn is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopMethod {
    Http,
    /// A cancel request that waits for the end.
    Wait,
    /// A cancel frame on the WebSocket.
    Frame,
    Session,
    /// A cancel request for the session that waits for the end.
    SessionWait,
    /// A request and a frame at the same time.
    Both,
    /// Two requests that wait for the end.
    Twice,
}

impl StopMethod {
    /// All methods, for tests over each.
    pub const ALL: [Self; 7] = [
        Self::Http,
        Self::Wait,
        Self::Frame,
        Self::Session,
        Self::SessionWait,
        Self::Both,
        Self::Twice,
    ];

    /// Cancels a turn; checks that responses with an end have the end of the log.
    pub async fn stop(
        self,
        api: &ApiClient,
        client: &mut WatchClient,
        (session, turn): (SessionId, TurnId),
    ) -> Vec<Value> {
        let path = format!("/turns/{turn}/cancel");
        let wait = format!("{path}?wait=true");
        let of_session = format!("/sessions/{session}/cancel");
        let frame = json!({"type": "cancel", "turn_id": turn, "reason": "user_cancel"});
        let post = async |path: &str| api.post(path, json!({})).await.expect("an answer");
        let accepted = [200, 202];
        match self {
            Self::Http => assert_eq!(post(&path).await.status, 202),
            Self::Session => assert!(accepted.contains(&post(&of_session).await.status)),
            Self::Frame => client.send(&frame).await.expect("sent"),
            Self::Both => {
                let (sent, answer) = tokio::join!(client.send(&frame), post(&path));
                sent.expect("sent");
                assert_eq!(answer.status, 202);
            }
            Self::Wait => {
                let answer = post(&wait).await;
                assert_eq!(answer.status, 200, "{}", answer.body);
                return vec![answer.json()];
            }
            Self::SessionWait => {
                let answer = post(&format!("{of_session}?wait=true")).await;
                assert_eq!(answer.status, 200, "{}", answer.body);
                return vec![answer.json()["turn"].clone()];
            }
            Self::Twice => {
                let (one, two) = tokio::join!(post(&wait), post(&wait));
                assert_eq!((one.status, two.status), (200, 200));
                return vec![one.json(), two.json()];
            }
        }
        Vec::new()
    }
}

/// A combination of tool kind, fan-out and stop method.
#[derive(Clone, Copy, Debug)]
pub struct StopCase {
    /// A unique number of the case.
    pub number: usize,
    /// The kind of tool that runs at the stop.
    pub kind: ToolKind,
    /// How many of them run.
    pub fan: FanOut,
    /// How the turn is cancelled.
    pub way: StopMethod,
}

impl StopCase {
    /// Runs the case in a new session and checks it; returns the session and the turn's end.
    pub async fn run(self, fixture: &StopFixture) -> (SessionId, TurnCancelled) {
        let name = format!("{self:?}");
        let programs = StubbornPrograms::new();
        let needle = format!("cell-{}-", self.number);
        let parts = self.kind.parts(self.fan, &programs);
        let answer: ProviderAnswer = ModelMessage::new(parts).into();
        fixture.fake.always(&needle, answer);
        let api = &fixture.api;
        let session = api.create().await.expect("a session");
        let mut client = watch(api, &name, session).await;
        let turn = api.submit(session, &needle).await.expect("taken").turn_id;
        let mut seen = self.at_work(&mut client, turn).await;
        programs
            .until_ready(self.kind.processes() * self.fan.leaves())
            .await;
        let response = self.way.stop(api, &mut client, (session, turn)).await;
        seen.extend(client.turn(turn).await.expect("the turn's end"));
        // Right when the end is reported.
        assert_eq!(programs.processes(), [0; 0], "{name}");
        seen.retain(|event| event.turn_id == Some(turn));
        let end = stopped(&name, &seen);
        self.expected().check_history(&name, &end);
        for turn in response {
            assert_eq!(turn["receipt"], json!(end.receipt), "{name}");
            assert_eq!(turn["terminal"]["type"], "turn.cancelled", "{name}");
        }
        after(api, &name, session, turn).await;
        (session, end)
    }

    /// Reads events until every tool has been called.
    async fn at_work(self, client: &mut WatchClient, turn: TurnId) -> Vec<Event> {
        let (mut seen, mut begun) = (Vec::new(), 0);
        while begun < self.fan.leaves() {
            let event = tokio::time::timeout(PATIENCE, client.event()).await;
            let event = event.unwrap_or_else(|_| panic!("{self:?} came to rest: {seen:#?}"));
            let event = event.expect("an event");
            assert!(
                !event.body.kind().is_terminal(),
                "{self:?} ended too early: {seen:#?} {event:#?}"
            );
            begun += usize::from(match &event.body {
                Body::ToolCalled(tool) => {
                    let leaf = !tool.tool_name.starts_with("ask_");
                    leaf && self.kind != ToolKind::Delegate && event.turn_id == Some(turn)
                }
                Body::DelegateStarted(_) => true,
                _ => false,
            });
            seen.push(event);
        }
        seen
    }

    fn expected(self) -> ExpectedEnd {
        let (kind, leaves) = (self.kind, self.fan.leaves());
        let agents = match self.fan {
            FanOut::Agents => leaves,
            FanOut::One | FanOut::Three if kind == ToolKind::Ccs => leaves,
            FanOut::One | FanOut::Three => 0,
        };
        let phase = match kind {
            ToolKind::Delegate => Phase::Delegate,
            _ => Phase::Tool,
        };
        let stopped = StopOutcome::Stopped;
        let mut lines = vec![
            (ReceiptKind::Subagent, agents, stopped),
            (
                ReceiptKind::Process,
                kind.lines() * leaves,
                StopOutcome::Killed,
            ),
        ];
        if kind.outcome() == stopped {
            lines.push((ReceiptKind::Tool, leaves + agents, stopped));
        } else {
            lines.push((ReceiptKind::Tool, leaves, kind.outcome()));
            lines.push((ReceiptKind::Tool, agents, stopped));
        }
        if kind == ToolKind::Delegate {
            lines.push((ReceiptKind::Worker, leaves, stopped));
        }
        ExpectedEnd { phase, lines }
    }
}

/// Connects to a session and subscribes to new events.
pub async fn watch(api: &ApiClient, name: &str, session: SessionId) -> WatchClient {
    let client = WatchClient::connect(api, name, session).await;
    let mut client = client.expect("a connection");
    client
        .subscribed(&SubscribeOptions::live())
        .await
        .expect("subscribed");
    client
}

/// Checks a stopped turn: one ending on the chat wire, and no row in a running state.
pub async fn after(api: &ApiClient, name: &str, session: SessionId, turn: TurnId) {
    let mut stream = chat::back(api, name, turn, None).await;
    let frames = stream.read_to_end().await;
    let frames = frames.unwrap_or_else(|end| panic!("{name}: {end}"));
    let ends = ["completed", "error", "cancelled"];
    let ending = chat::events(&frames);
    let count = ending.iter().filter(|event| ends.contains(event)).count();
    assert_eq!(count, 1, "{name}: {ending:?}");
    assert_eq!(ending.last(), Some(&"cancelled"), "{name}: {ending:?}");
    assert_eq!(chat::code(&frames), "REQUEST_CANCELLED", "{name}");
    let path = format!("/sessions/{session}/tool-calls");
    let pages = api.pages(&path, "tool_calls").await.expect("an answer");
    let own = |call: &&Value| call["turn_id"] == json!(turn);
    for call in pages.iter().flatten().filter(own) {
        let state = call["status"].as_str();
        assert!(
            !matches!(state, Some("running" | "pending")),
            "{name}: {call}"
        );
    }
}

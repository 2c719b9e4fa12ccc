//! A cancel between the end of a model's message and its tools, in that very moment (S3-075). The
//! agent is the real one; its emitter requests the cancel.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use turnwire_agent::StandaloneAgent;
use turnwire_event::code::{Phase, ReceiptKind, StopOutcome, ToolErrorClass};
use turnwire_event::port::{
    BoundTurn, BoxFuture, Emission, EmitError, EmitRefusal, EventEmitter, HistoryBudget,
    MessageEnd, TurnContext, TurnInput, TurnProducer,
};
use turnwire_event::{Body, ContentBlock, Event, EventType, Position, SessionId, TurnId};
use turnwire_log::reserve::DiskReserve;
use turnwire_model::{ModelScript, ScriptedProvider};
use turnwire_session::{
    CancelOutcome, LiveSession, Options, SessionService, SystemIdGenerator, TurnCanceller,
};
use turnwire_tool::{Tool, ToolFailure, ToolInvocation, Toolbox};

use crate::stage::*;

/// The moment of the cancel request.
#[derive(Clone, Copy, PartialEq)]
enum When {
    /// After the end of the message and its call.
    MessageEnded,
    /// After the first `tool.called` has its position.
    FirstCalled,
    /// When all calls are durable, before the first tool runs.
    Durable,
}

/// An emitter that requests the cancel of its turn.
struct AtSeam {
    inner: Arc<dyn EventEmitter>,
    live: Arc<LiveSession>,
    canceller: TurnCanceller,
    turn: TurnId,
    when: When,
    outcome: Mutex<Option<CancelOutcome>>,
}

impl AtSeam {
    fn cancel(&self) {
        let mut outcome = self.outcome.lock();
        outcome.get_or_insert_with(|| self.canceller.request(&self.live, self.turn, None));
    }
}

impl EventEmitter for AtSeam {
    fn emit(&self, emission: Emission) -> Result<Position, EmitError> {
        let kind = emission.body.kind();
        let position = self.inner.emit(emission);
        if self.when == When::FirstCalled && kind == EventType::ToolCalled {
            self.cancel();
        }
        position
    }

    fn complete(&self, end: MessageEnd) -> Result<Vec<ContentBlock>, EmitRefusal> {
        let content = self.inner.complete(end);
        if self.when == When::MessageEnded {
            self.cancel();
        }
        content
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        self.inner.ready()
    }

    fn committed(&self, at: Position) -> BoxFuture<'_, Result<(), EmitRefusal>> {
        Box::pin(async move {
            let durable = self.inner.committed(at).await;
            if self.when == When::Durable {
                self.cancel();
            }
            durable
        })
    }
}

/// A tool that writes a file, so that the test sees whether it ran.
struct WriteFile(PathBuf);

impl Tool for WriteFile {
    fn name(&self) -> &'static str {
        "write_file"
    }
    fn description(&self) -> &'static str {
        "Writes a file."
    }
    fn input_schema(&self) -> Value {
        json!({"type": "object"})
    }
    fn run(&self, call: ToolInvocation) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        let path = self.0.join(call.input["name"].as_str().unwrap_or("file"));
        Box::pin(async move {
            std::fs::write(path, "written").expect("a file");
            Ok(json!({}))
        })
    }
}

/// The agent, with an [`AtSeam`] around the emitter of each turn.
struct Wrapped {
    agent: StandaloneAgent,
    when: When,
    sessions: Arc<Mutex<Option<SessionService>>>,
}

impl TurnProducer for Wrapped {
    fn history(&self) -> HistoryBudget {
        self.agent.history()
    }

    fn bind(&self, input: &TurnInput) -> BoundTurn {
        let assembly = self.agent.assemble(input);
        let (sessions, when) = (self.sessions.clone(), self.when);
        let work = assembly.work;
        BoundTurn {
            relayed_to: None,
            experiment_arm: String::new(),
            verticals: Default::default(),
            versions: assembly.versions,
            history: assembly.history,
            gate: pass_through_gates()(),
            work: Box::new(move |mut turn: TurnContext| {
                Box::pin(async move {
                    let sessions = sessions.lock().clone().expect("the service");
                    let (owner, id) = (&turn.input.owner, turn.input.session_id);
                    let live = sessions
                        .live_sessions()
                        .open(owner, id)
                        .await
                        .expect("the session");
                    turn.emitter = Arc::new(AtSeam {
                        inner: turn.emitter.clone(),
                        live,
                        canceller: sessions.canceller(),
                        turn: turn.input.turn_id,
                        when,
                        outcome: Mutex::new(None),
                    });
                    work(turn).await
                })
            }),
        }
    }
}

const THREE: &str = "- steps:
    - {text: I will write}
    - {tool: {name: write_file, input: {name: one}}}
    - {tool: {name: write_file, input: {name: two}}}
    - {tool: {name: write_file, input: {name: three}}}
    - {text: written}
";

/// Runs a turn that writes three files. Returns its log and the names of the written files.
async fn play(when: When) -> (SessionService, SessionId, Vec<Event>, Vec<String>) {
    let (dir, files) = (tempfile::tempdir(), tempfile::tempdir());
    let (dir, files) = (dir.expect("a folder"), files.expect("a folder"));
    let script = ModelScript::parse("script", THREE).expect("a script");
    let tools = Toolbox::new().with(Arc::new(WriteFile(files.path().to_owned())));
    let agent = StandaloneAgent::new(
        turnwire_agent::AgentOptions::default(),
        Arc::new(ScriptedProvider::new(script)),
        tools.expect("one tool"),
        Arc::new(SystemIdGenerator),
    );
    let known = Arc::new(Mutex::new(None));
    let producer = Arc::new(Wrapped {
        agent,
        when,
        sessions: known.clone(),
    });
    let parts = (
        Arc::new(SystemIdGenerator) as Arc<dyn turnwire_event::IdGenerator>,
        DiskReserve::new(dir.path().join("reserve"), 0),
    );
    let sessions = service_with_producer(dir.path(), Options::default(), parts, producer).await;
    *known.lock() = Some(sessions.clone());
    let id = new_session(&sessions).await;
    submit(&sessions, &owner("local"), id, text_request("hi"))
        .await
        .expect("accepted");
    let events = wait_for_end(&sessions, id).await;
    *known.lock() = None;
    let written = std::fs::read_dir(files.path()).expect("a folder");
    let mut written: Vec<String> = written
        .map(|entry| entry.expect("a file").file_name().display().to_string())
        .collect();
    written.sort();
    // Dropping the folder removes the store: nothing is read from it after this.
    (sessions, id, events, written)
}

fn failed(events: &[Event]) -> Vec<(ToolErrorClass, bool)> {
    let failed = events.iter().filter_map(|event| match &event.body {
        Body::ToolFailed(tool) => Some((tool.error_class, tool.called)),
        _ => None,
    });
    failed.collect()
}

// S3-075, D-87, S3-100
#[tokio::test]
async fn cancel_between_message_and_tools_calls_no_tool() {
    let (_sessions, _, events, written) = play(When::MessageEnded).await;
    let expected = [
        "turn.started",
        "route.decided",
        "llm.call_started",
        "llm.call_completed",
        "turn.cancel_requested",
        "tool.failed",
        "tool.failed",
        "tool.failed",
        "dispatch.traced",
        "turn.cancelled",
    ];
    assert_eq!(event_names(&events), expected);
    assert_eq!(failed(&events), [(ToolErrorClass::Cancelled, false); 3]);
    assert_eq!(written, [""; 0], "nothing was executed");
    let Some(Body::TurnCancelled(end)) = events.last().map(|event| &event.body) else {
        panic!("{events:?}");
    };
    assert_eq!((end.phase, end.receipt.len()), (Phase::Seam, 0));
}

// S3-075, I-17
#[tokio::test]
async fn cancel_after_the_first_call_leaves_others_uncalled() {
    let (_sessions, _, events, written) = play(When::FirstCalled).await;
    let expected = [
        "turn.started",
        "route.decided",
        "llm.call_started",
        "llm.call_completed",
        "tool.called",
        "turn.cancel_requested",
        "tool.failed",
        "tool.failed",
        "tool.failed",
        "dispatch.traced",
        "turn.cancelled",
    ];
    assert_eq!(event_names(&events), expected);
    let (cancelled, dropped) = (ToolErrorClass::Cancelled, false);
    assert_eq!(
        failed(&events),
        [
            (cancelled, true),
            (cancelled, dropped),
            (cancelled, dropped)
        ]
    );
    assert_eq!(written, [""; 0], "nothing was executed");
    let Some(Body::TurnCancelled(end)) = events.last().map(|event| &event.body) else {
        panic!("{events:?}");
    };
    let lines: Vec<_> = end
        .receipt
        .iter()
        .map(|line| (line.kind, line.outcome))
        .collect();
    assert_eq!(lines, [(ReceiptKind::Tool, StopOutcome::Stopped)]);
}

// S3-075
#[tokio::test]
async fn commit_wait_fails_once_the_turn_stops_or_ended() {
    let dir = tempfile::tempdir().expect("a folder");
    let live: Arc<OnceLock<(Arc<LiveSession>, TurnCanceller)>> = Arc::default();
    let results: Arc<Mutex<Vec<Result<(), EmitRefusal>>>> = Arc::default();
    let (go, late) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let shared = (live.clone(), results.clone(), go.clone(), late.clone());
    let act = producer_fn(move |turn| {
        let (live, results, go, late) = shared.clone();
        async move {
            go.notified().await;
            let first = turn.input.content[0].as_text() == Some("stop");
            call_tool(&turn, ids());
            let (live, canceller) = live.get().expect("a session");
            let at = live.sequencer.last();
            turn.emitter.committed(at).await.expect("durable");
            if first {
                canceller.request(live, turn.input.turn_id, Some("enough"));
                // Already durable, so this does not wait: the turn continues for a moment.
                let answer = turn.emitter.committed(at).await;
                results.lock().push(answer);
                return std::future::pending().await;
            }
            tokio::spawn(async move {
                go.notified().await;
                let answer = turn.emitter.committed(at).await;
                results.lock().push(answer);
                late.notify_one();
            });
            panic!("the producer panics");
        }
    });
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let id = new_session(&sessions).await;
    let live_session = sessions
        .live_sessions()
        .open(&owner("local"), id)
        .await
        .expect("a session");
    assert!(live.set((live_session, sessions.canceller())).is_ok());
    for (n, text) in ["stop", "break"].into_iter().enumerate() {
        let accepted = submit(&sessions, &owner("local"), id, text_request(text)).await;
        accepted.expect("accepted");
        go.notify_one();
        wait_for_terminals(&sessions, id, n + 1).await;
    }
    go.notify_one();
    late.notified().await;
    let expected = [Err(EmitRefusal::Cancelled), Err(EmitRefusal::Ended)];
    assert_eq!(*results.lock(), expected);
}

// S3-075
#[tokio::test]
async fn called_tool_is_not_executed_after_a_cancel() {
    let (_sessions, _, events, written) = play(When::Durable).await;
    assert_eq!(failed(&events), [(ToolErrorClass::Cancelled, true); 3]);
    assert_eq!(written, [""; 0], "nothing was executed");
}

//! A tool that blocks inside a poll when its turn is cancelled: the terminal waits for it for a
//! while, and the receipt does not report it as stopped while it runs. The agent is the real one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use turnwire_agent::StandaloneAgent;
use turnwire_event::Body;
use turnwire_event::body::turn::ReceiptLine;
use turnwire_event::code::{ReceiptKind, StopOutcome};
use turnwire_event::port::{BoundTurn, BoxFuture, HistoryBudget, TurnInput, TurnProducer};
use turnwire_log::reserve::DiskReserve;
use turnwire_model::{ModelScript, ScriptedProvider};
use turnwire_session::{Options, SystemIdGenerator};
use turnwire_tool::{Tool, ToolFailure, ToolInvocation, Toolbox};

use crate::stage::*;

/// A tool that blocks inside one poll until the test unblocks it.
struct BlockingTool {
    started: Arc<AtomicBool>,
    unblock: Arc<Mutex<mpsc::Receiver<()>>>,
    gone: Arc<AtomicBool>,
}

impl Tool for BlockingTool {
    fn name(&self) -> &'static str {
        "stubborn"
    }
    fn description(&self) -> &'static str {
        "Goes on."
    }
    fn input_schema(&self) -> Value {
        json!({"type": "object"})
    }
    fn run(&self, _: ToolInvocation) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        let (started, unblock, gone) = (
            self.started.clone(),
            self.unblock.clone(),
            self.gone.clone(),
        );
        Box::pin(async move {
            started.store(true, Ordering::SeqCst);
            let _ = unblock.lock().recv();
            gone.store(true, Ordering::SeqCst);
            std::future::pending().await
        })
    }
}

struct AgentProducer(StandaloneAgent);

impl TurnProducer for AgentProducer {
    fn history(&self) -> HistoryBudget {
        self.0.history()
    }

    fn bind(&self, input: &TurnInput) -> BoundTurn {
        let assembly = self.0.assemble(input);
        BoundTurn {
            relayed_to: None,
            experiment_arm: String::new(),
            verticals: Default::default(),
            versions: assembly.versions,
            history: assembly.history,
            gate: pass_through_gates()(),
            work: assembly.work,
        }
    }
}

const ONE: &str = "- steps:
    - {tool: {name: stubborn, input: {}}}
    - {text: done}
";

/// Cancels a turn whose tool is unblocked after a while, or never. Returns the tool's receipt
/// line, and whether the tool had returned before the terminal.
async fn play(unblock_after: Option<Duration>) -> (ReceiptLine, bool) {
    let dir = tempfile::tempdir().expect("a folder");
    let (unblock, unblocked) = mpsc::channel();
    let (started, gone) = (Arc::new(AtomicBool::new(false)), Arc::default());
    let tool = BlockingTool {
        started: started.clone(),
        unblock: Arc::new(Mutex::new(unblocked)),
        gone: Arc::clone(&gone),
    };
    let script = ModelScript::parse("script", ONE).expect("a script");
    let agent = StandaloneAgent::new(
        turnwire_agent::AgentOptions::default(),
        Arc::new(ScriptedProvider::new(script)),
        Toolbox::new().with(Arc::new(tool)).expect("one tool"),
        Arc::new(SystemIdGenerator),
    );
    let parts = (
        Arc::new(SystemIdGenerator) as Arc<dyn turnwire_event::IdGenerator>,
        DiskReserve::new(dir.path().join("reserve"), 0),
    );
    let producer = Arc::new(AgentProducer(agent));
    let sessions = service_with_producer(dir.path(), Options::default(), parts, producer).await;
    let (id, of) = (new_session(&sessions).await, owner("local"));
    let turn = submit(&sessions, &of, id, text_request("hi")).await;
    let turn = turn.expect("accepted").turn_id;
    while !started.load(Ordering::SeqCst) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let keep_open = unblock.clone();
    if let Some(unblock_after) = unblock_after {
        std::thread::spawn(move || {
            std::thread::sleep(unblock_after);
            let _ = unblock.send(());
        });
    }
    sessions
        .canceller()
        .cancel(&of, turn, None)
        .await
        .expect("asked");
    let events = wait_for_terminals(&sessions, id, 1).await;
    let returned = gone.load(Ordering::SeqCst);
    drop(keep_open);
    let Some(Body::TurnCancelled(end)) = events.last().map(|event| event.body.clone()) else {
        panic!("{events:?}");
    };
    assert_eq!(end.receipt.len(), 1, "{end:?}");
    (end.receipt[0].clone(), returned)
}

// S3-074
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn blocked_tool_is_reported_as_discarded() {
    let (line, returned) = play(None).await;
    assert!(!returned, "the turn does not wait for it for ever");
    let outcome = (line.kind, line.outcome);
    assert_eq!(outcome, (ReceiptKind::Tool, StopOutcome::Discarded));
}

// S3-074
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn terminal_waits_for_a_tool_in_a_blocking_step() {
    let unblock_after = Duration::from_millis(200);
    let (line, returned) = play(Some(unblock_after)).await;
    assert!(returned, "nothing of the turn goes on after its end");
    let outcome = (line.kind, line.outcome);
    assert_eq!(outcome, (ReceiptKind::Tool, StopOutcome::Stopped));
}

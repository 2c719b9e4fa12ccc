//! The turn's own work may be in the middle of something when it is dropped: the terminal waits
//! for it a little, and the receipt does not call stopped what still goes on. The agent is the
//! real one; its tool is inside a poll, which nobody can cut.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use turnwire_agent::Agent;
use turnwire_event::Body;
use turnwire_event::body::turn::ReceiptLine;
use turnwire_event::code::{ReceiptKind, StopOutcome};
use turnwire_event::port::{Bound, BoxFuture, HistoryBudget, Producer, TurnInput};
use turnwire_log::reserve::Reserve;
use turnwire_model::{Script, Scripted};
use turnwire_session::{Options, SystemMint};
use turnwire_tool::{Call, Tool, ToolFailure, Toolbox};

use crate::stage::*;

/// A tool that does not come back from one poll until it is told to.
struct Stubborn {
    begun: Arc<AtomicBool>,
    told: Arc<Mutex<mpsc::Receiver<()>>>,
    gone: Arc<AtomicBool>,
}

impl Tool for Stubborn {
    fn name(&self) -> &'static str {
        "stubborn"
    }
    fn description(&self) -> &'static str {
        "Goes on."
    }
    fn input_schema(&self) -> Value {
        json!({"type": "object"})
    }
    fn run(&self, _: Call) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        let (begun, told, gone) = (self.begun.clone(), self.told.clone(), self.gone.clone());
        Box::pin(async move {
            begun.store(true, Ordering::SeqCst);
            let _ = told.lock().recv();
            gone.store(true, Ordering::SeqCst);
            std::future::pending().await
        })
    }
}

struct Plain(Agent);

impl Producer for Plain {
    fn history(&self) -> HistoryBudget {
        self.0.history()
    }

    fn bind(&self, input: &TurnInput) -> Bound {
        let assembly = self.0.assemble(input);
        Bound {
            versions: assembly.versions,
            history: assembly.history,
            gate: through()(),
            work: assembly.work,
        }
    }
}

const ONE: &str = "- steps:
    - {tool: {name: stubborn, input: {}}}
    - {text: done}
";

/// Cancels a turn whose tool comes back after a while, if it does. Gives the tool's
/// line, and whether the tool had come back when the end was there.
async fn play(back: Option<Duration>) -> (ReceiptLine, bool) {
    let dir = tempfile::tempdir().expect("a folder");
    let (tell, told) = mpsc::channel();
    let (begun, gone) = (Arc::new(AtomicBool::new(false)), Arc::default());
    let tool = Stubborn {
        begun: begun.clone(),
        told: Arc::new(Mutex::new(told)),
        gone: Arc::clone(&gone),
    };
    let script = Script::parse("script", ONE).expect("a script");
    let agent = Agent::new(
        turnwire_agent::Options::default(),
        Arc::new(Scripted::new(script)),
        Toolbox::new().with(Arc::new(tool)).expect("one tool"),
        Arc::new(SystemMint),
    );
    let parts = (
        Arc::new(SystemMint) as Arc<dyn turnwire_event::Mint>,
        Reserve::new(dir.path().join("reserve"), 0),
    );
    let producer = Arc::new(Plain(agent));
    let sessions = produced(dir.path(), Options::default(), parts, producer).await;
    let (id, of) = (new_session(&sessions).await, owner("local"));
    let turn = submit(&sessions, &of, id, say("hi")).await;
    let turn = turn.expect("accepted").turn_id;
    while !begun.load(Ordering::SeqCst) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let keep = tell.clone();
    if let Some(back) = back {
        std::thread::spawn(move || {
            std::thread::sleep(back);
            let _ = tell.send(());
        });
    }
    sessions
        .canceller()
        .cancel(&of, turn, None)
        .await
        .expect("asked");
    let events = ended(&sessions, id, 1).await;
    let came_back = gone.load(Ordering::SeqCst);
    drop(keep);
    let Some(Body::TurnCancelled(end)) = events.last().map(|event| event.body.clone()) else {
        panic!("{events:?}");
    };
    assert_eq!(end.receipt.len(), 1, "{end:?}");
    (end.receipt[0].clone(), came_back)
}

// S3-074
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn blocked_tool_is_reported_as_discarded() {
    let (line, came_back) = play(None).await;
    assert!(!came_back, "the turn does not wait for it for ever");
    let told = (line.kind, line.outcome);
    assert_eq!(told, (ReceiptKind::Tool, StopOutcome::Discarded));
}

// S3-074
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn terminal_waits_for_a_tool_in_a_blocking_step() {
    let back = Duration::from_millis(200);
    let (line, came_back) = play(Some(back)).await;
    assert!(came_back, "nothing of the turn goes on after its end");
    let told = (line.kind, line.outcome);
    assert_eq!(told, (ReceiptKind::Tool, StopOutcome::Stopped));
}

//! Being stopped: refused at any event, or dropped at any moment. Nothing goes on after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{iter, pending};
use serde_json::json;
use tokio::time::{sleep, timeout};
use turnwire_event::code::{ErrorCode, TurnStatus};
use turnwire_event::port::Outcome;
use turnwire_model::Delta;

use super::recorder::Recorder;
use super::stage::Stage;

/// Says when it is gone.
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

const TURN: &str =
    "- steps: [{text: one two}, {tool: {name: look}}, {tool: {name: none}}, {text: three}]";

#[tokio::test]
async fn refused_turn_returns_at_once_at_every_event() {
    let whole = Stage::script(TURN).tool("look", |_| async { Ok(json!(1)) });
    let recorder = Arc::clone(&whole.recorder);
    assert_eq!(whole.play().await.status, TurnStatus::Ok);
    let lines = recorder.lines();
    for room in 0..lines.len() {
        let stage = Stage::script(TURN)
            .tool("look", |_| async { Ok(json!(1)) })
            .record(Recorder::with_room(room));
        let recorder = Arc::clone(&stage.recorder);
        let provider = Arc::clone(&stage.provider);
        let refused = Outcome {
            reason: None,
            status: TurnStatus::Failed,
            error: Some(ErrorCode::InternalError.into()),
        };
        let ended = timeout(Duration::from_secs(5), stage.play()).await;
        // Ends of a message and its call are one; inside them there is no room to refuse.
        if ended == Ok(refused) {
            let told = recorder.lines();
            assert!(told.len() <= room + 1, "{room}");
            assert_eq!(told[..], lines[..told.len()], "{room}");
            let calls = told.iter().filter(|line| line.contains("llm.call_started"));
            assert_eq!(provider.requests.lock().len(), calls.count(), "{room}");
        } else {
            assert_eq!(room, lines.len() - 1, "{ended:?}");
        }
    }
}

#[tokio::test]
async fn refused_turn_starts_no_tool() {
    let acted = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&acted);
    // Room for everything up to `tool.called`, none for its commit.
    let stage = Stage::script("- steps: [{tool: {name: look}}]").record(Recorder::with_room(9));
    let recorder = Arc::clone(&stage.recorder);
    let stage = stage.tool("look", move |_| {
        seen.fetch_add(1, Ordering::SeqCst);
        async { Ok(json!(1)) }
    });
    assert_eq!(stage.play().await.status, TurnStatus::Failed);
    assert_eq!(recorder.types().pop().as_deref(), Some("tool.called"));
    assert_eq!(acted.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn dropped_turn_drops_a_stalled_stream() {
    let gone = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&gone);
    let stage = Stage::of(move |_| {
        let held = Gone(Arc::clone(&flag));
        let said = Delta::Text {
            block: 0,
            text: "a".into(),
        };
        iter([Ok(said)])
            .chain(pending())
            .map(move |delta| {
                let _ = &held;
                delta
            })
            .boxed()
    });
    let recorder = Arc::clone(&stage.recorder);
    assert!(
        timeout(Duration::from_secs(3600), stage.play())
            .await
            .is_err()
    );
    assert!(gone.load(Ordering::SeqCst));
    assert_eq!(recorder.types().pop().as_deref(), Some("text.delta"));
}

#[tokio::test(start_paused = true)]
async fn dropped_turn_stops_its_tools() {
    let gone = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&gone);
    let stage = Stage::script("- steps: [{tool: {name: look}}, {tool: {name: rest}}]");
    let recorder = Arc::clone(&stage.recorder);
    let notes = Arc::clone(&recorder);
    let stage = stage
        .tool("look", move |_| {
            let held = Gone(Arc::clone(&flag));
            let notes = Arc::clone(&notes);
            async move {
                let _held = held;
                sleep(Duration::from_secs(20)).await;
                notes.note("look went on");
                Ok(json!(1))
            }
        })
        .tool("rest", |_| async { Ok(json!(1)) });
    assert!(
        timeout(Duration::from_secs(10), stage.play())
            .await
            .is_err()
    );
    let told = recorder.lines();
    assert!(
        told.last()
            .is_some_and(|line| line.contains("tool:rest tool.completed"))
    );
    tokio::task::yield_now().await;
    assert!(gone.load(Ordering::SeqCst), "the running tool is gone");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(recorder.lines(), told, "nothing is told after it");
}

#[tokio::test(start_paused = true)]
async fn turn_can_be_dropped_between_any_two_deltas() {
    for ms in [5, 15, 95] {
        let stage = Stage::script("- steps: [{text: 'a b c d e f g h i j', delay_ms: 10}]");
        let recorder = Arc::clone(&stage.recorder);
        assert!(
            timeout(Duration::from_millis(ms), stage.play())
                .await
                .is_err()
        );
        let deltas = recorder
            .types()
            .iter()
            .filter(|t| *t == "text.delta")
            .count();
        assert_eq!(deltas as u64, ms / 10);
        sleep(Duration::from_secs(1)).await;
        let after = recorder
            .types()
            .iter()
            .filter(|t| *t == "text.delta")
            .count();
        assert_eq!(after, deltas);
    }
}

//! Turns that are refused at any event or dropped at any moment: nothing continues.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{iter, pending};
use serde_json::json;
use tokio::time::{sleep, timeout};
use turnwire_event::code::{ErrorCode, TurnStatus};
use turnwire_event::port::TurnOutcome;
use turnwire_model::Delta;

use super::recording_emitter::RecordingEmitter;
use super::turn_harness::TurnHarness;

/// Sets a flag when it is dropped.
struct DropFlag(Arc<AtomicBool>);

impl Drop for DropFlag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

const TURN: &str =
    "- steps: [{text: one two}, {tool: {name: look}}, {tool: {name: none}}, {text: three}]";

#[tokio::test]
async fn refused_turn_returns_at_once_at_every_event() {
    let complete = TurnHarness::script(TURN).tool("look", |_| async { Ok(json!(1)) });
    let recorder = Arc::clone(&complete.recorder);
    assert_eq!(complete.run().await.status, TurnStatus::Ok);
    let all_lines = recorder.lines();
    for room in 0..all_lines.len() {
        let harness = TurnHarness::script(TURN)
            .tool("look", |_| async { Ok(json!(1)) })
            .record(RecordingEmitter::with_room(room));
        let recorder = Arc::clone(&harness.recorder);
        let provider = Arc::clone(&harness.provider);
        let refused = TurnOutcome {
            cancelled: None,
            reason: None,
            status: TurnStatus::Failed,
            error: Some(ErrorCode::InternalError.into()),
        };
        let ended = timeout(Duration::from_secs(5), harness.run()).await;
        // Ends of a message and its call are one; inside them there is no room to refuse.
        if ended == Ok(refused) {
            let lines = recorder.lines();
            assert!(lines.len() <= room + 1, "{room}");
            assert_eq!(lines[..], all_lines[..lines.len()], "{room}");
            let calls = lines
                .iter()
                .filter(|line| line.contains("llm.call_started"));
            assert_eq!(provider.requests.lock().len(), calls.count(), "{room}");
        } else {
            assert_eq!(room, all_lines.len() - 1, "{ended:?}");
        }
    }
}

#[tokio::test]
async fn refused_turn_starts_no_tool() {
    let acted = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&acted);
    // Room for everything up to `tool.called`, none for its commit.
    let harness = TurnHarness::script("- steps: [{tool: {name: look}}]")
        .record(RecordingEmitter::with_room(9));
    let recorder = Arc::clone(&harness.recorder);
    let harness = harness.tool("look", move |_| {
        seen.fetch_add(1, Ordering::SeqCst);
        async { Ok(json!(1)) }
    });
    assert_eq!(harness.run().await.status, TurnStatus::Failed);
    assert_eq!(recorder.types().pop().as_deref(), Some("tool.called"));
    assert_eq!(acted.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn dropped_turn_drops_a_stalled_stream() {
    let is_dropped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_dropped);
    let harness = TurnHarness::of(move |_| {
        let drop_flag = DropFlag(Arc::clone(&flag));
        let delta = Delta::Text {
            block: 0,
            text: "a".into(),
        };
        iter([Ok(delta)])
            .chain(pending())
            .map(move |delta| {
                let _ = &drop_flag;
                delta
            })
            .boxed()
    });
    let recorder = Arc::clone(&harness.recorder);
    assert!(
        timeout(Duration::from_secs(3600), harness.run())
            .await
            .is_err()
    );
    assert!(is_dropped.load(Ordering::SeqCst));
    assert_eq!(recorder.types().pop().as_deref(), Some("text.delta"));
}

#[tokio::test(start_paused = true)]
async fn dropped_turn_stops_its_tools() {
    let is_dropped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_dropped);
    let harness = TurnHarness::script("- steps: [{tool: {name: look}}, {tool: {name: rest}}]");
    let recorder = Arc::clone(&harness.recorder);
    let notes = Arc::clone(&recorder);
    let harness = harness
        .tool("look", move |_| {
            let drop_flag = DropFlag(Arc::clone(&flag));
            let notes = Arc::clone(&notes);
            async move {
                let _held = drop_flag;
                sleep(Duration::from_secs(20)).await;
                notes.note("look went on");
                Ok(json!(1))
            }
        })
        .tool("rest", |_| async { Ok(json!(1)) });
    assert!(
        timeout(Duration::from_secs(10), harness.run())
            .await
            .is_err()
    );
    let lines = recorder.lines();
    assert!(
        lines
            .last()
            .is_some_and(|line| line.contains("tool:rest tool.completed"))
    );
    tokio::task::yield_now().await;
    assert!(
        is_dropped.load(Ordering::SeqCst),
        "the running tool is gone"
    );
    sleep(Duration::from_secs(60)).await;
    assert_eq!(recorder.lines(), lines, "nothing is told after it");
}

#[tokio::test(start_paused = true)]
async fn turn_can_be_dropped_between_any_two_deltas() {
    for ms in [5, 15, 95] {
        let harness = TurnHarness::script("- steps: [{text: 'a b c d e f g h i j', delay_ms: 10}]");
        let recorder = Arc::clone(&harness.recorder);
        assert!(
            timeout(Duration::from_millis(ms), harness.run())
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

//! Processes that do not end with the producer's future: the terminal waits for them in every kind
//! of ending, and the receipt reports how they ended.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use turnwire_event::body::turn::ReceiptLine;
use turnwire_event::code::{ReceiptKind, StopOutcome, TurnState, TurnStatus};
use turnwire_event::port::{ChildTask, TurnContext};
use turnwire_event::{Body, Event, ToolUseId};
use turnwire_session::{Error, Options};

use crate::stage::*;

/// Stands for a process; dropping it tells the process to end.
struct Process {
    gone: Arc<Notify>,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.gone.notify_one();
    }
}

/// Registers a process with the turn: it ends `ms` after the [`Process`] is dropped.
fn begin(turn: &TurnContext, id: &str, tool: ToolUseId, ms: u64, outcome: StopOutcome) -> Process {
    let gone = Arc::new(Notify::new());
    let lines = gone.clone();
    let ward = ChildTask {
        kind: ReceiptKind::Process,
        id: id.to_owned().into(),
        tool_use_id: tool,
        ended: Box::pin(async move {
            lines.notified().await;
            tokio::time::sleep(Duration::from_millis(ms)).await;
            outcome
        }),
    };
    turn.child_tasks.track(ward).expect("accepted");
    Process { gone }
}

fn receipt(events: &[Event]) -> Vec<ReceiptLine> {
    match events.last().map(|event| event.body.clone()) {
        Some(Body::TurnCancelled(end)) => end.receipt,
        other => panic!("no cancel: {other:?}"),
    }
}

fn shapes(lines: &[ReceiptLine]) -> Vec<(ReceiptKind, &str, StopOutcome)> {
    let lines = lines.iter();
    lines
        .map(|line| (line.kind, line.id.as_str(), line.outcome))
        .collect()
}

fn patient(stop_wait: Duration) -> Options {
    Options {
        stop_wait,
        ..Options::default()
    }
}

const LONG_LIMIT: Duration = Duration::from_secs(60);

// S3-074
#[tokio::test]
async fn terminal_waits_for_a_process_and_has_its_receipt() {
    let dir = tempfile::tempdir().expect("a folder");
    let ids = ids();
    let act = producer_fn(move |turn| async move {
        call_tool(&turn, ids);
        let _killed = begin(&turn, "11", ids.2, 300, StopOutcome::Killed);
        let _soon = begin(&turn, "12", ids.2, 1, StopOutcome::Stopped);
        std::future::pending().await
    });
    let sessions = start_service(dir.path(), patient(LONG_LIMIT), act).await;
    let (id, of) = (new_session(&sessions).await, owner("local"));
    let turn = submit(&sessions, &of, id, text_request("hi"))
        .await
        .expect("accepted");
    wait_for_event(&sessions, id, "tool.called").await;
    let asked = Instant::now();
    let state = sessions.canceller().cancel(&of, turn.turn_id, None).await;
    assert_eq!(state, Ok(TurnState::Cancelling));
    // While the turn waits: it is cancelling, no new child is accepted, a second cancel changes nothing.
    assert_eq!(
        crate::stage::turn_state(&sessions, turn.turn_id).await,
        TurnState::Cancelling
    );
    let busy = submit(&sessions, &of, id, text_request("more")).await;
    assert_eq!(busy, Err(Error::TurnInFlight(turn.turn_id)));
    let canceller = sessions.canceller();
    let again = canceller.cancel(&of, turn.turn_id, Some("again".into()));
    assert_eq!(again.await, Ok(TurnState::Cancelling));
    let ended = sessions
        .canceller()
        .wait_for_end(&of, turn.turn_id, LONG_LIMIT)
        .await;
    let row = ended.expect("a turn").expect("an end");
    assert_eq!(row.state, TurnState::Cancelled);
    assert!(asked.elapsed() >= Duration::from_millis(300));
    let events = read_log(&sessions, id).await;
    assert_each_ends_once(&events);
    let expected = [
        "turn.started",
        "llm.call_started",
        "llm.call_completed",
        "tool.called",
        "turn.cancel_requested",
        "tool.failed",
        "dispatch.traced",
        "turn.cancelled",
    ];
    assert_eq!(event_names(&events), expected);
    let of_turn: Vec<Event> = events
        .into_iter()
        .filter(|event| event.turn_id.is_some())
        .collect();
    let lines = receipt(&of_turn);
    let tool = ids.2.to_string();
    assert_eq!(
        shapes(&lines),
        [
            (ReceiptKind::Tool, tool.as_str(), StopOutcome::Killed),
            (ReceiptKind::Process, "12", StopOutcome::Stopped),
            (ReceiptKind::Process, "11", StopOutcome::Killed),
        ]
    );
    assert!(
        lines[0].ms >= 300 && lines[0].ms == lines[2].ms,
        "{lines:?}"
    );
    assert!(lines[1].ms < lines[2].ms, "{lines:?}");
}

#[tokio::test]
async fn endless_process_is_discarded_and_the_turn_ends() {
    let dir = tempfile::tempdir().expect("a folder");
    let ids = ids();
    let act = producer_fn(move |turn| async move {
        call_tool(&turn, ids);
        let never = begin(&turn, "11", ids.2, 0, StopOutcome::Stopped);
        std::mem::forget(never);
        std::future::pending().await
    });
    let sessions = start_service(dir.path(), patient(Duration::from_millis(200)), act).await;
    let (id, of) = (new_session(&sessions).await, owner("local"));
    let turn = submit(&sessions, &of, id, text_request("hi"))
        .await
        .expect("accepted");
    wait_for_event(&sessions, id, "tool.called").await;
    sessions
        .canceller()
        .cancel(&of, turn.turn_id, None)
        .await
        .expect("asked");
    let lines = receipt(&wait_for_end(&sessions, id).await);
    let tool = ids.2.to_string();
    let may_go_on = StopOutcome::Discarded;
    assert_eq!(
        shapes(&lines),
        [
            (ReceiptKind::Tool, tool.as_str(), may_go_on),
            (ReceiptKind::Process, "11", may_go_on),
        ]
    );
    assert!(lines[1].ms >= 200, "{lines:?}");
}

// S1-110
#[tokio::test]
async fn in_process_work_has_its_end_time_in_the_receipt() {
    let dir = tempfile::tempdir().expect("a folder");
    let ids = ids();
    let act = producer_fn(move |turn| async move {
        start_message(&turn, ids);
        let _slow = begin(&turn, "11", ids.2, 400, StopOutcome::Stopped);
        std::future::pending().await
    });
    let sessions = start_service(dir.path(), patient(LONG_LIMIT), act).await;
    let (id, of) = (new_session(&sessions).await, owner("local"));
    let turn = submit(&sessions, &of, id, text_request("hi"))
        .await
        .expect("accepted");
    wait_for_event(&sessions, id, "llm.call_started").await;
    sessions
        .canceller()
        .cancel(&of, turn.turn_id, None)
        .await
        .expect("asked");
    let lines = receipt(&wait_for_end(&sessions, id).await);
    assert_eq!(lines[0].kind, ReceiptKind::Llm);
    assert!(
        lines[1].ms >= 400 && lines[0].ms < lines[1].ms,
        "the call did not wait for the process: {lines:?}"
    );
}

/// Each kind of ending waits: its terminal follows the end of the process.
#[tokio::test]
async fn failed_and_completed_turns_wait_for_processes_too() {
    for (how, status) in [
        ("done", TurnStatus::Ok),
        ("left open", TurnStatus::Failed),
        ("panic", TurnStatus::Failed),
    ] {
        let dir = tempfile::tempdir().expect("a folder");
        let ids = ids();
        let act = producer_fn(move |turn| async move {
            let _slow = begin(&turn, "11", ids.2, 250, StopOutcome::Stopped);
            match how {
                "panic" => panic!("a producer breaks"),
                "left open" => start_message(&turn, ids),
                _ => {}
            }
            OK
        });
        let sessions = start_service(dir.path(), patient(LONG_LIMIT), act).await;
        let (id, of) = (new_session(&sessions).await, owner("local"));
        let start = Instant::now();
        submit(&sessions, &of, id, text_request("hi"))
            .await
            .expect("accepted");
        let events = wait_for_end(&sessions, id).await;
        assert!(start.elapsed() >= Duration::from_millis(250), "{how}");
        assert_each_ends_once(&events);
        let Some(Body::TurnCompleted(end)) = events.last().map(|event| &event.body) else {
            panic!("{how}: {events:?}");
        };
        assert_eq!(end.status, status, "{how}");
    }
}

// S3-077
#[tokio::test]
async fn cancel_while_a_finished_turn_waits_cancels_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let ids = ids();
    let act = producer_fn(move |turn| async move {
        let slow = begin(&turn, "11", ids.2, 400, StopOutcome::Killed);
        drop(slow);
        emit(&turn, status("checking"));
        OK
    });
    let sessions = start_service(dir.path(), patient(LONG_LIMIT), act).await;
    let (id, of) = (new_session(&sessions).await, owner("local"));
    let turn = submit(&sessions, &of, id, text_request("hi"))
        .await
        .expect("accepted");
    tokio::time::sleep(Duration::from_millis(50)).await;
    let state = sessions.canceller().cancel(&of, turn.turn_id, None).await;
    assert_eq!(state, Ok(TurnState::Cancelling));
    let events = wait_for_end(&sessions, id).await;
    assert_each_ends_once(&events);
    let lines = receipt(&events);
    assert_eq!(
        shapes(&lines),
        [(ReceiptKind::Process, "11", StopOutcome::Killed)]
    );
}

// S3-071, D-44
#[tokio::test]
async fn timeout_waits_and_has_the_same_receipt() {
    let dir = tempfile::tempdir().expect("a folder");
    let ids = ids();
    let act = producer_fn(move |turn| async move {
        call_tool(&turn, ids);
        let _slow = begin(&turn, "11", ids.2, 200, StopOutcome::Killed);
        std::future::pending().await
    });
    let options = Options {
        turn_timeout: Duration::from_millis(100),
        ..patient(LONG_LIMIT)
    };
    let sessions = start_service(dir.path(), options, act).await;
    let id = new_session(&sessions).await;
    submit(&sessions, &owner("local"), id, text_request("hi"))
        .await
        .expect("accepted");
    let events = wait_for_end(&sessions, id).await;
    assert_eq!(
        event_names(&events)[4..],
        [
            "turn.cancel_requested",
            "tool.failed",
            "dispatch.traced",
            "turn.cancelled"
        ]
    );
    let tool = ids.2.to_string();
    assert_eq!(
        shapes(&receipt(&events)),
        [
            (ReceiptKind::Tool, tool.as_str(), StopOutcome::Killed),
            (ReceiptKind::Process, "11", StopOutcome::Killed),
        ]
    );
}

#[tokio::test]
async fn drain_waits_for_processes() {
    let dir = tempfile::tempdir().expect("a folder");
    let ids = ids();
    let act = producer_fn(move |turn| async move {
        call_tool(&turn, ids);
        let _slow = begin(&turn, "11", ids.2, 600, StopOutcome::Killed);
        std::future::pending().await
    });
    let sessions = start_service(dir.path(), patient(LONG_LIMIT), act).await;
    let id = new_session(&sessions).await;
    submit(&sessions, &owner("local"), id, text_request("hi"))
        .await
        .expect("accepted");
    wait_for_event(&sessions, id, "tool.called").await;
    let start = Instant::now();
    sessions.drain(Duration::from_millis(1)).await;
    assert!(start.elapsed() >= Duration::from_millis(600));
    let events = read_log(&sessions, id).await;
    let Some(Body::TurnCompleted(end)) = events.last().map(|event| &event.body) else {
        panic!("{events:?}");
    };
    assert_eq!(end.reason.as_deref(), Some("server_shutdown"));
}

#[tokio::test]
async fn deletion_does_not_wait_for_processes() {
    let dir = tempfile::tempdir().expect("a folder");
    let ids = ids();
    let act = producer_fn(move |turn| async move {
        call_tool(&turn, ids);
        let never = begin(&turn, "11", ids.2, 0, StopOutcome::Stopped);
        std::mem::forget(never);
        std::future::pending().await
    });
    let sessions = start_service(dir.path(), patient(LONG_LIMIT), act).await;
    let (id, of) = (new_session(&sessions).await, owner("local"));
    let turn = submit(&sessions, &of, id, text_request("hi"))
        .await
        .expect("accepted");
    wait_for_event(&sessions, id, "tool.called").await;
    sessions
        .canceller()
        .cancel(&of, turn.turn_id, None)
        .await
        .expect("asked");
    let waiting = {
        let (sessions, of) = (sessions.clone(), of.clone());
        tokio::spawn(async move {
            sessions
                .canceller()
                .wait_for_end(&of, turn.turn_id, LONG_LIMIT)
                .await
        })
    };
    let start = Instant::now();
    sessions.writer().delete(&of, id).await.expect("deleted");
    let waited = waiting.await.expect("the task");
    assert!(
        matches!(waited, Err(Error::TurnNotFound | Error::SessionNotFound)),
        "{waited:?}"
    );
    assert!(start.elapsed() < LONG_LIMIT / 2);
}

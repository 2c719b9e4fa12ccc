//! The end of a worker is the same in its own terminal, in its parent's event and in the receipt,
//! also if its parent is stopped or fails before it has reported the end.

use turnwire_event::body::delegate::DelegateCompleted;
use turnwire_event::code::{FailureMode, ReceiptKind, StopOutcome, TurnKind};
use turnwire_event::port::TurnContext;
use turnwire_event::{Body, Event, SessionId, TurnId};
use turnwire_session::{Options, SessionService};

use crate::stage::*;

/// How a turn behaves when its worker has ended and the end is not reported.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Unreported {
    /// The tool call has the end and hangs.
    Hangs,
    /// The tool call was dropped.
    Dropped,
    /// The producer fails.
    Panics,
}

/// A producer whose turns delegate once and never report the end: those of persons at once, those
/// of workers if they are above `depth` levels. The deepest worker counts to three.
fn silent_producer(depth: usize, unreported: Unreported) -> WorkFn {
    let levels = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    producer_fn(move |turn: TurnContext| {
        let levels = levels.clone();
        async move {
            let level = levels.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if level == depth {
                assert_eq!(turn.input.kind, TurnKind::Worker);
                return counting_worker(turn).await;
            }
            let task = announce_worker(&turn).await.expect("a worker");
            let run = turn.delegate.run(task);
            if unreported == Unreported::Dropped {
                let limit = std::time::Duration::from_millis(200);
                let _ = tokio::time::timeout(limit, run).await;
            } else {
                run.await;
            }
            if unreported == Unreported::Panics {
                panic!("the producer panics");
            }
            std::future::pending().await
        }
    })
}

async fn start(
    dir: &std::path::Path,
    depth: usize,
    unreported: Unreported,
) -> (SessionService, SessionId, TurnId) {
    let act = silent_producer(depth, unreported);
    let service = start_service(dir, Options::default(), act).await;
    let parent = new_session(&service).await;
    let accepted = submit(&service, &owner("local"), parent, text_request("go")).await;
    let turn = accepted.expect("accepted").turn_id;
    (service, parent, turn)
}

async fn cancel(service: &SessionService, turn: TurnId) {
    let me = owner("local");
    let canceller = service.canceller();
    canceller.cancel(&me, turn, None).await.expect("asked");
}

fn completed(events: &[Event]) -> DelegateCompleted {
    match event_named(events, "delegate.completed").body {
        Body::DelegateCompleted(end) => end,
        other => panic!("{other:?}"),
    }
}

/// The lines of the receipt about workers: their id and outcome.
fn worker_lines(events: &[Event]) -> Vec<(String, String, StopOutcome)> {
    let Some(Body::TurnCancelled(end)) = events.last().map(|event| &event.body) else {
        panic!("{:?}", event_names(events));
    };
    let lines = end.receipt.iter();
    let lines = lines.filter(|line| line.kind == ReceiptKind::Worker);
    lines
        .map(|line| (line.id.clone(), line.name.clone(), line.outcome))
        .collect()
}

// S3-081
#[tokio::test]
async fn worker_that_ended_before_the_stop_is_reported_as_completed() {
    for unreported in [Unreported::Hangs, Unreported::Dropped] {
        let dir = tempfile::tempdir().expect("a folder");
        let (service, parent, turn) = start(dir.path(), 1, unreported).await;
        let id = wait_for_worker(&service, parent).await;
        wait_for_terminals(&service, id, 1).await;
        cancel(&service, turn).await;
        let events = wait_for_terminals(&service, parent, 1).await;
        assert_eq!(
            event_names(&events)[2..],
            [
                "delegate.started",
                "turn.cancel_requested",
                "delegate.completed",
                "tool.failed",
                "dispatch.traced",
                "turn.cancelled"
            ],
            "{unreported:?}"
        );
        let expected = DelegateCompleted {
            worker_session_id: id,
            success: true,
            summary: "one, two, three".into(),
        };
        assert_eq!(completed(&events), expected);
        let line = (id.to_string(), "delegate".into(), StopOutcome::Finished);
        assert_eq!(worker_lines(&events), [line], "{unreported:?}");
    }
}

// S3-081
#[tokio::test]
async fn nested_worker_ended_before_the_stop_is_completed() {
    let dir = tempfile::tempdir().expect("a folder");
    let (service, parent, turn) = start(dir.path(), 2, Unreported::Hangs).await;
    let middle = wait_for_worker(&service, parent).await;
    let last = wait_for_worker(&service, middle).await;
    wait_for_terminals(&service, last, 1).await;
    cancel(&service, turn).await;
    let events = wait_for_terminals(&service, parent, 1).await;
    let line = (middle.to_string(), "delegate".into(), StopOutcome::Stopped);
    assert_eq!(worker_lines(&events), [line]);
    let Body::DelegateFailed(failed) = event_named(&events, "delegate.failed").body else {
        panic!("a failure");
    };
    assert_eq!(failed.failure_mode, FailureMode::CancelledByUser);
    let events = read_log(&service, middle).await;
    assert!(completed(&events).success);
    let line = (last.to_string(), "delegate".into(), StopOutcome::Finished);
    assert_eq!(worker_lines(&events), [line]);
    let own = read_log(&service, last).await;
    assert_eq!(event_names(&own).last(), Some(&"turn.completed"));
}

#[tokio::test]
async fn worker_ended_before_its_parent_failed_is_completed() {
    let dir = tempfile::tempdir().expect("a folder");
    let (service, parent, _) = start(dir.path(), 1, Unreported::Panics).await;
    let events = wait_for_terminals(&service, parent, 1).await;
    assert!(completed(&events).success);
    let names = event_names(&events);
    assert!(!names.contains(&"delegate.failed"), "{names:?}");
}

#[tokio::test]
async fn worker_that_ended_before_a_crash_is_reported_as_completed() {
    let dir = tempfile::tempdir().expect("a folder");
    let (service, parent, _) = start(dir.path(), 1, Unreported::Hangs).await;
    let id = wait_for_worker(&service, parent).await;
    wait_for_terminals(&service, id, 1).await;
    let image = copy_store(dir.path());
    let idle = producer_fn(|_| async { OK });
    let after = start_service(image.path(), Options::default(), idle).await;
    let events = read_log(&after, parent).await;
    let expected = DelegateCompleted {
        worker_session_id: id,
        success: true,
        summary: "15 bytes".into(),
    };
    assert_eq!(completed(&events), expected);
    assert_eq!(event_names(&events).last(), Some(&"turn.completed"));
}

//! Workers do not outlive their parent: a turn that stops, a server that drains or crashes, a session
//! that is deleted.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use turnwire_event::code::{FailureMode, TurnKind};
use turnwire_event::port::{TurnContext, WorkerEnd, WorkerRefusal};
use turnwire_event::{Body, SessionId};
use turnwire_session::{Error, Options, SessionService};

use crate::stage::*;

/// Starts the service with a session whose turn runs.
async fn start_delegating(dir: &Path, act: WorkFn) -> (SessionService, SessionId) {
    let service = start_service(dir, Options::default(), act).await;
    let parent = new_session(&service).await;
    let accepted = submit(&service, &owner("local"), parent, text_request("go")).await;
    accepted.expect("accepted");
    (service, parent)
}

// S3-081, S3-100
#[tokio::test]
async fn worker_stops_with_a_turn_whose_producer_hangs() {
    let dir = tempfile::tempdir().expect("a folder");
    let act = producer_fn(|turn: TurnContext| async move {
        if turn.input.kind == TurnKind::Worker {
            return hanging_worker(turn).await;
        }
        let task = announce_worker(&turn).await.expect("a worker");
        // Not dropped with the producer.
        drop(tokio::spawn(turn.delegate.run(task)));
        hanging_worker(turn).await
    });
    // Longer than the test waits for the end below.
    let options = Options {
        stop_wait: Duration::from_secs(600),
        ..Options::default()
    };
    let service = start_service(dir.path(), options, act).await;
    let me = owner("local");
    let parent = new_session(&service).await;
    let accepted = submit(&service, &me, parent, text_request("go")).await;
    let id = wait_for_worker(&service, parent).await;
    service
        .canceller()
        .cancel(&me, accepted.expect("accepted").turn_id, None)
        .await
        .expect("asked");
    wait_for_terminals(&service, parent, 1).await;
    let own = read_log(&service, id).await;
    let Body::TurnCancelled(end) = &own.last().expect("an end").body else {
        panic!("{own:?}")
    };
    assert_eq!(end.reason, "parent_cancelled");
}

#[tokio::test]
async fn worker_does_not_outlive_the_turn_that_dropped_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let act = producer_fn(|turn: TurnContext| async move {
        if turn.input.kind == TurnKind::Worker {
            return hanging_worker(turn).await;
        }
        let task = announce_worker(&turn).await.expect("a worker");
        let run = turn.delegate.run(task);
        assert!(
            tokio::time::timeout(Duration::from_millis(50), run)
                .await
                .is_err()
        );
        panic!("the producer panics")
    });
    let (service, parent) = start_delegating(dir.path(), act).await;
    let events = wait_for_terminals(&service, parent, 1).await;
    assert_eq!(
        event_names(&events)[2..],
        [
            "delegate.started",
            "delegate.failed",
            "tool.failed",
            "dispatch.traced",
            "turn.completed"
        ]
    );
    let own = wait_for_terminals(&service, wait_for_worker(&service, parent).await, 1).await;
    let Body::TurnCancelled(end) = &own.last().expect("an end").body else {
        panic!("a cancel")
    };
    assert_eq!(end.reason, "parent_cancelled");
}

#[tokio::test]
async fn running_turn_can_delegate_during_a_drain() {
    let dir = tempfile::tempdir().expect("a folder");
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let ends = WorkerEnds::default();
    let (at, seen) = (gate.clone(), ends.clone());
    let act = producer_fn(move |turn: TurnContext| {
        let (at, seen) = (at.clone(), seen.clone());
        async move {
            if turn.input.kind == TurnKind::Worker {
                return counting_worker(turn).await;
            }
            at.acquire().await.expect("open").forget();
            let end = delegate_task(&turn, LONG_LIMIT).await;
            seen.lock().push(end);
            OK
        }
    });
    let service = start_service(dir.path(), Options::default(), act).await;
    let parent = new_session(&service).await;
    let me = owner("local");
    submit(&service, &me, parent, text_request("go"))
        .await
        .expect("accepted");
    service.refuse_turns();
    gate.add_permits(1);
    service.drain(Duration::from_secs(30)).await;
    assert!(matches!(
        ends.lock().first(),
        Some(Ok(WorkerEnd::Completed { success: true, .. }))
    ));
    assert_eq!(
        event_names(&read_log(&service, parent).await).last(),
        Some(&"turn.completed")
    );
}

#[tokio::test]
async fn shutdown_ends_workers_and_parents() {
    let dir = tempfile::tempdir().expect("a folder");
    let (act, _) = delegating_producer(LONG_LIMIT, hanging_worker);
    let (service, parent) = start_delegating(dir.path(), act).await;
    let id = wait_for_worker(&service, parent).await;
    service.drain(Duration::from_millis(10)).await;
    assert_each_ends_once(&read_log(&service, parent).await);
    assert_each_ends_once(&read_log(&service, id).await);
    // Recovery finds nothing to end.
    let image = copy_store(dir.path());
    let after = start_service(
        image.path(),
        Options::default(),
        producer_fn(|_| async { OK }),
    )
    .await;
    assert_each_ends_once(&read_log(&after, parent).await);
}

#[tokio::test]
async fn recovery_ends_workers_before_their_parents() {
    let dir = tempfile::tempdir().expect("a folder");
    let (act, _) = delegating_producer(LONG_LIMIT, |turn| async move {
        if delegate_task(&turn, LONG_LIMIT).await == Err(WorkerRefusal::TooDeep) {
            return hanging_worker(turn).await;
        }
        OK
    });
    let (service, parent) = start_delegating(dir.path(), act).await;
    let mut family = vec![parent];
    for _ in 0..3 {
        family.push(wait_for_worker(&service, family[family.len() - 1]).await);
    }
    let image = copy_store(dir.path());
    let after = start_service(
        image.path(),
        Options::default(),
        producer_fn(|_| async { OK }),
    )
    .await;
    let mut last = None;
    for id in family.iter().rev() {
        let events = read_log(&after, *id).await;
        assert_each_ends_once(&events);
        let end = events.last().expect("an end");
        let Body::TurnCompleted(body) = &end.body else {
            panic!("a failure")
        };
        assert_eq!(body.reason.as_deref(), Some("server_restart"));
        if let Some(before) = last.replace(end.timestamp) {
            assert!(before <= end.timestamp, "children first");
            let all = event_names(&events);
            let failed = event_named(&events, "delegate.failed");
            let Body::DelegateFailed(failed) = failed.body else {
                panic!("a failure")
            };
            assert_eq!(failed.failure_mode, FailureMode::Error);
            assert_eq!(
                all[all.len() - 4..],
                [
                    "delegate.failed",
                    "tool.failed",
                    "dispatch.traced",
                    "turn.completed"
                ]
            );
        }
    }
}

#[tokio::test]
async fn deleting_a_session_deletes_its_workers() {
    let dir = tempfile::tempdir().expect("a folder");
    let (act, _) = delegating_producer(LONG_LIMIT, hanging_worker);
    let (service, parent) = start_delegating(dir.path(), act).await;
    let me = owner("local");
    let id = wait_for_worker(&service, parent).await;
    let live = service
        .live_sessions()
        .open(&me, id)
        .await
        .expect("a session");
    let (sender, deleted_ids) = std::sync::mpsc::channel();
    service.on_deleted(Arc::new(move |id| {
        let _ = sender.send(id);
    }));
    assert_eq!(
        service.writer().delete(&owner("other"), parent).await,
        Err(Error::SessionNotFound)
    );
    service.writer().delete(&me, parent).await.expect("deleted");
    // The callback can clean up after each of them.
    assert_eq!(deleted_ids.try_iter().collect::<Vec<_>>(), [id, parent]);
    assert_eq!(
        live.ring.close_reason(),
        Some(turnwire_hub::RingClosed::Deleted)
    );
    assert_eq!(
        service.live_sessions().open(&me, id).await.err(),
        Some(Error::SessionNotFound)
    );
    assert_eq!(
        service.live_sessions().open(&me, parent).await.err(),
        Some(Error::SessionNotFound)
    );
    drop(live);
    let image = copy_store(dir.path());
    let after = start_service(
        image.path(),
        Options::default(),
        producer_fn(|_| async { OK }),
    )
    .await;
    assert_eq!(
        after.live_sessions().open(&me, id).await.err(),
        Some(Error::SessionNotFound)
    );
}

#[tokio::test]
async fn many_workers_are_deleted_in_batches() {
    let dir = tempfile::tempdir().expect("a folder");
    let (act, _) = delegating_producer(LONG_LIMIT, counting_worker);
    let options = Options {
        workers_max: 100,
        ..Options::default()
    };
    let service = start_service(dir.path(), options, act).await;
    let me = owner("local");
    let parent = new_session(&service).await;
    for turn in 1..=40 {
        submit(&service, &me, parent, text_request("go"))
            .await
            .expect("accepted");
        wait_for_terminals(&service, parent, turn).await;
    }
    let (workers, next) = service
        .reader()
        .workers(&me, parent, None, 30)
        .await
        .expect("a list");
    assert_eq!((workers.len(), next), (30, Some(workers[29].0.id)));
    let (more, end) = service
        .reader()
        .workers(&me, parent, next, 30)
        .await
        .expect("a list");
    assert_eq!((more.len(), end), (10, None));
    service.writer().delete(&me, parent).await.expect("deleted");
    for (row, _) in workers.into_iter().chain(more) {
        let deleted = service.live_sessions().open(&me, row.id).await.err();
        assert_eq!(deleted, Some(Error::SessionNotFound));
    }
}

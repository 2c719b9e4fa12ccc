//! Workers: sessions of their own for tasks that a turn delegates.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use turnwire_event::Body;
use turnwire_event::body::delegate::{DelegateEnd, DelegateFailed};
use turnwire_event::code::{FailureMode, TurnKind, TurnState};
use turnwire_event::port::{TurnContext, WorkerEnd, WorkerRefusal};
use turnwire_session::{CancelOutcome, Error, Options};

use crate::stage::*;

// S3-086, SC-25
#[tokio::test]
async fn worker_is_a_session_with_its_own_log() {
    let dir = tempfile::tempdir().expect("a folder");
    let (act, ends) = delegating_producer(LONG_LIMIT, counting_worker);
    let service = start_service(dir.path(), Options::default(), act).await;
    let me = owner("local");
    let parent = new_session(&service).await;
    submit(&service, &me, parent, text_request("go"))
        .await
        .expect("accepted");
    let events = wait_for_terminals(&service, parent, 1).await;
    let expected = WorkerEnd::Completed {
        success: true,
        text: "one, two, three".into(),
    };
    assert_eq!(ends.lock().clone(), [Ok(expected)]);
    assert_eq!(
        event_names(&events),
        [
            "turn.started",
            "tool.called",
            "delegate.started",
            "delegate.completed",
            "tool.completed",
            "dispatch.traced",
            "turn.completed"
        ]
    );
    let id = wait_for_worker(&service, parent).await;
    let own = read_log(&service, id).await;
    assert_eq!(own[0].body.kind().name(), "session.created");
    assert_eq!((own[0].id.seq.0, own[0].session_id), (1, id));
    let Body::TurnStarted(start) = &own[1].body else {
        panic!("a start")
    };
    assert_eq!(start.kind, TurnKind::Worker);
    assert_each_ends_once(&own);
    // The worker's terminal precedes the parent's event about it.
    let end = own.last().expect("a terminal").timestamp;
    assert!(end <= event_named(&events, "delegate.completed").timestamp);
    let row = service.live_sessions().row(&me, id).await.expect("a row");
    assert_eq!(
        (row.parent, row.agent.as_deref()),
        (Some(parent), Some("counter"))
    );
    assert_eq!(row.owner, me);
    let (listed, _) = service
        .reader()
        .sessions(&me, None, 10)
        .await
        .expect("a list");
    assert_eq!(
        listed.iter().map(|row| row.id).collect::<Vec<_>>(),
        [parent]
    );
    let other = service
        .reader()
        .workers(&owner("other"), parent, None, 10)
        .await;
    assert_eq!(other.err(), Some(Error::SessionNotFound));
    assert_eq!(
        service.live_sessions().row(&owner("other"), id).await.err(),
        Some(Error::SessionNotFound)
    );
}

// S3-088
#[tokio::test]
async fn cancelled_worker_turn_lets_its_parent_go_on() {
    let dir = tempfile::tempdir().expect("a folder");
    let (act, ends) = delegating_producer(LONG_LIMIT, hanging_worker);
    let service = start_service(dir.path(), Options::default(), act).await;
    let me = owner("local");
    let parent = new_session(&service).await;
    submit(&service, &me, parent, text_request("go"))
        .await
        .expect("accepted");
    let id = wait_for_worker(&service, parent).await;
    let (turns, _) = service
        .reader()
        .turns(&me, id, None, 1)
        .await
        .expect("turns");
    let state = service.canceller().cancel(&me, turns[0].id, None).await;
    assert_eq!(state, Ok(TurnState::Cancelling));
    let events = wait_for_terminals(&service, parent, 1).await;
    assert_eq!(
        ends.lock().clone(),
        [Ok(WorkerEnd::Failed(FailureMode::CancelledByUser))]
    );
    assert_eq!(event_names(&events).last(), Some(&"turn.completed"));
    let own = read_log(&service, id).await;
    assert_eq!(event_names(&own).last(), Some(&"turn.cancelled"));
    // A person may submit to it later; the agent stays the worker's.
    submit(&service, &me, id, text_request("again"))
        .await
        .expect("accepted");
}

#[tokio::test]
async fn stored_turn_is_cancelled_only_in_included_sessions() {
    let dir = tempfile::tempdir().expect("a folder");
    let (act, _) = delegating_producer(LONG_LIMIT, hanging_worker);
    let service = start_service(dir.path(), Options::default(), act).await;
    let me = owner("local");
    let parent = new_session(&service).await;
    submit(&service, &me, parent, text_request("go"))
        .await
        .expect("accepted");
    let id = wait_for_worker(&service, parent).await;
    let turns = service.reader().turns(&me, id, None, 1).await;
    let turn = turns.expect("turns").0[0].id;
    let canceller = service.canceller();
    let cancel = |included| canceller.request_stored(&me, move |id| id == included, turn, None);
    assert_eq!(cancel(parent).await, Err(Error::TurnNotFound));
    let (outcome, state) = cancel(id).await.expect("a turn of the worker");
    assert!(matches!(outcome, CancelOutcome::Requested(_)));
    assert_eq!(state, TurnState::Cancelling);
    wait_for_terminals(&service, id, 1).await;
    let ended = (CancelOutcome::NotRunning, TurnState::Cancelled);
    assert_eq!(cancel(id).await, Ok(ended));
}

#[tokio::test]
async fn word_of_the_server_in_a_persons_cancel_is_only_a_reason() {
    for reason in ["delegate_timeout", "turn_timeout", "parent_cancelled"] {
        let dir = tempfile::tempdir().expect("a folder");
        let (act, ends) = delegating_producer(LONG_LIMIT, hanging_worker);
        let service = start_service(dir.path(), Options::default(), act).await;
        let me = owner("local");
        let parent = new_session(&service).await;
        submit(&service, &me, parent, text_request("go"))
            .await
            .expect("accepted");
        let id = wait_for_worker(&service, parent).await;
        let turns = service.reader().turns(&me, id, None, 1).await;
        let (turns, _) = turns.expect("turns");
        let canceller = service.canceller();
        let cancelled = canceller.cancel(&me, turns[0].id, Some(reason.to_owned()));
        assert_eq!(cancelled.await, Ok(TurnState::Cancelling));
        wait_for_terminals(&service, parent, 1).await;
        assert_eq!(
            ends.lock().clone(),
            [Ok(WorkerEnd::Failed(FailureMode::CancelledByUser))],
            "{reason}"
        );
        let own = read_log(&service, id).await;
        let Body::TurnCancelled(end) = &own.last().expect("an end").body else {
            panic!("a cancel")
        };
        assert_eq!(end.reason, reason);
    }
}

#[tokio::test]
async fn slow_worker_is_stopped_before_its_parent_continues() {
    let dir = tempfile::tempdir().expect("a folder");
    let (act, ends) = delegating_producer(Duration::from_millis(50), hanging_worker);
    let service = start_service(dir.path(), Options::default(), act).await;
    let me = owner("local");
    let parent = new_session(&service).await;
    submit(&service, &me, parent, text_request("go"))
        .await
        .expect("accepted");
    wait_for_terminals(&service, parent, 1).await;
    assert_eq!(
        ends.lock().clone(),
        [Ok(WorkerEnd::Failed(FailureMode::Timeout))]
    );
    let own = read_log(&service, wait_for_worker(&service, parent).await).await;
    let Body::TurnCancelled(end) = &own.last().expect("an end").body else {
        panic!("a cancel")
    };
    assert_eq!(end.reason, "delegate_timeout");
}

/// The number of sessions at each level when every turn delegates to three workers, and the
/// reasons of the refusals.
async fn count_workers(options: Options) -> (Vec<usize>, Vec<WorkerRefusal>) {
    let dir = tempfile::tempdir().expect("a folder");
    let refused = Arc::new(Mutex::new(Vec::new()));
    let seen = refused.clone();
    let act = producer_fn(move |turn: TurnContext| {
        let seen = seen.clone();
        async move {
            for _ in 0..3 {
                let (tool, end) = match announce_worker(&turn).await {
                    Ok(task) => {
                        let ids = (task.worker_session_id, task.tool_use_id);
                        (ids, turn.delegate.run(task).await)
                    }
                    Err(reason) => {
                        seen.lock().push(reason);
                        return OK;
                    }
                };
                report_worker_end(&turn, tool, &end);
            }
            OK
        }
    });
    let service = start_service(dir.path(), options, act).await;
    let me = owner("local");
    let parent = new_session(&service).await;
    submit(&service, &me, parent, text_request("go"))
        .await
        .expect("accepted");
    wait_for_terminals(&service, parent, 1).await;
    let mut level = vec![parent];
    let mut sizes = Vec::new();
    while !level.is_empty() {
        sizes.push(level.len());
        let mut next = Vec::new();
        for id in level {
            let (workers, _) = service
                .reader()
                .workers(&me, id, None, 10)
                .await
                .expect("a list");
            next.extend(workers.into_iter().map(|(row, _)| row.id));
        }
        level = next;
    }
    let refused = refused.lock().clone();
    (sizes, refused)
}

#[tokio::test]
async fn workers_are_limited_in_number_and_depth() {
    let options = Options {
        workers_max: 2,
        ..Options::default()
    };
    let (sizes, refused) = count_workers(options).await;
    assert_eq!(sizes, [1, 2, 4, 8], "two each, three levels");
    let deep = refused
        .iter()
        .filter(|reason| **reason == WorkerRefusal::TooDeep);
    assert_eq!(deep.count(), 8);
    let many = refused
        .iter()
        .filter(|reason| **reason == WorkerRefusal::TooMany);
    assert_eq!(many.count(), 7);
}

#[tokio::test]
async fn nested_workers_count_for_the_top_turn() {
    let options = Options {
        workers_max: 3,
        workers_all_max: 9,
        ..Options::default()
    };
    let (sizes, _) = count_workers(options).await;
    assert_eq!(sizes.iter().sum::<usize>(), 1 + 9, "{sizes:?}");
}

#[tokio::test]
async fn persons_turn_in_a_worker_has_its_own_worker_limit() {
    let dir = tempfile::tempdir().expect("a folder");
    let ends = WorkerEnds::default();
    let seen = ends.clone();
    let act = producer_fn(move |turn: TurnContext| {
        let seen = seen.clone();
        async move {
            let end = delegate_task(&turn, LONG_LIMIT).await;
            if turn.input.content[0].as_text() == Some("go") {
                seen.lock().push(end);
            }
            OK
        }
    });
    let options = Options {
        workers_all_max: 2,
        ..Options::default()
    };
    let service = start_service(dir.path(), options, act).await;
    let parent = new_session(&service).await;
    let me = owner("local");
    let accepted = submit(&service, &me, parent, text_request("go")).await;
    accepted.expect("accepted");
    wait_for_terminals(&service, parent, 1).await;
    // The worker and its own worker use up the limit of the first turn.
    let first = wait_for_worker(&service, parent).await;
    for turn in 2..=4 {
        let accepted = submit(&service, &me, first, text_request("go")).await;
        accepted.expect("accepted");
        wait_for_terminals(&service, first, turn).await;
    }
    let done = |end: &_| matches!(end, Ok(WorkerEnd::Completed { success: true, .. }));
    let ends = ends.lock();
    assert!(ends.len() == 4 && ends.iter().all(done), "{ends:?}");
}

#[tokio::test]
async fn settled_worker_never_starts() {
    let dir = tempfile::tempdir().expect("a folder");
    let ends = Arc::new(Mutex::new(Vec::new()));
    let seen = ends.clone();
    let act = producer_fn(move |turn: TurnContext| {
        let seen = seen.clone();
        async move {
            let task = announce_worker(&turn).await.expect("a worker");
            let ids = (task.worker_session_id, task.tool_use_id);
            let left = turn.delegate.left(ids.1, FailureMode::Timeout).await;
            let failed = DelegateFailed {
                worker_session_id: ids.0,
                failure_mode: FailureMode::Timeout,
            };
            assert_eq!(left, [DelegateEnd::Failed(failed)]);
            let end = turn.delegate.run(task).await;
            report_worker_end(&turn, ids, &end);
            seen.lock().push(end);
            OK
        }
    });
    let service = start_service(dir.path(), Options::default(), act).await;
    let me = owner("local");
    let parent = new_session(&service).await;
    submit(&service, &me, parent, text_request("go"))
        .await
        .expect("accepted");
    wait_for_terminals(&service, parent, 1).await;
    assert_eq!(ends.lock().clone(), [WorkerEnd::Failed(FailureMode::Error)]);
    let (workers, _) = service
        .reader()
        .workers(&me, parent, None, 10)
        .await
        .expect("a list");
    let [(worker, None)] = &workers[..] else {
        panic!("a worker without a turn: {workers:?}");
    };
    let own = read_log(&service, worker.id).await;
    assert_eq!(own.len(), 1, "its creation alone: {own:?}");
}

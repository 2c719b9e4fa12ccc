//! Workers: sessions of their own for work that a turn gives away.

mod stage;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use turnwire_event::code::{FailureMode, TurnKind, TurnState};
use turnwire_event::port::{NoWorker, Outcome, TurnContext, WorkerEnd};
use turnwire_event::{Body, Event, Kept, SessionId};
use turnwire_session::{Error, Options, Sessions};

use stage::*;

type Ends = Arc<Mutex<Vec<Result<WorkerEnd, NoWorker>>>>;

/// A producer whose own turns delegate once, and whose workers do as `work` says.
fn delegating<F: Future<Output = Outcome> + Send + 'static>(
    limit: Duration,
    work: impl Fn(TurnContext) -> F + Send + Sync + Clone + 'static,
) -> (Act, Ends) {
    let ends = Ends::default();
    let seen = ends.clone();
    let act = acting(move |turn: TurnContext| {
        let (seen, work) = (seen.clone(), work.clone());
        async move {
            if turn.input.kind == TurnKind::Worker {
                return work(turn).await;
            }
            let end = delegate(&turn, limit).await;
            seen.lock().push(end);
            OK
        }
    });
    (act, ends)
}

async fn counts(turn: TurnContext) -> Outcome {
    assert_eq!(turn.input.agent.as_deref(), Some("counter"));
    speak(&turn, "one, two, three", spent(1, 1, 0.0), Kept::default());
    OK
}

async fn hangs(turn: TurnContext) -> Outcome {
    start_message(&turn, ids());
    std::future::pending().await
}

/// Waits until a session has a worker; gives its id.
async fn worker(sessions: &Arc<Sessions>, parent: SessionId) -> SessionId {
    let found = async {
        loop {
            let workers = sessions.workers(&owner("local"), parent, None, 10).await;
            if let Some((worker, Some(_))) = workers.expect("a list").0.pop() {
                return worker.id;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let found = tokio::time::timeout(Duration::from_secs(30), found).await;
    found.expect("a worker begins")
}

fn place(events: &[Event], name: &str) -> Event {
    let found = events.iter().find(|e| e.body.kind().name() == name);
    found
        .unwrap_or_else(|| panic!("{name} in {:?}", names(events)))
        .clone()
}

#[tokio::test]
async fn s3_086_a_worker_is_a_session_with_its_own_log_from_1() {
    let dir = tempfile::tempdir().expect("a folder");
    let (act, ends) = delegating(LONG, counts);
    let service = sessions(dir.path(), Options::default(), act).await;
    let me = owner("local");
    let parent = new_session(&service).await;
    submit(&service, &me, parent, say("go"))
        .await
        .expect("accepted");
    let events = ended(&service, parent, 1).await;
    let expected = WorkerEnd::Completed {
        success: true,
        text: "one, two, three".into(),
    };
    assert_eq!(ends.lock().clone(), [Ok(expected)]);
    assert_eq!(
        names(&events),
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
    let id = worker(&service, parent).await;
    let own = log(&service, id).await;
    assert_eq!(own[0].body.kind().name(), "session.created");
    assert_eq!((own[0].id.seq.0, own[0].session_id), (1, id));
    let Body::TurnStarted(start) = &own[1].body else {
        panic!("a start")
    };
    assert_eq!(start.kind, TurnKind::Worker);
    assert_each_ends_once(&own);
    // What the worker has in its log is there before its parent tells of it.
    let end = own.last().expect("a terminal").timestamp;
    assert!(end <= place(&events, "delegate.completed").timestamp);
    let row = service.attach(&me, id).await.expect("leave").session;
    assert_eq!(
        (row.parent, row.agent.as_deref()),
        (Some(parent), Some("counter"))
    );
    assert_eq!(row.owner, me);
    let (listed, _) = service.list(&me, None, 10).await.expect("a list");
    assert_eq!(
        listed.iter().map(|row| row.id).collect::<Vec<_>>(),
        [parent]
    );
    let other = service.workers(&owner("other"), parent, None, 10).await;
    assert_eq!(other.err(), Some(Error::SessionNotFound));
    assert_eq!(
        service.attach(&owner("other"), id).await.err(),
        Some(Error::SessionNotFound)
    );
}

#[tokio::test]
async fn s3_088_a_worker_is_cancelled_by_its_own_turn_and_the_parent_goes_on() {
    let dir = tempfile::tempdir().expect("a folder");
    let (act, ends) = delegating(LONG, hangs);
    let service = sessions(dir.path(), Options::default(), act).await;
    let me = owner("local");
    let parent = new_session(&service).await;
    submit(&service, &me, parent, say("go"))
        .await
        .expect("accepted");
    let id = worker(&service, parent).await;
    let (turns, _) = service.turns(&me, id, None, 1).await.expect("turns");
    let state = service.cancel(&me, turns[0].id, None).await;
    assert_eq!(state, Ok(TurnState::Cancelling));
    let events = ended(&service, parent, 1).await;
    assert_eq!(
        ends.lock().clone(),
        [Ok(WorkerEnd::Failed(FailureMode::CancelledByUser))]
    );
    assert_eq!(names(&events).last(), Some(&"turn.completed"));
    let own = log(&service, id).await;
    assert_eq!(names(&own).last(), Some(&"turn.cancelled"));
    // A person may talk to it later; the agent stays the worker's.
    submit(&service, &me, id, say("again"))
        .await
        .expect("accepted");
}

#[tokio::test]
async fn a_worker_that_takes_too_long_is_stopped_before_its_parent_is_told() {
    let dir = tempfile::tempdir().expect("a folder");
    let (act, ends) = delegating(Duration::from_millis(50), hangs);
    let service = sessions(dir.path(), Options::default(), act).await;
    let me = owner("local");
    let parent = new_session(&service).await;
    submit(&service, &me, parent, say("go"))
        .await
        .expect("accepted");
    ended(&service, parent, 1).await;
    assert_eq!(
        ends.lock().clone(),
        [Ok(WorkerEnd::Failed(FailureMode::Timeout))]
    );
    let own = log(&service, worker(&service, parent).await).await;
    let Body::TurnCancelled(end) = &own.last().expect("an end").body else {
        panic!("a cancel")
    };
    assert_eq!(end.reason, "delegate_timeout");
}

/// How many sessions there are at each level when every turn asks for three workers, and what
/// those were told that got none.
async fn crowd(options: Options) -> (Vec<usize>, Vec<NoWorker>) {
    let dir = tempfile::tempdir().expect("a folder");
    let refused = Arc::new(Mutex::new(Vec::new()));
    let seen = refused.clone();
    let act = acting(move |turn: TurnContext| {
        let seen = seen.clone();
        async move {
            for _ in 0..3 {
                let (tool, end) = match announce(&turn).await {
                    Ok(task) => {
                        let ids = (task.worker_session_id, task.tool_use_id);
                        (ids, turn.delegate.run(task).await)
                    }
                    Err(why) => {
                        seen.lock().push(why);
                        return OK;
                    }
                };
                told(&turn, tool, &end);
            }
            OK
        }
    });
    let service = sessions(dir.path(), options, act).await;
    let me = owner("local");
    let parent = new_session(&service).await;
    submit(&service, &me, parent, say("go"))
        .await
        .expect("accepted");
    ended(&service, parent, 1).await;
    let mut level = vec![parent];
    let mut sizes = Vec::new();
    while !level.is_empty() {
        sizes.push(level.len());
        let mut next = Vec::new();
        for id in level {
            let (workers, _) = service.workers(&me, id, None, 10).await.expect("a list");
            next.extend(workers.into_iter().map(|(row, _)| row.id));
        }
        level = next;
    }
    let refused = refused.lock().clone();
    (sizes, refused)
}

#[tokio::test]
async fn a_turn_has_only_so_many_workers_and_they_go_only_so_deep() {
    let options = Options {
        workers_max: 2,
        ..Options::default()
    };
    let (sizes, refused) = crowd(options).await;
    assert_eq!(sizes, [1, 2, 4, 8], "two each, three levels");
    let deep = refused.iter().filter(|why| **why == NoWorker::TooDeep);
    assert_eq!(deep.count(), 8);
    let many = refused.iter().filter(|why| **why == NoWorker::TooMany);
    assert_eq!(many.count(), 7);
}

#[tokio::test]
async fn the_workers_of_workers_count_for_the_turn_at_the_top() {
    let options = Options {
        workers_max: 3,
        workers_all_max: 9,
        ..Options::default()
    };
    let (sizes, _) = crowd(options).await;
    assert_eq!(sizes.iter().sum::<usize>(), 1 + 9, "{sizes:?}");
}

#[tokio::test]
async fn a_worker_that_was_told_to_be_lost_never_begins() {
    let dir = tempfile::tempdir().expect("a folder");
    let ends = Arc::new(Mutex::new(Vec::new()));
    let seen = ends.clone();
    let act = acting(move |turn: TurnContext| {
        let seen = seen.clone();
        async move {
            let task = announce(&turn).await.expect("a worker");
            let ids = (task.worker_session_id, task.tool_use_id);
            assert_eq!(turn.delegate.left(ids.1).await, [ids.0]);
            let end = turn.delegate.run(task).await;
            told(&turn, ids, &end);
            seen.lock().push(end);
            OK
        }
    });
    let service = sessions(dir.path(), Options::default(), act).await;
    let me = owner("local");
    let parent = new_session(&service).await;
    submit(&service, &me, parent, say("go"))
        .await
        .expect("accepted");
    ended(&service, parent, 1).await;
    assert_eq!(ends.lock().clone(), [WorkerEnd::Failed(FailureMode::Error)]);
    let (workers, _) = service
        .workers(&me, parent, None, 10)
        .await
        .expect("a list");
    assert_eq!(workers.len(), 0);
}

#[tokio::test]
async fn s3_081_a_worker_stops_with_a_turn_whose_work_does_not_let_go() {
    let dir = tempfile::tempdir().expect("a folder");
    let act = acting(|turn: TurnContext| async move {
        if turn.input.kind == TurnKind::Worker {
            return hangs(turn).await;
        }
        let task = announce(&turn).await.expect("a worker");
        // Not dropped with the turn's own work.
        drop(tokio::spawn(turn.delegate.run(task)));
        hangs(turn).await
    });
    // Longer than anyone waits for the end below.
    let options = Options {
        stop_wait: Duration::from_secs(600),
        ..Options::default()
    };
    let service = sessions(dir.path(), options, act).await;
    let me = owner("local");
    let parent = new_session(&service).await;
    let taken = submit(&service, &me, parent, say("go")).await;
    let id = worker(&service, parent).await;
    service
        .cancel(&me, taken.expect("accepted").turn_id, None)
        .await
        .expect("asked");
    ended(&service, parent, 1).await;
    let own = log(&service, id).await;
    let Body::TurnCancelled(end) = &own.last().expect("an end").body else {
        panic!("{own:?}")
    };
    assert_eq!(end.reason, "parent_cancelled");
}

#[tokio::test]
async fn a_worker_does_not_outlive_the_turn_that_dropped_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let act = acting(|turn: TurnContext| async move {
        if turn.input.kind == TurnKind::Worker {
            return hangs(turn).await;
        }
        let task = announce(&turn).await.expect("a worker");
        let run = turn.delegate.run(task);
        assert!(
            tokio::time::timeout(Duration::from_millis(50), run)
                .await
                .is_err()
        );
        panic!("the producer breaks")
    });
    let service = sessions(dir.path(), Options::default(), act).await;
    let me = owner("local");
    let parent = new_session(&service).await;
    submit(&service, &me, parent, say("go"))
        .await
        .expect("accepted");
    let events = ended(&service, parent, 1).await;
    assert_eq!(
        names(&events)[2..],
        [
            "delegate.started",
            "delegate.failed",
            "tool.failed",
            "dispatch.traced",
            "turn.completed"
        ]
    );
    let own = ended(&service, worker(&service, parent).await, 1).await;
    let Body::TurnCancelled(end) = &own.last().expect("an end").body else {
        panic!("a cancel")
    };
    assert_eq!(end.reason, "parent_cancelled");
}

#[tokio::test]
async fn a_server_that_drains_lets_a_running_turn_delegate() {
    let dir = tempfile::tempdir().expect("a folder");
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let ends = Ends::default();
    let (at, seen) = (gate.clone(), ends.clone());
    let act = acting(move |turn: TurnContext| {
        let (at, seen) = (at.clone(), seen.clone());
        async move {
            if turn.input.kind == TurnKind::Worker {
                return counts(turn).await;
            }
            at.acquire().await.expect("open").forget();
            let end = delegate(&turn, LONG).await;
            seen.lock().push(end);
            OK
        }
    });
    let service = sessions(dir.path(), Options::default(), act).await;
    let parent = new_session(&service).await;
    let me = owner("local");
    submit(&service, &me, parent, say("go"))
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
        names(&log(&service, parent).await).last(),
        Some(&"turn.completed")
    );
}

#[tokio::test]
async fn a_server_that_ends_ends_workers_and_parents() {
    let dir = tempfile::tempdir().expect("a folder");
    let (act, _) = delegating(LONG, hangs);
    let service = sessions(dir.path(), Options::default(), act).await;
    let me = owner("local");
    let parent = new_session(&service).await;
    submit(&service, &me, parent, say("go"))
        .await
        .expect("accepted");
    let id = worker(&service, parent).await;
    service.drain(Duration::from_millis(10)).await;
    assert_each_ends_once(&log(&service, parent).await);
    assert_each_ends_once(&log(&service, id).await);
    // Nothing is left to be swept.
    let image = crashed(dir.path());
    let after = sessions(image.path(), Options::default(), acting(|_| async { OK })).await;
    assert_each_ends_once(&log(&after, parent).await);
}

#[tokio::test]
async fn after_a_crash_workers_are_ended_before_their_parents() {
    let dir = tempfile::tempdir().expect("a folder");
    let (act, _) = delegating(LONG, |turn| async move {
        if turn.delegate.reserve() == Err(NoWorker::TooDeep) {
            return hangs(turn).await;
        }
        let _ = delegate(&turn, LONG).await;
        OK
    });
    let service = sessions(dir.path(), Options::default(), act).await;
    let me = owner("local");
    let parent = new_session(&service).await;
    submit(&service, &me, parent, say("go"))
        .await
        .expect("accepted");
    let mut line = vec![parent];
    for _ in 0..3 {
        line.push(worker(&service, line[line.len() - 1]).await);
    }
    let image = crashed(dir.path());
    let after = sessions(image.path(), Options::default(), acting(|_| async { OK })).await;
    let mut last = None;
    for id in line.iter().rev() {
        let events = log(&after, *id).await;
        assert_each_ends_once(&events);
        let end = events.last().expect("an end");
        let Body::TurnCompleted(body) = &end.body else {
            panic!("a failure")
        };
        assert_eq!(body.reason.as_deref(), Some("server_restart"));
        if let Some(before) = last.replace(end.timestamp) {
            assert!(before <= end.timestamp, "children first");
            let all = names(&events);
            let failed = place(&events, "delegate.failed");
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
async fn a_deleted_session_takes_its_workers_with_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let (act, _) = delegating(LONG, hangs);
    let service = sessions(dir.path(), Options::default(), act).await;
    let me = owner("local");
    let parent = new_session(&service).await;
    submit(&service, &me, parent, say("go"))
        .await
        .expect("accepted");
    let id = worker(&service, parent).await;
    let live = service.live(&me, id).await.expect("a session");
    let (told, erased) = std::sync::mpsc::channel();
    service.on_erased(Arc::new(move |id| {
        let _ = told.send(id);
    }));
    assert_eq!(
        service.delete(&owner("other"), parent).await,
        Err(Error::SessionNotFound)
    );
    service.delete(&me, parent).await.expect("deleted");
    // Whoever keeps something for them elsewhere can let it go.
    assert_eq!(erased.try_iter().collect::<Vec<_>>(), [id, parent]);
    assert_eq!(live.ring.closed(), Some(turnwire_hub::Closed::Deleted));
    assert_eq!(
        service.live(&me, id).await.err(),
        Some(Error::SessionNotFound)
    );
    assert_eq!(
        service.live(&me, parent).await.err(),
        Some(Error::SessionNotFound)
    );
    drop(live);
    let image = crashed(dir.path());
    let after = sessions(image.path(), Options::default(), acting(|_| async { OK })).await;
    assert_eq!(
        after.live(&me, id).await.err(),
        Some(Error::SessionNotFound)
    );
}

#[tokio::test]
async fn many_workers_go_with_their_session_piece_by_piece() {
    let dir = tempfile::tempdir().expect("a folder");
    let (act, _) = delegating(LONG, counts);
    let options = Options {
        workers_max: 100,
        ..Options::default()
    };
    let service = sessions(dir.path(), options, act).await;
    let me = owner("local");
    let parent = new_session(&service).await;
    for turn in 1..=40 {
        submit(&service, &me, parent, say("go"))
            .await
            .expect("accepted");
        ended(&service, parent, turn).await;
    }
    let (workers, next) = service
        .workers(&me, parent, None, 30)
        .await
        .expect("a list");
    assert_eq!((workers.len(), next), (30, Some(workers[29].0.id)));
    let (more, end) = service
        .workers(&me, parent, next, 30)
        .await
        .expect("a list");
    assert_eq!((more.len(), end), (10, None));
    service.delete(&me, parent).await.expect("deleted");
    for (row, _) in workers.into_iter().chain(more) {
        let gone = service.live(&me, row.id).await.err();
        assert_eq!(gone, Some(Error::SessionNotFound));
    }
}

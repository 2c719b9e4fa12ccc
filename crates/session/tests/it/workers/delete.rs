//! Workers and deletion: no worker remains without a parent, and a parent's turn waits until the
//! programs of a deleted worker have ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tokio::sync::Notify;
use turnwire_event::body::session::SessionClosed;
use turnwire_event::code::{FailureMode, ReceiptKind, StopOutcome, TurnKind};
use turnwire_event::port::{ChildTask, TurnContext, WorkerEnd};
use turnwire_event::{Actor, Body};
use turnwire_session::{Error, LiveSession, Options, WatchGuard};

use crate::stage::*;

/// Sends whether a turn started a worker, also when it is dropped before.
struct Began(mpsc::Sender<bool>);

impl Drop for Began {
    fn drop(&mut self) {
        let _ = self.0.send(false);
    }
}

//
#[tokio::test]
async fn watchers_of_a_deleted_session_get_its_last_event() {
    let dir = tempfile::tempdir().expect("a folder");
    let (act, _) = delegating_producer(LONG_LIMIT, hanging_worker);
    let service = start_service(dir.path(), Options::default(), act).await;
    let me = owner("local");
    let parent = new_session(&service).await;
    submit(&service, &me, parent, text_request("go"))
        .await
        .expect("accepted");
    let worker = wait_for_worker(&service, parent).await;
    let mut lives = Vec::new();
    for id in [parent, worker, new_session(&service).await] {
        lives.push(service.live_sessions().open(&me, id).await.expect("open"));
    }
    let watchers: Vec<_> = lives[..2].iter().map(WatchGuard::new).collect();
    for id in [parent, lives[2].id] {
        service.writer().delete(&me, id).await.expect("deleted");
    }
    let names = |live: &Arc<LiveSession>| {
        let mut names = Vec::new();
        let project = |_: &turnwire_hub::RingEntry, _: &mut Vec<u8>| 0;
        let first = live.ring.first();
        live.ring.read(3, first, 10_000, &project, &mut |run| {
            names.extend(run.heads().iter().map(|head| head.kind.name()));
        });
        names
    };
    for live in &lives[..2] {
        let names = names(live);
        assert_eq!(names.last(), Some(&"session.closed"), "{names:?}");
        assert!(live.ring.is_closed());
    }
    assert!(
        !names(&lives[2]).contains(&"session.closed"),
        "nobody watched"
    );
    drop(watchers);
}

//
#[tokio::test]
async fn announced_deletion_is_finished_after_a_crash() {
    let dir = tempfile::tempdir().expect("a folder");
    let (act, _) = delegating_producer(LONG_LIMIT, hanging_worker);
    let service = start_service(dir.path(), Options::default(), act).await;
    let me = owner("local");
    let (parent, other) = (new_session(&service).await, new_session(&service).await);
    for text in ["go", "queued"] {
        enqueue(&service, parent, text).await;
    }
    let worker = wait_for_worker(&service, parent).await;
    let live = service.live_sessions().open(&me, parent).await;
    let closed = SessionClosed {
        reason: "deleted".to_owned(),
    };
    let closed = live
        .expect("open")
        .emit(Actor::SYSTEM, Body::SessionClosed(closed));
    let closed = closed.expect("the last event");
    while read_log(&service, parent)
        .await
        .last()
        .map(|event| event.id)
        != Some(closed)
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let image = copy_store(dir.path());
    let (gate, act) = Turnstile::new();
    let after = start_service(image.path(), Options::default(), act).await;
    for id in [parent, worker] {
        let opened = after.live_sessions().open(&me, id).await;
        assert_eq!(opened.map(drop), Err(Error::SessionNotFound));
    }
    let (left, _) = after
        .reader()
        .sessions(&me, None, 10)
        .await
        .expect("a list");
    let left: Vec<_> = left.into_iter().map(|row| row.id).collect();
    assert_eq!(left, [other]);
    assert!(gate.ran().is_empty(), "queued turns are deleted too");
}

#[tokio::test]
async fn worker_created_during_deletion_is_deleted_too() {
    let dir = tempfile::tempdir().expect("a folder");
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let (stop_signal, began) = mpsc::channel();
    let worker_ids = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let (at, ids) = (gate.clone(), worker_ids.clone());
    let act = producer_fn(move |turn: TurnContext| {
        let (at, ids, stop_signal) = (at.clone(), ids.clone(), stop_signal.clone());
        async move {
            if turn.input.kind != TurnKind::Worker {
                for _ in 0..2 {
                    delegate_task(&turn, LONG_LIMIT).await.expect("a worker");
                }
                return OK;
            }
            if turn.input.content[0].as_text() != Some("employ") {
                return counting_worker(turn).await;
            }
            let began = Began(stop_signal);
            let task = announce_worker(&turn).await.expect("a worker");
            ids.lock().push(task.worker_session_id);
            at.acquire().await.expect("open").forget();
            let mut run = turn.delegate.run(task);
            tokio::select! {
                biased;
                _ = &mut run => {}
                () = std::future::ready(()) => {}
            }
            let _ = began.0.send(true);
            run.await;
            OK
        }
    });
    let service = start_service(dir.path(), Options::default(), act).await;
    let me = owner("local");
    let parent = new_session(&service).await;
    let accepted = submit(&service, &me, parent, text_request("go")).await;
    accepted.expect("accepted");
    wait_for_terminals(&service, parent, 1).await;
    let (workers, _) = service
        .reader()
        .workers(&me, parent, None, 10)
        .await
        .expect("a list");
    for (worker, _) in &workers {
        let accepted = submit(&service, &me, worker.id, text_request("employ")).await;
        accepted.expect("accepted");
        wait_for_event(&service, worker.id, "delegate.started").await;
    }
    // When the first is deleted, the other may create a worker before anything else is written.
    let first = AtomicBool::new(true);
    let began = parking_lot::Mutex::new(began);
    service.on_deleted(Arc::new(move |_| {
        if first.swap(false, Ordering::SeqCst) {
            gate.add_permits(2);
            let turns = (0..2).map(|_| began.lock().recv());
            let _ = turns.map_while(Result::ok).find(|began| *began);
        }
    }));
    service.writer().delete(&me, parent).await.expect("deleted");
    // Everything queued at the writer is written after this.
    new_session(&service).await;
    let worker_ids = worker_ids.lock().clone();
    assert_eq!(worker_ids.len(), 2);
    for id in worker_ids {
        let deleted = service.live_sessions().open(&me, id).await.err();
        assert_eq!(deleted, Some(Error::SessionNotFound));
    }
}

/// Stands for a program; dropping it tells the program to end.
struct Program(Arc<Notify>);

impl Drop for Program {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test]
async fn deleted_worker_is_awaited_until_its_programs_end() {
    let dir = tempfile::tempdir().expect("a folder");
    let (deleted, seen) = (Arc::new(AtomicBool::new(false)), Arc::default());
    let shared = (deleted.clone(), Arc::clone(&seen));
    let act = producer_fn(move |turn: TurnContext| {
        let (deleted, seen): (_, Arc<parking_lot::Mutex<Vec<_>>>) = shared.clone();
        async move {
            if turn.input.kind != TurnKind::Worker {
                let end = delegate_task(&turn, LONG_LIMIT).await.expect("a worker");
                seen.lock().push((end, deleted.load(Ordering::SeqCst)));
                return OK;
            }
            let stop_signal = Arc::new(Notify::new());
            let program = Program(stop_signal.clone());
            let ward = ChildTask {
                kind: ReceiptKind::Process,
                id: "11".to_owned().into(),
                tool_use_id: ids().2,
                ended: Box::pin(async move {
                    stop_signal.notified().await;
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    deleted.store(true, Ordering::SeqCst);
                    StopOutcome::Killed
                }),
            };
            turn.child_tasks.track(ward).expect("accepted");
            let end = hanging_worker(turn).await;
            drop(program);
            end
        }
    });
    let service = start_service(dir.path(), Options::default(), act).await;
    let me = owner("local");
    let parent = new_session(&service).await;
    let accepted = submit(&service, &me, parent, text_request("go")).await;
    accepted.expect("accepted");
    let id = wait_for_worker(&service, parent).await;
    wait_for_event(&service, id, "llm.call_started").await;
    service.writer().delete(&me, id).await.expect("deleted");
    wait_for_terminals(&service, parent, 1).await;
    let failed = WorkerEnd::Failed(FailureMode::Error);
    assert_eq!(*seen.lock(), [(failed, true)]);
}

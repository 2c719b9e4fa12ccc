//! Workers and deletion: nobody is left without a parent, and a parent's turn does not go on while
//! something of a deleted worker is there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tokio::sync::Notify;
use turnwire_event::code::{FailureMode, ReceiptKind, StopOutcome, TurnKind};
use turnwire_event::port::{TurnContext, Ward, WorkerEnd};
use turnwire_session::{Error, Options};

use crate::stage::*;

/// Tells whether a turn came to begin a worker, also when it is dropped before.
struct Began(mpsc::Sender<bool>);

impl Drop for Began {
    fn drop(&mut self) {
        let _ = self.0.send(false);
    }
}

#[tokio::test]
async fn worker_created_during_deletion_is_deleted_too() {
    let dir = tempfile::tempdir().expect("a folder");
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let (told, began) = mpsc::channel();
    let made = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let (at, ids) = (gate.clone(), made.clone());
    let act = acting(move |turn: TurnContext| {
        let (at, ids, told) = (at.clone(), ids.clone(), told.clone());
        async move {
            if turn.input.kind != TurnKind::Worker {
                for _ in 0..2 {
                    delegate(&turn, LONG).await.expect("a worker");
                }
                return OK;
            }
            if turn.input.content[0].as_text() != Some("employ") {
                return counts(turn).await;
            }
            let began = Began(told);
            let task = announce(&turn).await.expect("a worker");
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
    let service = sessions(dir.path(), Options::default(), act).await;
    let me = owner("local");
    let parent = new_session(&service).await;
    let taken = submit(&service, &me, parent, say("go")).await;
    taken.expect("accepted");
    ended(&service, parent, 1).await;
    let (workers, _) = service
        .reader()
        .workers(&me, parent, None, 10)
        .await
        .expect("a list");
    for (worker, _) in &workers {
        let taken = submit(&service, &me, worker.id, say("employ")).await;
        taken.expect("accepted");
        logged(&service, worker.id, "delegate.started").await;
    }
    // When the first is gone, the other is let make a worker before anything else is written.
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
    // Whatever waited for the writer is written now.
    new_session(&service).await;
    let made = made.lock().clone();
    assert_eq!(made.len(), 2);
    for id in made {
        let gone = service.live_sessions().open(&me, id).await.err();
        assert_eq!(gone, Some(Error::SessionNotFound));
    }
}

/// Tells a program to end when it is dropped.
struct Program(Arc<Notify>);

impl Drop for Program {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test]
async fn deleted_worker_is_awaited_until_its_programs_end() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gone, seen) = (Arc::new(AtomicBool::new(false)), Arc::default());
    let given = (gone.clone(), Arc::clone(&seen));
    let act = acting(move |turn: TurnContext| {
        let (gone, seen): (_, Arc<parking_lot::Mutex<Vec<_>>>) = given.clone();
        async move {
            if turn.input.kind != TurnKind::Worker {
                let end = delegate(&turn, LONG).await.expect("a worker");
                seen.lock().push((end, gone.load(Ordering::SeqCst)));
                return OK;
            }
            let told = Arc::new(Notify::new());
            let program = Program(told.clone());
            let ward = Ward {
                kind: ReceiptKind::Process,
                id: "11".to_owned().into(),
                tool_use_id: ids().2,
                ended: Box::pin(async move {
                    told.notified().await;
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    gone.store(true, Ordering::SeqCst);
                    StopOutcome::Killed
                }),
            };
            turn.wards.take(ward).expect("taken");
            let end = hangs(turn).await;
            drop(program);
            end
        }
    });
    let service = sessions(dir.path(), Options::default(), act).await;
    let me = owner("local");
    let parent = new_session(&service).await;
    let taken = submit(&service, &me, parent, say("go")).await;
    taken.expect("accepted");
    let id = worker(&service, parent).await;
    logged(&service, id, "llm.call_started").await;
    service.writer().delete(&me, id).await.expect("deleted");
    ended(&service, parent, 1).await;
    let failed = WorkerEnd::Failed(FailureMode::Error);
    assert_eq!(*seen.lock(), [(failed, true)]);
}

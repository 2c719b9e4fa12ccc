//! The session of a worker before its task begins: durable before it is named, and there if it never
//! begins.

use std::sync::Arc;

use tokio::sync::Semaphore;
use turnwire_event::code::{OnBusy, TurnKind, TurnState};
use turnwire_event::port::TurnContext;
use turnwire_event::{Body, Event, SessionId};
use turnwire_log::reserve::DiskReserve;
use turnwire_session::{Error, Options, SessionService, SubmitRequest};

use crate::stage::*;

/// A service whose turns name a worker, and run it once the semaphore has a permit.
async fn naming_service(dir: &std::path::Path) -> (SessionService, Arc<Semaphore>) {
    let may_run = Arc::new(Semaphore::new(0));
    let gate = may_run.clone();
    let act = producer_fn(move |turn: TurnContext| {
        let gate = gate.clone();
        async move {
            if turn.input.kind == TurnKind::Worker {
                return counting_worker(turn).await;
            }
            let task = announce_worker(&turn).await.expect("a worker");
            let ids = (task.worker_session_id, task.tool_use_id);
            gate.acquire().await.expect("open").forget();
            let end = turn.delegate.run(task).await;
            report_worker_end(&turn, ids, &end);
            OK
        }
    });
    let service = start_service(dir, Options::default(), act).await;
    (service, may_run)
}

/// The types of all events in a log.
async fn log_names(service: &SessionService, id: SessionId) -> Vec<&'static str> {
    let log = read_log(service, id).await;
    log.iter().map(|event| event.body.kind().name()).collect()
}

/// Waits until the log of `parent` names a worker.
async fn named_worker(service: &SessionService, parent: SessionId) -> SessionId {
    for _ in 0..6_000 {
        let log = read_log(service, parent).await;
        let named = log.iter().find_map(|event: &Event| match &event.body {
            Body::DelegateStarted(start) => Some(start.worker_session_id),
            _ => None,
        });
        if let Some(id) = named {
            return id;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("no worker was named");
}

/// A service whose turn creates a worker and does not name it, and the worker.
async fn unnamed_worker(dir: &std::path::Path) -> (SessionService, SessionId, SessionId) {
    let (send, created) = tokio::sync::oneshot::channel();
    let send = Arc::new(parking_lot::Mutex::new(Some(send)));
    let act = producer_fn(move |turn: TurnContext| {
        let send = send.clone();
        async move {
            let id = turn.delegate.create("counter").await.expect("a worker");
            let send = send.lock().take().expect("one turn");
            send.send(id).expect("a test");
            std::future::pending().await
        }
    });
    let service = start_service(dir, Options::default(), act).await;
    let parent = new_session(&service).await;
    submit(&service, &owner("local"), parent, text_request("go"))
        .await
        .expect("accepted");
    let id = created.await.expect("a worker");
    (service, parent, id)
}

// S3-088
#[tokio::test]
async fn worker_session_is_durable_before_it_is_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_service, parent, id) = unnamed_worker(dir.path()).await;
    // What a crash would leave.
    let image = copy_store(dir.path());
    let (store, _writer) = writer(image.path(), DiskReserve::new(image.path().join("r"), 0));
    let row = store.session(id).expect("a read").expect("a session");
    assert_eq!((row.parent, row.turn_count), (Some(parent), 0));
    let tail = store.tail(id).expect("a read").expect("a log");
    assert_eq!(tail.seq.0, 1);
}

#[tokio::test]
async fn unnamed_worker_of_a_crashed_turn_is_deleted_at_start() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_service, parent, id) = unnamed_worker(dir.path()).await;
    let image = copy_store(dir.path());
    let idle = producer_fn(|_| async { OK });
    let after = start_service(image.path(), Options::default(), idle).await;
    let me = owner("local");
    let found = after.live_sessions().open(&me, id).await.err();
    assert_eq!(found, Some(Error::SessionNotFound));
    let listed = after.reader().workers(&me, parent, None, 10).await;
    assert!(listed.expect("a list").0.is_empty());
    // Its parent is not damaged.
    wait_for_terminals(&after, parent, 1).await;
}

#[tokio::test]
async fn named_worker_of_a_crashed_turn_stays_if_it_never_began() {
    let dir = tempfile::tempdir().expect("a folder");
    let (service, _) = naming_service(dir.path()).await;
    let (me, parent) = (owner("local"), new_session(&service).await);
    submit(&service, &me, parent, text_request("go"))
        .await
        .expect("accepted");
    let id = named_worker(&service, parent).await;
    let image = copy_store(dir.path());
    let idle = producer_fn(|_| async { OK });
    let after = start_service(image.path(), Options::default(), idle).await;
    let row = after.live_sessions().row(&me, id).await;
    assert_eq!(row.expect("a session").parent, Some(parent));
    assert_eq!(log_names(&after, id).await, ["session.created"]);
}

// S3-081, S3-088
#[tokio::test]
async fn worker_stopped_before_it_began_can_be_opened() {
    let dir = tempfile::tempdir().expect("a folder");
    let (service, _) = naming_service(dir.path()).await;
    let (me, parent) = (owner("local"), new_session(&service).await);
    let accepted = submit(&service, &me, parent, text_request("go")).await;
    let id = named_worker(&service, parent).await;
    let turn = accepted.expect("accepted").turn_id;
    service
        .canceller()
        .cancel(&me, turn, None)
        .await
        .expect("asked");
    let events = wait_for_terminals(&service, parent, 1).await;
    assert_eq!(
        event_names(&events)[2..],
        [
            "delegate.started",
            "turn.cancel_requested",
            "delegate.failed",
            "tool.failed",
            "dispatch.traced",
            "turn.cancelled"
        ]
    );
    service
        .live_sessions()
        .row(&me, id)
        .await
        .expect("a session");
    assert_eq!(log_names(&service, id).await, ["session.created"]);
    // Nothing waits for its task any more.
    submit(&service, &me, id, text_request("hello"))
        .await
        .expect("accepted");
    wait_for_terminals(&service, id, 1).await;
}

#[tokio::test]
async fn task_of_a_worker_comes_before_turns_of_others() {
    let dir = tempfile::tempdir().expect("a folder");
    let (service, may_run) = naming_service(dir.path()).await;
    let (me, parent) = (owner("local"), new_session(&service).await);
    submit(&service, &me, parent, text_request("go"))
        .await
        .expect("accepted");
    let id = named_worker(&service, parent).await;
    let early = submit(&service, &me, id, text_request("early")).await;
    let Err(Error::TurnInFlight(first)) = early else {
        panic!("{early:?}");
    };
    let nothing = service.canceller().cancel_running(&me, id, None).await;
    assert_eq!(nothing, Ok(None), "nothing runs yet");
    let queued = SubmitRequest {
        on_busy: OnBusy::Enqueue,
        ..text_request("later")
    };
    let queued = submit(&service, &me, id, queued).await.expect("queued");
    assert_eq!(queued.state, TurnState::Queued);
    may_run.add_permits(1);
    let own = wait_for_terminals(&service, id, 2).await;
    let starts = own.iter().filter_map(|event| match &event.body {
        Body::TurnStarted(_) => event.turn_id,
        _ => None,
    });
    assert_eq!(starts.collect::<Vec<_>>(), [first, queued.turn_id]);
}

#[tokio::test]
async fn discarded_worker_leaves_no_session() {
    let dir = tempfile::tempdir().expect("a folder");
    let created = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let seen = created.clone();
    let act = producer_fn(move |turn: TurnContext| {
        let seen = seen.clone();
        async move {
            let id = turn.delegate.create("counter").await.expect("a worker");
            turn.delegate.discard(id);
            seen.lock().push(id);
            OK
        }
    });
    let service = start_service(dir.path(), Options::default(), act).await;
    let (me, parent) = (owner("local"), new_session(&service).await);
    submit(&service, &me, parent, text_request("go"))
        .await
        .expect("accepted");
    wait_for_terminals(&service, parent, 1).await;
    let id = created.lock()[0];
    let found = service.live_sessions().open(&me, id).await.err();
    assert_eq!(found, Some(Error::SessionNotFound));
}

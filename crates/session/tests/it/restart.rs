//! Queued turns across the end of a process: a crash, a drain, a deletion.

use std::sync::Arc;
use std::time::Duration;

use turnwire_event::code::{OnBusy, TurnState};
use turnwire_event::{Body, TurnId};
use turnwire_fair::FairRefusal;
use turnwire_session::{Error, Options, SharedResource, SubmitRequest};

use crate::stage::*;

// I-18
#[tokio::test]
async fn law_1_crash_ends_started_turns_and_runs_queued_ones() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_, act) = Turnstile::new();
    let first = start_service(dir.path(), Options::default(), act).await;
    let id = new_session(&first).await;
    let running = enqueue(&first, id, "1").await;
    let second = enqueue(&first, id, "2").await;
    enqueue(&first, id, "3").await;
    let image = copy_store(dir.path());
    let (gate, act) = Turnstile::new();
    gate.open(2);
    let after = start_service(image.path(), Options::default(), act).await;
    // No client attaches or reads: they run without a caller.
    while gate.ran().len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let events = wait_for_terminals(&after, id, 3).await;
    assert_each_ends_once(&events);
    assert_eq!(started_inputs(&events), ["1", "2", "3"]);
    assert_eq!(gate.ran(), ["2", "3"]);
    let Body::TurnCompleted(end) = terminal_of(&events, running.turn_id) else {
        panic!("a failure")
    };
    assert_eq!(end.reason.as_deref(), Some("server_restart"));
    assert_eq!(
        turn_state(&after, second.turn_id).await,
        TurnState::Completed
    );
}

#[tokio::test]
async fn queued_turn_keeps_its_request_after_a_crash() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_, act) = Turnstile::new();
    let first = start_service(dir.path(), Options::default(), act).await;
    let id = new_session(&first).await;
    enqueue(&first, id, "1").await;
    let trace = turnwire_event::TraceContext {
        trace_id: "4bf92f3577b34da6a3ce929d0e0e4736".into(),
        span_id: "00f067aa0ba902b7".into(),
        parent_span_id: None,
    };
    let metadata = serde_json::json!({"client": {"theme": "dark"}});
    let request = SubmitRequest {
        locale: "de-AT".into(),
        trace: Some(trace.clone()),
        wire_version: "0.4".into(),
        metadata: metadata.as_object().cloned().expect("an object").into(),
        location: Some("Graz".into()),
        ..request_on_busy(OnBusy::Enqueue, "2")
    };
    let accepted = submit(&first, &owner("local"), id, request).await;
    let turn = accepted.expect("accepted").turn_id;
    let image = copy_store(dir.path());
    let recorded_input = Arc::new(parking_lot::Mutex::new(None));
    let input_slot = recorded_input.clone();
    let act = producer_fn(move |turn| {
        *input_slot.lock() = Some(turn.input);
        async { OK }
    });
    let options = Options {
        turn_timeout: Duration::from_secs(90),
        ..Options::default()
    };
    let after = start_service(image.path(), options, act).await;
    let events = wait_for_terminals(&after, id, 2).await;
    let input = recorded_input.lock().clone().expect("it ran");
    assert_eq!((input.turn_id, input.locale.as_str()), (turn, "de-AT"));
    assert_eq!(input.location.as_deref(), Some("Graz"));
    assert_eq!(input.turn_timeout, Duration::from_secs(90), "D-82");
    assert_eq!(serde_json::json!(input.metadata), metadata);
    let mut starts = events.iter().filter(|e| e.turn_id == Some(turn));
    let start = starts.next().expect("a start");
    assert_eq!(start.trace, Some(trace));
    let Body::TurnStarted(body) = &start.body else {
        panic!("a start")
    };
    assert_eq!(body.wire_version.as_deref(), Some("0.4"));
    let (messages, _) = after
        .reader()
        .messages(&owner("local"), id, None, 10)
        .await
        .expect("messages");
    let metadata_row = messages.iter().find(|message| message.turn_id == turn);
    let metadata_row = serde_json::json!(metadata_row.expect("a message").metadata);
    assert_eq!(
        metadata_row,
        serde_json::json!({"client": {"theme": "dark"}, "location": "Graz"})
    );
}

#[tokio::test]
async fn drain_leaves_queued_turns_for_the_next_start() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gate, act) = Turnstile::new();
    let first = start_service(dir.path(), Options::default(), act).await;
    let id = new_session(&first).await;
    enqueue(&first, id, "1").await;
    let waiting = enqueue(&first, id, "2").await;
    first.refuse_turns();
    gate.open(2);
    first.drain(Duration::from_secs(5)).await;
    assert_eq!(gate.ran(), ["1"], "nothing starts any more");
    assert_eq!(turn_state(&first, waiting.turn_id).await, TurnState::Queued);
    let refused = submit(
        &first,
        &owner("local"),
        id,
        request_on_busy(OnBusy::Enqueue, "3"),
    )
    .await;
    assert_eq!(refused, Err(Error::Draining));
    let image = copy_store(dir.path());
    let (gate, act) = Turnstile::new();
    gate.open(1);
    let after = start_service(image.path(), Options::default(), act).await;
    let events = wait_for_terminals(&after, id, 2).await;
    assert_each_ends_once(&events);
    assert_eq!(gate.ran(), ["2"]);
}

#[tokio::test]
async fn unreadable_queued_turn_fails_and_the_next_runs() {
    use turnwire_event::code::{OnDisconnect, TurnKind, TurnStatus};
    use turnwire_event::row::{PlacedChange, RowChange, TurnSettings};
    use turnwire_log::sqlite::{CommitDurability, SqliteOptions, SqliteStore};
    use turnwire_log::{LeaseTerm, Log as _, SessionAppend};
    let dir = tempfile::tempdir().expect("a folder");
    let (_, act) = Turnstile::new();
    let first = start_service(dir.path(), Options::default(), act).await;
    let id = new_session(&first).await;
    enqueue(&first, id, "1").await;
    enqueue(&first, id, "2").await;
    let image = copy_store(dir.path());
    let broken = TurnId(turnwire_event::Ulid(77));
    {
        let options = SqliteOptions {
            dir: image.path().to_owned(),
            durability: CommitDurability::Full,
        };
        let store = SqliteStore::open(&options).expect("a store");
        let tail = store.tail(id).expect("a tail").expect("a session");
        let change = RowChange::TurnQueued {
            settings: TurnSettings {
                turn_id: broken,
                kind: TurnKind::Chat,
                on_disconnect: OnDisconnect::Continue,
                disconnect_grace_ms: 0,
                trace: None,
                wire_version: None,
            },
            place: -5,
            input: "of another time".into(),
        };
        let rows = vec![PlacedChange {
            at: tail.position(),
            time: tail.time,
            change,
        }];
        let append = SessionAppend {
            session: id,
            term: LeaseTerm(0),
            prev: tail.seq,
            records: Vec::new(),
            rows,
        };
        store.append(&[append]).expect("an append");
    }
    let (gate, act) = Turnstile::new();
    gate.open(1);
    let after = start_service(image.path(), Options::default(), act).await;
    let events = wait_for_terminals(&after, id, 3).await;
    assert_each_ends_once(&events);
    let Body::TurnCompleted(end) = terminal_of(&events, broken) else {
        panic!("a failure")
    };
    assert_eq!(end.status, TurnStatus::Failed);
    assert_eq!(gate.ran(), ["2"]);
}

#[tokio::test]
async fn deleting_a_session_deletes_its_queue() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gate, act) = Turnstile::new();
    let first = start_service(dir.path(), Options::default(), act).await;
    let id = new_session(&first).await;
    enqueue(&first, id, "1").await;
    let waiting = enqueue(&first, id, "2").await;
    first
        .writer()
        .delete(&owner("local"), id)
        .await
        .expect("deleted");
    gate.open(5);
    let deleted = first.reader().turn(&owner("local"), waiting.turn_id).await;
    assert_eq!(deleted.err(), Some(Error::TurnNotFound));
    let (again, act) = Turnstile::new();
    let copy = copy_store(dir.path());
    let after = start_service(copy.path(), Options::default(), act).await;
    let other = new_session(&after).await;
    enqueue(&after, other, "x").await;
    again.open(1);
    wait_for_terminals(&after, other, 1).await;
    assert_eq!(again.ran(), ["x"], "nothing of it came back");
}

#[tokio::test]
async fn session_with_a_queue_is_not_unloaded() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gate, act) = Turnstile::new();
    let options = Options {
        idle_unload: Duration::ZERO,
        open_max: 1,
        ..Options::default()
    };
    let sessions = start_service(dir.path(), options, act).await;
    let id = new_session(&sessions).await;
    enqueue(&sessions, id, "1").await;
    enqueue(&sessions, id, "2").await;
    let other = sessions
        .writer()
        .create(&owner("local"), Default::default())
        .await;
    assert_eq!(
        other.err(),
        Some(Error::LimitReached {
            resource: SharedResource::OpenSessions,
            refusal: FairRefusal::OwnerFull,
            max: 1
        })
    );
    gate.open(2);
    assert_eq!(
        started_inputs(&wait_for_terminals(&sessions, id, 2).await),
        ["1", "2"]
    );
}

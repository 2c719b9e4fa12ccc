//! Clients that disconnect while a turn is queued, after it has ended, or quietly.

use std::sync::Arc;
use std::time::Duration;

use turnwire_event::Body;
use turnwire_event::code::TurnState;
use turnwire_log::reserve::DiskReserve;
use turnwire_session::{DisconnectScope, Options, StreamGuard, SystemIdGenerator, WatchGuard};

use crate::stage::*;

#[tokio::test]
async fn watcher_who_left_a_queued_turn_cancels_it_at_its_start() {
    let dir = tempfile::tempdir().expect("a folder");
    let (sessions, gate) = turnstile_service(dir.path()).await;
    let id = new_session(&sessions).await;
    let me = owner("local");
    enqueue(&sessions, id, "1").await;
    let live = sessions
        .live_sessions()
        .open(&me, id)
        .await
        .expect("a session");
    let watcher = WatchGuard::new(&live);
    let minds = cancel_on_disconnect(DisconnectScope::Session, "2", 0);
    let queued = submit(&sessions, &me, id, minds).await.expect("accepted");
    assert_eq!(queued.state, TurnState::Queued);
    drop(watcher);
    gate.open(1); // for the first; the second ends because nobody is there
    let events = wait_for_terminals(&sessions, id, 2).await;
    let Body::TurnCancelled(end) = terminal_of(&events, queued.turn_id) else {
        panic!("a cancel")
    };
    assert_eq!(end.reason, "client_disconnected");
}

#[tokio::test]
async fn queued_turn_without_a_departure_runs() {
    let dir = tempfile::tempdir().expect("a folder");
    let (sessions, gate) = turnstile_service(dir.path()).await;
    let me = owner("local");
    for watched in [false, true] {
        let id = new_session(&sessions).await;
        let live = sessions
            .live_sessions()
            .open(&me, id)
            .await
            .expect("a session");
        drop(WatchGuard::new(&live)); // before the turn is there
        enqueue(&sessions, id, "1").await;
        let minds = cancel_on_disconnect(DisconnectScope::Session, "2", 0);
        let queued = submit(&sessions, &me, id, minds).await.expect("accepted");
        let again = watched.then(|| {
            drop(WatchGuard::new(&live));
            WatchGuard::new(&live)
        });
        gate.open(2);
        let events = wait_for_terminals(&sessions, id, 2).await;
        let end = terminal_of(&events, queued.turn_id);
        assert!(matches!(end, Body::TurnCompleted(_)), "{end:?}");
        drop(again);
    }
}

#[tokio::test]
async fn stream_of_an_ended_turn_cancels_no_other_turn() {
    let dir = tempfile::tempdir().expect("a folder");
    let (sessions, gate) = turnstile_service(dir.path()).await;
    let id = new_session(&sessions).await;
    let me = owner("local");
    let (_, stream) = submit_attended_turn(
        &sessions,
        id,
        cancel_on_disconnect(DisconnectScope::Stream, "1", 0),
    )
    .await;
    gate.open(1);
    wait_for_terminals(&sessions, id, 1).await;
    let minds = cancel_on_disconnect(DisconnectScope::Session, "2", 0);
    let runs = submit(&sessions, &me, id, minds).await.expect("accepted");
    drop(stream);
    tokio::time::sleep(Duration::from_millis(30)).await;
    gate.open(1);
    let events = wait_for_terminals(&sessions, id, 2).await;
    let end = terminal_of(&events, runs.turn_id);
    assert!(matches!(end, Body::TurnCompleted(_)), "{end:?}");
}

#[tokio::test]
async fn quiet_departure_ends_the_grace_of_an_earlier_one() {
    let dir = tempfile::tempdir().expect("a folder");
    let (sessions, gate) = turnstile_service(dir.path()).await;
    for whose in [DisconnectScope::Stream, DisconnectScope::Session] {
        let id = new_session(&sessions).await;
        let (accepted, stream) =
            submit_attended_turn(&sessions, id, cancel_on_disconnect(whose, "1", 60)).await;
        let live = stream.live().clone();
        drop(stream);
        let watcher = WatchGuard::new(&live);
        StreamGuard::new(&live, accepted.turn_id).leave_quietly();
        watcher.leave_quietly();
        tokio::time::sleep(Duration::from_millis(150)).await;
        gate.open(1);
        let events = wait_for_terminals(&sessions, id, 1).await;
        let end = terminal_of(&events, accepted.turn_id);
        assert!(matches!(end, Body::TurnCompleted(_)), "{whose:?}: {end:?}");
    }
}

#[tokio::test]
async fn abandoned_queued_turn_ends_once_the_disk_has_space() {
    let dir = tempfile::tempdir().expect("a folder");
    let (first, _gate) = turnstile_service(dir.path()).await;
    let id = new_session(&first).await;
    enqueue(&first, id, "1").await;
    let minds = cancel_on_disconnect(DisconnectScope::Stream, "2", 0);
    let queued = submit(&first, &owner("local"), id, minds).await;
    let queued = queued.expect("accepted").turn_id;
    let image = copy_store(dir.path());
    // The reserve file has no folder, so the writer treats the disk as full.
    let room = image.path().join("room");
    let reserve = DiskReserve::new(room.join("reserve"), 0);
    let (gate, act) = Turnstile::new();
    let parts = (Arc::new(SystemIdGenerator) as _, reserve);
    let after = start_service_with(image.path(), Options::default(), act, parts).await;
    assert!(after.status().is_storage_full());
    let live = after
        .live_sessions()
        .open(&owner("local"), id)
        .await
        .expect("a session");
    drop(StreamGuard::new(&live, queued));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(turn_state(&after, queued).await, TurnState::Queued);
    std::fs::create_dir(&room).expect("room");
    let events = wait_for_terminals(&after, id, 2).await;
    assert!(matches!(
        terminal_of(&events, queued),
        Body::TurnCancelled(_)
    ));
    drop(gate);
}

//! Streams of a turn: which disconnects cancel it, and when.

use std::time::Duration;

use turnwire_event::Body;
use turnwire_event::code::{Phase, TurnState};
use turnwire_session::{DisconnectScope, StreamGuard, SubmitRequest, SubmitTarget, WatchGuard};

use crate::stage::*;

fn bound(text: &str, grace_ms: u64) -> SubmitRequest {
    cancel_on_disconnect(DisconnectScope::Stream, text, grace_ms)
}

// D-05
#[tokio::test]
async fn last_stream_cancels_its_turn_despite_watchers() {
    let dir = tempfile::tempdir().expect("a folder");
    let (sessions, _gate) = turnstile_service(dir.path()).await;
    let id = new_session(&sessions).await;
    let (accepted, stream) = submit_attended_turn(&sessions, id, bound("hi", 0)).await;
    let live = stream.live().clone();
    let watcher = WatchGuard::new(&live);
    let second = StreamGuard::new(&live, accepted.turn_id);
    drop(stream);
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert_eq!(
        live.current_turn(),
        Some(accepted.turn_id),
        "one stream is left"
    );
    drop(second);
    let events = wait_for_terminals(&sessions, id, 1).await;
    let Some(Body::TurnCancelled(end)) = events
        .iter()
        .map(|e| &e.body)
        .find(|b| b.kind().is_terminal())
    else {
        panic!("a cancel")
    };
    assert_eq!(end.reason, "client_disconnected");
    drop(watcher);
}

#[tokio::test]
async fn leaving_watcher_does_not_count_as_a_stream() {
    let dir = tempfile::tempdir().expect("a folder");
    let (sessions, gate) = turnstile_service(dir.path()).await;
    let id = new_session(&sessions).await;
    let (accepted, stream) = submit_attended_turn(&sessions, id, bound("hi", 0)).await;
    drop(WatchGuard::new(stream.live()));
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert_eq!(stream.live().current_turn(), Some(accepted.turn_id));
    // Streams that leave quietly during a drain do not count.
    let live = stream.live().clone();
    stream.leave_quietly();
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert_eq!(live.current_turn(), Some(accepted.turn_id));
    gate.open(1);
    let events = wait_for_terminals(&sessions, id, 1).await;
    assert!(!event_names(&events).contains(&"turn.cancel_requested"));
}

#[tokio::test]
async fn queued_turn_is_withdrawn_when_its_last_stream_leaves() {
    let dir = tempfile::tempdir().expect("a folder");
    let (sessions, gate) = turnstile_service(dir.path()).await;
    let id = new_session(&sessions).await;
    let me = owner("local");
    submit(&sessions, &me, id, text_request("1"))
        .await
        .expect("accepted");
    let (departed, stream) = submit_attended_turn(&sessions, id, bound("2", 0)).await;
    let (stays, guard) = submit_attended_turn(&sessions, id, bound("3", 0)).await;
    assert_eq!(
        (departed.state, stays.state),
        (TurnState::Queued, TurnState::Queued)
    );
    drop(stream);
    let events = wait_for_terminals(&sessions, id, 1).await;
    let Some(Body::TurnCancelled(end)) = events
        .iter()
        .map(|e| &e.body)
        .find(|b| b.kind().is_terminal())
    else {
        panic!("a cancel")
    };
    assert_eq!(end.phase, Phase::Queued);
    gate.open(2);
    let events = wait_for_terminals(&sessions, id, 3).await;
    assert_each_ends_once(&events);
    assert_eq!(gate.ran(), ["1", "3"]);
    drop(guard);
}

#[tokio::test]
async fn grace_period_spans_the_start_of_a_queued_turn() {
    let dir = tempfile::tempdir().expect("a folder");
    let (sessions, gate) = turnstile_service(dir.path()).await;
    let id = new_session(&sessions).await;
    let me = owner("local");
    submit(&sessions, &me, id, text_request("1"))
        .await
        .expect("accepted");
    let (accepted, stream) = submit_attended_turn(&sessions, id, bound("2", 200)).await;
    let live = stream.live().clone();
    drop(stream);
    gate.open(1);
    while live.current_turn() != Some(accepted.turn_id) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let events = wait_for_terminals(&sessions, id, 2).await;
    assert_each_ends_once(&events);
    let ends = events
        .iter()
        .filter(|e| e.turn_id == Some(accepted.turn_id));
    let Some(Body::TurnCancelled(end)) = ends.map(|e| &e.body).find(|b| b.kind().is_terminal())
    else {
        panic!("a cancel")
    };
    assert_ne!(end.phase, Phase::Queued, "it had started");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_that_leaves_during_accept_has_left_its_turn() {
    let dir = tempfile::tempdir().expect("a folder");
    let (sessions, gate) = turnstile_service(dir.path()).await;
    let me = owner("local");
    let (mut cut, mut whole) = (0, 0);
    for yields in 0..60 {
        let id = new_session(&sessions).await;
        let submitter = sessions.submitter();
        let submit_future =
            submitter.submit_attended(&me, SubmitTarget::Existing(id), bound("hi", 0), None);
        let patience = async {
            for _ in 0..yields {
                tokio::task::yield_now().await;
            }
        };
        let guard = tokio::select! {
            biased;
            done = submit_future => Some(done.expect("accepted")),
            () = patience => None,
        };
        match guard {
            Some(guard) => {
                whole += 1;
                drop(guard);
                wait_for_terminals(&sessions, id, 1).await;
            }
            None => cut += 1,
        }
        let live = sessions.live_sessions().open(&me, id).await;
        let live = live.expect("a session");
        // A turn of a client that left may start after this: it ends as the others do.
        let mut events = read_log(&sessions, id).await;
        for _ in 0..1_000 {
            let ended = events
                .iter()
                .filter(|event| event.body.kind().is_terminal());
            if live.current_turn().is_none() && ended.count() == started_inputs(&events).len() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
            events = read_log(&sessions, id).await;
        }
        assert_each_ends_once(&events);
    }
    assert!(cut > 0, "{cut} were cut, {whole} were not");
    assert_eq!(
        gate.ran().len(),
        gate.ran().iter().filter(|said| *said == "hi").count()
    );
}

#[tokio::test]
async fn queued_turn_runs_after_a_restart_without_streams() {
    let dir = tempfile::tempdir().expect("a folder");
    let (first, _gate) = turnstile_service(dir.path()).await;
    let id = new_session(&first).await;
    let me = owner("local");
    submit(&first, &me, id, text_request("1"))
        .await
        .expect("accepted");
    let (_, _stream) = submit_attended_turn(&first, id, bound("2", 0)).await;
    let image = copy_store(dir.path());
    let (after, gate) = turnstile_service(image.path()).await;
    gate.open(1);
    let events = wait_for_terminals(&after, id, 2).await;
    assert_each_ends_once(&events);
    assert_eq!(gate.ran(), ["2"]);
}

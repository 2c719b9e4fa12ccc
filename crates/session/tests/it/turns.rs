//! The rules around turns: one at a time, owners, history, deletion, watchers that disconnect.

use std::sync::Arc;
use std::time::Duration;

use turnwire_event::code::OnDisconnect;
use turnwire_event::port::HistoryBudget;
use turnwire_event::{Body, Event, EventFilter};
use turnwire_session::{Error, LiveSession, Options, SessionService, SubmitRequest, WatchGuard};

use crate::stage::*;

// S3-011
#[tokio::test]
async fn second_submit_is_refused_with_the_running_turn() {
    let dir = tempfile::tempdir().expect("a folder");
    let sessions = start_service(
        dir.path(),
        Options::default(),
        producer_fn(|_| std::future::pending()),
    )
    .await;
    let id = new_session(&sessions).await;
    let first = submit(&sessions, &owner("local"), id, text_request("one"))
        .await
        .expect("accepted");
    let second = submit(&sessions, &owner("local"), id, text_request("two")).await;
    assert_eq!(second, Err(Error::TurnInFlight(first.turn_id)));
}

// C-24, I-20
#[tokio::test]
async fn law_10_another_owner_finds_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let sessions = start_service(
        dir.path(),
        Options::default(),
        producer_fn(|_| std::future::pending()),
    )
    .await;
    let id = new_session(&sessions).await;
    let turn = submit(&sessions, &owner("local"), id, text_request("one"))
        .await
        .expect("accepted")
        .turn_id;
    let eve = owner("eve");
    assert_eq!(
        sessions.live_sessions().row(&eve, id).await.err(),
        Some(Error::SessionNotFound)
    );
    assert_eq!(
        submit(&sessions, &eve, id, text_request("x")).await.err(),
        Some(Error::SessionNotFound)
    );
    assert_eq!(
        sessions.reader().messages(&eve, id, None, 10).await.err(),
        Some(Error::SessionNotFound)
    );
    assert_eq!(
        sessions.reader().turn(&eve, turn).await.err(),
        Some(Error::TurnNotFound)
    );
    assert_eq!(
        sessions.canceller().cancel(&eve, turn, None).await.err(),
        Some(Error::TurnNotFound)
    );
    assert_eq!(
        sessions.writer().delete(&eve, id).await.err(),
        Some(Error::SessionNotFound)
    );
    assert!(
        sessions
            .reader()
            .sessions(&eve, None, 10)
            .await
            .expect("a list")
            .0
            .is_empty()
    );
}

#[tokio::test]
async fn history_is_bounded_and_the_turn_reports_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let texts = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let seen = texts.clone();
    let act = producer_fn(move |turn| {
        let seen = seen.clone();
        async move {
            let budget = HistoryBudget {
                messages_max: 4,
                bytes_max: 10_000,
            };
            let past = turn.history.recent(budget).await.expect("a past");
            *seen.lock() = past.iter().map(turnwire_event::Message::text).collect();
            OK
        }
    });
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let id = new_session(&sessions).await;
    for at in 0..7 {
        while let Err(error) = submit(
            &sessions,
            &owner("local"),
            id,
            text_request(&format!("say {at}")),
        )
        .await
        {
            assert!(matches!(error, Error::TurnInFlight(_)), "{error}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(*texts.lock(), ["say 3", "say 4", "say 5", "say 6"]);
    let starts = read_log(&sessions, id).await;
    let omitted: Vec<u64> = starts
        .iter()
        .filter_map(|event| match &event.body {
            Body::TurnStarted(start) => Some(start.history_omitted),
            _ => None,
        })
        .collect();
    assert_eq!(omitted, [0, 0, 0, 0, 1, 2, 3]);
}

#[tokio::test]
async fn deleting_a_session_stops_its_turn() {
    let dir = tempfile::tempdir().expect("a folder");
    let sessions = start_service(
        dir.path(),
        Options::default(),
        producer_fn(|_| std::future::pending()),
    )
    .await;
    let id = new_session(&sessions).await;
    let turn = submit(&sessions, &owner("local"), id, text_request("one"))
        .await
        .expect("accepted")
        .turn_id;
    let live = sessions
        .live_sessions()
        .open(&owner("local"), id)
        .await
        .expect("a session");
    sessions
        .writer()
        .delete(&owner("local"), id)
        .await
        .expect("deleted");
    assert_eq!(
        live.ring.close_reason(),
        Some(turnwire_hub::RingClosed::Deleted)
    );
    assert_eq!(
        sessions
            .live_sessions()
            .row(&owner("local"), id)
            .await
            .err(),
        Some(Error::SessionNotFound)
    );
    assert_eq!(
        sessions.reader().turn(&owner("local"), turn).await.err(),
        Some(Error::TurnNotFound)
    );
    assert!(
        live.catch_up(
            live.sequencer.last(),
            &EventFilter::full(),
            turnwire_event::fold::replay::FinishedReplay::Ends,
            10
        )
        .await
        .is_err()
    );
}

/// A turn that never ends by itself, and is cancelled when the last watcher leaves.
async fn cancelled_when_left(
    dir: &std::path::Path,
    grace_ms: u64,
) -> (SessionService, Arc<LiveSession>) {
    let sessions = start_service(
        dir,
        Options::default(),
        producer_fn(|_| std::future::pending()),
    )
    .await;
    let id = new_session(&sessions).await;
    let refused = SubmitRequest {
        on_disconnect: OnDisconnect::Cancel,
        disconnect_grace_ms: grace_ms,
        ..text_request("hi")
    };
    let accepted = submit(&sessions, &owner("local"), id, refused).await;
    accepted.expect("accepted");
    let live = sessions.live_sessions().open(&owner("local"), id).await;
    (sessions, live.expect("a session"))
}

#[tokio::test]
async fn disconnect_cancels_after_last_watcher_and_grace() {
    let dir = tempfile::tempdir().expect("a folder");
    let (sessions, live) = cancelled_when_left(dir.path(), 60).await;
    let id = live.id;
    let (one, two) = (WatchGuard::new(&live), WatchGuard::new(&live));
    drop(one);
    tokio::time::sleep(Duration::from_millis(120)).await;
    assert!(live.current_turn().is_some(), "one still watches");
    drop(two);
    let back = WatchGuard::new(&live);
    tokio::time::sleep(Duration::from_millis(120)).await;
    assert!(
        live.current_turn().is_some(),
        "someone came back within the grace"
    );
    drop(back);
    let events = wait_for_end(&sessions, id).await;
    let Some(Body::TurnCancelled(end)) = events
        .iter()
        .rev()
        .find_map(|e| matches!(e.body, Body::TurnCancelled(_)).then(|| e.body.clone()))
    else {
        panic!("a cancel")
    };
    assert_eq!(end.reason, "client_disconnected");
}

#[tokio::test]
async fn grace_period_starts_at_its_own_departure() {
    let dir = tempfile::tempdir().expect("a folder");
    let (sessions, live) = cancelled_when_left(dir.path(), 2_000).await;
    let id = live.id;
    drop(WatchGuard::new(&live));
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    drop(WatchGuard::new(&live));
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    let refused = |events: &[Event]| event_names(events).contains(&"turn.cancel_requested");
    assert!(
        !refused(&read_log(&sessions, id).await),
        "the first leaving's grace is over, the second's is not"
    );
    assert!(refused(&wait_for_end(&sessions, id).await));
}

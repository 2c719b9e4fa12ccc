//! Cancels by session and by idempotency key: of the running turn, of a queued one, and of a submit
//! that has not arrived; and waiting for the end.

use std::time::Duration;

use turnwire_event::code::{OnBusy, TurnState};
use turnwire_event::{Body, SessionId};
use turnwire_session::{
    Error, IdempotencyKey, Options, SessionService, SubmitRequest, SubmitTarget, SubmittedTurn,
};

use crate::stage::*;

const ROUTES: &[&str] = &["turns", "chat"];
const LONG_LIMIT: Duration = Duration::from_secs(30);

/// The events of a turn that was cancelled before it ran.
const NOTHING: [&str; 4] = [
    "turn.started",
    "turn.cancel_requested",
    "dispatch.traced",
    "turn.cancelled",
];

async fn keyed(
    sessions: &SessionService,
    id: SessionId,
    submit: SubmitRequest,
    (route, name): (&'static str, &str),
) -> Result<SubmittedTurn, Error> {
    let key = Some(IdempotencyKey {
        route,
        key: name.to_owned(),
        body_sha256: [1; 32],
    });
    let place = SubmitTarget::Existing(id);
    sessions
        .submitter()
        .submit(&owner("local"), place, submit, key)
        .await
}

#[tokio::test]
async fn cancel_running_cancels_the_current_turn_or_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_gate, act) = Turnstile::new();
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let (id, of) = (new_session(&sessions).await, owner("local"));
    assert_eq!(
        sessions.canceller().cancel_running(&of, id, None).await,
        Ok(None)
    );
    let turn = submit(&sessions, &of, id, text_request("hi"))
        .await
        .expect("accepted");
    let foreign = sessions
        .canceller()
        .cancel_running(&owner("eve"), id, None)
        .await;
    assert_eq!(foreign, Err(Error::SessionNotFound));
    let canceller = sessions.canceller();
    let stopped = canceller.cancel_running(&of, id, Some("enough".into()));
    let stopped = stopped.await.expect("asked");
    assert_eq!(stopped, Some((turn.turn_id, TurnState::Cancelling)));
    let row = sessions
        .canceller()
        .wait_for_end(&of, turn.turn_id, LONG_LIMIT)
        .await;
    let row = row.expect("a turn").expect("an end");
    assert_eq!(row.state, TurnState::Cancelled);
    let events = read_log(&sessions, id).await;
    assert_eq!(event_names(&events), NOTHING);
    let Body::TurnCancelled(end) = terminal_of(&events, turn.turn_id) else {
        panic!("{events:?}");
    };
    assert_eq!(end.reason, "enough");
    assert_eq!(
        sessions.canceller().cancel_running(&of, id, None).await,
        Ok(None)
    );
}

#[tokio::test]
async fn two_waits_for_one_end_return_the_same_row() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_gate, act) = Turnstile::new();
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let (id, of) = (new_session(&sessions).await, owner("local"));
    let turn = submit(&sessions, &of, id, text_request("hi"))
        .await
        .expect("accepted")
        .turn_id;
    // The turn still runs: the wait timed out.
    let waited = sessions
        .canceller()
        .wait_for_end(&of, turn, Duration::from_millis(30))
        .await;
    assert_eq!(waited, Ok(None));
    let waits = [(); 2].map(|()| {
        let (sessions, of) = (sessions.clone(), of.clone());
        tokio::spawn(async move {
            sessions
                .canceller()
                .cancel(&of, turn, None)
                .await
                .expect("asked");
            sessions
                .canceller()
                .wait_for_end(&of, turn, LONG_LIMIT)
                .await
        })
    });
    let [one, two] = waits;
    let (one, two) = (one.await.expect("a task"), two.await.expect("a task"));
    assert_eq!(one, two);
    assert_eq!(
        one.expect("a turn").expect("an end").state,
        TurnState::Cancelled
    );
    let again = sessions
        .canceller()
        .wait_for_end(&of, turn, Duration::ZERO)
        .await;
    assert!(again.expect("a turn").is_some());
    let foreign = sessions
        .canceller()
        .wait_for_end(&owner("eve"), turn, LONG_LIMIT)
        .await;
    assert_eq!(foreign, Err(Error::TurnNotFound));
    assert_eq!(event_names(&read_log(&sessions, id).await), NOTHING);
}

#[tokio::test]
async fn queued_turn_is_withdrawn_and_its_end_awaited() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gate, act) = Turnstile::new();
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let (id, of) = (new_session(&sessions).await, owner("local"));
    submit(&sessions, &of, id, text_request("0"))
        .await
        .expect("accepted");
    let waiting = request_on_busy(OnBusy::Enqueue, "1");
    let waiting = keyed(&sessions, id, waiting, ("turns", "k"))
        .await
        .expect("accepted");
    let canceller = sessions.canceller();
    let stopped = canceller.cancel_submit(&of, id, (ROUTES, "k".into()), None);
    assert_eq!(
        stopped.await,
        Ok(Some((waiting.turn_id, TurnState::Cancelled)))
    );
    let row = sessions
        .canceller()
        .wait_for_end(&of, waiting.turn_id, LONG_LIMIT)
        .await;
    assert!(row.expect("a turn").is_some());
    gate.open(2);
    let events = wait_for_terminals(&sessions, id, 2).await;
    assert_each_ends_once(&events);
    assert_eq!(gate.ran(), ["0"]);
}

#[tokio::test]
async fn early_cancel_stops_its_turn_before_it_runs() {
    for route in ROUTES {
        let dir = tempfile::tempdir().expect("a folder");
        let (gate, act) = Turnstile::new();
        let sessions = start_service(dir.path(), Options::default(), act).await;
        let (id, of) = (new_session(&sessions).await, owner("local"));
        let key = || (ROUTES, "k".to_owned());
        let eve = owner("eve");
        let canceller = sessions.canceller();
        let foreign = canceller.cancel_submit(&eve, id, key(), None);
        assert_eq!(foreign.await, Err(Error::SessionNotFound));
        let canceller = sessions.canceller();
        let stop = canceller.cancel_submit(&of, id, key(), Some("too late".into()));
        assert_eq!(stop.await, Ok(None));
        let turn = keyed(&sessions, id, text_request("hi"), (route, "k"))
            .await
            .expect("accepted all the same");
        assert_eq!(turn.state, TurnState::Cancelling);
        let row = sessions
            .canceller()
            .wait_for_end(&of, turn.turn_id, LONG_LIMIT)
            .await;
        assert_eq!(
            row.expect("a turn").expect("an end").state,
            TurnState::Cancelled
        );
        let events = read_log(&sessions, id).await;
        assert_eq!(event_names(&events), NOTHING);
        let Body::TurnCancelled(end) = terminal_of(&events, turn.turn_id) else {
            panic!("{events:?}");
        };
        assert_eq!(end.reason, "too late");
        assert!(gate.ran().is_empty(), "its producer was never asked");
        // The early cancel is used: a submit with another key runs, a repeated one returns its turn.
        gate.open(1);
        let next = keyed(&sessions, id, text_request("next"), (route, "l"))
            .await
            .expect("accepted");
        assert_eq!(next.state, TurnState::Running);
        let again = keyed(&sessions, id, text_request("hi"), (route, "k"))
            .await
            .expect("answered");
        assert_eq!((again.turn_id, again.repeated), (turn.turn_id, true));
        wait_for_terminals(&sessions, id, 2).await;
        assert_eq!(gate.ran(), ["next"]);
    }
}

#[tokio::test]
async fn early_cancelled_submit_to_a_busy_session_is_withdrawn() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gate, act) = Turnstile::new();
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let (id, of) = (new_session(&sessions).await, owner("local"));
    submit(&sessions, &of, id, text_request("0"))
        .await
        .expect("accepted");
    for (name, on_busy) in [("a", OnBusy::Enqueue), ("b", OnBusy::Interrupt)] {
        let canceller = sessions.canceller();
        let stop = canceller.cancel_submit(&of, id, (ROUTES, name.into()), None);
        assert_eq!(stop.await, Ok(None));
        let turn = keyed(
            &sessions,
            id,
            request_on_busy(on_busy, name),
            ("turns", name),
        )
        .await
        .expect("accepted");
        assert_eq!(turn.state, TurnState::Cancelled);
        assert_eq!(
            turn_state(&sessions, turn.turn_id).await,
            TurnState::Cancelled
        );
    }
    // A submit that may not be queued is refused; its early cancel still waits for it.
    let canceller = sessions.canceller();
    let stop = canceller.cancel_submit(&of, id, (ROUTES, "c".into()), None);
    assert_eq!(stop.await, Ok(None));
    let refused = keyed(&sessions, id, text_request("c"), ("turns", "c")).await;
    assert!(matches!(refused, Err(Error::TurnInFlight(_))));
    gate.open(9);
    wait_for_terminals(&sessions, id, 3).await;
    let turn = keyed(&sessions, id, text_request("c"), ("turns", "c"))
        .await
        .expect("accepted");
    assert_eq!(turn.state, TurnState::Cancelling);
    let events = wait_for_terminals(&sessions, id, 4).await;
    assert_each_ends_once(&events);
    assert_eq!(gate.ran(), ["0"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_cancel_and_submit_end_in_a_cancelled_turn() {
    let dir = tempfile::tempdir().expect("a folder");
    // No turn ends by itself: a lost cancel would leave its turn running.
    let (_gate, act) = Turnstile::new();
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let of = owner("local");
    let mut before = 0;
    for round in 0..60 {
        let id = new_session(&sessions).await;
        let (a, b, of_a) = (sessions.clone(), sessions.clone(), of.clone());
        let stop = async move {
            a.canceller()
                .cancel_submit(&of_a, id, (ROUTES, "k".into()), None)
                .await
        };
        let come = async move { keyed(&b, id, text_request("hi"), ("turns", "k")).await };
        let (stop, come) = if round % 2 == 0 {
            let stop = tokio::spawn(stop);
            (stop, tokio::spawn(come))
        } else {
            let come = tokio::spawn(come);
            (tokio::spawn(stop), come)
        };
        let turn = come.await.expect("a task").expect("accepted").turn_id;
        before += usize::from(stop.await.expect("a task").expect("accepted").is_none());
        let row = sessions
            .canceller()
            .wait_for_end(&of, turn, LONG_LIMIT)
            .await;
        let row = row.expect("a turn").expect("an end");
        assert_eq!(row.state, TurnState::Cancelled);
        assert_eq!(
            event_names(&read_log(&sessions, id).await),
            NOTHING,
            "round {round}"
        );
    }
    println!("{before} of 60 stops came before their submit");
}

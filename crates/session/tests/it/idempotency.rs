//! Submits with an idempotency key: one turn, however often and however many at once.

use std::collections::HashSet;
use std::time::Duration;

use turnwire_event::code::{OnBusy, TurnState};
use turnwire_event::{Body, SessionId};
use turnwire_session::{
    Error, IdempotencyKey, NewSession, Options, SessionService, SubmitRequest, SubmitTarget,
    SubmittedTurn,
};

use crate::stage::*;

fn key(name: &str, body: u8) -> Option<IdempotencyKey> {
    Some(IdempotencyKey {
        route: "turns",
        key: name.to_owned(),
        body_sha256: [body; 32],
    })
}

fn enqueued(text: &str) -> SubmitRequest {
    SubmitRequest {
        on_busy: OnBusy::Enqueue,
        ..text_request(text)
    }
}

async fn keyed(
    sessions: &SessionService,
    id: SessionId,
    name: &str,
    body: u8,
) -> Result<SubmittedTurn, Error> {
    let submit = enqueued(name);
    sessions
        .submitter()
        .submit(
            &owner("local"),
            SubmitTarget::Existing(id),
            submit,
            key(name, body),
        )
        .await
}

#[tokio::test]
async fn same_key_and_body_return_the_same_turn() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gate, act) = Turnstile::new();
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let id = new_session(&sessions).await;
    let first = keyed(&sessions, id, "a", 1).await.expect("accepted");
    let again = keyed(&sessions, id, "a", 1).await.expect("answered");
    let expected = SubmittedTurn {
        repeated: true,
        ..first.clone()
    };
    assert_eq!(again, expected);
    assert_eq!(
        keyed(&sessions, id, "a", 2).await,
        Err(Error::IdempotencyMismatch)
    );
    let waiting = keyed(&sessions, id, "b", 1).await.expect("accepted");
    let again = keyed(&sessions, id, "b", 1).await.expect("answered");
    assert_eq!(
        (again.turn_id, again.state, again.position),
        (waiting.turn_id, TurnState::Queued, waiting.position)
    );
    gate.open(2);
    wait_for_terminals(&sessions, id, 2).await;
    let done = keyed(&sessions, id, "a", 1).await.expect("answered");
    assert_eq!(
        (done.turn_id, done.state, done.repeated),
        (first.turn_id, TurnState::Completed, true)
    );
    // A key is valid only in its scope.
    let other = new_session(&sessions).await;
    let elsewhere = keyed(&sessions, other, "a", 2).await.expect("accepted");
    assert_ne!(elsewhere.turn_id, first.turn_id);
    let eve = sessions
        .submitter()
        .submit(
            &owner("eve"),
            SubmitTarget::Existing(id),
            text_request("x"),
            key("a", 1),
        )
        .await;
    assert_eq!(eve, Err(Error::SessionNotFound));
}

#[tokio::test]
async fn new_session_with_a_key_is_created_once() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gate, act) = Turnstile::new();
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let make = |body| sessions.submit_new(key("n", body));
    let first = make(1).await.expect("accepted");
    assert_eq!(first.state, TurnState::Running);
    let again = make(1).await.expect("answered");
    assert_eq!(
        (again.session_id, again.turn_id),
        (first.session_id, first.turn_id)
    );
    assert_eq!(make(2).await, Err(Error::IdempotencyMismatch));
    let (all, _) = sessions
        .reader()
        .sessions(&owner("local"), None, 10)
        .await
        .expect("a list");
    assert_eq!(all.len(), 1);
    gate.open(1);
    let events = wait_for_terminals(&sessions, first.session_id, 1).await;
    assert!(matches!(events[0].body, Body::SessionCreated(_)));
    assert!(matches!(events[1].body, Body::TurnStarted(_)));
    assert_eq!(first.position, events[0].id);
    // Deleting the session deletes the key.
    sessions
        .writer()
        .delete(&owner("local"), first.session_id)
        .await
        .expect("deleted");
    let anew = make(2).await.expect("accepted");
    assert_ne!(anew.session_id, first.session_id);
}

trait SubmitNew {
    fn submit_new(
        &self,
        key: Option<IdempotencyKey>,
    ) -> impl Future<Output = Result<SubmittedTurn, Error>>;
}

impl SubmitNew for SessionService {
    async fn submit_new(&self, key: Option<IdempotencyKey>) -> Result<SubmittedTurn, Error> {
        let place = SubmitTarget::New(NewSession::default());
        self.submitter()
            .submit(&owner("local"), place, text_request("hi"), key)
            .await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_submits_with_one_key_are_one_turn() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gate, act) = Turnstile::new();
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let id = new_session(&sessions).await;
    submit(&sessions, &owner("local"), id, text_request("0"))
        .await
        .expect("accepted");
    for place in [Some(id), None] {
        let tasks: Vec<_> = (0..40)
            .map(|_| {
                let sessions = sessions.clone();
                tokio::spawn(async move {
                    let place = place.map_or_else(
                        || SubmitTarget::New(NewSession::default()),
                        SubmitTarget::Existing,
                    );
                    sessions
                        .submitter()
                        .submit(&owner("local"), place, enqueued("crowd"), key("c", 7))
                        .await
                })
            })
            .collect();
        let mut turns = HashSet::new();
        let mut fresh = 0;
        for one in tasks {
            let accepted = one.await.expect("a task").expect("accepted");
            turns.insert(accepted.turn_id);
            fresh += usize::from(!accepted.repeated);
        }
        assert_eq!((turns.len(), fresh), (1, 1));
    }
    gate.open(9);
    assert_eq!(
        started_inputs(&wait_for_terminals(&sessions, id, 2).await),
        ["0", "crowd"]
    );
}

#[tokio::test]
async fn refused_submit_stores_no_key() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gate, act) = Turnstile::new();
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let id = new_session(&sessions).await;
    submit(&sessions, &owner("local"), id, text_request("0"))
        .await
        .expect("accepted");
    let refused = sessions
        .submitter()
        .submit(
            &owner("local"),
            SubmitTarget::Existing(id),
            text_request("1"),
            key("k", 1),
        )
        .await;
    assert!(matches!(refused, Err(Error::TurnInFlight(_))));
    let submitted = keyed(&sessions, id, "k", 2)
        .await
        .expect("another body: the key was not used");
    assert!(!submitted.repeated);
    gate.open(2);
    wait_for_terminals(&sessions, id, 2).await;
}

#[tokio::test]
async fn expired_key_refers_to_no_turn() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gate, act) = Turnstile::new();
    gate.open(9);
    let options = Options {
        // Long enough for two submits on a busy machine.
        idempotency_ttl: Duration::from_millis(2_000),
        ..Options::default()
    };
    let sessions = start_service(dir.path(), options, act).await;
    let id = new_session(&sessions).await;
    let first = keyed(&sessions, id, "a", 1).await.expect("accepted");
    tokio::time::sleep(Duration::from_millis(2_050)).await;
    let second = keyed(&sessions, id, "a", 2).await.expect("accepted anew");
    assert!(!second.repeated);
    assert_ne!(first.turn_id, second.turn_id);
    let again = keyed(&sessions, id, "a", 2).await.expect("answered");
    assert_eq!(again.turn_id, second.turn_id, "the new one took its place");
    wait_for_terminals(&sessions, id, 2).await;
}

#[tokio::test]
async fn key_survives_a_crash_with_its_turn() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_, act) = Turnstile::new();
    let first = start_service(dir.path(), Options::default(), act).await;
    let id = new_session(&first).await;
    let running = keyed(&first, id, "a", 1).await.expect("accepted");
    let waiting = keyed(&first, id, "b", 1).await.expect("accepted");
    let image = copy_store(dir.path());
    let (gate, act) = Turnstile::new();
    gate.open(9);
    let after = start_service(image.path(), Options::default(), act).await;
    for (name, turn) in [("a", running), ("b", waiting)] {
        let again = keyed(&after, id, name, 1).await.expect("answered");
        assert_eq!((again.turn_id, again.repeated), (turn.turn_id, true));
    }
    let events = wait_for_terminals(&after, id, 2).await;
    assert_each_ends_once(&events);
}

/// A submit dropped at any await has accepted the turn with its key, or has no effect.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_submit_is_complete_or_has_no_effect() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gate, act) = Turnstile::new();
    gate.open(100_000);
    let options = Options {
        queue_max: 100,
        ..Options::default()
    };
    let sessions = start_service(dir.path(), options, act).await;
    let me = owner("local");
    let mut dropped = 0;
    for round in 0..150_usize {
        let id = new_session(&sessions).await;
        if round % 3 > 0 {
            submit(&sessions, &me, id, text_request("before"))
                .await
                .expect("accepted");
        }
        let submit_task = SubmitRequest {
            on_busy: if round % 3 == 1 {
                OnBusy::Enqueue
            } else {
                OnBusy::Interrupt
            },
            ..text_request("once")
        };
        let submitter = sessions.submitter();
        let one = submitter.submit(
            &me,
            SubmitTarget::Existing(id),
            submit_task.clone(),
            key("k", 1),
        );
        let patience = async {
            for _ in 0..round / 3 {
                tokio::task::yield_now().await;
            }
        };
        let results = tokio::select! {
            biased;
            done = one => Some(done.expect("accepted")),
            () = patience => None,
        };
        dropped += usize::from(results.is_none());
        let again = sessions
            .submitter()
            .submit(&me, SubmitTarget::Existing(id), submit_task, key("k", 1))
            .await;
        let again = again.expect("accepted or answered");
        if let Some(results) = results {
            assert_eq!((results.turn_id, again.repeated), (again.turn_id, true));
        }
        let events = wait_for_terminals(&sessions, id, 1 + usize::from(round % 3 > 0)).await;
        assert_each_ends_once(&events);
        let first_submit = started_inputs(&events)
            .iter()
            .filter(|said| *said == "once")
            .count();
        assert_eq!(first_submit, 1, "round {round}");
    }
    assert!(dropped > 0, "some were dropped");
}

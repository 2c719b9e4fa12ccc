//! Queued turns: in order, bounded, durable, withdrawn by a cancel, started without a caller.

use std::sync::Arc;

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, SharedString, Unit};
use turnwire_event::code::{OnBusy, Phase, TurnState};
use turnwire_event::{Body, ContentBlock, IdGenerator, Position, Role, TurnId, Ulid, metric};
use turnwire_log::reserve::DiskReserve;
use turnwire_session::{CancelOutcome, LiveSession};
use turnwire_session::{Error, Options, SystemIdGenerator};

use crate::stage::*;

#[tokio::test]
async fn queued_turns_run_one_at_a_time_in_order() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gate, act) = Turnstile::new();
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let id = new_session(&sessions).await;
    let first = enqueue(&sessions, id, "1").await;
    assert_eq!(
        first.state,
        TurnState::Running,
        "an idle session is not busy"
    );
    let mut accepted = Vec::new();
    for text in ["2", "3", "4"] {
        let turn = enqueue(&sessions, id, text).await;
        assert_eq!(turn.state, TurnState::Queued);
        assert_eq!(turn_state(&sessions, turn.turn_id).await, TurnState::Queued);
        accepted.push(turn);
    }
    let refused = submit(&sessions, &owner("local"), id, text_request("5")).await;
    assert_eq!(refused, Err(Error::TurnInFlight(first.turn_id)));
    gate.open(4);
    let events = wait_for_terminals(&sessions, id, 4).await;
    assert_each_ends_once(&events);
    assert_eq!(started_inputs(&events), ["1", "2", "3", "4"]);
    assert_eq!(gate.ran(), ["1", "2", "3", "4"]);
    for turn in &accepted {
        let row = sessions.reader().turn(&owner("local"), turn.turn_id).await;
        let row = row.expect("a turn");
        let start = events.iter().find(|e| e.turn_id == Some(turn.turn_id));
        assert_eq!(row.started, start.expect("a start").id);
        assert!(
            turn.position < row.started,
            "a cursor before the whole turn"
        );
        assert_eq!(row.state, TurnState::Completed);
        assert_eq!(row.wire_version.as_deref(), Some("0.5"));
    }
    let Some(Body::TurnStarted(start)) = events
        .iter()
        .map(|e| &e.body)
        .find(|b| matches!(b, Body::TurnStarted(_)))
    else {
        panic!("a start")
    };
    assert_eq!(start.wire_version.as_deref(), Some("0.5"));
}

#[tokio::test]
async fn full_queue_refuses_submits_and_interrupts() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gate, act) = Turnstile::new();
    let options = Options {
        queue_max: 2,
        ..Options::default()
    };
    let sessions = start_service(dir.path(), options, act).await;
    let id = new_session(&sessions).await;
    let running = enqueue(&sessions, id, "1").await;
    enqueue(&sessions, id, "2").await;
    enqueue(&sessions, id, "3").await;
    for on_busy in [OnBusy::Enqueue, OnBusy::Interrupt] {
        let refused = submit(
            &sessions,
            &owner("local"),
            id,
            request_on_busy(on_busy, "4"),
        )
        .await;
        assert_eq!(refused, Err(Error::QueueFull));
    }
    assert_eq!(
        turn_state(&sessions, running.turn_id).await,
        TurnState::Running
    );
    gate.open(3);
    let events = wait_for_terminals(&sessions, id, 3).await;
    assert_eq!(started_inputs(&events), ["1", "2", "3"]);
    assert!(!event_names(&events).contains(&"turn.cancel_requested"));
}

#[tokio::test]
async fn interrupt_cancels_the_running_turn_and_runs_next() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gate, act) = Turnstile::new();
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let id = new_session(&sessions).await;
    let idle = submit(
        &sessions,
        &owner("local"),
        id,
        request_on_busy(OnBusy::Interrupt, "1"),
    )
    .await;
    let running = idle.expect("accepted");
    assert_eq!(running.state, TurnState::Running);
    enqueue(&sessions, id, "2").await;
    let urgent = submit(
        &sessions,
        &owner("local"),
        id,
        request_on_busy(OnBusy::Interrupt, "3"),
    )
    .await;
    assert_eq!(urgent.expect("accepted").state, TurnState::Queued);
    gate.open(2);
    let events = wait_for_terminals(&sessions, id, 3).await;
    assert_each_ends_once(&events);
    assert_eq!(started_inputs(&events), ["1", "3", "2"]);
    let Body::TurnCancelled(end) = terminal_of(&events, running.turn_id) else {
        panic!("a cancel")
    };
    assert_eq!(end.reason, "interrupted");
}

/// An id generator that records its last id.
#[derive(Default)]
struct Remembering(parking_lot::Mutex<Option<Ulid>>);

impl Remembering {
    fn last(&self) -> Ulid {
        self.0.lock().expect("an id")
    }
}

impl IdGenerator for Remembering {
    fn ulid(&self) -> Ulid {
        let id = SystemIdGenerator.ulid();
        *self.0.lock() = Some(id);
        id
    }
}

#[tokio::test]
async fn withdrawn_interrupt_cancels_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gate, act) = Turnstile::new();
    let id_generator = Arc::new(Remembering::default());
    let parts = (
        id_generator.clone() as _,
        DiskReserve::new(dir.path().join("reserve"), 0),
    );
    let sessions = start_service_with(dir.path(), Options::default(), act, parts).await;
    let id = new_session(&sessions).await;
    let running = enqueue(&sessions, id, "1").await.turn_id;
    let me = owner("local");
    let live = sessions
        .live_sessions()
        .open(&me, id)
        .await
        .expect("a session");
    let urgent = submit(&sessions, &me, id, request_on_busy(OnBusy::Interrupt, "2"));
    tokio::pin!(urgent);
    // It is queued and its row may not be written: no other task has run since.
    let urgent_id = tokio::select! {
        biased;
        accepted = &mut urgent => panic!("{accepted:?}"),
        () = std::future::ready(()) => {
            let at = live.sequencer.last();
            let turn = TurnId(id_generator.last());
            let withdrawn = sessions.canceller().request(&live, turn, Some("no"));
            assert!(matches!(withdrawn, CancelOutcome::Withdrawn(end) if end > at), "{withdrawn:?}");
            turn
        }
    };
    assert_eq!(urgent.await.expect("accepted").turn_id, urgent_id);
    gate.open(1);
    let events = wait_for_terminals(&sessions, id, 2).await;
    let end = terminal_of(&events, running);
    assert!(matches!(end, Body::TurnCompleted(_)), "{end:?}");
}

/// A turn in the middle of a message with a tool, which continues on notification.
fn in_a_message(
    go: Arc<tokio::sync::Notify>,
    shown: Arc<parking_lot::Mutex<Vec<(Role, String)>>>,
) -> WorkFn {
    producer_fn(move |turn| {
        let (go, shown) = (go.clone(), shown.clone());
        async move {
            let budget = turnwire_event::port::HistoryBudget {
                messages_max: 50,
                bytes_max: 100_000,
            };
            let past = turn.history.recent(budget).await.expect("a past");
            *shown.lock() = past.iter().map(|m| (m.role, m.text())).collect();
            if turn.input.content == [ContentBlock::text("next")] {
                return OK;
            }
            let made = ids();
            start_message(&turn, made);
            go.notified().await;
            let end = turnwire_event::port::MessageEnd {
                provider_state: turnwire_event::ProviderState::default(),
                provider_response_id: None,
                call_id: made.0,
                message_id: made.1,
                stop_reason: turnwire_event::StopReason::EndTurn,
                usage: turnwire_event::TokenUsage::default(),
                failure: Some(turnwire_event::code::LlmErrorClass::Transport),
                tools: Vec::new(),
            };
            turn.emitter.complete(end).expect("accepted");
            OK
        }
    })
}

#[tokio::test]
async fn withdrawing_a_queued_turn_leaves_the_running_one() {
    let dir = tempfile::tempdir().expect("a folder");
    let (go, shown) = (Arc::new(tokio::sync::Notify::new()), Arc::default());
    let act = in_a_message(go.clone(), Arc::clone(&shown));
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let id = new_session(&sessions).await;
    let running = enqueue(&sessions, id, "first").await;
    let queued = enqueue(&sessions, id, "second").await;
    let live = sessions
        .live_sessions()
        .open(&owner("local"), id)
        .await
        .expect("a session");
    while live.snapshot(10).await.expect("a snapshot").messages.len() < 2 {
        tokio::task::yield_now().await;
    }
    let state = sessions
        .canceller()
        .cancel(
            &owner("local"),
            queued.turn_id,
            Some("changed my mind".into()),
        )
        .await;
    assert_eq!(state, Ok(TurnState::Cancelled));
    let again = sessions
        .canceller()
        .cancel(&owner("local"), queued.turn_id, None)
        .await;
    assert_eq!(again, Ok(TurnState::Cancelled));
    let snapshot = live.snapshot(10).await.expect("a snapshot");
    assert_eq!(snapshot.current_turn, Some(running.turn_id));
    assert_eq!(snapshot.row.turn_count, 2);
    let inputs: Vec<_> = snapshot
        .messages
        .iter()
        .map(|m| (m.role, m.text()))
        .collect();
    let expected = [
        (Role::User, "first".into()),
        (Role::User, "second".into()),
        (Role::Assistant, "half an ".into()),
    ];
    assert_eq!(inputs, expected);
    let events = read_log(&sessions, id).await;
    let of_it: Vec<&Body> = events
        .iter()
        .filter(|e| e.turn_id == Some(queued.turn_id))
        .map(|e| &e.body)
        .collect();
    let [
        Body::TurnStarted(_),
        Body::TurnCancelRequested(asked),
        Body::DispatchTraced(_),
        Body::TurnCancelled(end),
    ] = of_it[..]
    else {
        panic!("{of_it:?}")
    };
    assert_eq!(
        (asked.by.as_str(), asked.reason.as_str()),
        ("user", "changed my mind")
    );
    assert_eq!(
        (end.phase, end.receipt.len(), end.partial.message_id),
        (Phase::Queued, 0, None)
    );
    go.notify_one();
    let events = wait_for_terminals(&sessions, id, 2).await;
    assert_each_ends_once(&events);
    assert!(matches!(
        terminal_of(&events, running.turn_id),
        Body::TurnCompleted(_)
    ));
    while submit(&sessions, &owner("local"), id, text_request("next"))
        .await
        .is_err()
    {
        tokio::task::yield_now().await;
    }
    wait_for_terminals(&sessions, id, 3).await;
    let expected = [
        (Role::User, "first".to_owned()),
        (Role::Assistant, "half an ".into()),
        (Role::User, "second".into()),
        (Role::User, "next".into()),
    ];
    assert_eq!(*shown.lock(), expected, "turn by turn, none forgotten");
}

#[tokio::test]
async fn queued_turn_is_withdrawn_once() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gate, act) = Turnstile::new();
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let id = new_session(&sessions).await;
    enqueue(&sessions, id, "1").await;
    let queued = enqueue(&sessions, id, "2").await.turn_id;
    let live = sessions
        .live_sessions()
        .open(&owner("local"), id)
        .await
        .expect("a session");
    let first = sessions.canceller().request(&live, queued, Some("no"));
    assert!(matches!(first, CancelOutcome::Withdrawn(_)), "{first:?}");
    assert_eq!(
        sessions.canceller().request(&live, queued, Some("no")),
        CancelOutcome::NotRunning
    );
    gate.open(1);
    let events = wait_for_terminals(&sessions, id, 2).await;
    assert_each_ends_once(&events);
    assert_eq!(gate.ran(), ["1"]);
}

/// Records the last position of a session when each counter of turns is incremented.
struct PositionRecorder {
    live: Arc<LiveSession>,
    counted: parking_lot::Mutex<Vec<(String, Position)>>,
}

impl metrics::Recorder for PositionRecorder {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let at = self.live.sequencer.last();
        self.counted.lock().push((key.name().to_owned(), at));
        Counter::noop()
    }
    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }
    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[tokio::test]
async fn end_of_a_queued_turn_is_counted_before_it_is_emitted() {
    let dir = tempfile::tempdir().expect("a folder");
    let (sessions, _gate) = turnstile_service(dir.path()).await;
    let id = new_session(&sessions).await;
    enqueue(&sessions, id, "1").await;
    let queued = enqueue(&sessions, id, "2").await.turn_id;
    let live = sessions.live_sessions().open(&owner("local"), id).await;
    let live = live.expect("a session");
    let before = live.sequencer.last();
    let recorder = PositionRecorder {
        live: live.clone(),
        counted: Default::default(),
    };
    let withdrawn = metrics::with_local_recorder(&recorder, || {
        sessions.canceller().request(&live, queued, Some("no"))
    });
    assert!(matches!(withdrawn, CancelOutcome::Withdrawn(end) if end > before));
    let counted = recorder.counted.lock();
    for name in [metric::TURN_STARTED_TOTAL, metric::TURN_CANCELLED_TOTAL] {
        let at = counted.iter().find(|(counted, _)| counted == name);
        assert_eq!(at.map(|(_, at)| *at), Some(before), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn cancel_and_start_of_a_queued_turn_exclude_each_other() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gate, act) = Turnstile::new();
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let (mut withdrawn, mut stopped) = (0, 0);
    for round in 0..60 {
        let id = new_session(&sessions).await;
        let running = enqueue(&sessions, id, "1").await.turn_id;
        let queued = enqueue(&sessions, id, "2").await.turn_id;
        let live = sessions
            .live_sessions()
            .open(&owner("local"), id)
            .await
            .expect("a session");
        let (other, canceller) = (live.clone(), sessions.canceller());
        let stop = tokio::spawn(async move { canceller.request(&other, running, Some("x")) });
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        // At any moment the turn is queued or runs: the cancel finds it.
        match sessions.canceller().request(&live, queued, Some("y")) {
            CancelOutcome::Withdrawn(_) => withdrawn += 1,
            CancelOutcome::Requested(_) => stopped += 1,
            other => panic!("{other:?}"),
        }
        stop.await.expect("asked");
        let events = wait_for_terminals(&sessions, id, 2).await;
        assert_each_ends_once(&events);
        assert!(matches!(
            terminal_of(&events, queued),
            Body::TurnCancelled(_)
        ));
    }
    assert_eq!(withdrawn + stopped, 60);
    assert!(withdrawn > 0, "the first rounds come before the start");
    gate.open(1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_submits_run_once_each_in_accepted_order() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gate, act) = Turnstile::new();
    gate.open(1_000);
    let options = Options {
        queue_max: 64,
        ..Options::default()
    };
    let sessions = start_service(dir.path(), options, act).await;
    let id = new_session(&sessions).await;
    let crowd: Vec<_> = (0..32)
        .map(|n| {
            let sessions = sessions.clone();
            tokio::spawn(async move { enqueue(&sessions, id, &n.to_string()).await.turn_id })
        })
        .collect();
    let mut turns = Vec::new();
    for one in crowd {
        turns.push(one.await.expect("accepted"));
    }
    let events = wait_for_terminals(&sessions, id, 32).await;
    assert_each_ends_once(&events);
    // Ids are minted under the lock that accepts, in increasing order.
    turns.sort();
    let starts = events
        .iter()
        .filter(|e| matches!(e.body, Body::TurnStarted(_)));
    assert_eq!(starts.filter_map(|e| e.turn_id).collect::<Vec<_>>(), turns);
    assert_eq!(gate.ran(), started_inputs(&events));
    let mut running = 0;
    for event in events.iter().filter(|e| e.turn_id.is_some()) {
        running += match event.body.kind() {
            kind if kind.is_terminal() => -1,
            turnwire_event::EventType::TurnStarted => 1,
            _ => 0,
        };
        assert!(running <= 1, "one turn in flight");
    }
}

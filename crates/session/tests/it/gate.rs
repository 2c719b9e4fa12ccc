//! The gate of a turn: events that it holds back keep their order, are emitted when due, and are
//! neither lost nor after the terminal.

use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;
use turnwire_event::body::feedback::FeedbackRecorded;
use turnwire_event::body::{mcp, stream};
use turnwire_event::code::{ErrorCode, TurnState, TurnStatus};
use turnwire_event::port::{
    Emission, EmitError, EmitRefusal, EventGate, GateOutput, MessageEnd, TurnOutcome,
};
use turnwire_event::{Actor, Body, Event, EventType, Position, StopReason, TokenUsage, TypeSet};
use turnwire_log::LogWriter;
use turnwire_log::reserve::DiskReserve;
use turnwire_session::{
    EventLogQuery, LiveSession, Options, SessionService, SystemIdGenerator, TurnCanceller,
};

use crate::stage::*;

type Facts = Arc<Mutex<Vec<String>>>;

fn note(facts: &Facts, fact: impl Into<String>) {
    facts.lock().push(fact.into());
}

async fn run(sessions: &SessionService) -> Vec<Event> {
    let id = new_session(sessions).await;
    let accepted = submit(sessions, &owner("local"), id, text_request("hi")).await;
    accepted.expect("accepted");
    wait_for_end(sessions, id).await
}

/// Lets other tasks run; no time passes.
async fn others() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn held_event_is_emitted_when_due_by_one_timer() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gates, seen) = holding_gates();
    let facts = Facts::default();
    let (results, at) = (facts.clone(), seen.clone());
    let act = producer_fn(move |turn| {
        let (facts, seen) = (results.clone(), at.clone());
        async move {
            tokio::time::pause();
            for name in ["first", "second"] {
                emit(&turn, status(name));
                tokio::time::advance(Duration::from_millis(100)).await;
                // Within the window, which does not restart.
                emit(&turn, status(name));
                tokio::time::advance(Duration::from_millis(49)).await;
                others().await;
                note(&facts, format!("{:?}", seen.lock().flushed));
                // Timers count whole milliseconds.
                tokio::time::advance(Duration::from_millis(2)).await;
                others().await;
                note(&facts, format!("{:?}", seen.lock().flushed));
                // Much later: nothing is held, and there is no flush.
                tokio::time::advance(Duration::from_secs(5)).await;
                others().await;
            }
            tokio::time::resume();
            OK
        }
    });
    let sessions = service_with_gates(dir.path(), gates, act).await;
    let events = run(&sessions).await;
    assert_eq!(*facts.lock(), ["[]", "[2]", "[2]", "[2, 2]"]);
    let names = event_names(&events);
    assert_eq!(names[1..5], ["status.emitted"; 4]);
    assert_eq!(names[5..], ["dispatch.traced", "turn.completed"]);
}

#[tokio::test]
async fn position_of_a_held_event_is_the_newest_one() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gates, _) = holding_gates();
    let places: Arc<Mutex<Vec<Position>>> = Arc::default();
    let results = places.clone();
    let act = producer_fn(move |turn| {
        let places = results.clone();
        async move {
            for body in [recorded(), status("one"), status("two")] {
                let at = turn.emitter.emit(Emission::new(Actor::ORCHESTRATOR, body));
                places.lock().push(at.expect("accepted"));
            }
            let last = *places.lock().last().expect("a place");
            turn.emitter.committed(last).await.expect("durable");
            OK
        }
    });
    let sessions = service_with_gates(dir.path(), gates, act).await;
    let events = run(&sessions).await;
    let recorded = events
        .iter()
        .find(|event| matches!(event.body, Body::FeedbackRecorded(_)));
    let at = recorded.expect("an event").id;
    assert_eq!(*places.lock(), [at, at, at]);
}

fn recorded() -> Body {
    Body::FeedbackRecorded(FeedbackRecorded {
        message_id: None,
        turn_id: None,
        rating: "1".into(),
        comment: None,
    })
}

#[tokio::test]
async fn message_and_turn_end_after_held_events() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gates, seen) = holding_gates();
    let act = producer_fn(move |turn| async move {
        let (call_id, message_id, tool) = ids();
        start_message(&turn, (call_id, message_id, tool));
        emit(&turn, status("one"));
        let end = MessageEnd {
            provider_state: turnwire_event::ProviderState::default(),
            provider_response_id: None,
            call_id,
            message_id,
            stop_reason: StopReason::MaxTokens,
            usage: TokenUsage::default(),
            failure: Some(turnwire_event::code::LlmErrorClass::Internal),
            tools: Vec::new(),
        };
        turn.emitter.complete(end).expect("accepted");
        emit(&turn, status("two"));
        OK
    });
    let sessions = service_with_gates(dir.path(), gates, act).await;
    let events = run(&sessions).await;
    assert_eq!(
        event_names(&events),
        [
            "turn.started",
            "llm.call_started",
            "status.emitted",
            "llm.call_failed",
            "status.emitted",
            "dispatch.traced",
            "turn.completed"
        ]
    );
    assert_eq!(seen.lock().flushed, [1, 1]);
}

// D-79
#[tokio::test]
async fn cancel_follows_held_events_and_hides_later_ones() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gates, _) = holding_gates();
    let live: Arc<OnceLock<(Arc<LiveSession>, TurnCanceller)>> = Arc::default();
    let go = Arc::new(Notify::new());
    let facts = Facts::default();
    let shared = (live.clone(), go.clone(), facts.clone());
    let act = producer_fn(move |turn| {
        let (live, go, facts) = shared.clone();
        async move {
            go.notified().await;
            let (live, canceller) = live.get().expect("a session");
            emit(&turn, status("before"));
            // No await from here on: the turn continues for a moment after the cancel request.
            canceller.request(live, turn.input.turn_id, Some("enough"));
            for body in shown_to_clients() {
                let refused = turn.emitter.emit(Emission::new(Actor::ORCHESTRATOR, body));
                note(&facts, format!("{:?}", refused.expect_err("refused")));
            }
            std::future::pending().await
        }
    });
    let sessions = service_with_gates(dir.path(), gates, act).await;
    let id = new_session(&sessions).await;
    let live_session = sessions
        .live_sessions()
        .open(&owner("local"), id)
        .await
        .expect("a session");
    assert!(live.set((live_session, sessions.canceller())).is_ok());
    let accepted = submit(&sessions, &owner("local"), id, text_request("hi")).await;
    accepted.expect("accepted");
    go.notify_one();
    let events = wait_for_end(&sessions, id).await;
    let refused = format!("{:?}", EmitError::Refused(EmitRefusal::Cancelled));
    assert_eq!(*facts.lock(), vec![refused; shown_to_clients().len()]);
    assert_eq!(
        event_names(&events),
        [
            "turn.started",
            "status.emitted",
            "turn.cancel_requested",
            "dispatch.traced",
            "turn.cancelled"
        ]
    );
}

/// One event of each type that clients read while a turn runs.
fn shown_to_clients() -> Vec<Body> {
    let (_, message_id, tool_use_id) = ids();
    let server = || mcp::McpServerRef {
        server: "files".into(),
    };
    vec![
        status("after"),
        Body::TextDelta(stream::TextDelta {
            message_id,
            content_block_index: 0,
            text: "more".into(),
        }),
        Body::ToolUseStart(stream::ToolUseStart {
            message_id,
            content_block_index: 0,
            tool_use_id,
            tool_name: "echo".into(),
        }),
        Body::McpListToolsStarted(server()),
        Body::McpListToolsCompleted(mcp::McpToolsListed {
            server: "files".into(),
            tool_count: 1,
        }),
        Body::McpSessionStarted(server()),
        Body::McpSessionProgressed(mcp::McpCallProgressed {
            server: "files".into(),
            progress: 0.5,
            total: None,
        }),
    ]
}

#[tokio::test]
async fn panic_and_shutdown_emit_held_events() {
    for panics in [true, false] {
        let dir = tempfile::tempdir().expect("a folder");
        let (gates, seen) = holding_gates();
        let act = producer_fn(move |turn| async move {
            emit(&turn, status("held"));
            assert!(!panics, "as the test wants");
            std::future::pending().await
        });
        let sessions = service_with_gates(dir.path(), gates, act).await;
        let id = new_session(&sessions).await;
        let accepted = submit(&sessions, &owner("local"), id, text_request("hi")).await;
        accepted.expect("accepted");
        while seen.lock().taken == 0 {
            tokio::task::yield_now().await;
        }
        sessions.drain(Duration::ZERO).await;
        let events = wait_for_end(&sessions, id).await;
        assert_eq!(
            event_names(&events),
            [
                "turn.started",
                "status.emitted",
                "dispatch.traced",
                "turn.completed"
            ]
        );
    }
}

/// Keeps the writer busy until the sender sends or is dropped.
fn occupy(writer: &Arc<LogWriter>) -> mpsc::Sender<()> {
    let (free, freed) = mpsc::channel::<()>();
    let (busy, is_busy) = mpsc::channel();
    writer.run(Box::new(move || {
        busy.send(()).expect("the test");
        let _ = freed.recv_timeout(Duration::from_secs(20));
        Ok(())
    }));
    is_busy.recv().expect("the writer");
    free
}

#[tokio::test]
async fn full_outbox_refuses_events_but_not_the_ending() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gates, seen) = holding_gates();
    let (store, writer) = writer(dir.path(), DiskReserve::new(dir.path().join("reserve"), 0));
    let facts: Arc<Mutex<Option<(usize, usize)>>> = Arc::default();
    let shared = (facts.clone(), seen.clone(), writer.clone());
    let act = producer_fn(move |turn| {
        let (facts, seen, writer) = shared.clone();
        async move {
            let _busy = occupy(&writer);
            emit(&turn, status("held"));
            for taken in 1.. {
                match turn.emitter.emit(Emission::new(Actor::USER, recorded())) {
                    Ok(_) => {}
                    Err(EmitError::Full(back)) => {
                        assert_eq!(back.body, recorded(), "it comes back");
                        *facts.lock() = Some((taken, seen.lock().taken));
                        break;
                    }
                    Err(EmitError::Refused(refused)) => panic!("{refused}"),
                }
            }
            // The turn ends now, with the outbox full and a status held.
            OK
        }
    });
    let producer = Arc::new(TestProducer(act, gates));
    let sessions = service_over(
        (store, writer),
        Options::default(),
        Arc::new(SystemIdGenerator),
        producer,
    )
    .await;
    let id = new_session(&sessions).await;
    let accepted = submit(&sessions, &owner("local"), id, text_request("hi")).await;
    let turn = accepted.expect("accepted").turn_id;
    while turn_state(&sessions, turn).await != TurnState::Completed {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The row is in the store a moment before the events can be read.
    let live = sessions
        .live_sessions()
        .open(&owner("local"), id)
        .await
        .expect("a session");
    let last = live.sequencer.last().seq;
    live.sequencer.committed(last).await.expect("committed");
    let (sent, taken) = facts.lock().expect("it was full");
    assert_eq!(taken, sent, "the status and all but the last");
    let but = TypeSet::filterable().iter();
    let but = but.filter(|&kind| kind != EventType::FeedbackRecorded);
    let query = EventLogQuery {
        since: None,
        types: Some(but.collect()),
        limit: 100,
        bytes_max: 16 << 20,
    };
    let page = sessions.reader().events(&owner("local"), id, query).await;
    let events = page.expect("the log").events;
    let kinds: Vec<_> = events.iter().map(|e| e.head.kind.name()).collect();
    assert_eq!(
        kinds,
        [
            "session.created",
            "turn.started",
            "status.emitted",
            "dispatch.traced",
            "turn.completed"
        ]
    );
}

/// A gate that panics where the test says.
struct Broken {
    take: bool,
}

impl EventGate for Broken {
    fn take(&mut self, emission: Emission, _: Instant, out: GateOutput<'_>) {
        assert!(!self.take, "a gate that breaks");
        out(emission, None);
    }
    fn due(&self) -> Option<Instant> {
        None
    }
    fn flush(&mut self, _: GateOutput<'_>) {
        panic!("a gate that breaks");
    }
}

#[tokio::test]
async fn panicking_gate_affects_only_its_turn() {
    for take in [true, false] {
        let dir = tempfile::tempdir().expect("a folder");
        let gates: GateFactory = Arc::new(move || Box::new(Broken { take }));
        let act = producer_fn(|turn| async move {
            emit(&turn, status("one"));
            OK
        });
        let sessions = service_with_gates(dir.path(), gates, act).await;
        let id = new_session(&sessions).await;
        for turns in 1..=2 {
            let accepted = submit(&sessions, &owner("local"), id, text_request("hi")).await;
            accepted.expect("accepted");
            let events = wait_for_terminals(&sessions, id, turns).await;
            assert_each_ends_once(&events);
            let Some(Body::TurnCompleted(end)) = events.last().map(|e| &e.body) else {
                panic!("a terminal")
            };
            let expected = if take {
                TurnOutcome {
                    cancelled: None,
                    reason: None,
                    status: TurnStatus::Failed,
                    error: Some(ErrorCode::InternalError.into()),
                }
            } else {
                OK
            };
            assert_eq!((end.status, &end.error), (expected.status, &expected.error));
        }
    }
}

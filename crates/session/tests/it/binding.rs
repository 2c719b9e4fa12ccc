//! A turn is bound when it starts: to the versions, the budget and the gate of that moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use turnwire_event::body::turn::BoundVersions;
use turnwire_event::code::{ErrorCode, TurnStatus};
use turnwire_event::port::{BoundTurn, HistoryBudget, TurnInput, TurnProducer};
use turnwire_event::{Body, Event, IdGenerator};
use turnwire_log::reserve::DiskReserve;
use turnwire_session::{Options, SessionService, SystemIdGenerator};

use crate::stage::*;

/// Binds to a version that the test changes; panics at version 0.
struct Versioned {
    version: AtomicU32,
    then: TestProducer,
}

impl TurnProducer for Versioned {
    fn history(&self) -> HistoryBudget {
        self.then.history()
    }
    fn bind(&self, input: &TurnInput) -> BoundTurn {
        let version = self.version.load(Ordering::SeqCst);
        assert!(version > 0, "nothing to bind to");
        BoundTurn {
            experiment_arm: String::new(),
            verticals: Default::default(),
            versions: BoundVersions {
                agent_definition: version.to_string(),
                ..BoundVersions::default()
            },
            ..self.then.bind(input)
        }
    }
}

async fn versioned(dir: &std::path::Path, act: WorkFn) -> (SessionService, Arc<Versioned>) {
    let producer = Arc::new(Versioned {
        version: AtomicU32::new(1),
        then: TestProducer(act, pass_through_gates()),
    });
    let parts = (
        Arc::new(SystemIdGenerator) as Arc<dyn IdGenerator>,
        DiskReserve::new(dir.join("reserve"), 0),
    );
    let sessions = service_with_producer(dir, Options::default(), parts, producer.clone()).await;
    (sessions, producer)
}

/// The versions in `turn.started` and in traces.
fn bound(events: &[Event]) -> (Vec<&str>, Vec<&str>) {
    let starts = events.iter().filter_map(|event| match &event.body {
        Body::TurnStarted(start) => Some(start.versions.agent_definition.as_str()),
        _ => None,
    });
    let traces = events.iter().filter_map(|event| match &event.body {
        Body::DispatchTraced(trace) => Some(trace.agent_definition_version.as_str()),
        _ => None,
    });
    (starts.collect(), traces.collect())
}

// S2-001
#[tokio::test]
async fn queued_turn_is_bound_when_it_starts() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gate, act) = Turnstile::new();
    let (sessions, producer) = versioned(dir.path(), act).await;
    let id = new_session(&sessions).await;
    let running = enqueue(&sessions, id, "1").await;
    enqueue(&sessions, id, "2").await;
    let withdrawn = enqueue(&sessions, id, "3").await;
    assert_eq!(sessions.status().agent_definition(), "1");
    let cancelled = sessions
        .canceller()
        .cancel(&owner("local"), withdrawn.turn_id, None)
        .await;
    cancelled.expect("accepted");
    producer.version.store(2, Ordering::SeqCst);
    gate.open(2);
    let events = wait_for_terminals(&sessions, id, 3).await;
    assert_each_ends_once(&events);
    assert_eq!(bound(&events), (vec!["1", "", "2"], vec!["", "1", "2"]));
    let row = sessions
        .reader()
        .turn(&owner("local"), running.turn_id)
        .await;
    assert_eq!(row.expect("a turn").agent_definition, "1");
    assert_eq!(sessions.status().agent_definition(), "2");
}

#[tokio::test]
async fn panic_while_binding_fails_only_that_turn() {
    let dir = tempfile::tempdir().expect("a folder");
    let (sessions, producer) = versioned(dir.path(), producer_fn(|_| async { OK })).await;
    let id = new_session(&sessions).await;
    producer.version.store(0, Ordering::SeqCst);
    for (count, text) in [(1, "breaks"), (2, "works")] {
        let accepted = submit(&sessions, &owner("local"), id, text_request(text)).await;
        accepted.expect("accepted");
        wait_for_terminals(&sessions, id, count).await;
        producer.version.store(1, Ordering::SeqCst);
    }
    let events = read_log(&sessions, id).await;
    assert_each_ends_once(&events);
    let ends: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.body {
            Body::TurnCompleted(end) => Some((end.status, end.error.as_ref().map(|e| e.code))),
            _ => None,
        })
        .collect();
    assert_eq!(
        ends,
        [
            (TurnStatus::Failed, Some(ErrorCode::InternalError)),
            (TurnStatus::Ok, None)
        ]
    );
    assert_eq!(bound(&events), (vec!["", "1"], vec!["", "1"]));
}

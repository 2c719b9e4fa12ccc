//! Turns that delegate, and workers that run functions of the test.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use turnwire_event::code::TurnKind;
use turnwire_event::port::{TurnContext, TurnOutcome, WorkerEnd, WorkerRefusal};
use turnwire_event::{Event, ProviderState, SessionId};
use turnwire_session::SessionService;

use super::{
    OK, WorkFn, delegate_task, event_names, ids, owner, producer_fn, start_message, stream_message,
    usage_of,
};

pub type WorkerEnds = Arc<Mutex<Vec<Result<WorkerEnd, WorkerRefusal>>>>;

/// A producer whose turns delegate once, and whose workers run `work`.
pub fn delegating_producer<F: Future<Output = TurnOutcome> + Send + 'static>(
    limit: Duration,
    work: impl Fn(TurnContext) -> F + Send + Sync + Clone + 'static,
) -> (WorkFn, WorkerEnds) {
    let ends = WorkerEnds::default();
    let recorded = ends.clone();
    let act = producer_fn(move |turn: TurnContext| {
        let (recorded, work) = (recorded.clone(), work.clone());
        async move {
            if turn.input.kind == TurnKind::Worker {
                return work(turn).await;
            }
            let end = delegate_task(&turn, limit).await;
            recorded.lock().push(end);
            OK
        }
    });
    (act, ends)
}

pub async fn counting_worker(turn: TurnContext) -> TurnOutcome {
    assert_eq!(turn.input.agent.as_deref(), Some("counter"));
    stream_message(
        &turn,
        "one, two, three",
        usage_of(1, 1, 0.0),
        ProviderState::default(),
    );
    OK
}

pub async fn hanging_worker(turn: TurnContext) -> TurnOutcome {
    start_message(&turn, ids());
    std::future::pending().await
}

/// Waits until a session has a worker, and returns its id.
pub async fn wait_for_worker(sessions: &SessionService, parent: SessionId) -> SessionId {
    let worker_id = async {
        loop {
            let workers = sessions
                .reader()
                .workers(&owner("local"), parent, None, 10)
                .await;
            if let Some((worker, Some(_))) = workers.expect("a list").0.pop() {
                return worker.id;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let worker_id = tokio::time::timeout(Duration::from_secs(30), worker_id).await;
    worker_id.expect("a worker begins")
}

pub fn event_named(events: &[Event], name: &str) -> Event {
    let worker_id = events.iter().find(|e| e.body.kind().name() == name);
    worker_id
        .unwrap_or_else(|| panic!("{name} in {:?}", event_names(events)))
        .clone()
}

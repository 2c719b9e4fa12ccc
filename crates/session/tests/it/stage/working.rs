//! Turns that delegate and workers that do as a test says.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use turnwire_event::code::TurnKind;
use turnwire_event::port::{NoWorker, Outcome, TurnContext, WorkerEnd};
use turnwire_event::{Event, Kept, SessionId};
use turnwire_session::SessionService;

use super::{Act, OK, acting, delegate, ids, names, owner, speak, spent, start_message};

pub type Ends = Arc<Mutex<Vec<Result<WorkerEnd, NoWorker>>>>;

/// A producer whose own turns delegate once, and whose workers do as `work` says.
pub fn delegating<F: Future<Output = Outcome> + Send + 'static>(
    limit: Duration,
    work: impl Fn(TurnContext) -> F + Send + Sync + Clone + 'static,
) -> (Act, Ends) {
    let ends = Ends::default();
    let seen = ends.clone();
    let act = acting(move |turn: TurnContext| {
        let (seen, work) = (seen.clone(), work.clone());
        async move {
            if turn.input.kind == TurnKind::Worker {
                return work(turn).await;
            }
            let end = delegate(&turn, limit).await;
            seen.lock().push(end);
            OK
        }
    });
    (act, ends)
}

pub async fn counts(turn: TurnContext) -> Outcome {
    assert_eq!(turn.input.agent.as_deref(), Some("counter"));
    speak(&turn, "one, two, three", spent(1, 1, 0.0), Kept::default());
    OK
}

pub async fn hangs(turn: TurnContext) -> Outcome {
    start_message(&turn, ids());
    std::future::pending().await
}

/// Waits until a session has a worker; gives its id.
pub async fn worker(sessions: &SessionService, parent: SessionId) -> SessionId {
    let found = async {
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
    let found = tokio::time::timeout(Duration::from_secs(30), found).await;
    found.expect("a worker begins")
}

pub fn place(events: &[Event], name: &str) -> Event {
    let found = events.iter().find(|e| e.body.kind().name() == name);
    found
        .unwrap_or_else(|| panic!("{name} in {:?}", names(events)))
        .clone()
}

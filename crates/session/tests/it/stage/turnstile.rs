//! Turns that end when the test permits it, and clients that stream them.

use std::sync::Arc;

use turnwire_event::code::{OnBusy, OnDisconnect};
use turnwire_event::{ContentBlock, SessionId};
use turnwire_session::{
    DisconnectScope, Options, SessionService, StreamGuard, SubmitRequest, SubmitTarget,
    SubmittedTurn,
};

use super::{OK, WorkFn, owner, producer_fn, start_service, text_request};

/// A producer whose turns record their input, and end when the test permits it.
pub struct Turnstile {
    permits: tokio::sync::Semaphore,
    ran: parking_lot::Mutex<Vec<String>>,
}

impl Turnstile {
    pub fn new() -> (Arc<Self>, WorkFn) {
        let gate = Arc::new(Self {
            permits: tokio::sync::Semaphore::new(0),
            ran: parking_lot::Mutex::default(),
        });
        let turnstile = gate.clone();
        let act = producer_fn(move |turn| {
            let turnstile = turnstile.clone();
            async move {
                let text = turn.input.content.first().and_then(ContentBlock::as_text);
                turnstile
                    .ran
                    .lock()
                    .push(text.unwrap_or_default().to_owned());
                turnstile.permits.acquire().await.expect("open").forget();
                OK
            }
        });
        (gate, act)
    }

    /// Permits `turns` turns to end.
    pub fn open(&self, turns: usize) {
        self.permits.add_permits(turns);
    }

    /// The inputs of the turns that ran, in order.
    pub fn ran(&self) -> Vec<String> {
        self.ran.lock().clone()
    }
}

/// A request that is cancelled on disconnect, and queued if the session is busy.
pub fn cancel_on_disconnect(
    disconnect_scope: DisconnectScope,
    text: &str,
    grace_ms: u64,
) -> SubmitRequest {
    SubmitRequest {
        on_disconnect: OnDisconnect::Cancel,
        disconnect_grace_ms: grace_ms,
        disconnect_scope,
        on_busy: OnBusy::Enqueue,
        ..text_request(text)
    }
}

/// Submits a turn to a session, and streams it.
pub async fn submit_attended_turn(
    sessions: &SessionService,
    id: SessionId,
    submit: SubmitRequest,
) -> (SubmittedTurn, StreamGuard) {
    let (me, target) = (owner("local"), SubmitTarget::Existing(id));
    let submitted = sessions
        .submitter()
        .submit_attended(&me, target, submit, None)
        .await;
    submitted.expect("accepted")
}

/// Starts the service with a [`Turnstile`].
pub async fn turnstile_service(dir: &std::path::Path) -> (SessionService, Arc<Turnstile>) {
    let (gate, act) = Turnstile::new();
    (start_service(dir, Options::default(), act).await, gate)
}

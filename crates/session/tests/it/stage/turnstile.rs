//! Turns that end when they may, and those who attend them.

use std::sync::Arc;

use turnwire_event::code::{OnBusy, OnDisconnect};
use turnwire_event::{ContentBlock, SessionId};
use turnwire_session::{
    DisconnectScope, Options, SessionService, StreamGuard, SubmitRequest, SubmitTarget,
    SubmittedTurn,
};

use super::{Act, OK, acting, owner, say, sessions};

/// A producer whose turns say that they run, and end when they may.
pub struct Turnstile {
    permits: tokio::sync::Semaphore,
    ran: parking_lot::Mutex<Vec<String>>,
}

impl Turnstile {
    pub fn new() -> (Arc<Self>, Act) {
        let gate = Arc::new(Self {
            permits: tokio::sync::Semaphore::new(0),
            ran: parking_lot::Mutex::default(),
        });
        let at = gate.clone();
        let act = acting(move |turn| {
            let at = at.clone();
            async move {
                let said = turn.input.content.first().and_then(ContentBlock::as_text);
                at.ran.lock().push(said.unwrap_or_default().to_owned());
                at.permits.acquire().await.expect("open").forget();
                OK
            }
        });
        (gate, act)
    }

    /// Lets as many turns end.
    pub fn open(&self, turns: usize) {
        self.permits.add_permits(turns);
    }

    /// What was said to the turns that ran, in order.
    pub fn ran(&self) -> Vec<String> {
        self.ran.lock().clone()
    }
}

/// A turn that minds when those who count leave, and waits if it must.
pub fn minding(disconnect_scope: DisconnectScope, text: &str, grace_ms: u64) -> SubmitRequest {
    SubmitRequest {
        on_disconnect: OnDisconnect::Cancel,
        disconnect_grace_ms: grace_ms,
        disconnect_scope,
        on_busy: OnBusy::Enqueue,
        ..say(text)
    }
}

/// Submits into a session and streams the turn.
pub async fn attended(
    sessions: &SessionService,
    id: SessionId,
    submit: SubmitRequest,
) -> (SubmittedTurn, StreamGuard) {
    let (me, place) = (owner("local"), SubmitTarget::Existing(id));
    let taken = sessions
        .submitter()
        .submit_attended(&me, place, submit, None)
        .await;
    taken.expect("accepted")
}

/// The service with a producer whose turns end when they may.
pub async fn gated(dir: &std::path::Path) -> (SessionService, Arc<Turnstile>) {
    let (gate, act) = Turnstile::new();
    (sessions(dir, Options::default(), act).await, gate)
}

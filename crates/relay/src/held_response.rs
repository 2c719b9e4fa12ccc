//! The start of a relayed turn's response. Every frame of the turn has the id that the upstream gives
//! (S1-034), so what it sends before the id is held back, for a short time (D-04).

use std::time::Duration;

use tokio::time::Instant;
use turnwire_event::body::route::{RelayedResponse, RouteDecided};
use turnwire_event::metric;
use turnwire_event::port::{Emission, EventEmitter};
use turnwire_event::{Actor, Body, EpisodeId, TurnId, TurnResponseId, UpstreamId};

use crate::upstream::UpstreamCall;

/// How long to wait for the id after the first event of the upstream.
const HOLD_TIME: Duration = Duration::from_millis(250);
/// The bytes of the upstream's stream that are held back: an id comes first, or soon.
const HOLD_BYTES_MAX: u64 = 65_536;

/// What is held back of a response whose id is not known.
pub(crate) struct HeldResponse {
    turn_id: TurnId,
    episode_id: EpisodeId,
    model: String,
    held: Vec<Emission>,
    /// When to stop waiting; `None` before the first event.
    deadline: Option<Instant>,
}

impl HeldResponse {
    pub(crate) fn new(turn_id: TurnId, episode_id: EpisodeId, model: String) -> Self {
        Self {
            turn_id,
            episode_id,
            model,
            held: Vec::new(),
            deadline: None,
        }
    }

    /// When to stop waiting for the id.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Notes that the upstream has sent an event: from the first one on, its id is waited for.
    pub(crate) fn note_event(&mut self) {
        self.deadline.get_or_insert(Instant::now() + HOLD_TIME);
    }

    /// True if no more of the stream may be held back.
    pub(crate) fn is_full(&self, call: &UpstreamCall) -> bool {
        call.bytes_read() > HOLD_BYTES_MAX
    }

    /// What comes before the id waits for it.
    pub(crate) fn hold(&mut self, emissions: Vec<Emission>) {
        self.held.extend(emissions);
    }

    /// The id that the upstream sent, if the turn may have it: an id that is too long, of other
    /// characters, of this server, or in use is replaced by the turn's own.
    pub(crate) async fn accept(
        &self,
        sent: &str,
        emitter: &dyn EventEmitter,
    ) -> Option<UpstreamId> {
        let id = match sent.parse() {
            // The turn's own id says that there is no other.
            _ if TurnId::named(sent) == Ok(self.turn_id) => return None,
            Ok(TurnResponseId::Upstream(id)) if emitter.claim_response_id(&id).await => Some(id),
            Ok(_) | Err(_) => None,
        };
        if id.is_none() {
            count_replaced(
                &self.model,
                "malformed, in use, or it could not be looked up",
            );
        }
        id
    }

    /// The route with the id, and then what was held back.
    pub(crate) fn open(self, id: Option<UpstreamId>) -> Vec<Emission> {
        let response = RelayedResponse {
            response_id: id,
            episode_id: self.episode_id,
            unanswered: false,
        };
        let route = Body::RouteDecided(RouteDecided::relayed(self.model, response));
        let route = Emission::new(Actor::ORCHESTRATOR, route);
        [route].into_iter().chain(self.held).collect()
    }
}

/// Counts an id of an upstream that its turn does not have.
pub(crate) fn count_replaced(model: &str, cause: &'static str) {
    metrics::counter!(metric::RELAY_RESPONSE_IDS_REPLACED_TOTAL).increment(1);
    tracing::warn!(
        model,
        cause,
        "an upstream gave a response id that cannot be used: the turn's own is used"
    );
}

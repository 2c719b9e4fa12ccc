//! What a session is at one position: its summary and the turn in flight with its message.
//!
//! Folded from released events under the lock that publishes them, so that a snapshot taken
//! under that lock is exact at its position, in mid-message too.

use turnwire_event::fold::OpenTurn;
use turnwire_event::row::SessionRow;
use turnwire_event::{Body, Message, Position, TurnId};
use turnwire_hub::Fold;
use turnwire_log::Released;

/// The state of a session at its ring's tail.
#[derive(Clone, Debug)]
pub struct Transcript {
    /// The session, with live numbers.
    pub row: SessionRow,
    /// The turn in flight.
    pub open: Option<OpenTurn>,
    /// Whether the routing policy was replaced after the turn in flight began: what it chooses is
    /// chosen by the one before.
    reloaded: bool,
}

impl Fold for Transcript {
    fn apply(&mut self, event: &Released) {
        match &event.body {
            Body::TurnStarted(_) => {
                self.row.turn_count += 1;
                self.row.updated_at = event.time;
                // Beside a running turn only one that is withdrawn from the queue can start: its
                // end comes with its start, and the running one is still the turn in flight.
                if self.open.is_some() {
                    return;
                }
                self.open = event.head.turn.map(OpenTurn::new);
                self.reloaded = false;
            }
            Body::TurnCompleted(_) | Body::TurnCancelled(_) => {
                self.row.updated_at = event.time;
                self.open.take_if(|open| Some(open.id) == event.head.turn);
                return;
            }
            Body::RouteDecided(route) => {
                self.row.active_model.clone_from(&route.model);
                if !self.reloaded {
                    let version = &route.routing_policy_version;
                    self.row.routing_policy_version.clone_from(version);
                }
            }
            Body::RoutingPolicyReloaded(policy) => {
                let version = &policy.routing_policy_version;
                self.row.routing_policy_version.clone_from(version);
                self.reloaded = true;
            }
            Body::LlmCallCompleted(call) => self.row.cost_usd += call.usage.cost_usd,
            _ => {}
        }
        if let Some(open) = self
            .open
            .as_mut()
            .filter(|open| Some(open.id) == event.head.turn)
        {
            open.apply(
                event.head.position,
                event.time,
                &event.head.actor,
                &event.body,
            );
        }
    }
}

impl Transcript {
    /// A session as the store has it.
    pub fn new(row: SessionRow, open: Option<OpenTurn>) -> Self {
        Self {
            row,
            open,
            reloaded: false,
        }
    }

    /// The turn in flight.
    pub fn current_turn(&self) -> Option<TurnId> {
        self.open.as_ref().map(|open| open.id)
    }

    /// The message in flight, as clients see it.
    pub fn in_flight(&self) -> Option<Message> {
        let message = self.open.as_ref()?.message.as_ref()?;
        Some(message.in_progress(self.row.id))
    }
}

/// A session at one position, for a client that starts there.
#[derive(Clone, Debug)]
pub struct SessionSnapshot {
    /// The session.
    pub row: SessionRow,
    /// The turn in flight.
    pub current_turn: Option<TurnId>,
    /// The newest messages, oldest first; the last may be in flight.
    pub messages: Vec<Message>,
    /// The position.
    pub at: Position,
    /// The ring's cursor at that position.
    pub cursor: u64,
}

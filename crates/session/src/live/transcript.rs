//! The state of a session at one position: its row, and the turn in flight with its message.
//!
//! The ring folds released events into a [`Transcript`] under the lock that publishes them, so a
//! snapshot taken under that lock is exact at its position, also in the middle of a message.

use turnwire_event::body::stream::ToolUseInputDelta;
use turnwire_event::fold::message::BlockFold;
use turnwire_event::fold::{OpenTurn, OpenWork};
use turnwire_event::row::{SessionRow, TurnRow};
use turnwire_event::{Body, Message, MessageId, Position, TurnId};
use turnwire_hub::RingState;
use turnwire_log::ReleasedEvent;

/// The state of a session at its ring's tail.
#[derive(Clone, Debug)]
pub struct Transcript {
    /// The stored row, with counts and cost up to the tail.
    pub row: SessionRow,
    /// What the turn in flight has open: its message, tools, workers.
    pub open: Option<OpenTurn>,
    /// What runs and what waits for a decision, as clients see it.
    pub work: OpenWork,
    /// Whether the routing policy was replaced after the turn in flight started, which still
    /// routes by the previous policy.
    policy_reloaded: bool,
}

impl RingState for Transcript {
    fn apply(&mut self, event: &ReleasedEvent) {
        let head = &event.head;
        self.work.apply(self.row.id, head, event.time, &event.body);
        match &event.body {
            Body::TurnStarted(_) => {
                self.row.turn_count += 1;
                self.row.updated_at = event.time;
                // While a turn runs, only a turn withdrawn from the queue can start: its end
                // comes with its start, and the running one is still the turn in flight.
                if self.open.is_some() {
                    return;
                }
                self.open = event.head.turn.map(OpenTurn::new);
                self.policy_reloaded = false;
            }
            Body::TurnCompleted(_) | Body::TurnCancelled(_) => {
                self.row.updated_at = event.time;
                self.open.take_if(|open| Some(open.id) == event.head.turn);
                return;
            }
            Body::RouteDecided(route) => {
                self.row.active_model.clone_from(&route.model);
                if !self.policy_reloaded && route.relayed.is_none() {
                    let version = &route.routing_policy_version;
                    self.row.routing_policy_version.clone_from(version);
                }
            }
            Body::RoutingPolicyReloaded(policy) => {
                let version = &policy.routing_policy_version;
                self.row.routing_policy_version.clone_from(version);
                self.policy_reloaded = true;
            }
            Body::LlmCallCompleted(call) => self.row.cost_usd += call.usage.cost_usd,
            // A stopped or failed call is paid for too.
            Body::LlmCallFailed(call) => self.row.cost_usd += call.usage.cost_usd,
            _ => {}
        }
        if let Some(open) = &mut self.open
            && Some(open.id) == event.head.turn
        {
            apply_released(open, event);
        }
    }
}

/// Applies an event of the turn to what the turn has open.
pub(super) fn apply_released(open: &mut OpenTurn, event: &ReleasedEvent) {
    let head = &event.head;
    open.apply(head.position, event.time, &head.actor, &event.body);
}

impl Transcript {
    /// The transcript of a session at the tail of its log; `open` is its turn in flight.
    pub fn new(row: SessionRow, open: Option<OpenTurn>) -> Self {
        Self {
            row,
            open,
            work: OpenWork::default(),
            policy_reloaded: false,
        }
    }

    /// The id of the turn in flight.
    pub fn current_turn(&self) -> Option<TurnId> {
        self.open.as_ref().map(|open| open.id)
    }

    /// The id of the message in flight.
    pub(crate) fn id_in_flight(&self) -> Option<MessageId> {
        Some(self.open.as_ref()?.message.as_ref()?.id)
    }

    /// The message in flight, in the form that clients read; without its content if that has more
    /// than `bytes_max` bytes.
    pub fn message_in_flight(&self, bytes_max: usize) -> Option<Message> {
        let message = self.open.as_ref()?.message.as_ref()?;
        let bytes = message.grown_bytes();
        if bytes <= bytes_max {
            return Some(message.in_progress(self.row.id));
        }
        // Nothing of the content is copied: the ring is locked meanwhile.
        let mut without = message.in_progress_without_content(self.row.id);
        without.omit_content(bytes as u64);
        Some(without)
    }

    /// The inputs of tool uses that still stream, each as one delta with all of its raw text so far;
    /// none if [`message_in_flight`](Self::message_in_flight) is without its content.
    pub fn inputs_in_flight(&self, bytes_max: usize) -> Vec<ToolUseInputDelta> {
        let message = self.open.as_ref().and_then(|open| open.message.as_ref());
        let Some(message) = message.filter(|message| message.grown_bytes() <= bytes_max) else {
            return Vec::new();
        };
        let blocks = (0..).zip(&message.blocks);
        let inputs = blocks.filter_map(|(content_block_index, block)| match block {
            BlockFold::Tool(tool_use_id, _, raw, None) => Some(ToolUseInputDelta {
                message_id: message.id,
                content_block_index,
                tool_use_id: *tool_use_id,
                partial_json: raw.clone(),
            }),
            _ => None,
        });
        inputs.collect()
    }
}

/// A [`Transcript`] with the newest messages, for a client that reads on from its position.
#[derive(Clone, Debug)]
pub struct SessionSnapshot {
    /// The session's row at that position.
    pub row: SessionRow,
    /// The turn in flight, which the last message may belong to.
    pub current_turn: Option<TurnId>,
    /// The newest messages, oldest first; the last may be in flight.
    pub messages: Vec<Message>,
    /// The work that was open at that position.
    pub work: OpenWork,
    /// The inputs of tool uses that were streaming; see [`Transcript::inputs_in_flight`].
    pub inputs: Vec<ToolUseInputDelta>,
    /// The turn that ended last at that position or before.
    pub last_turn: Option<TurnRow>,
    /// True if the session has messages before these.
    pub has_older: bool,
    /// The position of the last event that the snapshot includes.
    pub at: Position,
    /// The cursor of the [`Ring`](turnwire_hub::Ring) at `at`.
    pub cursor: u64,
}

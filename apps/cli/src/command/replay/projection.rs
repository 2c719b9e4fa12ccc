//! Turns events into the bytes that a client of a wire receives, with the functions that the server
//! uses.

use std::collections::{HashMap, HashSet};

use turnwire_event::fold::replay::FinishedReplay;
use turnwire_event::{ActorKind, Body, Event, EventFilter, MessageId, TurnId};
use turnwire_wire::pc3::{self, WireVersion};
use turnwire_wire::session::write_event;

use crate::args::{ReplayArgs, ReplayWire};

/// Writes [`Event`]s as frames of one [`ReplayWire`], and keeps the state that pc3 needs for that.
#[derive(Debug)]
pub(crate) struct WireProjection {
    wire: ReplayWire,
    /// All events that a client of the session wire can subscribe to.
    filter: EventFilter,
    /// The version of pc3 for all turns; if `None`, that of each turn in `turn_versions`.
    version: Option<WireVersion>,
    turn_versions: HashMap<TurnId, WireVersion>,
    /// The only turn to project; all turns if `None`.
    only_turn: Option<TurnId>,
    /// True after the first event, of `only_turn` if there is one, even if the wire does not send it.
    pub(crate) has_events: bool,
    /// Messages with a delta of text or thinking, or with a tool use, that are not finished.
    streamed_messages: HashSet<MessageId>,
    /// The number of finished messages that were never in `streamed_messages`.
    messages_without_deltas: u64,
}

impl WireProjection {
    pub(crate) fn new(args: &ReplayArgs, only_turn: Option<TurnId>) -> Self {
        Self {
            wire: args.wire,
            filter: EventFilter::full(),
            version: args.version,
            turn_versions: HashMap::new(),
            only_turn,
            has_events: false,
            streamed_messages: HashSet::new(),
            messages_without_deltas: 0,
        }
    }

    /// Appends the frames of `event`, whose stored bytes are `stored`, to `out`.
    pub(crate) fn project(&mut self, stored: &[u8], event: &Event, out: &mut Vec<u8>) {
        if self.only_turn.is_some() && self.only_turn != event.turn_id {
            return;
        }
        self.has_events = true;
        match self.wire {
            ReplayWire::Session if !self.filter.matches(&event.head()) => {}
            ReplayWire::Session => {
                write_event(stored, out);
                out.push(b'\n');
            }
            ReplayWire::Pc3 => {
                self.update_pc3_state(event);
                let turn_version = || self.turn_versions.get(&event.turn_id?).copied();
                let version = self.version.or_else(turn_version).unwrap_or_default();
                pc3::project(event, version, out);
            }
        }
    }

    /// Updates `turn_versions`, `streamed_messages` and `messages_without_deltas`.
    fn update_pc3_state(&mut self, event: &Event) {
        match &event.body {
            Body::TurnStarted(started) => {
                let version = started.wire_version.as_ref();
                let version = version.and_then(|version| version.parse().ok());
                self.turn_versions.extend(event.turn_id.zip(version));
            }
            Body::TextDelta(delta) => drop(self.streamed_messages.insert(delta.message_id)),
            Body::ThinkingDelta(delta) => drop(self.streamed_messages.insert(delta.message_id)),
            Body::ToolUseStart(start) => drop(self.streamed_messages.insert(start.message_id)),
            // The answers of a sub-agent's model are not sent to clients.
            Body::LlmCallCompleted(_) if event.actor.kind() == ActorKind::Subagent => {}
            Body::LlmCallCompleted(call) if !self.streamed_messages.remove(&call.message_id) => {
                self.messages_without_deltas += 1;
            }
            Body::TurnCompleted(_) | Body::TurnCancelled(_) => self.streamed_messages.clear(),
            _ => {}
        }
    }

    /// How a finished message of a stored session is replayed: pc3 sends text only from deltas, so it
    /// needs them all.
    pub(crate) fn finished_replay(&self) -> FinishedReplay {
        match self.wire {
            ReplayWire::Session => FinishedReplay::Ends,
            ReplayWire::Pc3 => FinishedReplay::Deltas,
        }
    }

    /// A warning if finished messages had no deltas, so that their text is missing from the output. A
    /// file of persisted events has no deltas; a replay of a stored session restores them.
    pub(crate) fn warning(&self) -> Option<String> {
        let subject = match self.messages_without_deltas {
            0 => return None,
            1 => "a message has",
            _ => "messages have",
        };
        Some(format!(
            "{subject} no text deltas, from which pc3 has its text: replay the session itself"
        ))
    }
}

//! Events as the bytes of a wire, through the wire's own functions.

use std::collections::{HashMap, HashSet};

use turnwire_event::fold::replay::FinishedReplay;
use turnwire_event::{ActorKind, Body, Event, EventFilter, MessageId, TurnId};
use turnwire_wire::pc3::{self, WireVersion};
use turnwire_wire::session::write_event;

use crate::args::{ReplayArgs, ReplayWire};

/// Projects [`Event`]s to the bytes of one [`ReplayWire`].
#[derive(Debug)]
pub(crate) struct Projection {
    wire: ReplayWire,
    /// Everything that a client can subscribe to; hidden events are not sent.
    filter: EventFilter,
    /// The requested version; else the version of the turn.
    version: Option<WireVersion>,
    turn_versions: HashMap<TurnId, WireVersion>,
    turn: Option<TurnId>,
    /// True once an event was projected.
    pub(crate) has_events: bool,
    /// Messages with text deltas.
    with_deltas: HashSet<MessageId>,
    /// The number of finished messages without deltas.
    without_text: u64,
}

impl Projection {
    /// A projection with the wire, version and turn of [`ReplayArgs`].
    pub(crate) fn new(args: &ReplayArgs) -> Self {
        Self {
            wire: args.wire,
            filter: EventFilter::full(),
            version: args.version,
            turn_versions: HashMap::new(),
            turn: args.turn,
            has_events: false,
            with_deltas: HashSet::new(),
            without_text: 0,
        }
    }

    /// Appends the frames of an event, whose stored bytes are `bytes`.
    pub(crate) fn take(&mut self, bytes: &[u8], event: &Event, out: &mut Vec<u8>) {
        if self.turn.is_some() && self.turn != event.turn_id {
            return;
        }
        self.has_events = true;
        match self.wire {
            ReplayWire::Session if !self.filter.matches(&event.head()) => {}
            ReplayWire::Session => {
                write_event(bytes, out);
                out.push(b'\n');
            }
            ReplayWire::Pc3 => {
                self.note(event);
                let bound = || self.turn_versions.get(&event.turn_id?).copied();
                let version = self.version.or_else(bound).unwrap_or_default();
                pc3::project(event, version, out);
            }
        }
    }

    fn note(&mut self, event: &Event) {
        match &event.body {
            Body::TurnStarted(started) => {
                let version = started.wire_version.as_ref();
                let version = version.and_then(|version| version.parse().ok());
                self.turn_versions.extend(event.turn_id.zip(version));
            }
            Body::TextDelta(delta) => drop(self.with_deltas.insert(delta.message_id)),
            Body::ThinkingDelta(delta) => drop(self.with_deltas.insert(delta.message_id)),
            Body::ToolUseStart(start) => drop(self.with_deltas.insert(start.message_id)),
            // The answers of a sub-agent's model are not sent to clients.
            Body::LlmCallCompleted(_) if event.actor.kind() == ActorKind::Subagent => {}
            Body::LlmCallCompleted(call) if !self.with_deltas.remove(&call.message_id) => {
                self.without_text += 1;
            }
            Body::TurnCompleted(_) | Body::TurnCancelled(_) => self.with_deltas.clear(),
            _ => {}
        }
    }

    /// The [`FinishedReplay`] that the wire needs: pc3 has text only from deltas.
    pub(crate) fn finished_replay(&self) -> FinishedReplay {
        match self.wire {
            ReplayWire::Session => FinishedReplay::Ends,
            ReplayWire::Pc3 => FinishedReplay::Deltas,
        }
    }

    /// A warning if messages of a file have no text deltas.
    pub(crate) fn warning(&self) -> Option<String> {
        let subject = match self.without_text {
            0 => return None,
            1 => "a message has",
            _ => "messages have",
        };
        Some(format!(
            "{subject} no text deltas, from which pc3 has its text: replay the session itself"
        ))
    }
}

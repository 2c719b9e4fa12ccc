//! From events to the bytes of a wire, through the wire's own functions.

use std::collections::{HashMap, HashSet};

use turnwire_event::{ActorKind, Body, Event, EventFilter, MessageId, TurnId};
use turnwire_wire::pc3::{self, WireVersion};
use turnwire_wire::session::write_event;

use crate::args::ReplayWire;

/// Turns events into bytes.
#[derive(Debug)]
pub(crate) struct Projection {
    wire: ReplayWire,
    /// Everything a client can ask for: what the rendering policy hides is not sent.
    filter: EventFilter,
    /// The version that was asked for; else the one a turn is bound to.
    version: Option<WireVersion>,
    bound: HashMap<TurnId, WireVersion>,
    turn: Option<TurnId>,
    met_turn: bool,
    /// Messages of which words were told, and finished ones of which none were.
    worded: HashSet<MessageId>,
    silent: u64,
}

impl Projection {
    /// Onto a wire; of one turn, or of all.
    pub(crate) fn new(
        wire: ReplayWire,
        version: Option<WireVersion>,
        turn: Option<TurnId>,
    ) -> Self {
        Self {
            wire,
            filter: EventFilter::full(),
            version,
            bound: HashMap::new(),
            turn,
            met_turn: false,
            worded: HashSet::new(),
            silent: 0,
        }
    }

    /// Appends what a client gets for an event, whose stored bytes are `bytes`.
    pub(crate) fn take(&mut self, bytes: &[u8], event: &Event, out: &mut Vec<u8>) {
        if self.turn.is_some() && self.turn != event.turn_id {
            return;
        }
        self.met_turn = true;
        match self.wire {
            ReplayWire::Session => {
                if self.filter.matches(&event.head()) {
                    write_event(bytes, out);
                    out.push(b'\n');
                }
            }
            ReplayWire::Pc3 => {
                self.note(event);
                pc3::project(event, self.version(event), out);
            }
        }
    }

    fn version(&self, event: &Event) -> WireVersion {
        let bound = || self.bound.get(&event.turn_id?).copied();
        self.version.or_else(bound).unwrap_or_default()
    }

    fn note(&mut self, event: &Event) {
        match &event.body {
            Body::TurnStarted(started) => {
                let bound = started.wire_version.as_ref();
                let bound = bound.and_then(|version| version.parse().ok());
                self.bound.extend(event.turn_id.zip(bound));
            }
            Body::TextDelta(delta) => drop(self.worded.insert(delta.message_id)),
            Body::ThinkingDelta(delta) => drop(self.worded.insert(delta.message_id)),
            Body::ToolUseStart(start) => drop(self.worded.insert(start.message_id)),
            // What a sub-agent's model says is told to nobody.
            Body::LlmCallCompleted(_) if event.actor.kind() == ActorKind::Subagent => {}
            Body::LlmCallCompleted(call) if !self.worded.remove(&call.message_id) => {
                self.silent += 1;
            }
            Body::TurnCompleted(_) | Body::TurnCancelled(_) => self.worded.clear(),
            _ => {}
        }
    }

    /// Whether the wire has its words from deltas alone.
    pub(crate) fn is_worded(&self) -> bool {
        match self.wire {
            ReplayWire::Session => false,
            ReplayWire::Pc3 => true,
        }
    }

    /// Whether anything of the turn was there.
    pub(crate) fn met_turn(&self) -> bool {
        self.met_turn
    }

    /// What a reader should know beside the bytes.
    pub(crate) fn afterword(&self) -> Option<String> {
        let subject = match self.silent {
            0 => return None,
            1 => "a message is",
            _ => "messages are",
        };
        Some(format!(
            "{subject} here without words, which pc3 has from deltas alone: replay the session itself"
        ))
    }
}

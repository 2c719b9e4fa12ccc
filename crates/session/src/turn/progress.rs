//! The progress of a turn: what the emitter must know of earlier events to stamp later ones, and
//! the messages that the next turn's history includes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use turnwire_event::actor::ActorKind;
use turnwire_event::code::ToolType;
use turnwire_event::metric::TurnDimensions;
use turnwire_event::port::Emission;
use turnwire_event::row::{FinishedMessage, MessageScope, NewMessage, RowChange};
use turnwire_event::{
    Actor, Body, Message, RenderDecision, RenderPolicy, Role, SessionId, Timestamp, ToolUseId,
    TurnId,
};
use turnwire_log::{EventDraft, is_display_only};

use crate::metering::model_calls::CallsInFlight;
use crate::metering::turn_metrics;

/// What a turn has emitted so far.
#[derive(Default)]
pub(crate) struct TurnProgress {
    /// True if an agent elsewhere answers: it says itself what its reasoning belongs to.
    is_relayed: bool,
    called_model: bool,
    has_text: bool,
    called_tools: HashSet<ToolUseId>,
    /// Tools whose calls were suppressed: their ends are suppressed too.
    pub(crate) hidden_tools: HashSet<ToolUseId>,
    /// The sub-agents of the tools that sub-agents called: the ends of the tools name them too.
    pub(crate) tool_agents: HashMap<ToolUseId, Arc<str>>,
    /// The types of the tools that the turn's messages use.
    pub(crate) tool_types: HashMap<ToolUseId, ToolType>,
    pub(crate) calls: CallsInFlight,
    /// Stored messages of the turn that the orchestrator reads in later turns.
    pub(crate) messages: Vec<Message>,
}

/// The part of an event that [`TurnProgress::apply`] needs once the event has its position.
pub(crate) enum ProgressNote {
    /// The event changes nothing.
    Ignored,
    /// The event is a delta of text.
    Text,
    /// The event itself; such events are rare.
    Event(Actor, Box<Body>),
}

impl ProgressNote {
    /// The note of a draft, taken before the draft is handed to the sequencer.
    pub(crate) fn of(draft: &EventDraft) -> Self {
        match &draft.body {
            // The path of every token.
            Body::TextDelta(delta) if delta.text.is_empty() => Self::Ignored,
            Body::TextDelta(_) => Self::Text,
            body @ (Body::LlmCallStarted(_) | Body::ToolCalled(_)) => {
                Self::Event(draft.actor.clone(), Box::new(body.clone()))
            }
            body if turn_metrics::is_metered(body) => {
                Self::Event(draft.actor.clone(), Box::new(body.clone()))
            }
            _ => Self::Ignored,
        }
    }
}

/// Whether the actor is the turn's own agent, not a sub-agent.
fn is_main_agent(actor: &Actor) -> bool {
    actor.kind() != ActorKind::Subagent
}

impl TurnProgress {
    /// The progress of a turn that has emitted nothing.
    pub(crate) fn new(is_relayed: bool) -> Self {
        Self {
            is_relayed,
            ..Self::default()
        }
    }

    /// Sets the fields of an event that depend on earlier events. Only the orchestrator writes to
    /// the person, so events of sub-agents do not count.
    pub(crate) fn stamp(&self, actor: &Actor, body: &mut Body) {
        match body {
            Body::LlmCallStarted(call) => {
                call.first = !self.called_model && !self.is_relayed && is_main_agent(actor);
            }
            Body::ThinkingDelta(delta) if !self.is_relayed => delta.after_text = self.has_text,
            Body::ToolFailed(tool) => tool.called = self.called_tools.contains(&tool.tool_use_id),
            _ => {}
        }
    }

    /// The rendering of an event: the end of a tool is suppressed if its call was, so that no
    /// client reads an end without a start.
    pub(crate) fn suppress_hidden(
        &mut self,
        body: &Body,
        render: Option<RenderDecision>,
    ) -> Option<RenderDecision> {
        let id = match body {
            Body::ToolCalled(tool) => {
                if render.as_ref().is_some_and(RenderDecision::is_suppressed) {
                    self.hidden_tools.insert(tool.tool_use_id);
                }
                return render;
            }
            Body::ToolCompleted(tool) => tool.tool_use_id,
            Body::ToolFailed(tool) => tool.tool_use_id,
            _ => return render,
        };
        match self.hidden_tools.contains(&id) {
            true => Some(RenderPolicy::Suppress.into()),
            false => render,
        }
    }

    /// Remembers which sub-agent called a tool.
    pub(crate) fn note_tool(&mut self, emission: &Emission) {
        if let (Body::ToolCalled(tool), Some(agent)) = (&emission.body, &emission.sub_agent_id) {
            self.tool_agents.insert(tool.tool_use_id, Arc::clone(agent));
        }
    }

    /// Applies an event that has its position, and records its metrics.
    pub(crate) fn apply(&mut self, note: ProgressNote, dimensions: &TurnDimensions) {
        self.has_text |= matches!(note, ProgressNote::Text);
        let ProgressNote::Event(actor, body) = note else {
            return;
        };
        match body.as_ref() {
            Body::LlmCallStarted(call) => {
                self.called_model |= is_main_agent(&actor);
                self.calls.start(call.call_id, &call.model);
            }
            Body::ToolCalled(tool) => drop(self.called_tools.insert(tool.tool_use_id)),
            metered => turn_metrics::record(metered, &mut self.calls, dimensions),
        }
    }

    /// Adds a message that streamed, in its stored form.
    pub(crate) fn add_streamed(
        &mut self,
        session_id: SessionId,
        turn_id: TurnId,
        row: &FinishedMessage,
    ) {
        self.messages.push(Message {
            id: row.id,
            session_id,
            turn_id,
            role: Role::Assistant,
            status: row.status,
            content: row.content.clone(),
            model: Some(row.model.clone()),
            omitted_bytes: None,
            stop_reason: Some(row.stop_reason),
            usage: Some(row.usage),
            created_at: row.started_at,
            metadata: turnwire_event::JsonObject::default(),
            provider_state: row.provider_state.clone(),
        });
    }

    /// Adds a message that was stored with an event, if the orchestrator reads it in later turns.
    pub(crate) fn add_stored(
        &mut self,
        new: NewMessage,
        (session_id, turn_id): (SessionId, TurnId),
        created_at: Timestamp,
    ) {
        let orchestrator_reads = match new.scope {
            MessageScope::Shared => !is_display_only(new.role, &new.content),
            MessageScope::Private => true,
            MessageScope::Agent(_) | MessageScope::Agents => false,
        };
        if orchestrator_reads {
            let message = new.into_message(session_id, turn_id, created_at);
            self.messages.push(message);
        }
    }
}

/// The message that a draft stores with its event.
pub(crate) fn stored_message(draft: &EventDraft) -> Option<NewMessage> {
    draft.rows.iter().find_map(|row| match row {
        RowChange::MessagePut(_, message) => Some(message.clone()),
        _ => None,
    })
}

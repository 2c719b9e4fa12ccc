//! What a turn has said so far: as far as stamps need it, and what a later turn is told of it.

use std::collections::{HashMap, HashSet};

use turnwire_event::actor::ActorKind;
use turnwire_event::code::ToolType;
use turnwire_event::row::{FinishedMessage, NewMessage, RowChange, Scope};
use turnwire_event::{
    Actor, Body, Message, MessageStatus, Render, RenderPolicy, Role, SessionId, Timestamp,
    ToolUseId, TurnId,
};
use turnwire_log::{Draft, is_display};

use crate::metering::model_calls::{self, CallsInFlight};
use crate::metering::turn_metrics;

/// What the turn has said so far.
#[derive(Default)]
pub(crate) struct TurnProgress {
    called_model: bool,
    text: bool,
    tools: HashSet<ToolUseId>,
    /// Tools whose calls were not shown: neither are their ends.
    pub(crate) hidden: HashSet<ToolUseId>,
    /// The kinds of the tools that its messages asked for.
    pub(crate) types: HashMap<ToolUseId, ToolType>,
    /// The calls in flight.
    pub(crate) calls: CallsInFlight,
    /// Messages that the orchestrator is shown later and that were stored with the turn's events.
    pub(crate) messages: Vec<Message>,
}

/// What is remembered of an event once it has its place.
pub(crate) enum ProgressNote {
    /// Nothing.
    Nothing,
    /// That words were said.
    Words,
    /// The rest is rare, and remembered whole.
    Event(Actor, Box<Body>),
}

impl ProgressNote {
    /// What to remember of an event.
    pub(crate) fn of(draft: &Draft) -> Self {
        match &draft.body {
            // The path of every token.
            Body::TextDelta(delta) if delta.text.is_empty() => Self::Nothing,
            Body::TextDelta(_) => Self::Words,
            Body::LlmCallStarted(_)
            | Body::ToolCalled(_)
            | Body::LlmCallFailed(_)
            | Body::LlmCallCompleted(_) => {
                Self::Event(draft.actor.clone(), Box::new(draft.body.clone()))
            }
            body if turn_metrics::is_counted(body) => {
                Self::Event(draft.actor.clone(), Box::new(body.clone()))
            }
            _ => Self::Nothing,
        }
    }
}

/// Whether the turn itself speaks, and no sub-agent inside it.
fn speaks(actor: &Actor) -> bool {
    actor.kind() != ActorKind::Subagent
}

impl TurnProgress {
    /// Stamps an event with what came before it. Only the orchestrator speaks to the person: what
    /// sub-agents do changes nothing of it.
    pub(crate) fn stamp(&self, actor: &Actor, body: &mut Body) {
        match body {
            Body::LlmCallStarted(call) => call.first = !self.called_model && speaks(actor),
            Body::ThinkingDelta(delta) => delta.after_text = self.text,
            Body::ToolFailed(tool) => tool.called = self.tools.contains(&tool.tool_use_id),
            _ => {}
        }
    }

    /// How an event is shown. The end of a tool whose call was hidden is hidden too: nobody is
    /// told of an end without a beginning.
    pub(crate) fn cover(&mut self, body: &Body, render: Option<Render>) -> Option<Render> {
        let id = match body {
            Body::ToolCalled(tool) => {
                let policy = render.as_ref().map(|render| render.policy);
                if policy == Some(RenderPolicy::Suppress) {
                    self.hidden.insert(tool.tool_use_id);
                }
                return render;
            }
            Body::ToolCompleted(tool) => tool.tool_use_id,
            Body::ToolFailed(tool) => tool.tool_use_id,
            _ => return render,
        };
        if self.hidden.contains(&id) {
            return Some(RenderPolicy::Suppress.into());
        }
        render
    }

    /// Remembers an event that has its place.
    pub(crate) fn take_in(&mut self, note: ProgressNote, definition: &str) {
        let (actor, body) = match note {
            ProgressNote::Nothing => return,
            ProgressNote::Words => {
                self.text = true;
                return;
            }
            ProgressNote::Event(actor, body) => (actor, body),
        };
        match body.as_ref() {
            Body::LlmCallStarted(call) => {
                self.called_model |= speaks(&actor);
                self.calls.begin(call.call_id, &call.model);
            }
            Body::ToolCalled(tool) => drop(self.tools.insert(tool.tool_use_id)),
            ended if model_calls::is_end(ended) => self.calls.end(ended),
            counted => turn_metrics::count(counted, definition),
        }
    }

    /// Remembers a message that streamed, as it is stored: the orchestrator is shown it later.
    pub(crate) fn keep_finished(
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
            stop_reason: Some(row.stop_reason),
            usage: Some(row.usage),
            created_at: row.started_at,
            metadata: serde_json::Map::new(),
            kept: row.kept.clone(),
        });
    }

    /// Remembers a message that was stored with an event, if the orchestrator is shown it later.
    pub(crate) fn keep(
        &mut self,
        new: NewMessage,
        (session_id, turn_id): (SessionId, TurnId),
        created_at: Timestamp,
    ) {
        let shown = match new.scope {
            Scope::Shared => !is_display(new.role, &new.content),
            Scope::Private => true,
            Scope::Agent(_) | Scope::Agents => false,
        };
        if shown {
            self.messages.push(Message {
                id: new.id,
                session_id,
                turn_id,
                role: new.role,
                status: MessageStatus::Complete,
                content: new.content,
                model: None,
                stop_reason: None,
                usage: None,
                created_at,
                metadata: new.metadata,
                kept: new.kept,
            });
        }
    }
}

/// The message that is stored with an event, as it is stored.
pub(crate) fn message_of(draft: &Draft) -> Option<NewMessage> {
    draft.rows.iter().find_map(|row| match row {
        RowChange::MessagePut(_, message) => Some(message.clone()),
        _ => None,
    })
}

//! A turn's emitter: every event of the turn passes here, is shown to the interceptor, stamped
//! with what wires would otherwise have to remember, and handed to the sequencer.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use metrics::Histogram;
use parking_lot::Mutex;
use turnwire_event::body::llm::{CallCompleted, CallFailed};
use turnwire_event::code::{ToolState, ToolType};
use turnwire_event::content::content_json;
use turnwire_event::fold::rows;
use turnwire_event::port::{
    BoxFuture, Emission, EmitError, Emitter, Interceptor, MessageEnd, Refusal,
};
use turnwire_event::row::RowChange;
use turnwire_event::{
    Actor, Body, ContentBlock, Message, MessageId, MessageStatus, Position, Role, StopReason,
    Timestamp, ToolUseId, Trace, TurnId, metric,
};
use turnwire_log::{Draft, Refused, Room};

use crate::ending::Known;
use crate::live::Live;

/// What the turn has said so far, as far as stamps need it.
#[derive(Default)]
struct Said {
    sealed: bool,
    /// How many emissions came, for timing one in some.
    count: u32,
    called_model: bool,
    text: bool,
    tools: HashSet<ToolUseId>,
    types: HashMap<ToolUseId, ToolType>,
    model: String,
    /// Messages that were stored with the turn's events, in order.
    messages: Vec<Message>,
}

/// The emitter of one turn.
pub struct TurnEmitter {
    live: Arc<Live>,
    turn: TurnId,
    trace: Option<Arc<Trace>>,
    interceptor: Arc<dyn Interceptor>,
    said: Mutex<Said>,
    overhead: Histogram,
    /// The version of the agent's definition.
    definition: String,
}

/// One emission in so many is timed: a look at the clock costs as much as a delta's stamp.
const TIMED_EVERY: u32 = 8;

impl TurnEmitter {
    /// The emitter of `turn`, which has started.
    pub fn new(
        live: Arc<Live>,
        turn: TurnId,
        trace: Option<Arc<Trace>>,
        interceptor: Arc<dyn Interceptor>,
        agent_definition: &str,
    ) -> Self {
        Self {
            live,
            turn,
            trace,
            interceptor,
            said: Mutex::default(),
            overhead: metrics::histogram!(
                metric::STREAM_WRITER_OVERHEAD_MS,
                &metric::dimensions(agent_definition)
            ),
            definition: agent_definition.to_owned(),
        }
    }

    /// From here on nothing of the producer is taken; the session ends the turn.
    pub fn seal(&self) {
        self.said.lock().sealed = true;
    }

    /// The messages the turn has stored so far, and leaves none behind.
    pub(crate) fn take_messages(&self) -> Vec<Message> {
        std::mem::take(&mut self.said.lock().messages)
    }

    /// What is known of the turn beside its events.
    pub(crate) fn known(&self) -> Known {
        let said = self.said.lock();
        Known {
            types: said.types.clone(),
            trace: self.trace.clone(),
            model: said.model.clone(),
            definition: self.definition.clone(),
        }
    }

    fn draft(&self, mut emission: Emission) -> Draft {
        let render = self.interceptor.intercept(&mut emission);
        let mut draft = Draft::new(Some(self.turn), emission.actor, emission.body);
        draft.trace.clone_from(&self.trace);
        draft.render = render;
        draft.rows = rows(Some(self.turn), &draft.body);
        draft.rows.extend(
            emission
                .message
                .map(|message| RowChange::MessagePut(self.turn, message)),
        );
        draft
    }
}

impl Said {
    /// Stamps an event with what came before it.
    fn stamp(&self, body: &mut Body) {
        match body {
            Body::LlmCallStarted(call) => call.first = !self.called_model,
            Body::ThinkingDelta(delta) => delta.after_text = self.text,
            Body::ToolFailed(tool) => tool.called = self.tools.contains(&tool.tool_use_id),
            _ => {}
        }
    }

    /// Remembers an event that was taken.
    fn take_in(&mut self, body: &Body) {
        match body {
            Body::LlmCallStarted(call) => {
                self.called_model = true;
                self.model.clone_from(&call.model);
            }
            Body::TextDelta(delta) => self.text |= !delta.text.is_empty(),
            Body::ToolCalled(tool) => drop(self.tools.insert(tool.tool_use_id)),
            Body::LlmCallFailed(_) => self.count_call("failed"),
            Body::LlmCallCompleted(_) => self.count_call("completed"),
            _ => {}
        }
    }

    fn count_call(&self, status: &'static str) {
        metrics::counter!(metric::LLM_CALLS_TOTAL, "model" => self.model.clone(), "status" => status).increment(1);
    }
}

fn refusal(refused: Refused) -> Refusal {
    metrics::counter!(metric::TURN_REFUSED_TOTAL).increment(1);
    match refused {
        Refused::Ended | Refused::Full => Refusal::Ended,
        Refused::Cancelled => Refusal::Cancelled,
        Refused::Closed => Refusal::Unavailable,
    }
}

impl Emitter for TurnEmitter {
    fn emit(&self, mut emission: Emission) -> Result<Position, EmitError> {
        let mut said = self.said.lock();
        let began = said.count.is_multiple_of(TIMED_EVERY).then(Instant::now);
        said.count = said.count.wrapping_add(1);
        if said.sealed {
            return Err(refusal(Refused::Ended).into());
        }
        if self.live.sequencer.is_full() {
            return Err(EmitError::Full(Box::new(emission)));
        }
        said.stamp(&mut emission.body);
        let draft = self.draft(emission);
        // As it is stored, whatever the interceptor made of it.
        let message = draft.rows.iter().find_map(|row| match row {
            RowChange::MessagePut(_, message) => Some(message.clone()),
            _ => None,
        });
        let remembered = match &draft.body {
            // The path of every token: nothing to remember but that words were said.
            Body::TextDelta(delta) => {
                said.text |= !delta.text.is_empty();
                None
            }
            Body::LlmCallStarted(_)
            | Body::ToolCalled(_)
            | Body::LlmCallFailed(_)
            | Body::LlmCallCompleted(_) => Some(draft.body.clone()),
            _ => None,
        };
        let (position, time) = self
            .live
            .sequencer
            .emit_one(draft, Room::Reserved)
            .map_err(refusal)?;
        if let Some(new) = message {
            let message = self.message(new.id, new.role, new.content, time);
            said.messages.push(message);
        }
        if let Some(body) = remembered {
            said.take_in(&body);
        }
        if let Some(began) = began {
            self.overhead.record(began.elapsed().as_secs_f64() * 1e3);
        }
        Ok(position)
    }

    fn complete(&self, end: MessageEnd) -> Result<Vec<ContentBlock>, Refusal> {
        let mut said = self.said.lock();
        if said.sealed {
            return Err(refusal(Refused::Ended));
        }
        let open = self.live.open_turn(self.turn).ok_or(Refusal::Ended)?;
        let message = open
            .message
            .filter(|message| message.id == end.message_id)
            .ok_or(Refusal::Ended)?;
        let stop_reason = if end.failure.is_some() {
            StopReason::Error
        } else {
            end.stop_reason
        };
        let complete = message.complete(stop_reason, end.usage);
        let content = complete.final_content.clone();
        let content_sha256 = content_json(&content).1;
        let finished = RowChange::MessageFinished(self.turn, Box::new(message.finished(&complete)));
        let after = match end.failure {
            Some(error_class) => Body::LlmCallFailed(CallFailed {
                call_id: end.call_id,
                message_id: Some(end.message_id),
                content_sha256: Some(content_sha256),
                error_class,
            }),
            None => Body::LlmCallCompleted(CallCompleted {
                call_id: end.call_id,
                message_id: end.message_id,
                content_sha256,
                stop_reason,
                usage: end.usage,
            }),
        };
        let taken = after.clone();
        let mut first = self.draft(Emission::new(
            Actor::ORCHESTRATOR,
            Body::MessageComplete(complete),
        ));
        first.rows.push(finished);
        let mut second = self.draft(Emission::new(Actor::ORCHESTRATOR, after));
        said.types.extend(end.tools.iter().copied());
        if end.failure.is_none() {
            second.rows.extend(self.pending(&content, &end.tools));
        }
        // Together, so that both are released by the commit that holds the message.
        self.live
            .sequencer
            .emit(vec![first, second], Room::Reserved)
            .map_err(refusal)?;
        said.take_in(&taken);
        let message = self.message(
            end.message_id,
            Role::Assistant,
            content.clone(),
            message.started_at,
        );
        said.messages.push(message);
        Ok(content)
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let _ = self.live.sequencer.ready().await;
        })
    }

    fn committed(&self, at: Position) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async move { self.live.sequencer.committed(at.seq).await.map_err(refusal) })
    }
}

impl TurnEmitter {
    /// A message of the turn as a model is shown it.
    fn message(
        &self,
        id: MessageId,
        role: Role,
        content: Vec<ContentBlock>,
        created_at: Timestamp,
    ) -> Message {
        Message {
            id,
            session_id: self.live.id,
            turn_id: self.turn,
            role,
            status: MessageStatus::Complete,
            content,
            model: None,
            stop_reason: None,
            usage: None,
            created_at,
            metadata: serde_json::Map::new(),
        }
    }

    /// Rows of the tools a message asks for, before any is called.
    fn pending(&self, content: &[ContentBlock], types: &[(ToolUseId, ToolType)]) -> Vec<RowChange> {
        let row = |block: &ContentBlock| {
            let ContentBlock::ToolUse { id, name, .. } = block else {
                return None;
            };
            let known = types.iter().find(|(tool, _)| tool == id);
            Some(RowChange::ToolCall {
                tool_use_id: *id,
                turn_id: self.turn,
                tool_name: name.clone(),
                tool_type: known.map_or(ToolType::Function, |(_, kind)| *kind),
                status: ToolState::Pending,
            })
        };
        content.iter().filter_map(row).collect()
    }
}

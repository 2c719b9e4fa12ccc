//! An agent at work in one turn: its resources, the emitter it writes to, and the state that its calls
//! share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use turnwire_event::code::CallPurpose;
use turnwire_event::metric::TurnDimensions;
use turnwire_event::port::{Emission, EmitRefusal, EventEmitter, TurnContext};
use turnwire_event::row::{MessageScope, NewMessage};
use turnwire_event::{
    Actor, Body, ContentBlock, InvocationId, JsonObject, MessageId, Position, ProviderState, Role,
    TraceContext,
};
use turnwire_model::{ModelMessage, ModelRequest};
use turnwire_tool::{ItemStore, ToolContext, deliver};

use super::agent_resources::AgentResources;
use super::message_metadata;
use super::model_choice::CandidateCursor;
use super::turn_budget::TurnBudget;
use crate::emitter::sub_agent_emitter::SubAgentEmitter;

/// The result of emitting: the session refuses events of a turn that it ends.
pub(crate) type EmitResult<T = ()> = Result<T, EmitRefusal>;

/// Messages for a model, oldest first; calls share them.
pub(crate) type ModelMessages = Vec<Arc<ModelMessage>>;

/// The time spent waiting for models and tools. The remainder of an invocation's time is overhead of
/// the server.
#[derive(Debug, Default)]
pub(crate) struct WaitMeter(AtomicU64);

impl WaitMeter {
    pub(crate) fn add(&self, waited: Duration) {
        let micros = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        self.0.fetch_add(micros, Ordering::Relaxed);
    }

    pub(crate) fn total(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }
}

/// An agent's resources within one turn.
#[derive(Clone)]
pub(crate) struct AgentContext<'a> {
    pub(crate) resources: &'a AgentResources,
    pub(crate) emitter: &'a Arc<dyn EventEmitter>,
    pub(crate) tool_context: &'a Arc<ToolContext>,
    pub(crate) wait_meter: &'a WaitMeter,
    /// Which of its models the agent calls.
    pub(crate) candidate_cursor: &'a CandidateCursor,
    /// Shared by all agents of the turn.
    pub(crate) budget: &'a Arc<TurnBudget>,
    pub(crate) deadline: Instant,
    /// Where failures of data services are deferred to; `None` to report them at once.
    pub(crate) deferred_to: Option<&'a SubAgentEmitter>,
    /// `None` for the orchestrator and for workers.
    pub(crate) invocation_id: Option<InvocationId>,
    pub(crate) purpose: CallPurpose,
    /// The span of the agent's events; `None` for the span of the turn.
    pub(crate) span: Option<Arc<TraceContext>>,
}

impl AgentContext<'_> {
    /// The trace of the turn, for log lines.
    pub(crate) fn trace_id(&self) -> Option<&str> {
        let trace = self.span.as_ref().or(self.tool_context.trace.as_ref());
        trace.map(|trace| trace.trace_id.as_str())
    }

    /// Emits one event of `actor`.
    pub(crate) async fn emit(&self, actor: Actor, body: Body) -> EmitResult {
        self.deliver(Emission::new(actor, body)).await.map(|_| ())
    }

    /// Emits one event of the agent itself.
    pub(crate) async fn emit_as_agent(&self, body: Body) -> EmitResult {
        self.emit(self.resources.role.actor(), body).await
    }

    /// Emits one event with the message that belongs to it.
    pub(crate) async fn deliver(&self, mut emission: Emission) -> EmitResult<Position> {
        if emission.trace.is_none() {
            emission.trace.clone_from(&self.span);
        }
        deliver(&**self.emitter, emission).await
    }

    /// A message to be stored, with a new id and without provider state.
    pub(crate) fn new_message(
        &self,
        role: Role,
        content: Vec<ContentBlock>,
        metadata: JsonObject,
        scope: MessageScope,
    ) -> NewMessage {
        NewMessage {
            id: MessageId(self.resources.id_generator.ulid()),
            role,
            content,
            metadata,
            scope,
            provider_state: ProviderState::default(),
        }
    }

    /// The request of call `number` to the agent's model.
    pub(crate) fn model_request(
        &self,
        number: u32,
        system: Option<String>,
        messages: ModelMessages,
    ) -> ModelRequest {
        ModelRequest {
            model: self.resources.options.model.clone(),
            agent: self.resources.role.name().to_owned(),
            call: number,
            attempt: 1,
            locale: self.tool_context.locale.clone(),
            system,
            messages,
            tools: Arc::clone(&self.resources.tool_specs),
        }
    }

    /// The metadata of the agent's messages.
    pub(crate) fn message_metadata(&self) -> JsonObject {
        match (self.resources.role.sub_agent_id(), self.invocation_id) {
            (None, _) => JsonObject::default(),
            (Some(id), None) => message_metadata::of_sub_agent(id),
            (Some(id), Some(invocation)) => message_metadata::of_invocation(id, invocation),
        }
    }
}

/// The [`ToolContext`] of the tools that `agent` calls in `turn`.
pub(crate) fn tool_context_of(
    turn: &TurnContext,
    agent: Option<&str>,
    trace: Option<Arc<TraceContext>>,
    dimensions: &TurnDimensions,
) -> Arc<ToolContext> {
    let input = &turn.input;
    Arc::new(ToolContext {
        owner: input.owner.clone(),
        session_id: input.session_id,
        turn_id: input.turn_id,
        episode_id: input.episode_id,
        locale: input.locale.clone(),
        location: input.location.clone(),
        agent: agent.map(str::to_owned),
        trace,
        propagation: input.propagation.clone(),
        items: ItemStore::new(),
        dimensions: dimensions.clone(),
        child_tasks: Arc::clone(&turn.child_tasks),
        delegate: Arc::clone(&turn.delegate),
    })
}

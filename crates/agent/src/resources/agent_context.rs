//! An agent at work in one turn: its resources, the emitter it writes to, and the state that its calls
//! share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;
use turnwire_event::code::CallPurpose;
use turnwire_event::port::{Emission, EmitRefusal, EventEmitter, TurnContext};
use turnwire_event::{Actor, Body, InvocationId, Position, TraceContext};
use turnwire_tool::{ItemStore, ToolContext, deliver};

use super::agent_resources::AgentResources;
use super::message_metadata;
use super::model_choice::CandidateCursor;
use super::turn_budget::TurnBudget;
use crate::emitter::sub_agent_emitter::SubAgentEmitter;

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

/// What happens with the failure of a data service (axis 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultPolicy {
    /// It is reported at once, and the turn goes on.
    Report,
    /// It is kept until the invocation has ended: the turn may end with it (S1-102).
    Defer,
}

/// An agent's resources within one turn.
#[derive(Clone)]
pub(crate) struct AgentContext<'a> {
    pub(crate) resources: &'a AgentResources,
    pub(crate) emitter: &'a Arc<dyn EventEmitter>,
    pub(crate) scene: &'a Arc<ToolContext>,
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
    pub(crate) async fn emit(&self, actor: Actor, body: Body) -> Result<Position, EmitRefusal> {
        self.deliver(Emission::new(actor, body)).await
    }

    /// Emits one event with the message that belongs to it.
    pub(crate) async fn deliver(&self, mut emission: Emission) -> Result<Position, EmitRefusal> {
        if emission.trace.is_none() {
            emission.trace.clone_from(&self.span);
        }
        deliver(&**self.emitter, emission).await
    }

    /// The metadata of the agent's messages.
    pub(crate) fn message_metadata(&self) -> Map<String, Value> {
        match (self.resources.role.sub_agent_id(), self.invocation_id) {
            (None, _) => Map::new(),
            (Some(id), None) => message_metadata::of_sub_agent(id),
            (Some(id), Some(invocation)) => message_metadata::of_invocation(id, invocation),
        }
    }
}

/// The [`ToolContext`] of the tools that `agent` calls in `turn`.
pub(crate) fn tool_scene(
    turn: &TurnContext,
    agent: Option<&str>,
    trace: Option<Arc<TraceContext>>,
    definition: &str,
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
        items: ItemStore::new(),
        definition: definition.to_owned(),
        child_tasks: Arc::clone(&turn.child_tasks),
        delegate: Arc::clone(&turn.delegate),
    })
}

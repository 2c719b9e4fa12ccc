//! The turn that a tool works for. An agent makes one [`ToolContext`] for each of its runs; nothing in
//! it comes from a model (S2-047).

use std::sync::Arc;

use turnwire_event::metric::TurnDimensions;
use turnwire_event::port::{ChildTaskRegistry, WorkerLauncher};
use turnwire_event::trace::trace_id_of;
use turnwire_event::{Actor, EpisodeId, Owner, SessionId, TraceContext, TracePropagation, TurnId};

use super::item_store::ItemStore;

/// The turn, its owner and what its tools share.
pub struct ToolContext {
    /// The owner of the turn; the principal of every call to a data service.
    pub owner: Owner,
    /// The session of the turn.
    pub session_id: SessionId,
    /// The turn that the tool works for.
    pub turn_id: TurnId,
    /// The episode of the turn.
    pub episode_id: EpisodeId,
    /// The language of the person.
    pub locale: String,
    /// The location of the person, if the client sent it.
    pub location: Option<String>,
    /// The sub-agent that calls; `None` for the orchestrator.
    pub agent: Option<String>,
    /// The span of the invocation.
    pub trace: Option<Arc<TraceContext>>,
    /// What the trace has beside its ids.
    pub propagation: TracePropagation,
    /// The items that data services returned in this run of the agent.
    pub items: ItemStore,
    /// The labels of the turn's metrics.
    pub dimensions: TurnDimensions,
    /// Registers processes and requests that outlive the future of a tool.
    pub child_tasks: Arc<dyn ChildTaskRegistry>,
    /// Runs workers for delegate tools.
    pub delegate: Arc<dyn WorkerLauncher>,
}

impl ToolContext {
    /// The trace id of the turn: that of its caller, or its own.
    pub(crate) fn trace_id(&self) -> String {
        trace_id_of(self.trace.as_deref(), self.turn_id)
    }

    /// The agent that calls the tool, which is the actor of its statuses.
    pub(crate) fn actor(&self) -> Actor {
        let agent = self.agent.as_deref();
        agent.map_or(Actor::ORCHESTRATOR, Actor::subagent)
    }
}

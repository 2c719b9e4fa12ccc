//! For whom and within what a tool works. It is made by the house for each invocation; nothing
//! in it comes from a model (S2-047).

use std::sync::Arc;

use turnwire_event::port::{Delegate, Wards};
use turnwire_event::{EpisodeId, Owner, SessionId, Trace, TurnId};

use crate::shelf::Shelf;

/// The surroundings of a tool's use.
pub struct Scene {
    /// Whose turn it is; the principal of every call to a data service.
    pub owner: Owner,
    /// The session.
    pub session_id: SessionId,
    /// The turn.
    pub turn_id: TurnId,
    /// The episode.
    pub episode_id: EpisodeId,
    /// The language the person wants.
    pub locale: String,
    /// Where the person is, if the client says.
    pub location: Option<String>,
    /// The sub-agent that calls; none for the orchestrator.
    pub agent: Option<String>,
    /// The span it happens in.
    pub trace: Option<Arc<Trace>>,
    /// What data services have given so far.
    pub shelf: Shelf,
    /// The version of the agent's definition, for counters.
    pub definition: String,
    /// Who sees to what outlives a tool's future.
    pub wards: Arc<dyn Wards>,
    /// Who has workers.
    pub delegate: Arc<dyn Delegate>,
}

impl std::fmt::Debug for Scene {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scene")
            .field("session_id", &self.session_id)
            .field("turn_id", &self.turn_id)
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}

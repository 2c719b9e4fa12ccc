//! The session as a snapshot shows it (S3-028, R-14): the row's public fields and the turn in
//! flight, if there is one.

use serde::{Deserialize, Serialize};
use turnwire_event::row::SessionRow;
use turnwire_event::{EpisodeId, SessionId, TurnId};

/// What the turn in flight is doing; there is one word for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CurrentTurn {
    /// It has started and not ended.
    InFlight,
}

/// A session in a snapshot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionSummary {
    /// Its id.
    pub id: SessionId,
    /// The folder it works in.
    pub workspace_path: Option<String>,
    /// The model that answers.
    pub active_model: String,
    /// The routing policy in force.
    pub routing_policy_version: String,
    /// What it has cost.
    pub cost_so_far_usd: f64,
    /// How many turns were started.
    pub turn_count: u64,
    /// The turn in flight.
    pub current_turn_id: Option<TurnId>,
    /// `in_flight` exactly when there is one.
    pub current_turn_status: Option<CurrentTurn>,
    /// The session that started it, if it is a worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session_id: Option<SessionId>,
    /// Its tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// Its episode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub episode_id: Option<EpisodeId>,
    /// The mission it runs, if it runs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mission_id: Option<String>,
}

impl SessionSummary {
    /// The summary of a session in which `current` is in flight.
    pub fn new(row: &SessionRow, current: Option<TurnId>) -> Self {
        Self {
            id: row.id,
            workspace_path: row.workspace_path.clone(),
            active_model: row.active_model.clone(),
            routing_policy_version: row.routing_policy_version.clone(),
            cost_so_far_usd: row.cost_usd,
            turn_count: row.turn_count,
            current_turn_id: current,
            current_turn_status: current.map(|_| CurrentTurn::InFlight),
            parent_session_id: row.parent,
            tenant_id: Some(row.owner.tenant.to_string()),
            episode_id: Some(row.episode_id),
            mission_id: None,
        }
    }
}

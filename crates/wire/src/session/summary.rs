//! The session in a snapshot (S3-028, R-14): the public fields of its row and its running turn.

use serde::{Deserialize, Serialize};
use turnwire_event::row::SessionRow;
use turnwire_event::{EpisodeId, SessionId, TurnId};

/// The status of the running turn; there is only one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CurrentTurnStatus {
    /// The turn has started and has not ended.
    InFlight,
}

/// The session in a snapshot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionSummary {
    /// Same as in the REST API.
    pub id: SessionId,
    /// The folder that tools of the session work in, if it has one.
    pub workspace_path: Option<String>,
    /// The model of the latest turn.
    pub active_model: String,
    /// The routing policy in use.
    pub routing_policy_version: String,
    /// The cost of all model calls so far.
    pub cost_so_far_usd: f64,
    /// The number of turns that were started.
    pub turn_count: u64,
    /// The running turn, or `None` while the session is idle.
    pub current_turn_id: Option<TurnId>,
    /// `in_flight` exactly if there is a running turn.
    pub current_turn_status: Option<CurrentTurnStatus>,
    /// The session that started this one, if this one is a worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session_id: Option<SessionId>,
    /// The tenant that owns the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// The episode that groups the turns of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub episode_id: Option<EpisodeId>,
    /// Always absent: missions are not supported yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mission_id: Option<String>,
}

impl SessionSummary {
    /// The summary of a session whose running turn is `current`.
    pub fn new(row: &SessionRow, current: Option<TurnId>) -> Self {
        Self {
            id: row.id,
            workspace_path: row.workspace_path.clone(),
            active_model: row.active_model.clone(),
            routing_policy_version: row.routing_policy_version.clone(),
            cost_so_far_usd: row.cost_usd,
            turn_count: row.turn_count,
            current_turn_id: current,
            current_turn_status: current.map(|_| CurrentTurnStatus::InFlight),
            parent_session_id: row.parent,
            tenant_id: Some(row.owner.tenant.to_string()),
            episode_id: Some(row.episode_id),
            mission_id: None,
        }
    }
}

//! `/sessions`: making, listing and attaching to sessions.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use turnwire_event::row::{SessionRow, TurnRow};
use turnwire_event::{EpisodeId, SessionId, Timestamp};

use super::turn::Turn;

/// `POST /sessions`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "SessionCreate"))]
pub struct Create {
    /// The folder the session works in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_path: Option<String>,
    /// Whatever the creator wants to find again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// 201 of `POST /sessions`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "SessionCreated"))]
pub struct Created {
    /// The new session.
    pub session_id: SessionId,
    /// The same again, under the name lists of ids use.
    pub id: SessionId,
}

/// A session in lists, and the part of it that needs no token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Session {
    /// Its id.
    pub session_id: SessionId,
    /// The model that answers.
    pub active_model: String,
    /// The routing policy in force.
    pub routing_policy_version: String,
    /// The folder it works in.
    pub workspace_path: Option<String>,
    /// The session that started it, if it is a worker.
    pub parent_session_id: Option<SessionId>,
    /// The agent that answers in it, if it is a worker.
    #[serde(default)]
    pub agent: Option<String>,
    /// Its tenant.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "uuid")))]
    pub tenant_id: String,
    /// Whose it is inside the tenant.
    pub principal: String,
    /// Its episode.
    pub episode_id: EpisodeId,
    /// Whatever its creator put there.
    pub metadata: Map<String, Value>,
    /// What it has cost.
    pub cost_so_far_usd: f64,
    /// How many turns were started.
    pub turn_count: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When something last happened.
    pub updated_at: Timestamp,
}

impl From<SessionRow> for Session {
    fn from(row: SessionRow) -> Self {
        Self {
            session_id: row.id,
            active_model: row.active_model,
            routing_policy_version: row.routing_policy_version,
            workspace_path: row.workspace_path,
            parent_session_id: row.parent,
            agent: row.agent,
            tenant_id: row.owner.tenant.to_string(),
            principal: row.owner.principal.to_string(),
            episode_id: row.episode_id,
            metadata: row.metadata,
            cost_so_far_usd: row.cost_usd,
            turn_count: row.turn_count,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// 200 of `GET /sessions/{id}`: the session and a ticket to its stream (S3-001).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "SessionAttached"))]
pub struct Attached {
    /// The session.
    #[serde(flatten)]
    pub session: Session,
    /// Opens one connection, once, soon.
    pub attach_token: String,
    /// Where to connect, token included.
    pub ws_url: String,
}

impl Attached {
    /// The answer to a client that came in by `host` (S3-002).
    pub fn new(row: SessionRow, attach_token: String, host: &str) -> Self {
        let ws_url = format!(
            "ws://{host}/sessions/{}/stream?attach={attach_token}",
            row.id
        );
        Self {
            session: row.into(),
            attach_token,
            ws_url,
        }
    }
}

/// 200 of `GET /sessions`, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "SessionList"))]
pub struct List {
    /// The sessions.
    pub sessions: Vec<Session>,
    /// What to send as `before` for older ones.
    pub next: Option<SessionId>,
}

/// A worker of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Worker {
    /// Its session.
    #[serde(flatten)]
    pub session: Session,
    /// Its newest turn: the one that runs, or the last that ran.
    pub turn: Option<Turn>,
}

impl From<(SessionRow, Option<TurnRow>)> for Worker {
    fn from((session, turn): (SessionRow, Option<TurnRow>)) -> Self {
        Self {
            session: session.into(),
            turn: turn.map(Into::into),
        }
    }
}

/// 200 of `GET /sessions/{id}/workers`, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "WorkerList"))]
pub struct Workers {
    /// The workers.
    pub workers: Vec<Worker>,
    /// What to send as `before` for older ones.
    pub next: Option<SessionId>,
}

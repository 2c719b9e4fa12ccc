//! `/sessions`: creating, listing and attaching to sessions.

use serde::{Deserialize, Serialize};
use turnwire_event::row::{SessionRow, TurnRow};
use turnwire_event::{EpisodeId, JsonObject, SessionId, Timestamp};

use super::content::MetadataInput;
use super::turn::TurnInfo;

/// The request of `POST /sessions`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct SessionCreate {
    /// The folder that the tools of the session work in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_path: Option<String>,
    /// Any data of the creator, returned unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<MetadataInput>,
}

/// 201 of `POST /sessions`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionCreatedBody {
    /// The id of the new session.
    pub session_id: SessionId,
    /// Same as `session_id`, under the name that lists use.
    pub id: SessionId,
}

/// A session in a list. Its metadata is in `GET /sessions/{id}` only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "Session")
)]
pub struct SessionInfo {
    /// Identifies the session in all requests.
    pub session_id: SessionId,
    /// The model of the latest turn.
    pub active_model: String,
    /// The routing policy in use.
    pub routing_policy_version: String,
    /// The folder that the tools of the session work in.
    pub workspace_path: Option<String>,
    /// The session that started this one, if this one is a worker.
    pub parent_session_id: Option<SessionId>,
    /// The agent of the session, if the session is a worker.
    #[serde(default)]
    pub agent: Option<String>,
    /// The tenant that owns the session.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "uuid")))]
    pub tenant_id: String,
    /// The principal within the tenant that owns the session.
    pub principal: String,
    /// The episode that groups the turns of the session.
    pub episode_id: EpisodeId,
    /// The cost of all model calls so far.
    pub cost_so_far_usd: f64,
    /// The number of turns that were started.
    pub turn_count: u64,
    /// When the session was created.
    pub created_at: Timestamp,
    /// When the latest event was stored.
    pub updated_at: Timestamp,
}

impl From<SessionRow> for SessionInfo {
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
            cost_so_far_usd: row.cost_usd,
            turn_count: row.turn_count,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// 200 of `GET /sessions/{id}`: the session and a token for its stream (S3-001).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionAttached {
    /// The fields of the session.
    #[serde(flatten)]
    pub session: SessionInfo,
    /// The data that the creator gave.
    pub metadata: JsonObject,
    /// The pack that new turns run, for people: its name, version and model; absent without a pack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pack: Option<String>,
    /// Opens one connection to the stream, once, within 60 s.
    pub attach_token: String,
    /// The URL of the stream, including the token.
    pub ws_url: String,
}

impl SessionAttached {
    /// The response to a client that used `host` in its request (S3-002).
    pub fn new(mut row: SessionRow, attach_token: String, base: &str) -> Self {
        let ws_url = format!("{base}/sessions/{}/stream?attach={attach_token}", row.id);
        Self {
            metadata: std::mem::take(&mut row.metadata),
            session: row.into(),
            pack: None,
            attach_token,
            ws_url,
        }
    }

    /// The same with the pack that new turns run.
    #[must_use]
    pub fn with_pack(self, pack: Option<String>) -> Self {
        Self { pack, ..self }
    }
}

/// 200 of `GET /sessions`, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionList {
    /// One page of sessions.
    pub sessions: Vec<SessionInfo>,
    /// The `before` of the next page; null on the last page.
    pub next: Option<SessionId>,
}

/// A worker that a turn of the session has started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Worker {
    /// The session of the worker.
    #[serde(flatten)]
    pub session: SessionInfo,
    /// The newest turn of the worker, running or ended.
    pub turn: Option<TurnInfo>,
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
pub struct WorkerList {
    /// One page of workers.
    pub workers: Vec<Worker>,
    /// The `before` of the next page; null on the last page.
    pub next: Option<SessionId>,
}

//! `session.*`: the first and the last event of a session.

use serde::{Deserialize, Serialize};

use crate::id::EpisodeId;

/// A session was created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Created"))]
pub struct SessionCreated {
    /// The working folder, if the client set one.
    pub workspace_path: Option<String>,
    /// The session's first episode.
    pub episode_id: EpisodeId,
}

/// A session was closed and accepts no more turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Closed"))]
pub struct SessionClosed {
    pub reason: String,
}

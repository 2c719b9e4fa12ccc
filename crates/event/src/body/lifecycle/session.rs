//! `session.*`: a session's first and last event.

use serde::{Deserialize, Serialize};

use crate::id::EpisodeId;

/// A session exists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Created {
    /// The folder it works in, if it was given one.
    pub workspace_path: Option<String>,
    /// The episode it starts with.
    pub episode_id: EpisodeId,
}

/// A session takes no more turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Closed {
    /// Why.
    pub reason: String,
}

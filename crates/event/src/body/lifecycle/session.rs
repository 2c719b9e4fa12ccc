//! `session.*`: the first and the last event of a session.

use serde::{Deserialize, Serialize};

use crate::id::EpisodeId;

/// A session was created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionCreated {
    /// The working folder, if the client set one.
    pub workspace_path: Option<String>,
    /// The session's first episode.
    pub episode_id: EpisodeId,
}

/// A session was closed and accepts no more turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionClosed {
    /// The cause of the end: `deleted`.
    pub reason: String,
}

impl SessionClosed {
    server_texts! {
        /// Every [`reason`](Self::reason) that the server gives.
        REASONS {
            /// The session was deleted.
            DELETED = "deleted",
        }
    }
}

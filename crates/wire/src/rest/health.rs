//! `/healthz` and `/readyz`: whether the process lives, and whether it takes work.

use serde::{Deserialize, Serialize};

/// 200 of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Health {
    /// The word.
    pub status: Status,
}

/// How the server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(rename = "HealthStatus"))]
pub enum Status {
    /// It lives.
    Ok,
    /// It takes work.
    Ready,
}

//! `/healthz` and `/readyz`: whether the process runs, and whether it accepts new turns.

use serde::{Deserialize, Serialize};

/// 200 of `GET /healthz` and `GET /readyz`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "Health")
)]
pub struct HealthReport {
    /// `ok` from `/healthz`, `ready` from `/readyz`.
    pub status: HealthStatus,
}

/// The state of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HealthStatus {
    /// The process runs, ready or not.
    Ok,
    /// The server accepts new turns.
    Ready,
}

//! `route.*`: which model serves the turn.

use serde::{Deserialize, Serialize};

/// The model was chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Decided {
    /// The model, `provider:model`.
    pub model: String,
    /// The policy that chose.
    pub routing_policy_version: String,
    /// Why.
    pub reason: String,
    /// What else could have been.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<String>,
}

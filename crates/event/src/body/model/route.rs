//! `route.*`: the model that serves a turn.

use serde::{Deserialize, Serialize};

/// Routing chose the model of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RouteDecided {
    /// The model that is called, as `<provider>:<model>`.
    pub model: String,
    /// The version of the routing policy that decided.
    pub routing_policy_version: String,
    /// The rule or default that matched.
    pub reason: String,
    /// The other models that routing considered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<String>,
}

//! `routing.*`: the rules that choose models, apart from any turn.

use serde::{Deserialize, Serialize};

/// The routing policy was read anew: turns that start from here on are routed by it. The turn in
/// flight keeps the one it was bound to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicyReloaded {
    /// The version in force now.
    pub routing_policy_version: String,
    /// The version in force before.
    pub previous_version: Option<String>,
}

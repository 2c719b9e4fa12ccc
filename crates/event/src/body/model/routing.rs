//! `routing.*`: changes of the routing policy, outside of any turn.

use serde::{Deserialize, Serialize};

/// The routing policy was reloaded. It applies to turns that start after this event; the running
/// turn keeps the policy that it was bound to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicyReloaded {
    /// The version that applies from now on.
    pub routing_policy_version: String,
    /// The version that applied before.
    pub previous_version: Option<String>,
}

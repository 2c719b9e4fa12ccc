//! Another routing policy, while the server runs (S3-104).

use crate::lifecycle::core::Sessions;
use crate::registry::upkeep;

impl Sessions {
    /// The routing policy is another now: sessions that are made from here on have it, and those
    /// with a turn in flight or a client are told, once; while the disk is full, when there is
    /// room again. Others learn of it when their next turn is routed. Gives back how many were
    /// told.
    pub fn policy_reloaded(&self, version: &str) -> usize {
        self.house.policy.lock().replace(version);
        if self.storage_full() {
            tracing::warn!("the disk is full: sessions are told of the routing policy later");
        }
        upkeep::tell_policy(&self.house, &self.registry)
    }

    /// The version of the routing policy in force.
    pub fn policy(&self) -> String {
        self.house.policy.lock().version().to_owned()
    }
}

//! The routing policy in force, and which one sessions know of: the same but while the disk is full,
//! when nobody is told.

use turnwire_event::Body;
use turnwire_event::body::routing::PolicyReloaded;

/// The routing policy of a server.
#[derive(Debug)]
pub struct ActiveRoutingPolicy {
    /// The version in force.
    version: String,
    /// The version that sessions know of.
    told: String,
}

impl ActiveRoutingPolicy {
    /// The policy that a server starts with.
    pub fn new(version: &str) -> Self {
        Self {
            version: version.to_owned(),
            told: version.to_owned(),
        }
    }

    /// The version in force.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Another is in force.
    pub(crate) fn replace(&mut self, version: &str) {
        version.clone_into(&mut self.version);
    }

    /// What is to be told; from here on it counts as told. None if sessions know.
    pub(crate) fn news(&mut self) -> Option<Body> {
        if self.told == self.version {
            return None;
        }
        let previous = std::mem::replace(&mut self.told, self.version.clone());
        Some(Body::RoutingPolicyReloaded(PolicyReloaded {
            routing_policy_version: self.version.clone(),
            previous_version: (!previous.is_empty()).then_some(previous),
        }))
    }
}

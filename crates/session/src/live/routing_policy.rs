//! The version of the routing policy in force, and the version last announced to sessions: they
//! differ only while the disk is full, when no announcement is written.

use turnwire_event::Body;
use turnwire_event::body::routing::PolicyReloaded;

/// The routing policy that a server routes new turns by.
#[derive(Debug)]
pub(crate) struct ActiveRoutingPolicy {
    /// The version in force.
    pub(crate) version: String,
    /// The version in the last `routing.policy_reloaded`, or the one at the start.
    announced: String,
}

impl ActiveRoutingPolicy {
    /// The policy at the start of the server: nothing is announced.
    pub(crate) fn new(version: &str) -> Self {
        Self {
            version: version.to_owned(),
            announced: version.to_owned(),
        }
    }

    /// The event that announces the version in force, once; `None` if it was announced.
    pub(crate) fn take_announcement(&mut self) -> Option<Body> {
        if self.announced == self.version {
            return None;
        }
        let previous = std::mem::replace(&mut self.announced, self.version.clone());
        Some(Body::RoutingPolicyReloaded(PolicyReloaded {
            routing_policy_version: self.version.clone(),
            previous_version: (!previous.is_empty()).then_some(previous),
        }))
    }
}

//! The routing policy in force, and telling sessions that it was replaced (S3-104).

use std::sync::Arc;

use turnwire_event::body::routing::PolicyReloaded;
use turnwire_event::{Actor, Body};

use crate::live::Live;
use crate::sessions::Sessions;

impl Sessions {
    /// The routing policy is another now: sessions that are made from here on have it, and those
    /// with a turn in flight or a client are told, once. Others learn of it when their next turn is
    /// routed. Gives back how many were told.
    pub fn policy_reloaded(&self, version: &str) -> usize {
        // Held to the end, so that two reloads are told in the order they happened.
        let mut policy = self.house.policy.lock();
        if *policy == version {
            return 0;
        }
        let previous = std::mem::replace(&mut *policy, version.to_owned());
        if self.storage_full() {
            tracing::warn!("the disk is full: sessions are not told of the new routing policy");
            return 0;
        }
        let body = Body::RoutingPolicyReloaded(PolicyReloaded {
            routing_policy_version: version.to_owned(),
            previous_version: (!previous.is_empty()).then_some(previous),
        });
        let tell = |live: &&Arc<Live>| live.tell(Actor::SYSTEM, body.clone());
        self.registry.all().iter().filter(tell).count()
    }

    /// The version of the routing policy in force.
    pub fn policy(&self) -> String {
        self.house.policy.lock().clone()
    }
}

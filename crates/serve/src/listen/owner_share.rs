//! The share of one owner in the connections: a connection counts for its owner from the head of a
//! request to the end of the answer, or to the end of the stream that takes it over.

use std::sync::Arc;

use turnwire_event::{Owner, metric};
use turnwire_fair::{FairLimits, FairRefusal, FairSlot, FairSlots};

use crate::error::RequestFault;

/// Bounds the requests and streams of each owner with an [`OwnerPermit`] each.
#[derive(Clone, Debug)]
pub struct OwnerShares {
    slots: Arc<FairSlots<Owner>>,
    limits: FairLimits,
}

/// The permit of one request or stream; dropping the last clone makes room for another.
#[derive(Clone, Debug)]
pub struct OwnerPermit(#[allow(dead_code, reason = "held, never read")] Arc<FairSlot<Owner>>);

impl OwnerShares {
    /// Allows `total` requests and streams, and `per_owner` to each owner.
    pub fn new(total: usize, per_owner: usize) -> Self {
        let limits = FairLimits {
            total,
            per_owner: per_owner.min(total),
            waiting: 0,
            waiting_per_owner: 0,
        };
        Self {
            slots: FairSlots::new(limits),
            limits,
        }
    }

    /// A permit for one more request or stream of `owner`.
    pub fn acquire(&self, owner: &Owner) -> Result<OwnerPermit, RequestFault> {
        let slot = self.slots.try_acquire(owner).map_err(|refusal| {
            let (scope, max, detail) = match refusal {
                FairRefusal::OwnerFull => (
                    "owner",
                    self.limits.per_owner,
                    "You use as many connections as one principal may have; close some.",
                ),
                FairRefusal::AllFull => (
                    "all",
                    self.limits.total,
                    "All connections of this server are taken; try again soon.",
                ),
            };
            metrics::counter!(metric::LIMIT_REFUSED_TOTAL, "limit" => "connections", "scope" => scope)
                .increment(1);
            RequestFault::limit_reached(detail, max)
        })?;
        Ok(OwnerPermit(Arc::new(slot)))
    }
}

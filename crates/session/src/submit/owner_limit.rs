//! Bounds that owners share: each owner has a share, and all together have a total. What is above
//! either is refused with an [`Error`] that names the bound.

use std::sync::Arc;

use turnwire_event::{Owner, metric};
use turnwire_fair::{FairLimits, FairRefusal, FairSlot, FairSlots};

use crate::error::{Error, SharedResource};

impl SharedResource {
    /// The error of a request that would exceed the bounds in `limits`; counted in a metric.
    pub(crate) fn refused(self, refusal: FairRefusal, limits: FairLimits) -> Error {
        let (scope, max) = match refusal {
            FairRefusal::OwnerFull => ("owner", limits.per_owner),
            FairRefusal::AllFull => ("all", limits.total),
        };
        metrics::counter!(metric::LIMIT_REFUSED_TOTAL, "limit" => self.name(), "scope" => scope)
            .increment(1);
        Error::LimitReached {
            resource: self,
            refusal,
            max,
        }
    }
}

/// The slots of one [`SharedResource`].
pub(crate) struct OwnerLimit {
    resource: SharedResource,
    limits: FairLimits,
    slots: Arc<FairSlots<Owner>>,
}

impl OwnerLimit {
    /// `total` slots for all owners together, and `per_owner` for each.
    pub(crate) fn new(resource: SharedResource, total: usize, per_owner: usize) -> Self {
        let limits = FairLimits {
            total,
            per_owner: per_owner.min(total),
            // Only turns that are accepted already wait: they are bounded as queued turns.
            waiting: usize::MAX,
            waiting_per_owner: usize::MAX,
        };
        Self {
            resource,
            limits,
            slots: FairSlots::new(limits),
        }
    }

    /// A slot for `owner`, or the refusal.
    pub(crate) fn try_acquire(&self, owner: &Owner) -> Result<FairSlot<Owner>, Error> {
        let slot = self.slots.try_acquire(owner);
        slot.map_err(|refusal| self.resource.refused(refusal, self.limits))
    }

    /// Waits for a slot for `owner`.
    pub(crate) async fn acquire(&self, owner: &Owner) -> Result<FairSlot<Owner>, Error> {
        let slot = self.slots.acquire(owner).await;
        slot.map_err(|refusal| self.resource.refused(refusal, self.limits))
    }
}

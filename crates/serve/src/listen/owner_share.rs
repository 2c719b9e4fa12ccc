//! The shares of one owner: in the connections, which count from the head of a request to the end of
//! the answer or of the stream that takes them over, and in the large bodies that are in memory.

use std::sync::Arc;

use turnwire_event::{Owner, metric};
use turnwire_fair::{FairLimits, FairRefusal, FairSlot, FairSlots};

use crate::config::owner_share;
use crate::error::RequestFault;

/// Bodies of requests and answers above this size count as large transfers. Smaller ones are bounded
/// by the number of connections.
pub const TRANSFER_BYTES_MIN: u64 = 64 << 10;

/// Bounds one resource of each owner, with an [`OwnerPermit`] for each use.
#[derive(Clone, Debug)]
pub struct OwnerShares {
    slots: Arc<FairSlots<Owner>>,
    limits: FairLimits,
    texts: &'static ShareTexts,
    /// The bytes for which a body takes one slot.
    slot_bytes: u64,
}

/// The name of a shared resource, and what a refused client is told.
#[derive(Debug)]
struct ShareTexts {
    /// The label of the metric.
    name: &'static str,
    owner_full: &'static str,
    all_full: &'static str,
}

const CONNECTIONS: ShareTexts = ShareTexts {
    name: "connections",
    owner_full: "You use as many connections as one principal may have; close some.",
    all_full: "All connections of this server are taken; try again soon.",
};
const TRANSFERS: ShareTexts = ShareTexts {
    name: "transfers",
    owner_full: "You have as many large bodies on their way as one principal may have; read the \
                 answers to their end, and try again.",
    all_full: "This server has as many large bodies on their way as it may have; try again soon.",
};

const ATTACH_TOKENS: ShareTexts = ShareTexts {
    name: "attach_tokens",
    owner_full: "You have as many unused attach tokens as one principal may have; use them or wait \
                 until they expire.",
    all_full: "The server has as many unused attach tokens as it may; try again soon.",
};

const PROBES: ShareTexts = ShareTexts {
    name: "probes",
    owner_full: "As many probes of this caller are being answered as may be; read their answers.",
    all_full: "As many probes are being answered as may be; try again soon.",
};

/// The permit of one use; dropping the last clone makes room for another.
#[derive(Clone, Debug)]
pub struct OwnerPermit(#[allow(dead_code, reason = "held, never read")] Arc<[FairSlot<Owner>]>);

/// The permit of a large body, held while it is received or until it is written.
#[derive(Clone, Debug)]
pub struct TransferPermit(#[allow(dead_code, reason = "held, never read")] OwnerPermit);

impl OwnerShares {
    /// Allows `total` requests and streams, and `per_owner` to each owner, but not all to one.
    pub fn new(total: usize, per_owner: usize) -> Self {
        Self::of(&CONNECTIONS, total, per_owner, u64::MAX)
    }

    /// Allows large bodies in `total` slots, and `per_owner` to each owner, but not all to one. A body
    /// takes a slot for each `slot_bytes` that it begins.
    pub fn transfers(total: usize, per_owner: usize, slot_bytes: usize) -> Self {
        Self::of(&TRANSFERS, total, per_owner, slot_bytes as u64)
    }

    /// Like [`new`](Self::new) and [`transfers`](Self::transfers), for probes of the operator.
    pub fn probes(total: usize, per_owner: usize, slot_bytes: usize) -> Self {
        Self::of(&PROBES, total, per_owner, slot_bytes as u64)
    }

    /// Like [`new`](Self::new), for attach tokens.
    pub fn attach_tokens(total: usize, per_owner: usize) -> Self {
        Self::of(&ATTACH_TOKENS, total, per_owner, u64::MAX)
    }

    fn of(texts: &'static ShareTexts, total: usize, per_owner: usize, slot_bytes: u64) -> Self {
        let limits = FairLimits {
            total,
            per_owner: owner_share(per_owner, total),
            waiting: 0,
            waiting_per_owner: 0,
        };
        Self {
            slots: FairSlots::new(limits),
            limits,
            texts,
            slot_bytes: slot_bytes.max(1),
        }
    }

    /// A permit for one more use of `owner`.
    pub fn acquire(&self, owner: &Owner) -> Result<OwnerPermit, RequestFault> {
        self.acquire_slots(owner, 1)
    }

    /// The permit of a body of `bytes`; `None` if it is small. A body larger than the share of one owner
    /// takes the whole share, so that it can be sent while the owner has no other.
    pub fn acquire_body(
        &self,
        owner: &Owner,
        bytes: u64,
    ) -> Result<Option<TransferPermit>, RequestFault> {
        if bytes <= TRANSFER_BYTES_MIN {
            return Ok(None);
        }
        let count = usize::try_from(bytes.div_ceil(self.slot_bytes)).unwrap_or(usize::MAX);
        let permit = self.acquire_slots(owner, count.min(self.limits.per_owner))?;
        Ok(Some(TransferPermit(permit)))
    }

    /// Takes `count` slots, or none of them.
    fn acquire_slots(&self, owner: &Owner, count: usize) -> Result<OwnerPermit, RequestFault> {
        let slots = (0..count).map(|_| self.slots.try_acquire(owner));
        let slots: Result<Arc<[_]>, FairRefusal> = slots.collect();
        slots.map(OwnerPermit).map_err(|refusal| {
            let (scope, max, detail) = match refusal {
                FairRefusal::OwnerFull => ("owner", self.limits.per_owner, self.texts.owner_full),
                FairRefusal::AllFull => ("all", self.limits.total, self.texts.all_full),
            };
            let limit = self.texts.name;
            metrics::counter!(metric::LIMIT_REFUSED_TOTAL, "limit" => limit, "scope" => scope)
                .increment(1);
            RequestFault::limit_reached(detail, max)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::TenantId;

    #[test]
    fn body_takes_slots_by_its_size() {
        let owner = |name: &str| Owner {
            tenant: TenantId::default(),
            principal: name.parse().expect("a principal"),
        };
        let (ann, bob) = (owner("ann"), owner("bob"));
        let shares = OwnerShares::transfers(8, 4, 1 << 20);
        let take = |owner, bytes| shares.acquire_body(owner, bytes);
        assert!(take(&ann, TRANSFER_BYTES_MIN).expect("small").is_none());
        let three = take(&ann, (2 << 20) + 1).expect("three of four");
        assert!(take(&ann, 2 << 20).is_err(), "two more");
        let one = take(&ann, 1 << 20).expect("the fourth");
        let other = take(&bob, 1 << 30).expect("the whole share of another");
        assert!(take(&bob, 1 << 20).is_err());
        drop((three, other));
        assert!(take(&ann, 1 << 30).is_err(), "one is on its way");
        drop(one);
        assert!(take(&ann, 1 << 30).is_ok(), "alone");
        assert_eq!(shares.slots.held(), 0);
    }
}

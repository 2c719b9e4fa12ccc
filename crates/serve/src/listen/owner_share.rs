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

/// The permit of one use; dropping the last clone makes room for another.
#[derive(Clone, Debug)]
pub struct OwnerPermit(#[allow(dead_code, reason = "held, never read")] Arc<FairSlot<Owner>>);

/// The permit of a large answer, held until it is written.
#[derive(Clone, Debug)]
pub struct TransferPermit(#[allow(dead_code, reason = "held, never read")] OwnerPermit);

impl OwnerShares {
    /// Allows `total` requests and streams, and `per_owner` to each owner, but not all to one.
    pub fn new(total: usize, per_owner: usize) -> Self {
        Self::of(&CONNECTIONS, total, per_owner)
    }

    /// Allows `total` large bodies, and `per_owner` to each owner, but not all to one.
    pub fn transfers(total: usize, per_owner: usize) -> Self {
        Self::of(&TRANSFERS, total, per_owner)
    }

    fn of(texts: &'static ShareTexts, total: usize, per_owner: usize) -> Self {
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
        }
    }

    /// A permit for one more use of `owner`.
    pub fn acquire(&self, owner: &Owner) -> Result<OwnerPermit, RequestFault> {
        let slot = self.slots.try_acquire(owner).map_err(|refusal| {
            let (scope, max, detail) = match refusal {
                FairRefusal::OwnerFull => ("owner", self.limits.per_owner, self.texts.owner_full),
                FairRefusal::AllFull => ("all", self.limits.total, self.texts.all_full),
            };
            let limit = self.texts.name;
            metrics::counter!(metric::LIMIT_REFUSED_TOTAL, "limit" => limit, "scope" => scope)
                .increment(1);
            RequestFault::limit_reached(detail, max)
        })?;
        Ok(OwnerPermit(Arc::new(slot)))
    }

    /// The permit of an answer of `bytes`; `None` if it is small.
    pub fn acquire_answer(
        &self,
        owner: &Owner,
        bytes: u64,
    ) -> Result<Option<TransferPermit>, RequestFault> {
        if bytes <= TRANSFER_BYTES_MIN {
            return Ok(None);
        }
        self.acquire(owner)
            .map(|permit| Some(TransferPermit(permit)))
    }
}

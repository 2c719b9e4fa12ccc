//! The slots of writes that requests wait for: creating and deleting a session, submitting a turn,
//! feedback, decisions on approvals. The writer takes its jobs in their order, so the number of jobs
//! that one owner may have there bounds how long another owner waits.
//!
//! ```text
//!   request ──▶ reads ──▶ write slot ──▶ writer ──▶ durable: the slot is free, the answer is sent
//! ```
//!
//! - A slot is held until its write is durable, also if the client goes away before.
//! - Who holds a slot waits for the writer alone: for no read, no turn and no lock on a key. The writer
//!   waits for no slot. So no two can wait for each other.
//! - The events of running turns, of workers and of cancels take no slot: they belong to a turn whose
//!   submit took one, and a turn can be cancelled once.

use std::sync::Arc;
use std::time::Duration;

use turnwire_event::Owner;
use turnwire_fair::{FairLimits, FairSlot, FairSlots};

use crate::error::Error;
use crate::options::Options;

/// How long a request waits for its slot: many times what a busy disk needs.
const SLOT_WAIT: Duration = Duration::from_secs(10);

/// The slot of one write.
pub(crate) type WriteSlot = FairSlot<Owner>;

/// The slots of all writes that requests wait for.
pub(crate) struct WriteSlots {
    slots: Arc<FairSlots<Owner>>,
}

impl WriteSlots {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            slots: FairSlots::new(FairLimits {
                total: options.write_slots,
                per_owner: options.write_slots_per_owner,
                // What waits is a request with its connection: both are bounded.
                waiting: usize::MAX,
                waiting_per_owner: options.writes_waiting_per_owner,
            }),
        }
    }

    /// Waits for a slot. Fails if too many writes of `owner` wait, or if the writer does not go on.
    pub(crate) async fn acquire(&self, owner: &Owner) -> Result<WriteSlot, Error> {
        let slot = tokio::time::timeout(SLOT_WAIT, self.slots.acquire(owner)).await;
        match slot {
            Ok(Ok(slot)) => Ok(slot),
            Ok(Err(_)) | Err(_) => Err(Error::TooManyWrites),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use turnwire_event::TenantId;

    fn owner(name: &str) -> Owner {
        Owner {
            tenant: TenantId(0),
            principal: name.parse().expect("a principal"),
        }
    }

    #[tokio::test]
    async fn full_queue_of_one_owner_delays_and_refuses_no_other() {
        let slots = Arc::new(WriteSlots::new(&Options {
            write_slots: 3,
            write_slots_per_owner: 2,
            writes_waiting_per_owner: 1,
            ..Options::default()
        }));
        let greedy = owner("greedy");
        let held = [
            slots.acquire(&greedy).await.expect("the first slot"),
            slots.acquire(&greedy).await.expect("the second slot"),
        ];
        let waiting = {
            let (slots, greedy) = (slots.clone(), greedy.clone());
            tokio::spawn(async move { slots.acquire(&greedy).await.map(drop) })
        };
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished(), "the owner has two slots");
        let refused = slots.acquire(&greedy).await.err();
        assert_eq!(
            refused,
            Some(Error::TooManyWrites),
            "one write waits already"
        );
        for name in ["second", "third"] {
            let slot = slots.acquire(&owner(name)).await;
            drop(slot.expect("a slot at once"));
        }
        drop(held);
        assert_eq!(waiting.await.expect("a task"), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn wait_for_a_slot_is_bounded() {
        let slots = WriteSlots::new(&Options {
            write_slots_per_owner: 1,
            ..Options::default()
        });
        let _held = slots.acquire(&owner("p")).await.expect("a slot");
        let refused = slots.acquire(&owner("p")).await.err();
        assert_eq!(refused, Some(Error::TooManyWrites));
    }
}

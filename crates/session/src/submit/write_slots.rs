//! The slots of writes that requests wait for: creating and deleting a session, submitting a turn,
//! feedback, decisions on approvals. The writer takes its jobs in their order, so the number of jobs
//! that one owner may have there bounds how long another owner waits.
//!
//! ```text
//!   request ──▶ reads ──▶ write slot ──▶ writer ──▶ durable: the slot is free, the answer is sent
//! ```
//!
//! - A large write needs a second slot, of which an owner has one: a megabyte takes as long as hundreds
//!   of small writes. It is taken first, and who holds one waits for nothing but the other slot.
//! - A slot is held until its write is durable, also if the client goes away before.
//! - Who holds a slot waits for the writer alone: for no read, no turn and no lock on a key. The writer
//!   waits for no slot. So no two can wait for each other.
//! - The events of running turns, of workers and of cancels take no slot: they belong to a turn whose
//!   submit took one, and a turn can be cancelled once.

use std::sync::Arc;
use std::time::Duration;

use turnwire_event::Owner;
use turnwire_fair::{FairLimits, FairRefusal, FairSlot, FairSlots};

use crate::error::Error;
use crate::options::Options;

/// How long a request waits for its slot: many times what a busy disk needs.
const SLOT_WAIT: Duration = Duration::from_secs(10);

/// Writes above this size are large; smaller ones take about as long as a commit.
const LARGE_BYTES_MIN: usize = 64 << 10;

/// The slot of one write.
#[derive(Debug)]
pub(crate) struct WriteSlot {
    _slot: FairSlot<Owner>,
    _large: Option<FairSlot<Owner>>,
}

/// The slots of all writes that requests wait for.
pub(crate) struct WriteSlots {
    slots: Arc<FairSlots<Owner>>,
    /// Those of large writes.
    large: Arc<FairSlots<Owner>>,
}

impl WriteSlots {
    pub(crate) fn new(options: &Options) -> Self {
        let limits = |total, per_owner| FairLimits {
            total,
            per_owner,
            // What waits is a request with its connection: both are bounded.
            waiting: usize::MAX,
            waiting_per_owner: options.writes_waiting_per_owner,
        };
        let (total, per_owner) = (options.write_slots, options.write_slots_per_owner);
        Self {
            slots: FairSlots::new(limits(total, per_owner)),
            large: FairSlots::new(limits(options.large_write_slots, 1)),
        }
    }

    /// Waits for the slot of a write of `bytes`. Fails if too many writes of `owner` wait, or if the
    /// writer does not go on.
    pub(crate) async fn acquire(&self, owner: &Owner, bytes: usize) -> Result<WriteSlot, Error> {
        let slots = async {
            let _large = match bytes > LARGE_BYTES_MIN {
                true => Some(self.large.acquire(owner).await?),
                false => None,
            };
            let _slot = self.slots.acquire(owner).await?;
            Ok::<_, FairRefusal>(WriteSlot { _slot, _large })
        };
        match tokio::time::timeout(SLOT_WAIT, slots).await {
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
            slots.acquire(&greedy, 0).await.expect("the first slot"),
            slots.acquire(&greedy, 0).await.expect("the second slot"),
        ];
        let waiting = {
            let (slots, greedy) = (slots.clone(), greedy.clone());
            tokio::spawn(async move { slots.acquire(&greedy, 0).await.map(drop) })
        };
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished(), "the owner has two slots");
        let refused = slots.acquire(&greedy, 0).await.err();
        assert_eq!(
            refused,
            Some(Error::TooManyWrites),
            "one write waits already"
        );
        for name in ["second", "third"] {
            let slot = slots.acquire(&owner(name), 0).await;
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
        let _held = slots.acquire(&owner("p"), 0).await.expect("a slot");
        let refused = slots.acquire(&owner("p"), 0).await.err();
        assert_eq!(refused, Some(Error::TooManyWrites));
    }

    #[tokio::test]
    async fn large_writes_of_one_owner_follow_each_other() {
        let slots = WriteSlots::new(&Options::default());
        let (greedy, large) = (owner("greedy"), LARGE_BYTES_MIN + 1);
        let first = slots.acquire(&greedy, large).await.expect("a slot");
        let mut second = std::pin::pin!(slots.acquire(&greedy, large));
        let small = slots.acquire(&greedy, LARGE_BYTES_MIN);
        let other_owner = owner("other");
        let other = slots.acquire(&other_owner, large);
        tokio::select! {
            biased;
            _ = &mut second => panic!("the first large write is not durable"),
            slots = async { tokio::join!(small, other) } => {
                assert!(slots.0.is_ok() && slots.1.is_ok());
            }
        }
        drop(first);
        assert!(second.await.is_ok());
    }
}

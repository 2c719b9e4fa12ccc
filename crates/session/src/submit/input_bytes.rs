//! The memory of the inputs of accepted turns, which owners share. A large input is in memory several
//! times while its turn runs: in the message, the history, the request of the model and the frames.

use std::sync::Arc;

use turnwire_event::Owner;
use turnwire_fair::{FairLimits, FairSlot, FairSlots};

use crate::error::{Error, SharedResource};
use crate::options::Options;

/// The bytes of one slot. Inputs up to this size take none: the number of turns bounds them.
const SLOT_BYTES: usize = 64 << 10;

/// The bytes that inputs of running and queued turns may have.
pub(crate) struct InputBytes {
    /// In bytes, for the refusal.
    limits: FairLimits,
    slots: Arc<FairSlots<Owner>>,
    slots_per_owner: usize,
}

/// The share of one turn in [`InputBytes`], held while the turn is queued or runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct InputPermit(
    #[allow(dead_code, reason = "held, never read")] Arc<[FairSlot<Owner>]>,
);

/// What a running turn holds of its owner's shares.
#[derive(Debug)]
pub(crate) struct TurnPermit {
    _slot: FairSlot<Owner>,
    _input: InputPermit,
}

impl TurnPermit {
    /// The permit of a turn with its own input.
    pub(crate) fn new(slot: FairSlot<Owner>, input: InputPermit) -> Self {
        Self {
            _slot: slot,
            _input: input,
        }
    }
}

impl From<FairSlot<Owner>> for TurnPermit {
    /// The permit of a turn whose input is part of another turn.
    fn from(slot: FairSlot<Owner>) -> Self {
        Self::new(slot, InputPermit::default())
    }
}

impl InputBytes {
    pub(crate) fn new(options: &Options) -> Self {
        let limits = FairLimits {
            total: options.inputs_bytes_max,
            per_owner: options.inputs_bytes_max_per_owner,
            waiting: 0,
            waiting_per_owner: 0,
        };
        let slots = |bytes: usize| (bytes / SLOT_BYTES).max(1);
        let slots_per_owner = slots(limits.per_owner);
        Self {
            limits,
            slots: FairSlots::new(FairLimits {
                total: slots(limits.total),
                per_owner: slots_per_owner,
                ..limits
            }),
            slots_per_owner,
        }
    }

    /// The share of a turn of `owner` whose input has `bytes`, or the refusal. An input larger than the
    /// share of one owner takes all of it.
    pub(crate) fn try_acquire(&self, owner: &Owner, bytes: usize) -> Result<InputPermit, Error> {
        if bytes <= SLOT_BYTES {
            return Ok(InputPermit::default());
        }
        let count = bytes.div_ceil(SLOT_BYTES).min(self.slots_per_owner);
        let slots = (0..count).map(|_| self.slots.try_acquire(owner));
        let slots: Result<Arc<[_]>, _> = slots.collect();
        slots
            .map(InputPermit)
            .map_err(|refusal| SharedResource::InputBytes.refused(refusal, self.limits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use turnwire_event::TenantId;
    use turnwire_fair::FairRefusal;

    #[test]
    fn large_inputs_of_one_owner_leave_room_for_others() {
        let owner = |name: &str| Owner {
            tenant: TenantId(0),
            principal: name.parse().expect("a principal"),
        };
        let inputs = InputBytes::new(&Options {
            inputs_bytes_max: 4 << 20,
            inputs_bytes_max_per_owner: 2 << 20,
            ..Options::default()
        });
        let (greedy, other) = (owner("greedy"), owner("other"));
        let first = inputs.try_acquire(&greedy, 1 << 20).expect("half a share");
        let second = inputs.try_acquire(&greedy, 1 << 20).expect("the share");
        assert_eq!(
            inputs.try_acquire(&greedy, SLOT_BYTES + 1).err(),
            Some(Error::LimitReached {
                resource: SharedResource::InputBytes,
                refusal: FairRefusal::OwnerFull,
                max: 2 << 20,
            })
        );
        assert!(inputs.try_acquire(&greedy, SLOT_BYTES).is_ok(), "small");
        // More than one owner may have: it takes the whole share.
        let whole = inputs.try_acquire(&other, 64 << 20).expect("the share");
        assert!(inputs.try_acquire(&other, 1 << 20).is_err());
        drop((first.clone(), second, whole));
        assert!(
            inputs.try_acquire(&greedy, 2 << 20).is_err(),
            "a clone holds"
        );
        drop(first);
        assert!(inputs.try_acquire(&greedy, 2 << 20).is_ok());
    }
}

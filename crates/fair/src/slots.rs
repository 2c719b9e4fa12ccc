//! [`FairSlots`]: a counting semaphore with an account for each owner.
//!
//! ```text
//!   owner   held   waiting            total 4, per owner 3
//!   ann      3     a4 a5 a6           at its bound: waits whatever is free
//!   bob      1     b2                 ◀ the next free slot: fewest held among those that may
//! ```
//!
//! - An owner at its bound never delays another owner.
//! - Among owners that hold equally many slots, the one that has waited longest is next; within an
//!   owner, requests are served in their order.
//! - A free slot is never kept back while somebody waits who may have it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The bounds of a [`FairSlots`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairLimits {
    /// Slots held by all owners together.
    pub total: usize,
    /// Slots held by one owner.
    pub per_owner: usize,
    /// Requests of all owners that wait for a slot.
    pub waiting: usize,
    /// Requests of one owner that wait for a slot.
    pub waiting_per_owner: usize,
}

/// Why a request gets no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FairRefusal {
    /// The owner has as many as one owner may have: the others are not affected.
    #[error("the owner has reached its own limit")]
    OwnerFull,
    /// All owners together have as many as there may be.
    #[error("the limit of all owners together is reached")]
    AllFull,
}

/// Slots shared by owners of type `K`. Neither a slot nor a waiting request is ever lost: dropping a
/// [`FairSlot`] frees it, and dropping the future of [`acquire`](Self::acquire) leaves the queue.
pub struct FairSlots<K: Clone + Eq + Hash> {
    state: Mutex<SlotState<K>>,
}

/// One slot. It is free again when this is dropped.
pub struct FairSlot<K: Clone + Eq + Hash> {
    slots: Arc<FairSlots<K>>,
    owner: K,
}

struct SlotState<K: Clone + Eq + Hash> {
    limits: FairLimits,
    held: usize,
    waiting: usize,
    /// Owners that hold slots or wait; others have no entry.
    owners: HashMap<K, OwnerAccount<K>>,
    /// The owners that wait and are below their bound, in the order in which they are served.
    eligible: BTreeMap<QueueRank, K>,
    /// The last [`QueueRank::ticket`]: tickets are unique.
    last_ticket: u64,
}

/// The place of an owner in the queue: the slots that it holds, then how long ago it was served or
/// began to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct QueueRank {
    held: usize,
    ticket: u64,
}

struct OwnerAccount<K: Clone + Eq + Hash> {
    held: usize,
    waiting: VecDeque<oneshot::Sender<FairSlot<K>>>,
    ticket: u64,
    /// The key of this owner in [`SlotState::eligible`], if it is there.
    rank: Option<QueueRank>,
}

impl<K: Clone + Eq + Hash> FairSlots<K> {
    /// Free slots within `limits`. A bound of 0 slots means 1: otherwise a request would wait forever.
    pub fn new(limits: FairLimits) -> Arc<Self> {
        let total = limits.total.max(1);
        let limits = FairLimits {
            total,
            per_owner: limits.per_owner.clamp(1, total),
            ..limits
        };
        Arc::new(Self {
            state: Mutex::new(SlotState {
                limits,
                held: 0,
                waiting: 0,
                owners: HashMap::new(),
                eligible: BTreeMap::new(),
                last_ticket: 0,
            }),
        })
    }

    /// Slots held by all owners together.
    pub fn held(&self) -> usize {
        self.state.lock().held
    }

    /// Slots held by `owner`.
    pub fn held_by(&self, owner: &K) -> usize {
        self.state.lock().held_by(owner)
    }

    /// Takes a slot for `owner`, or refuses at once.
    pub fn try_acquire(self: &Arc<Self>, owner: &K) -> Result<FairSlot<K>, FairRefusal> {
        self.state.lock().take(owner)?;
        Ok(self.slot(owner))
    }

    /// Takes a slot for `owner`, waiting for it if none is to be had now. Refuses at once if too
    /// many requests wait already.
    pub async fn acquire(self: &Arc<Self>, owner: &K) -> Result<FairSlot<K>, FairRefusal> {
        let granted = {
            let mut state = self.state.lock();
            if state.take(owner).is_ok() {
                drop(state);
                return Ok(self.slot(owner));
            }
            state.enqueue(owner)?
        };
        // The sender stays in the queue until it is served; `self` keeps the queue.
        granted.await.map_err(|_| FairRefusal::AllFull)
    }

    fn slot(self: &Arc<Self>, owner: &K) -> FairSlot<K> {
        FairSlot {
            slots: self.clone(),
            owner: owner.clone(),
        }
    }

    /// Takes back a slot and passes free ones to those who wait.
    fn release(self: &Arc<Self>, owner: &K) {
        let mut served = Vec::new();
        {
            // Under one lock: a request that comes between could take the slot before those who wait.
            let mut state = self.state.lock();
            state.give_back(owner);
            while let Some(next) = state.serve_next() {
                served.push(next);
            }
        }
        for (owner, grant) in served {
            // If the requester is gone, the slot is dropped here, outside the lock, and is free again.
            drop(grant.send(self.slot(&owner)));
        }
    }
}

impl<K: Clone + Eq + Hash> SlotState<K> {
    fn held_by(&self, owner: &K) -> usize {
        self.owners.get(owner).map_or(0, |account| account.held)
    }

    fn account(&mut self, owner: &K) -> &mut OwnerAccount<K> {
        let account = self.owners.entry(owner.clone());
        account.or_insert_with(|| OwnerAccount {
            held: 0,
            waiting: VecDeque::new(),
            ticket: 0,
            rank: None,
        })
    }

    fn next_ticket(&mut self) -> u64 {
        self.last_ticket += 1;
        self.last_ticket
    }

    fn take(&mut self, owner: &K) -> Result<(), FairRefusal> {
        if self.held_by(owner) >= self.limits.per_owner {
            return Err(FairRefusal::OwnerFull);
        }
        if self.held >= self.limits.total {
            return Err(FairRefusal::AllFull);
        }
        self.held += 1;
        let ticket = self.next_ticket();
        let account = self.account(owner);
        account.held += 1;
        account.ticket = ticket;
        self.update_rank(owner);
        Ok(())
    }

    fn give_back(&mut self, owner: &K) {
        self.held -= 1;
        self.account(owner).held -= 1;
        self.update_rank(owner);
    }

    /// Queues a request of `owner`; the slot comes through the returned channel.
    fn enqueue(&mut self, owner: &K) -> Result<oneshot::Receiver<FairSlot<K>>, FairRefusal> {
        let FairLimits {
            waiting,
            waiting_per_owner,
            ..
        } = self.limits;
        let waiting_of = |state: &Self| {
            let account = state.owners.get(owner);
            account.map_or(0, |account| account.waiting.len())
        };
        // Requests that were cancelled count until they are looked for.
        if waiting_of(self) >= waiting_per_owner {
            self.remove_cancelled(owner);
            if waiting_of(self) >= waiting_per_owner {
                return Err(FairRefusal::OwnerFull);
            }
        }
        if self.waiting >= waiting {
            let owners: Vec<K> = self.owners.keys().cloned().collect();
            owners.iter().for_each(|owner| self.remove_cancelled(owner));
            if self.waiting >= waiting {
                return Err(FairRefusal::AllFull);
            }
        }
        self.waiting += 1;
        let ticket = self.next_ticket();
        let (grant, granted) = oneshot::channel();
        let account = self.account(owner);
        if account.waiting.is_empty() {
            account.ticket = ticket;
        }
        account.waiting.push_back(grant);
        self.update_rank(owner);
        Ok(granted)
    }

    /// Takes a slot for the first request in the queue that still waits.
    fn serve_next(&mut self) -> Option<(K, oneshot::Sender<FairSlot<K>>)> {
        loop {
            if self.held >= self.limits.total {
                return None;
            }
            let owner = self.eligible.first_key_value()?.1.clone();
            let grant = self.account(&owner).waiting.pop_front();
            self.waiting -= usize::from(grant.is_some());
            match grant.filter(|grant| !grant.is_closed()) {
                Some(grant) => {
                    self.take(&owner).ok()?;
                    return Some((owner, grant));
                }
                // The request was cancelled: the next one of the same owner.
                None => self.update_rank(&owner),
            }
        }
    }

    /// Removes requests of `owner` whose future was dropped.
    fn remove_cancelled(&mut self, owner: &K) {
        let Some(account) = self.owners.get_mut(owner) else {
            return;
        };
        let before = account.waiting.len();
        account.waiting.retain(|grant| !grant.is_closed());
        self.waiting -= before - account.waiting.len();
        self.update_rank(owner);
    }

    /// Brings [`eligible`](Self::eligible) in line with the account of `owner`, and removes an account
    /// that is empty.
    fn update_rank(&mut self, owner: &K) {
        let Some(account) = self.owners.get_mut(owner) else {
            return;
        };
        let waits = !account.waiting.is_empty() && account.held < self.limits.per_owner;
        let rank = waits.then_some(QueueRank {
            held: account.held,
            ticket: account.ticket,
        });
        if account.rank != rank {
            if let Some(old) = account.rank {
                self.eligible.remove(&old);
            }
            account.rank = rank;
            if let Some(rank) = rank {
                self.eligible.insert(rank, owner.clone());
            }
        }
        if account.held == 0 && account.waiting.is_empty() {
            self.owners.remove(owner);
        }
    }
}

impl<K: Clone + Eq + Hash> Drop for FairSlot<K> {
    fn drop(&mut self) {
        self.slots.release(&self.owner);
    }
}

impl<K: Clone + Eq + Hash> fmt::Debug for FairSlots<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("FairSlots")
            .field("limits", &state.limits)
            .field("held", &state.held)
            .field("waiting", &state.waiting)
            .finish_non_exhaustive()
    }
}

impl<K: Clone + Eq + Hash> fmt::Debug for FairSlot<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FairSlot").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

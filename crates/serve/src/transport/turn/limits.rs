//! How many turn streams one owner may have open: a client that opens streams without end must
//! not use up the connections of all others.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use turnwire_event::Owner;

/// Bounds the open streams of each owner with a `StreamPermit` per stream.
#[derive(Debug)]
pub struct StreamLimits {
    per_owner_max: usize,
    open: Arc<Mutex<HashMap<Owner, usize>>>,
}

/// The permit of one open stream from [`StreamLimits::acquire`]; dropping it makes room for another.
#[derive(Debug)]
pub struct StreamPermit {
    owner: Owner,
    open: Arc<Mutex<HashMap<Owner, usize>>>,
}

impl StreamLimits {
    /// Allows `per_owner_max` streams to each owner.
    pub fn new(per_owner_max: usize) -> Self {
        Self {
            per_owner_max,
            open: Arc::default(),
        }
    }

    /// A permit for one more stream; `None` if `owner` has reached the bound.
    pub fn acquire(&self, owner: &Owner) -> Option<StreamPermit> {
        let mut open = self.open.lock();
        let count = open.entry(owner.clone()).or_default();
        if *count >= self.per_owner_max {
            return None;
        }
        *count += 1;
        Some(StreamPermit {
            owner: owner.clone(),
            open: self.open.clone(),
        })
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.open.lock();
        if let Some(count) = open.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::TenantId;

    #[test]
    fn permits_are_counted_by_owner_and_returned_on_drop() {
        let owner = |name: &str| Owner {
            tenant: TenantId::default(),
            principal: name.parse().expect("a principal"),
        };
        let limits = StreamLimits::new(2);
        let first = limits.acquire(&owner("a"));
        let second = limits.acquire(&owner("a"));
        assert!(first.is_some() && second.is_some());
        assert!(limits.acquire(&owner("a")).is_none());
        assert!(limits.acquire(&owner("b")).is_some());
        drop(first);
        assert!(limits.acquire(&owner("a")).is_some());
        drop(second);
        assert!(limits.open.lock().is_empty(), "no owner is left behind");
    }
}

//! How many chat streams one client may have open: a client that opens them without end must not
//! take the places of all others.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use turnwire_event::Owner;

/// The streams open now, by whose they are.
#[derive(Debug)]
pub struct Places {
    max: usize,
    taken: Arc<Mutex<HashMap<Owner, usize>>>,
}

/// One stream's place; dropping it gives it back.
#[derive(Debug)]
pub struct Place {
    owner: Owner,
    taken: Arc<Mutex<HashMap<Owner, usize>>>,
}

impl Places {
    /// At most `max` for each owner.
    pub fn new(max: usize) -> Self {
        Self {
            max,
            taken: Arc::default(),
        }
    }

    /// A place for one more stream, if there is one.
    pub fn take(&self, owner: &Owner) -> Option<Place> {
        let mut taken = self.taken.lock();
        let count = taken.entry(owner.clone()).or_default();
        if *count >= self.max {
            return None;
        }
        *count += 1;
        Some(Place {
            owner: owner.clone(),
            taken: self.taken.clone(),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.taken.lock();
        if let Some(count) = taken.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::TenantId;

    #[test]
    fn places_are_counted_by_owner_and_given_back() {
        let owner = |name: &str| Owner {
            tenant: TenantId::default(),
            principal: name.parse().expect("a principal"),
        };
        let places = Places::new(2);
        let one = places.take(&owner("a"));
        let two = places.take(&owner("a"));
        assert!(one.is_some() && two.is_some());
        assert!(places.take(&owner("a")).is_none());
        assert!(places.take(&owner("b")).is_some());
        drop(one);
        assert!(places.take(&owner("a")).is_some());
        drop(two);
        assert!(places.taken.lock().is_empty(), "nobody is kept in mind");
    }
}

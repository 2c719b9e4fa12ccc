//! The ids that upstreams gave to the responses of turns that run. Of the turns of one owner, one has
//! an id: whoever asks for it means that turn.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use turnwire_event::{Owner, UpstreamId};

type ClaimKey = (Owner, UpstreamId);

/// The ids that turns have claimed and that may not be stored yet.
#[derive(Default)]
pub(crate) struct ResponseClaims(Mutex<HashSet<ClaimKey>>);

/// The claim of a turn; its drop releases the id.
pub(crate) struct ResponseClaim {
    claims: Arc<ResponseClaims>,
    key: ClaimKey,
}

impl ResponseClaims {
    /// Claims an id. `None` if another turn of the owner has claimed it.
    pub(crate) fn claim(self: &Arc<Self>, owner: &Owner, id: &UpstreamId) -> Option<ResponseClaim> {
        let key = (owner.clone(), id.clone());
        let is_new = self.0.lock().insert(key.clone());
        is_new.then(|| ResponseClaim {
            claims: Arc::clone(self),
            key,
        })
    }
}

impl Drop for ResponseClaim {
    fn drop(&mut self) {
        self.claims.0.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S1-034
    #[test]
    fn id_is_claimed_once_for_each_owner_until_it_is_released() {
        let owner = |name: &str| Owner {
            tenant: turnwire_event::TenantId::default(),
            principal: name.parse().expect("a principal"),
        };
        let id: UpstreamId = "resp_abc".parse().expect("an id");
        let claims = Arc::new(ResponseClaims::default());
        let ann = claims.claim(&owner("ann"), &id).expect("a free id");
        assert!(claims.claim(&owner("ann"), &id).is_none());
        assert!(claims.claim(&owner("bob"), &id).is_some());
        drop(ann);
        assert!(claims.claim(&owner("ann"), &id).is_some());
    }
}

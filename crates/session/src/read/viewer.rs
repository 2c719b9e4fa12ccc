//! Who reads: an owner, and how far it sees beyond what it owns.

use turnwire_event::row::Requester;
use turnwire_event::{Owner, Principal};

/// A reader of sessions and turns. Reads count on the share of its owner.
#[derive(Clone, Copy, Debug)]
pub struct Viewer<'a> {
    /// Whose share the reads count on.
    pub owner: &'a Owner,
    /// True if it may read what others of its tenant own.
    pub is_tenant_wide: bool,
    /// The service that acts for the owner, if one does; it sees no more for that.
    pub service: Option<&'a Principal>,
}

impl<'a> Viewer<'a> {
    /// A viewer that reads what others of its tenant own too.
    pub fn of_tenant(owner: &'a Owner) -> Self {
        Self {
            owner,
            is_tenant_wide: true,
            service: None,
        }
    }

    /// The viewer as the audit names it.
    pub(crate) fn requester(self) -> Requester {
        Requester {
            owner: self.owner.clone(),
            service: self.service.cloned(),
        }
    }

    /// True if what `owner` owns exists for this viewer.
    pub(crate) fn sees(self, owner: &Owner) -> bool {
        self.owner == owner || self.is_tenant_wide && self.owner.tenant == owner.tenant
    }
}

impl<'a> From<&'a Owner> for Viewer<'a> {
    fn from(owner: &'a Owner) -> Self {
        Self {
            owner,
            is_tenant_wide: false,
            service: None,
        }
    }
}

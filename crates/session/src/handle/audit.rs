//! The handle that reads the audit.

use turnwire_event::row::AuditId;
use turnwire_event::{Owner, TenantId};
use turnwire_log::{AuditPage, AuditSelection, PageBounds, Store};

use crate::error::Error;

handle!(
    /// Reads what was recorded of acts.
    AuditReader
);

impl AuditReader {
    /// All records of a tenant, to be narrowed down; a read looks at
    /// [`Options::scan_max`](crate::Options::scan_max) of them.
    pub fn selection(&self, tenant: TenantId) -> AuditSelection {
        AuditSelection::of(tenant, self.core.services.options.scan_max)
    }

    /// A page of the selected records that are older than `before`, newest first. Read on the share of
    /// `reader`.
    pub async fn page(
        &self,
        reader: &Owner,
        selection: AuditSelection,
        before: Option<AuditId>,
        bounds: PageBounds,
    ) -> Result<AuditPage, Error> {
        let read = move |store: &dyn Store| store.audit(&selection, before, bounds);
        self.core.services.read_rows_for(reader, read).await
    }
}

//! The contract of the audit and of the jobs beside it.

use turnwire_event::code::AuditAction;
use turnwire_event::row::{AuditEntry, AuditId, AuditRow, JobRow};
use turnwire_event::{JobName, Principal, SessionId, TenantId, Timestamp};

use super::{PageBounds, RowPage};
use crate::error::{AppendError, ReadError};

/// The jobs of schedulers. A job exists from the first
/// [`AuditAdded`](turnwire_event::row::RowChange::AuditAdded) on that records a turn of it.
pub trait JobRecords: Send + Sync + 'static {
    /// Returns a job of a tenant.
    fn job(&self, tenant: TenantId, name: &JobName) -> Result<Option<JobRow>, ReadError>;

    /// Returns a page of the jobs of a tenant behind the name `after`, in the order of their names.
    fn jobs(
        &self,
        tenant: TenantId,
        after: Option<&JobName>,
        bounds: PageBounds,
    ) -> Result<RowPage<JobRow>, ReadError>;

    /// Returns how many jobs of a tenant `creator` has made known.
    fn job_count(&self, tenant: TenantId, creator: &Principal) -> Result<usize, ReadError>;

    /// Pauses or resumes the job of `entry`, by its action, and records that in one transaction; a job
    /// that is in the state already is not changed, and nothing is recorded. Returns the job as it is
    /// then; `None` if there is no such job. Durable on return.
    fn set_job_paused(&self, entry: &AuditEntry) -> Result<Option<JobRow>, AppendError>;
}

/// What is recorded of acts, newest first. Records outlive the sessions that they name.
pub trait AuditRecords: Send + Sync + 'static {
    /// Returns a page of the selected records that are older than `before`.
    fn audit(
        &self,
        selection: &AuditSelection,
        before: Option<AuditId>,
        bounds: PageBounds,
    ) -> Result<AuditPage, ReadError>;

    /// Returns when a request of a scheduler with this hash was recorded without a turn.
    fn skipped_request(&self, request: &[u8; 32]) -> Result<Option<Timestamp>, ReadError>;

    /// Records an act that no event commits with. Durable on return.
    fn add_audit(&self, entry: &AuditEntry) -> Result<(), AppendError>;

    /// Removes records older than `before`, the oldest first, and forgets the jobs that fired last
    /// before it and are not paused: at most `max` of each, in one transaction. Returns true if more
    /// may be left. Durable on return.
    fn expire_audit(&self, before: Timestamp, max: usize) -> Result<bool, AppendError>;
}

/// Which records of a tenant are listed; a field that is `None` selects all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditSelection {
    pub tenant: TenantId,
    /// Not older than this.
    pub from: Option<Timestamp>,
    /// Not newer than this.
    pub to: Option<Timestamp>,
    pub action: Option<AuditAction>,
    pub session: Option<SessionId>,
    pub job: Option<JobName>,
    /// Who acted, or for whom.
    pub principal: Option<Principal>,
    /// Records that one read looks at: a page that ends there has a next one.
    pub scanned_max: usize,
}

impl AuditSelection {
    /// All records of a tenant, with a bound on the records that one read looks at.
    pub fn of(tenant: TenantId, scanned_max: usize) -> Self {
        Self {
            tenant,
            from: None,
            to: None,
            action: None,
            session: None,
            job: None,
            principal: None,
            scanned_max,
        }
    }

    /// True if the selection has `entry`, which is of its tenant and its time.
    pub(crate) fn selects(&self, entry: &AuditEntry) -> bool {
        let is_by = |principal: &Principal| {
            entry.actor == *principal || entry.acted_for.as_ref() == Some(principal)
        };
        self.action.is_none_or(|action| entry.action == action)
            && self.session.is_none_or(|id| entry.session_id == Some(id))
            && (self.job.is_none() || entry.job == self.job)
            && self.principal.as_ref().is_none_or(is_by)
    }
}

/// A page of the audit; it may have no row and still have a next one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditPage {
    pub rows: Vec<AuditRow>,
    /// The `before` of the next page.
    pub next: Option<AuditId>,
}

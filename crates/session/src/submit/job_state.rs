//! What the job of a scheduler says to a request: whether there may be a turn.

use sha2::{Digest as _, Sha256};
use turnwire_event::row::{AuditEntry, KeyScope};
use turnwire_event::{JobName, Timestamp};
use turnwire_fair::{FairLimits, FairRefusal};
use turnwire_log::Store;

use crate::error::{Error, SharedResource};

/// What a job says to a new request of its scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobState {
    /// There may be a turn. A job that nobody knows yet is made known by it.
    Active,
    /// There is no turn.
    Paused,
    /// There is no turn: the job was paused when the same request came before, which is recorded.
    Skipped,
}

impl JobState {
    /// Reads the state of `job` for the request that `audit` would record. A repetition counts if the
    /// request came after `expired_until`. The actor may make `jobs_max` jobs known, and some more if
    /// their first requests come at once.
    pub(crate) fn read(
        store: &dyn Store,
        (job, audit): (&JobName, &AuditEntry),
        expired_until: Timestamp,
        jobs_max: usize,
    ) -> Result<Self, Error> {
        let earlier = match &audit.request {
            Some(request) => store.skipped_request(request)?,
            None => None,
        };
        if earlier.is_some_and(|at| at > expired_until) {
            return Ok(Self::Skipped);
        }
        if let Some(job) = store.job(audit.tenant, job)? {
            return Ok(match job.paused {
                Some(_) => Self::Paused,
                None => Self::Active,
            });
        }
        if store.job_count(audit.tenant, &audit.actor)? < jobs_max {
            return Ok(Self::Active);
        }
        let limits = FairLimits {
            total: usize::MAX,
            per_owner: jobs_max,
            waiting: 0,
            waiting_per_owner: 0,
        };
        Err(SharedResource::Jobs.refused(FairRefusal::OwnerFull, limits))
    }
}

/// Identifies a request in the audit, by the scope of its idempotency key.
pub(crate) fn request_hash(scope: &KeyScope) -> [u8; 32] {
    let session = scope.session.map(|id| id.to_string()).unwrap_or_default();
    let tenant = scope.owner.tenant.to_string();
    let principal = scope.owner.principal.as_str();
    let parts = [&tenant, principal, &scope.route, &session, &scope.key];
    // None of the parts has a zero byte.
    Sha256::digest(parts.join("\0")).into()
}

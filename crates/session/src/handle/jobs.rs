//! The handle for the jobs of schedulers. This server has no schedule of its own: a scheduler names a
//! job with each turn that it starts, and a paused job starts none.

use turnwire_event::code::AuditAction;
use turnwire_event::row::{AuditEntry, JobRow, Requester};
use turnwire_event::{JobName, Owner, TenantId};
use turnwire_log::{PageBounds, Store};

use crate::error::Error;

/// Whether a job is paused or resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobSwitch {
    Pause,
    Resume,
}

handle!(
    /// Lists, pauses and resumes jobs.
    JobController
);

impl JobController {
    /// The jobs of a tenant behind the name `after`, by name, and the `after` of the next page. Read on
    /// the share of `reader`.
    pub async fn list(
        &self,
        reader: &Owner,
        tenant: TenantId,
        after: Option<JobName>,
        bounds: PageBounds,
    ) -> Result<(Vec<JobRow>, Option<JobName>), Error> {
        let read = move |store: &dyn Store| store.jobs(tenant, after.as_ref(), bounds);
        let page = self.core.services.read_rows_for(reader, read).await?;
        let last = page.rows.last().filter(|_| page.has_more);
        let next = last.map(|job| job.name.clone());
        Ok((page.rows, next))
    }

    /// Pauses or resumes a job of the tenant of `by`, which the audit records; a job that is in the
    /// state already stays as it is. Durable on return: later requests of the scheduler see it.
    pub async fn switch(
        &self,
        by: &Requester,
        job: JobName,
        switch: JobSwitch,
    ) -> Result<JobRow, Error> {
        let services = &self.core.services;
        let action = match switch {
            JobSwitch::Pause => AuditAction::JobPaused,
            JobSwitch::Resume => AuditAction::JobResumed,
        };
        let entry = AuditEntry {
            job: Some(job),
            ..AuditEntry::new(services.clock.now(), action, by)
        };
        let write = move |store: &dyn Store| store.set_job_paused(&entry);
        let switched = services.write_for(&by.owner, write).await?;
        switched.ok_or(Error::JobNotFound)
    }
}

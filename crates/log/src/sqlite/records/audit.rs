//! The audit and the jobs over SQLite.

use rusqlite::params;
use turnwire_event::row::{AuditEntry, AuditId, JobRow};
use turnwire_event::{JobName, Principal, TenantId, Timestamp};

use crate::error::{AppendError, ReadError};
use crate::records::audit::{AuditPage, AuditRecords, AuditSelection, JobRecords};
use crate::records::{PageBounds, RowPage};
use crate::sqlite::SqliteStore;
use crate::sqlite::column::{SelectRow as _, bounded, column_bytes};
use crate::sqlite::table::{audit, job};
use crate::sqlite::wal::commit_tail::CommitTail;
use crate::sqlite::write::{WriteHalf, begin};

impl JobRecords for SqliteStore {
    fn job(&self, tenant: TenantId, name: &JobName) -> Result<Option<JobRow>, ReadError> {
        self.readers.with(|c| job::find(c, tenant, name))
    }

    fn jobs(
        &self,
        tenant: TenantId,
        after: Option<&JobName>,
        bounds: PageBounds,
    ) -> Result<RowPage<JobRow>, ReadError> {
        let sql = format!(
            "{} WHERE tenant = ?1 AND name > ?2 ORDER BY name LIMIT ?3",
            JobRow::SELECT
        );
        let after = after.map_or("", JobName::as_str);
        let values = params![tenant.to_string(), after, bounds.query_limit()];
        self.readers.with(|c| {
            bounded(c, &sql, values, bounds, |row| {
                Ok((column_bytes(row)?, JobRow::read(row)?))
            })
        })
    }

    fn job_count(&self, tenant: TenantId, creator: &Principal) -> Result<usize, ReadError> {
        self.readers.with(|c| job::count(c, tenant, creator))
    }

    fn set_job_paused(&self, entry: &AuditEntry) -> Result<Option<JobRow>, AppendError> {
        self.write(|half| half.set_job_paused(entry))
    }
}

impl AuditRecords for SqliteStore {
    fn audit(
        &self,
        selection: &AuditSelection,
        before: Option<AuditId>,
        bounds: PageBounds,
    ) -> Result<AuditPage, ReadError> {
        self.readers
            .with(|c| audit::page(c, selection, before, bounds))
    }

    fn skipped_request(&self, request: &[u8; 32]) -> Result<Option<Timestamp>, ReadError> {
        self.readers.with(|c| audit::skipped(c, request))
    }

    fn add_audit(&self, entry: &AuditEntry) -> Result<(), AppendError> {
        self.write(|half| half.add_audit(entry))
    }

    fn expire_audit(&self, before: Timestamp, max: usize) -> Result<bool, AppendError> {
        self.write(|half| half.expire_audit(before, max))
    }
}

impl WriteHalf {
    fn set_job_paused(&mut self, entry: &AuditEntry) -> Result<Option<JobRow>, AppendError> {
        let Some(name) = &entry.job else {
            return Ok(None);
        };
        let tx = begin(&mut self.connection)?;
        let is_changed = job::set_paused(&tx, entry)?;
        let found = job::find(&tx, entry.tenant, name)?;
        if !is_changed {
            return Ok(found);
        }
        audit::add(&tx, entry)?;
        let changes = CommitTail::count_change(&tx)?;
        tx.commit()?;
        self.tail.changes = changes;
        self.after_commit()?;
        Ok(found)
    }

    fn add_audit(&mut self, entry: &AuditEntry) -> Result<(), AppendError> {
        let tx = begin(&mut self.connection)?;
        audit::add(&tx, entry)?;
        let changes = CommitTail::count_change(&tx)?;
        tx.commit()?;
        self.tail.changes = changes;
        self.after_commit()
    }

    fn expire_audit(&mut self, before: Timestamp, max: usize) -> Result<bool, AppendError> {
        let tx = begin(&mut self.connection)?;
        let records = audit::expire(&tx, before, max)?;
        let jobs = job::expire(&tx, before, max)?;
        if records + jobs > 0 {
            tx.commit()?;
            self.after_commit()?;
        }
        Ok(records == max || jobs == max)
    }
}

//! The job table: what schedulers name, by tenant and name.

use rusqlite::{Connection, Row, Transaction, params};
use turnwire_event::code::{AuditAction, AuditOutcome};
use turnwire_event::row::{AuditEntry, JobRow};
use turnwire_event::{JobName, Principal, TenantId, Timestamp};

use crate::sqlite::column::{
    SelectRow, code_name, execute, optional_time, parsed, query_value, time, value,
};

/// Records that a scheduler asked for a turn of the job: makes it known, or moves its last time on.
pub(crate) fn fired(
    tx: &Transaction<'_>,
    entry: &AuditEntry,
    (name, outcome): (&JobName, AuditOutcome),
) -> rusqlite::Result<()> {
    execute(
        tx,
        "INSERT INTO job (tenant, name, created_at, created_by, fired_at, outcome) \
         VALUES (?1, ?2, ?3, ?4, ?3, ?5) \
         ON CONFLICT (tenant, name) DO UPDATE SET fired_at = ?3, outcome = ?5",
        params![
            entry.tenant.to_string(),
            name.as_str(),
            entry.at.as_millis(),
            entry.actor.as_str(),
            code_name(&outcome),
        ],
    )
    .map(drop)
}

/// Pauses or resumes the job of `entry`, by its action. Returns whether it was in the other state.
pub(crate) fn set_paused(tx: &Transaction<'_>, entry: &AuditEntry) -> rusqlite::Result<bool> {
    let is_pause = entry.action == AuditAction::JobPaused;
    let changed = execute(
        tx,
        "UPDATE job SET paused_at = ?3, paused_by = ?4 \
         WHERE tenant = ?1 AND name = ?2 AND (paused_at IS NULL) = ?5",
        params![
            entry.tenant.to_string(),
            entry.job.as_ref().map(JobName::as_str),
            is_pause.then(|| entry.at.as_millis()),
            is_pause.then(|| entry.actor.as_str()),
            is_pause,
        ],
    )?;
    Ok(changed > 0)
}

/// The job with this name.
pub(crate) fn find(
    c: &Connection,
    tenant: TenantId,
    name: &JobName,
) -> rusqlite::Result<Option<JobRow>> {
    let condition = "WHERE tenant = ?1 AND name = ?2";
    JobRow::one(c, condition, [&tenant.to_string(), name.as_str()])
}

/// The number of jobs whose first turn `creator` started.
pub(crate) fn count(
    c: &Connection,
    tenant: TenantId,
    creator: &Principal,
) -> rusqlite::Result<usize> {
    let sql = "SELECT count(*) FROM job WHERE tenant = ?1 AND created_by = ?2";
    let count: i64 = query_value(c, sql, [&tenant.to_string(), creator.as_str()])?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Forgets jobs whose last turn is older than `before` and that are not paused, at most `max`.
pub(crate) fn expire(c: &Connection, before: Timestamp, max: usize) -> rusqlite::Result<usize> {
    execute(
        c,
        "DELETE FROM job WHERE (tenant, name) IN (SELECT tenant, name FROM job \
         WHERE paused_at IS NULL AND fired_at < ?1 ORDER BY fired_at LIMIT ?2)",
        params![before.as_millis(), max as i64],
    )
}

impl SelectRow for JobRow {
    const SELECT: &str =
        "SELECT name, created_at, created_by, paused_at, paused_by, fired_at, outcome FROM job";

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let paused = match optional_time(row, 3)? {
            Some(at) => Some((at, parsed(row, 4)?)),
            None => None,
        };
        Ok(Self {
            name: parsed(row, 0)?,
            created_at: time(row, 1)?,
            created_by: parsed(row, 2)?,
            paused,
            fired_at: time(row, 5)?,
            outcome: value(row, 6)?,
        })
    }
}

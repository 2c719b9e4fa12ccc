//! The audit table: acts in the order of their time, and of their ids where that is equal.

use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};
use turnwire_event::code::AuditAction;
use turnwire_event::row::{AuditEntry, AuditId, AuditRow};
use turnwire_event::{TenantId, Timestamp};

use crate::records::PageBounds;
use crate::records::audit::{AuditPage, AuditSelection};
use crate::sqlite::column::{
    SelectRow, code_name, column_bytes, execute, optional, optional_id, parsed, query_value, time,
    value,
};
use crate::sqlite::table::job;

/// Writes a record, and what it says of its job. The deletion of a session that is recorded already
/// changes nothing.
pub(crate) fn add(tx: &Transaction<'_>, entry: &AuditEntry) -> rusqlite::Result<()> {
    execute(
        tx,
        "INSERT INTO audit (at, tenant, action, actor, acted_for, session, turn, approval, job, outcome, request) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) \
         ON CONFLICT (session) WHERE action = 'session_deleted' DO NOTHING",
        params![
            entry.at.as_millis(),
            entry.tenant.to_string(),
            code_name(&entry.action),
            entry.actor.as_str(),
            entry.acted_for.as_ref().map(|principal| principal.as_str()),
            entry.session_id.map(|id| id.to_string()),
            entry.turn_id.map(|id| id.to_string()),
            entry.approval_id.map(|id| id.to_string()),
            entry.job.as_ref().map(|name| name.as_str()),
            entry.outcome.as_ref().map(code_name),
            entry.request,
        ],
    )?;
    match (entry.action, &entry.job, entry.outcome) {
        (AuditAction::JobFired, Some(name), Some(outcome)) => {
            job::fired(tx, entry, (name, outcome))
        }
        _ => Ok(()),
    }
}

/// When the request of a scheduler with this hash was recorded without a turn.
pub(crate) fn skipped(c: &Connection, request: &[u8; 32]) -> rusqlite::Result<Option<Timestamp>> {
    let sql = "SELECT at FROM audit WHERE request = ?1 AND turn IS NULL LIMIT 1";
    let at: Option<i64> = query_value(c, sql, [&request[..]]).optional()?;
    Ok(at.map(Timestamp::from_millis))
}

/// The page of `selection` before the record `before`.
pub(crate) fn page(
    c: &Connection,
    selection: &AuditSelection,
    before: Option<AuditId>,
    bounds: PageBounds,
) -> rusqlite::Result<AuditPage> {
    let tenant = selection.tenant;
    let from = selection.from.map_or(i64::MIN, Timestamp::as_millis);
    let upto = selection.to.map_or(i64::MAX, Timestamp::as_millis);
    let end = match before {
        None => Some((i64::MAX, i64::MAX)),
        Some(id) => position(c, tenant, id)?,
    };
    let mut page = AuditPage::default();
    // A record of another tenant, and one that has expired: everything before it has expired too.
    let Some((end_at, end_id)) = end else {
        return Ok(page);
    };
    let sql = format!(
        "{} WHERE tenant = ?1 AND at >= ?2 AND at <= ?3 AND (at, id) < (?4, ?5) ORDER BY at DESC, id DESC",
        AuditRow::SELECT
    );
    let mut statement = c.prepare_cached(&sql)?;
    let mut rows = statement.query(params![tenant.to_string(), from, upto, end_at, end_id])?;
    let (mut looked_at, mut bytes, mut last) = (0_usize, 0_usize, None);
    while let Some(row) = rows.next()? {
        if looked_at >= selection.scanned_max || page.rows.len() >= bounds.rows {
            page.next = last;
            break;
        }
        let found = AuditRow::read(row)?;
        let weight = column_bytes(row)?;
        if selection.selects(&found.entry) {
            bytes = bytes.saturating_add(weight);
            if bytes > bounds.bytes && !page.rows.is_empty() {
                page.next = last;
                break;
            }
            last = Some(found.id);
            page.rows.push(found);
        } else {
            last = Some(found.id);
        }
        looked_at += 1;
    }
    Ok(page)
}

/// The place of a record in the order of its tenant.
fn position(c: &Connection, tenant: TenantId, id: AuditId) -> rusqlite::Result<Option<(i64, i64)>> {
    let sql = "SELECT at FROM audit WHERE id = ?1 AND tenant = ?2";
    let at: Option<i64> = query_value(c, sql, params![id.0, tenant.to_string()]).optional()?;
    Ok(at.map(|at| (at, id.0)))
}

/// Removes records older than `before`, the oldest first, at most `max`. Writes nothing if there is
/// none.
pub(crate) fn expire(c: &Connection, before: Timestamp, max: usize) -> rusqlite::Result<usize> {
    let due = "SELECT EXISTS (SELECT 1 FROM audit WHERE at < ?1)";
    if !query_value(c, due, [before.as_millis()])? {
        return Ok(0);
    }
    execute(
        c,
        "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < ?1 ORDER BY at LIMIT ?2)",
        params![before.as_millis(), max as i64],
    )
}

impl SelectRow for AuditRow {
    const SELECT: &str = "SELECT id, at, tenant, action, actor, acted_for, session, turn, approval, job, outcome, \
         request FROM audit";

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: AuditId(row.get(0)?),
            entry: AuditEntry {
                at: time(row, 1)?,
                tenant: parsed(row, 2)?,
                action: value(row, 3)?,
                actor: parsed(row, 4)?,
                acted_for: optional_id(row, 5)?,
                session_id: optional_id(row, 6)?,
                turn_id: optional_id(row, 7)?,
                approval_id: optional_id(row, 8)?,
                job: optional_id(row, 9)?,
                outcome: optional(row, 10)?,
                request: row.get(11)?,
            },
        })
    }
}

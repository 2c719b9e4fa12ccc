//! The session table: rows that the first append of a session inserts.

use rusqlite::{OptionalExtension as _, Row, Transaction, params};
use turnwire_event::row::{RowChange, SessionRow};
use turnwire_event::{Epoch, Seq, SessionId};

use crate::chain::ChainHash;
use crate::error::AppendError;
use crate::record::{LeaseTerm, SessionAppend};
use crate::sqlite::column::{
    SelectRow, execute, json, optional_id, owner, parsed, seq, time, value,
};

/// Inserts the session's row if `append` has a [`RowChange::SessionPut`].
pub(crate) fn create(tx: &Transaction<'_>, append: &SessionAppend) -> rusqlite::Result<()> {
    for placed in &append.rows {
        if let RowChange::SessionPut(session) = &placed.change {
            insert(tx, session, append.term)?;
        }
    }
    Ok(())
}

fn insert(tx: &Transaction<'_>, s: &SessionRow, term: LeaseTerm) -> rusqlite::Result<()> {
    // The id of a deleted session inserts no row, so that the append fails to find one.
    execute(
        tx,
        "INSERT INTO session (id, tenant, principal, parent, workspace_path, metadata, episode_id, active_model, \
         routing_policy_version, cost_usd, turn_count, created_at, updated_at, epoch, term, low_seq, low_hash, agent) \
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, 0, ?16, ?17 \
         WHERE NOT EXISTS (SELECT 1 FROM tombstone WHERE id = ?1)",
        params![
        s.id.to_string(),
        s.owner.tenant.to_string(),
        s.owner.principal.as_str(),
        s.parent.map(|p| p.to_string()),
        s.workspace_path,
        json(&s.metadata),
        s.episode_id.to_string(),
        s.active_model,
        s.routing_policy_version,
        s.cost_usd,
        s.turn_count as i64,
        s.created_at.as_millis(),
        s.updated_at.as_millis(),
        Epoch::FIRST.0,
        term.0 as i64,
        &ChainHash::seed(s.id).0[..],
        s.agent,
        ],
    )
    .map(drop)
}

/// The row number and the last event of a session that is not in the writer's cache.
pub(crate) fn find(
    tx: &Transaction<'_>,
    id: SessionId,
    term: LeaseTerm,
) -> Result<(i64, Seq), AppendError> {
    let row: Option<(i64, i64, Seq)> = tx
        .prepare_cached(
            "SELECT s.sid, s.term, coalesce((SELECT max(e.seq) FROM event e WHERE e.sid = s.sid), s.low_seq) \
             FROM session s WHERE s.id = ?1",
        )?
        .query_row([id.to_string()], |row| Ok((row.get(0)?, row.get(1)?, seq(row, 2)?)))
        .optional()?;
    match row {
        None => Err(AppendError::Refused(format!("there is no session {id}"))),
        Some((_, stored_term, _)) if stored_term > term.0 as i64 => Err(AppendError::Fenced(id)),
        Some((sid, _, tail)) => Ok((sid, tail)),
    }
}

/// A session as lists have it: without its metadata and without a path above
/// [`LISTED_PATH_BYTES_MAX`](crate::records::LISTED_PATH_BYTES_MAX), which are not read.
pub(crate) struct ListedSession(pub(crate) SessionRow);

impl SelectRow for ListedSession {
    const SELECT: &str = "SELECT s.id, s.tenant, s.principal, s.parent, \
        CASE WHEN octet_length(s.workspace_path) <= 65536 THEN s.workspace_path END, '{}', s.episode_id, \
        s.active_model, s.routing_policy_version, s.cost_usd, s.turn_count, s.created_at, s.updated_at, s.agent \
        FROM session s";

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        SessionRow::read(row).map(Self)
    }
}

impl SelectRow for SessionRow {
    const SELECT: &str = "SELECT s.id, s.tenant, s.principal, s.parent, s.workspace_path, s.metadata, s.episode_id, \
        s.active_model, s.routing_policy_version, s.cost_usd, s.turn_count, s.created_at, s.updated_at, s.agent \
        FROM session s";

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: parsed(row, 0)?,
            owner: owner(row, 1)?,
            parent: optional_id(row, 3)?,
            workspace_path: row.get(4)?,
            metadata: value(row, 5)?,
            episode_id: parsed(row, 6)?,
            active_model: row.get(7)?,
            routing_policy_version: row.get(8)?,
            cost_usd: row.get(9)?,
            turn_count: row.get::<_, i64>(10)? as u64,
            created_at: time(row, 11)?,
            updated_at: time(row, 12)?,
            agent: row.get(13)?,
        })
    }
}

//! The schema and its migrations: numbered SQL files, applied in order, each in one transaction.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, params};
use turnwire_event::{Epoch, Position, SessionId};

use crate::error::OpenError;
use crate::sqlite::CommitDurability;
use crate::sqlite::column::{query_value, seq};
use crate::sqlite::connection::open_error;
use crate::sqlite::wal::WalLoss;

/// The `application_id` of Turnwire's files: "TWIR".
const APPLICATION_ID: i64 = 0x5457_4952;

const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_first.sql"),
    include_str!("migrations/0002_queue.sql"),
    include_str!("migrations/0003_scope.sql"),
    include_str!("migrations/0004_models.sql"),
    include_str!("migrations/0005_workers.sql"),
    include_str!("migrations/0006_approval_input.sql"),
    include_str!("migrations/0007_retention.sql"),
    include_str!("migrations/0008_event_content.sql"),
    include_str!("migrations/0009_event_type.sql"),
    include_str!("migrations/0010_removal.sql"),
    include_str!("migrations/0011_stopped_usage.sql"),
    include_str!("migrations/0012_closed.sql"),
    include_str!("migrations/0013_response.sql"),
    include_str!("migrations/0014_message_part.sql"),
    include_str!("migrations/0015_tenant_list.sql"),
    include_str!("migrations/0016_principal_usage.sql"),
    include_str!("migrations/0017_jobs_audit.sql"),
];

fn version(connection: &Connection, path: &Path) -> Result<i64, OpenError> {
    let pragma = |name| {
        connection
            .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
            .map_err(|e| open_error(path, &e))
    };
    let version = pragma("user_version")?;
    let application = pragma("application_id")?;
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(|e| open_error(path, &e))?;
    let path = || path.display().to_string();
    if tables > 0 && application != APPLICATION_ID {
        return Err(OpenError::Foreign(path()));
    }
    if version > MIGRATIONS.len() as i64 {
        return Err(OpenError::Newer {
            path: path(),
            schema: version,
            supported: MIGRATIONS.len() as i64,
        });
    }
    Ok(version)
}

/// The schema of a file, and that of this release. Rejects what [`check_supported`] rejects.
pub(crate) fn schemas(connection: &Connection, path: &Path) -> Result<(i64, i64), OpenError> {
    Ok((version(connection, path)?, MIGRATIONS.len() as i64))
}

/// Rejects a file of another program or of a newer release.
pub(crate) fn check_supported(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    version(connection, path).map(drop)
}

/// Rejects a file that this release cannot read as it is.
pub(crate) fn check_current(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    if version(connection, path)? == MIGRATIONS.len() as i64 {
        return Ok(());
    }
    Err(OpenError::Io {
        path: path.display().to_string(),
        cause: "an older schema; start the server once to migrate it".into(),
    })
}

/// Applies the missing migrations, and begins a new epoch if the WAL has lost commits, or if the
/// last process ran `relaxed` and did not shut down cleanly.
pub(crate) fn migrate(
    connection: &Connection,
    path: &Path,
    durability: CommitDurability,
    loss: Option<WalLoss>,
) -> Result<(), OpenError> {
    let applied = version(connection, path)? as usize;
    let apply = || -> rusqlite::Result<()> {
        for (index, sql) in MIGRATIONS.iter().enumerate().skip(applied) {
            connection.execute_batch(&format!(
                "BEGIN IMMEDIATE; {sql} PRAGMA application_id = {APPLICATION_ID}; \
                 PRAGMA user_version = {}; COMMIT;",
                index + 1
            ))?;
        }
        let unclean: Option<i64> = connection
            .prepare("SELECT value FROM meta WHERE key = 'relaxed_open'")?
            .query_row([], |row| row.get(0))
            .optional()?;
        if unclean == Some(1) || loss.is_some() {
            connection.execute_batch("BEGIN IMMEDIATE")?;
            begin_epoch(connection)
                .and_then(|()| loss.map_or(Ok(()), |loss| record_loss(connection, loss)))
                .and_then(|()| connection.execute_batch("COMMIT"))
                .inspect_err(|_| drop(connection.execute_batch("ROLLBACK")))?;
        }
        if unclean == Some(1) {
            tracing::warn!(
                "the last run was `relaxed` and did not shut down cleanly: a new epoch begins"
            );
        }
        set_relaxed_open(connection, durability == CommitDurability::Relaxed)
    };
    apply().map_err(|error| open_error(path, &error))
}

/// Moves every session into its next epoch, and the queued turns with it: they will start there,
/// after the last event that is left.
fn begin_epoch(connection: &Connection) -> rusqlite::Result<()> {
    begin_epoch_above(connection, 0)
}

/// Moves every session into an epoch above its own and above `used`.
pub(crate) fn begin_epoch_above(connection: &Connection, used: u32) -> rusqlite::Result<()> {
    connection.execute("UPDATE session SET epoch = max(epoch, ?1) + 1", [used])?;
    let mut queued = connection.prepare(
        "SELECT t.id, s.epoch, coalesce((SELECT max(e.seq) FROM event e WHERE e.sid = s.sid), s.low_seq) \
         FROM turn t JOIN session s ON s.sid = t.sid WHERE t.state = 'queued'",
    )?;
    let moved = queued.query_map([], |row| {
        let after = Position::persisted(Epoch(row.get(1)?), seq(row, 2)?.next());
        Ok([row.get(0)?, after.to_string()])
    })?;
    for turn in moved.collect::<rusqlite::Result<Vec<[String; 2]>>>()? {
        connection.execute("UPDATE turn SET started = ?2 WHERE id = ?1", turn)?;
    }
    Ok(())
}

/// Adds a loss to the `meta` table, with the newest session that it can have touched.
fn record_loss(connection: &Connection, loss: WalLoss) -> rusqlite::Result<()> {
    let sql = "INSERT INTO meta (key, value) VALUES ('wal_frames_lost', ?1) \
         ON CONFLICT (key) DO UPDATE SET value = value + ?1";
    connection.execute(sql, [loss.frames])?;
    let sql = "INSERT OR REPLACE INTO meta (key, value) \
         SELECT 'wal_loss_sid', coalesce(max(sid), 0) FROM session";
    connection.execute(sql, []).map(drop)
}

/// The frames of all losses, if the session existed at the last one; otherwise 0.
pub(crate) fn recorded_loss(connection: &Connection, session: SessionId) -> rusqlite::Result<u64> {
    let sql = "SELECT coalesce(max(value), 0) FROM meta WHERE key = 'wal_frames_lost' AND EXISTS \
         (SELECT 1 FROM session s JOIN meta m ON m.key = 'wal_loss_sid' AND s.sid <= m.value WHERE s.id = ?1)";
    let frames: i64 = query_value(connection, sql, params![session.to_string()])?;
    Ok(u64::try_from(frames).unwrap_or(0))
}

fn set_relaxed_open(connection: &Connection, open: bool) -> rusqlite::Result<()> {
    let sql = "INSERT INTO meta (key, value) VALUES ('relaxed_open', ?1) ON CONFLICT (key) DO UPDATE SET value = ?1";
    connection.execute(sql, [i64::from(open)]).map(drop)
}

/// Records a clean shutdown, after copying the WAL into the database file. Returns false if the
/// WAL still has commits that the database file has not.
pub(crate) fn mark_clean(connection: &Connection) -> bool {
    let checkpoint = || {
        let pragma = "PRAGMA wal_checkpoint(TRUNCATE)";
        connection.query_row(pragma, [], |row| row.get::<_, i64>(0))
    };
    let marked = set_relaxed_open(connection, false).and_then(|()| checkpoint());
    match marked {
        Ok(busy) => busy == 0,
        Err(error) => {
            tracing::warn!(%error, "the database could not be marked as closed cleanly");
            false
        }
    }
}

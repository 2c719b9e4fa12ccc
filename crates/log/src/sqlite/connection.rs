//! Connections: setup for writing and for reading, the pool of readers, the meaning of errors.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock, RwLockWriteGuard};
use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::{AppendError, OpenError, ReadError};
use crate::sqlite::folder::health::StoreHealth;
use crate::sqlite::wal::gauge::WalGauge;

/// Readers that stay open between uses. A burst may open more and closes them afterwards.
const IDLE_READERS_MAX: usize = 8;

/// How long a connection waits for a lock that another process holds.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Opens a connection for writing and leaves the file as it is.
pub(crate) fn open_writer(path: &Path) -> Result<Connection, OpenError> {
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        keep_plans(&connection)?;
        Ok(connection)
    };
    open().map_err(|error| open_error(path, &error))
}

/// Sets the pragmas of the writing connection: WAL, every commit synced to disk. The commit hook
/// writes the size of the WAL to `gauge`.
pub(crate) fn set_up_writer(
    connection: &mut Connection,
    path: &Path,
    gauge: &Arc<WalGauge>,
) -> Result<(), OpenError> {
    let gauge = gauge.clone();
    let set_up = || -> rusqlite::Result<()> {
        // Takes effect in a new file only, before its first page is written.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "secure_delete", "ON")?;
        // The store checkpoints by itself: SQLite's automatic checkpoint ignores disk errors.
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        connection.pragma_update(None, "cache_size", -65_536)?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        connection.pragma_update(None, "journal_size_limit", gauge.bytes_max() as i64)?;
        connection.set_prepared_statement_cache_capacity(128);
        // After `wal_autocheckpoint`, which is a hook too.
        connection.wal_hook(Some(move |_: &mut Wal, frames: std::ffi::c_int| {
            gauge.set_frames(u64::try_from(frames).unwrap_or(0));
            Ok(())
        }))
    };
    set_up().map_err(|error| open_error(path, &error))
}

/// Empties the WAL after a loss of commits, and checks the database file: a checkpoint may have
/// written pages into it that are newer than the rest of the WAL.
pub(crate) fn check_after_loss(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let check = || -> rusqlite::Result<String> {
        // Frames behind the damaged one must not be found again at the next start.
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
    };
    let finding = check().map_err(|error| open_error(path, &error))?;
    if finding == "ok" {
        return Ok(());
    }
    Err(OpenError::Corrupt {
        path: path.display().to_string(),
        cause: format!("its WAL was damaged, and without it: {finding}"),
    })
}

/// Opens the connection of the checkpoint thread.
pub(crate) fn open_checkpointer(path: &Path) -> Result<Connection, OpenError> {
    let connection = open_writer(path)?;
    let set_up = connection.pragma_update(None, "wal_autocheckpoint", 0);
    set_up.map_err(|error| open_error(path, &error))?;
    Ok(connection)
}

/// Stops syncing every commit: a power failure may lose the last commits.
pub(crate) fn relax_sync(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    connection
        .pragma_update(None, "synchronous", "NORMAL")
        .map_err(|error| open_error(path, &error))
}

/// Opens a read-only connection.
pub(crate) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    keep_plans(&connection)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Keeps the plan of a prepared statement for all values. Otherwise SQLite looks whether a bound
/// value allows a partial index, and therefore prepares the statement again for each value.
fn keep_plans(connection: &Connection) -> rusqlite::Result<()> {
    let is_kept = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true);
    is_kept.map(drop)
}

/// Converts an error while opening for the person who started the server.
pub(crate) fn open_error(path: &Path, error: &rusqlite::Error) -> OpenError {
    let path = path.display().to_string();
    let cause = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            OpenError::Corrupt { path, cause }
        }
        _ => OpenError::Io { path, cause },
    }
}

/// Classifies an error of a write by what helps: free space, waiting, another batch, or nothing.
impl From<rusqlite::Error> for AppendError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::OperationInterrupted
                | ErrorCode::FileLockingProtocolFailed,
            ) => Self::Busy,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Damaged(error.to_string())
            }
            Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch)
            | None => Self::Refused(error.to_string()),
            Some(_) => Self::Fatal(error.to_string()),
        }
    }
}

impl From<rusqlite::Error> for ReadError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::Error as Sqlite;
        let is_page = matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
        );
        // A column that does not have the value that was written.
        let is_row = matches!(
            error,
            Sqlite::InvalidColumnType(..)
                | Sqlite::FromSqlConversionFailure(..)
                | Sqlite::IntegralValueOutOfRange(..)
                | Sqlite::Utf8Error(..)
        );
        match (is_page, is_row) {
            (true, _) => Self::DatabaseDamaged(error.to_string()),
            (_, true) => Self::Corrupt(error.to_string()),
            _ => Self::Database(error.to_string()),
        }
    }
}

/// The error of a read of one session: a damaged page is the session's own, unless a tree of the
/// database cannot be entered at its newest end, where every session writes.
fn scoped_to_session(c: &Connection, error: ReadError) -> ReadError {
    match error {
        ReadError::DatabaseDamaged(cause) if can_enter_trees(c) => ReadError::Corrupt(cause),
        error => error,
    }
}

/// True if the way to the newest row of every table and the last entry of every index is sound.
fn can_enter_trees(c: &Connection) -> bool {
    let is_damage = |error: &rusqlite::Error| {
        let code = error.sqlite_error_code();
        matches!(
            code,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
        )
    };
    let enter = || -> rusqlite::Result<()> {
        let sql = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE rootpage > 0";
        let mut trees = c.prepare(sql)?;
        let mut rows = trees.query([])?;
        while let Some(row) = rows.next()? {
            let (kind, name): (String, String) = (row.get(0)?, row.get(1)?);
            let (table, sql): (String, Option<String>) = (row.get(2)?, row.get(3)?);
            let probe = match kind.as_str() {
                "index" => {
                    let column = "SELECT name FROM pragma_index_info(?1) WHERE seqno = 0";
                    let column: Option<String> = c.query_row(column, [&name], |row| row.get(0))?;
                    let Some(column) = column else { continue };
                    // A partial index is used only with its own condition.
                    let condition =
                        sql.and_then(|sql| Some(sql.split_once(" WHERE ")?.1.to_owned()));
                    let condition = condition.map_or(String::new(), |it| format!("WHERE {it}"));
                    format!(
                        "SELECT 1 FROM \"{table}\" INDEXED BY \"{name}\" {condition} \
                         ORDER BY \"{column}\" DESC LIMIT 1"
                    )
                }
                _ => {
                    let has_rowid = !sql.is_some_and(|sql| sql.contains("WITHOUT ROWID"));
                    let key = "SELECT name FROM pragma_table_info(?1) WHERE pk = 1";
                    let key = match has_rowid {
                        true => "rowid".to_owned(),
                        false => c.query_row(key, [&name], |row| row.get(0))?,
                    };
                    format!("SELECT 1 FROM \"{name}\" NOT INDEXED ORDER BY \"{key}\" DESC LIMIT 1")
                }
            };
            let entered = c.query_row(&probe, [], |_| Ok(()));
            if let Err(error) = entered
                && is_damage(&error)
            {
                return Err(error);
            }
        }
        Ok(())
    };
    !enter().is_err_and(|error| is_damage(&error))
}

/// The readers of a database file, opened on demand and reused.
#[derive(Debug)]
pub(crate) struct ReaderPool {
    path: PathBuf,
    health: Arc<StoreHealth>,
    idle: Mutex<Vec<Connection>>,
    /// Held shared by every read; [`pause`](Self::pause) holds it alone.
    reads: RwLock<()>,
}

impl ReaderPool {
    pub(crate) fn new(path: PathBuf, health: Arc<StoreHealth>) -> Self {
        Self {
            path,
            health,
            idle: Mutex::new(Vec::new()),
            reads: RwLock::new(()),
        }
    }

    /// Waits until no read runs, at most for `patience`; new reads wait until the guard is dropped.
    pub(crate) fn pause(&self, patience: Duration) -> Option<RwLockWriteGuard<'_, ()>> {
        self.reads.try_write_for(patience)
    }

    /// Runs `read` in one transaction: all of its statements see one state of the file. The
    /// transaction ends with `read`, so that it does not block checkpoints. A damaged page is one of
    /// the session that is read, unless a tree cannot be entered; that is reported to the
    /// [`StoreHealth`].
    pub(crate) fn with<T, E: Into<ReadError>>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, ReadError> {
        self.with_all(|c| read(c).map_err(|error| scoped_to_session(c, error.into())))
    }

    /// Like [`with`](Self::with), for a read over all sessions: any damaged page is damage of the
    /// database.
    pub(crate) fn with_all<T, E: Into<ReadError>>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, ReadError> {
        self.run(read).inspect_err(|error| {
            if let ReadError::DatabaseDamaged(cause) = error {
                self.health.report_damage(cause);
            }
        })
    }

    /// Opens one more reader, unless another file may have the name of the database.
    fn open(&self) -> Result<Connection, ReadError> {
        let connection = open_reader(&self.path)?;
        // SQLite opens the file with the first read.
        connection.query_row("PRAGMA schema_version", [], |_| Ok(()))?;
        match self.health.is_lost() {
            true => Err(ReadError::Database("the data folder is lost".into())),
            false => Ok(connection),
        }
    }

    fn run<T, E: Into<ReadError>>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, ReadError> {
        let _read = self.reads.read();
        let idle = self.idle.lock().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.open()?,
        };
        let snapshot = connection.unchecked_transaction()?;
        let result = read(&snapshot).map_err(Into::into);
        if snapshot.commit().is_err() {
            return result; // the connection is not reused
        }
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_READERS_MAX {
            idle.push(connection);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rusqlite::StatementStatus;

    use super::*;

    const PAGE: usize = 4_096;

    #[test]
    fn bound_values_do_not_prepare_a_statement_again() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("d.sqlite3");
        let writer = open_writer(&path).expect("a writer");
        let tables = "CREATE TABLE item (id INTEGER PRIMARY KEY, state TEXT);
                      CREATE INDEX item_open ON item (id) WHERE state = 'open'";
        writer.execute_batch(tables).expect("tables");
        let reader = open_reader(&path).expect("a reader");
        for connection in [&writer, &reader] {
            let sql = "SELECT count(*) FROM item WHERE state = ?1";
            let mut statement = connection.prepare(sql).expect("a statement");
            for state in ["open", "ended", "open"] {
                let count: i64 = statement
                    .query_row([state], |row| row.get(0))
                    .expect("a count");
                assert_eq!(count, 0);
            }
            assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
        }
    }

    /// A database of some trees with many leaves each, and their root pages.
    fn database(path: &Path) -> Vec<usize> {
        let connection = Connection::open(path).expect("a database");
        connection
            .execute_batch(
                "PRAGMA page_size = 4096;
                 CREATE TABLE item (id INTEGER PRIMARY KEY, text TEXT);
                 CREATE INDEX item_text ON item (text);
                 CREATE INDEX item_part ON item (text) WHERE id > 0;
                 CREATE TABLE pair (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
                 WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
                 INSERT INTO item SELECT i, printf('%0200d', i) FROM n;
                 INSERT INTO pair SELECT text, text FROM item;",
            )
            .expect("rows");
        let mut roots = connection
            .prepare("SELECT rootpage FROM sqlite_schema WHERE rootpage > 0")
            .expect("a statement");
        let roots = roots.query_map([], |row| row.get::<_, i64>(0));
        let roots = roots
            .expect("rows")
            .map(|root| root.expect("a number") as usize);
        roots.collect()
    }

    #[test]
    fn damage_of_a_leaf_is_of_one_session_and_of_a_root_of_all() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("d.sqlite3");
        let roots = database(&path);
        let sound = fs::read(&path).expect("the file");
        let (mut of_one, mut of_all) = (0, Vec::new());
        for page in 2..=sound.len() / PAGE {
            let mut bytes = sound.clone();
            bytes[(page - 1) * PAGE..][..64].fill(0xff);
            fs::write(&path, bytes).expect("written");
            let health = Arc::new(StoreHealth::new(path.clone()));
            let pool = ReaderPool::new(path.clone(), health.clone());
            for from in [
                "item NOT INDEXED",
                "item INDEXED BY item_text WHERE text > ''",
                "item INDEXED BY item_part WHERE id > 0",
                "pair",
            ] {
                let sql = format!("SELECT sum(length(text)) FROM {from}");
                let sql = sql.replace("length(text)) FROM pair", "length(value)) FROM pair");
                let read = pool.with(|c| c.query_row(&sql, [], |row| row.get::<_, i64>(0)));
                match read {
                    Ok(_) => {}
                    Err(ReadError::Corrupt(_)) => of_one += 1,
                    Err(ReadError::DatabaseDamaged(_)) => of_all.push(page),
                    Err(error) => panic!("page {page}: {error}"),
                }
            }
            let is_damaged = health.fault() == Some(crate::error::StoreFault::Damaged);
            assert_eq!(is_damaged, of_all.last() == Some(&page), "page {page}");
        }
        assert!(of_one > 20, "{of_one} leaves");
        for root in roots {
            assert!(of_all.contains(&root), "{root} of {of_all:?}");
        }
        assert!(of_all.len() < of_one, "{of_all:?}");
    }
}

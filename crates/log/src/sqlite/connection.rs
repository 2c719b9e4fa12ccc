//! Connections: setup for writing and for reading, the pool of readers, the meaning of errors.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock, RwLockWriteGuard};
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
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
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
    /// transaction ends with `read`, so that it does not block checkpoints. Reports damage to the
    /// [`StoreHealth`].
    pub(crate) fn with<T, E: Into<ReadError>>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, ReadError> {
        self.run(read).inspect_err(|error| {
            if let ReadError::DatabaseDamaged(cause) = error {
                self.health.report_damage(cause);
            }
        })
    }

    fn run<T, E: Into<ReadError>>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, ReadError> {
        let _read = self.reads.read();
        let idle = self.idle.lock().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => open_reader(&self.path)?,
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

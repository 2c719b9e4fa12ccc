//! Connections: how one is set up for writing and for reading, and the pool of readers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::{AppendError, OpenError, ReadError};

/// Readers kept open between uses: two cores need few, a burst may open more and drops them.
const IDLE_READERS_MAX: usize = 8;

/// A connection for writing, before anything of the file is changed.
pub(crate) fn plain(path: &Path) -> Result<Connection, OpenError> {
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        Ok(connection)
    };
    open().map_err(|error| open_error(path, &error))
}

/// Makes it the writing connection, every commit on disk.
pub(crate) fn prepare(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let set_up = || -> rusqlite::Result<()> {
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        // Checkpoints are the writer's: SQLite's own would swallow a disk's failure.
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        connection.pragma_update(None, "cache_size", -65_536)?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(())
    };
    set_up().map_err(|error| open_error(path, &error))
}

/// Trades the last commits before a power cut for speed.
pub(crate) fn relax(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    connection
        .pragma_update(None, "synchronous", "NORMAL")
        .map_err(|error| open_error(path, &error))
}

/// A reading connection.
pub(crate) fn reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// What an error at open means to the person who started the server.
pub(crate) fn open_error(path: &Path, error: &rusqlite::Error) -> OpenError {
    let path = path.display().to_string();
    let what = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            OpenError::Corrupt { path, what }
        }
        _ => OpenError::Io { path, what },
    }
}

/// What an error while writing means: whether this batch is at fault, whether waiting helps, or
/// whether nothing can be trusted any more.
pub(crate) fn classify(error: &rusqlite::Error) -> AppendError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => AppendError::Full,
        Some(
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::OperationInterrupted
            | ErrorCode::FileLockingProtocolFailed,
        ) => AppendError::Busy,
        Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch)
        | None => AppendError::Refused(error.to_string()),
        Some(_) => AppendError::Fatal(error.to_string()),
    }
}

/// Readers, opened as needed and kept for the next.
#[derive(Debug)]
pub(crate) struct Pool {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Pool {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            idle: Mutex::new(Vec::new()),
        }
    }

    /// Runs one read on one state of the file, however many statements it takes. The transaction
    /// ends with it, so that checkpoints are never held up.
    pub(crate) fn with<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let idle = self.idle.lock().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => reader(&self.path)?,
        };
        let snapshot = connection.unchecked_transaction()?;
        let result = read(&snapshot);
        let ended = snapshot.commit();
        if ended.is_err() {
            return result; // not one for the pool
        }
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_READERS_MAX {
            idle.push(connection);
        }
        result
    }
}

impl From<rusqlite::Error> for ReadError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.to_string())
    }
}

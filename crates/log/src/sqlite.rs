//! The embedded database: one SQLite file in WAL mode, one writing connection, a pool of readers.
//!
//! A lock file keeps other processes from writing. The writing connection uses `synchronous=FULL`
//! unless the operator chose [`CommitDurability::Relaxed`]; then a start after an unclean shutdown
//! begins a new epoch, because events that a client has seen may be lost.

mod column;
mod connection;
mod migrate;
mod table;
mod change;
mod read;
mod write;
mod log;
mod records;

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::error::OpenError;
use crate::sqlite::connection::ReaderPool;
use crate::sqlite::write::WriteHalf;

/// The failures that a commit survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitDurability {
    /// A crash of the process, and a power failure.
    Full,
    /// A crash of the process. A power failure may lose the last commits.
    Relaxed,
}

/// How [`SqliteStore::open`] opens the database.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// The folder of the database file, the lock file and the disk reserve; created if missing.
    pub dir: PathBuf,
    /// The failures that every commit survives.
    pub durability: CommitDurability,
}

/// The name of the database file in its folder.
pub const DATABASE_FILE: &str = "turnwire.sqlite3";

/// A [`Store`](crate::Store) in one SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    write_half: Mutex<WriteHalf>,
    readers: ReaderPool,
    /// The locked lock file of the folder, until the store is dropped; `None` for a read-only
    /// store.
    _lock: Option<File>,
}

impl SqliteStore {
    /// Opens the database for reading and writing, in one process at a time. Creates a missing
    /// database and migrates an older one.
    pub fn open(options: &SqliteOptions) -> Result<Self, OpenError> {
        let io_error = |path: &Path, error: std::io::Error| OpenError::Io {
            path: path.display().to_string(),
            cause: error.to_string(),
        };
        fs::create_dir_all(&options.dir).map_err(|e| io_error(&options.dir, e))?;
        let lock_path = options.dir.join("lock");
        let lock = File::create(&lock_path).map_err(|e| io_error(&lock_path, e))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(OpenError::InUse(options.dir.display().to_string()));
            }
            Err(TryLockError::Error(error)) => return Err(io_error(&lock_path, error)),
        }
        let path = options.dir.join(DATABASE_FILE);
        let connection = connection::open_writer(&path)?;
        // Before any change, so that the file of another program stays unchanged.
        migrate::check_supported(&connection, &path)?;
        connection::set_up_writer(&connection, &path)?;
        migrate::migrate(&connection, &path, options.durability)?;
        if options.durability == CommitDurability::Relaxed {
            connection::relax_sync(&connection, &path)?;
        }
        Ok(Self {
            write_half: Mutex::new(WriteHalf::new(connection)),
            readers: ReaderPool::new(path),
            _lock: Some(lock),
        })
    }

    /// Opens an existing database read-only, also while a server writes to it.
    pub fn open_read_only(dir: &Path) -> Result<Self, OpenError> {
        let path = dir.join(DATABASE_FILE);
        let connection = connection::open_reader(&path)
            .map_err(|error| connection::open_error(&path, &error))?;
        migrate::check_current(&connection, &path)?;
        Ok(Self {
            write_half: Mutex::new(WriteHalf::new(connection)),
            readers: ReaderPool::new(path),
            _lock: None,
        })
    }
}

#[cfg(test)]
mod tests;

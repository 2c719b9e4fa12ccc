//! The embedded database: one SQLite file in WAL mode, one writing connection, a pool of readers.
//!
//! The folder is locked for one process. `synchronous=FULL` unless the operator chose `relaxed`;
//! then a start after an unclean shutdown begins a new epoch, as events that a client has seen may
//! be lost.

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

/// What a commit survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitDurability {
    Full,
    /// A crash of the process; a power failure may lose the last commits.
    Relaxed,
}

/// How [`SqliteStore::open`] opens the database.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// The folder of the database, its lock and the disk reserve; created if missing.
    pub dir: PathBuf,
    /// What every commit survives.
    pub durability: CommitDurability,
}

/// The name of the database file in its folder.
pub const DATABASE_FILE: &str = "turnwire.sqlite3";

/// A [`Store`](crate::Store) in one SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    write_half: Mutex<WriteHalf>,
    readers: ReaderPool,
    /// Locks the folder until the store is dropped; `None` if it was opened read-only.
    _lock: Option<File>,
}

impl SqliteStore {
    /// Opens the database for this process alone; creates it if there is none.
    pub fn open(options: &SqliteOptions) -> Result<Self, OpenError> {
        let io = |path: &Path, error: std::io::Error| OpenError::Io {
            path: path.display().to_string(),
            cause: error.to_string(),
        };
        fs::create_dir_all(&options.dir).map_err(|e| io(&options.dir, e))?;
        let lock_path = options.dir.join("lock");
        let lock = File::create(&lock_path).map_err(|e| io(&lock_path, e))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(OpenError::InUse(options.dir.display().to_string()));
            }
            Err(TryLockError::Error(error)) => return Err(io(&lock_path, error)),
        }
        let path = options.dir.join(DATABASE_FILE);
        let connection = connection::open_writer(&path)?;
        // Checked before any change: the file of another program stays as it is.
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

    /// Opens a database read-only; a server may be writing to it.
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

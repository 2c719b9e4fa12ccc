//! Rewrites a database into a new file without free pages, which gives free pages back from then on.

use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::error::OpenError;
use crate::sqlite::upkeep::checkpoint;
use crate::sqlite::{
    CommitDurability, DATABASE_FILE, SqliteOptions, SqliteStore, connection, wal_path,
};

/// The new file until it replaces the old one.
pub(crate) const DRAFT_FILE: &str = "turnwire.sqlite3.compact";

/// The sizes of a database file before and after [`SqliteStore::compact`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactedSize {
    pub bytes_before: u64,
    pub bytes_after: u64,
}

impl SqliteStore {
    /// Rewrites the database in `dir`, which no server may use meanwhile. Needs free space for a
    /// second file. The old file stays as it is until the new one is on disk.
    pub fn compact(dir: &Path) -> Result<CompactedSize, OpenError> {
        let path = dir.join(DATABASE_FILE);
        let io_error = |path: &Path, error: std::io::Error| OpenError::Io {
            path: path.display().to_string(),
            cause: error.to_string(),
        };
        // Opening creates a missing database.
        fs::metadata(&path).map_err(|error| io_error(&path, error))?;
        let mut store = Self::open(&SqliteOptions {
            dir: dir.to_owned(),
            durability: CommitDurability::Full,
        })?;
        store.stop_checkpoints();
        let lock = store._lock.take();
        let draft = dir.join(DRAFT_FILE);
        let bytes_before = store.rewrite(&path, &draft)?;
        drop(store); // closes every connection
        let replace = || -> std::io::Result<u64> {
            File::open(&draft)?.sync_all()?;
            // The frames of the old file must not be applied to the new one.
            match fs::remove_file(wal_path(&path)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            fs::rename(&draft, &path)?;
            File::open(dir)?.sync_all()?;
            Ok(fs::metadata(&path)?.len())
        };
        let bytes_after = replace().map_err(|error| io_error(&draft, error))?;
        drop(lock);
        Ok(CompactedSize {
            bytes_before,
            bytes_after,
        })
    }

    /// Copies the WAL into the file, and the file into `draft`; returns the size of the file.
    fn rewrite(&self, path: &Path, draft: &Path) -> Result<u64, OpenError> {
        let io_error = |error: std::io::Error| OpenError::Io {
            path: draft.display().to_string(),
            cause: error.to_string(),
        };
        match fs::remove_file(draft) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(io_error(error));
            }
            _ => {}
        }
        let mut options = File::options();
        let options = options.create_new(true).write(true).mode(0o600);
        drop(options.open(draft).map_err(io_error)?);
        let write_half = self.write_half.lock();
        let rewrite = || -> rusqlite::Result<()> {
            let connection = &write_half.connection;
            if let Some(mark) = &self.mark {
                checkpoint::run_checkpoint(connection, "PASSIVE")?;
                mark.record_synced();
            }
            let (busy, ..) = checkpoint::run_checkpoint(connection, "TRUNCATE")?;
            if busy != 0 {
                return Err(rusqlite::Error::SqliteFailure(
                    rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY),
                    Some("another process reads the database".to_owned()),
                ));
            }
            // Nothing is left in a new file.
            connection.execute("DELETE FROM meta WHERE key = 'erase_due'", [])?;
            connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
            connection.execute("VACUUM INTO ?1", [draft.to_string_lossy()])?;
            Ok(())
        };
        let rewritten = rewrite().map_err(|error| connection::open_error(path, &error));
        if rewritten.is_err() {
            let _ = fs::remove_file(draft);
        }
        rewritten?;
        fs::metadata(path).map(|file| file.len()).map_err(io_error)
    }
}

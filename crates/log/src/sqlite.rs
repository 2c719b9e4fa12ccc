//! The embedded database: one SQLite file in WAL mode, one writing connection, a pool of readers.
//!
//! Locks of the folder keep other processes from writing. The writing connection uses `synchronous=FULL`
//! unless the operator chose [`CommitDurability::Relaxed`]; then a start after an unclean shutdown
//! begins a new epoch, because events that a client has seen may be lost.

mod column;
mod folder;
mod wal;
mod connection;
mod migrate;
mod table;
mod change;
mod splice;
mod read;
mod write;
mod upkeep;
mod log;
mod records;
mod audit;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use turnwire_event::{SessionId, metric};

use crate::error::{AppendError, OpenError, ReadError};
use crate::private;
use crate::sqlite::connection::ReaderPool;
use crate::sqlite::folder::health::StoreHealth;
use crate::sqlite::folder::lock::{self, FolderLock};
use crate::sqlite::upkeep::checkpoint::Checkpointer;
pub use crate::sqlite::upkeep::compact::CompactedSize;
use crate::sqlite::upkeep::maintain;
use crate::sqlite::wal::WalLoss;
use crate::sqlite::wal::commit_mark::{self, CommitMark};
use crate::sqlite::wal::commit_tail::CommitTail;
#[cfg(feature = "fuzzing")]
pub use crate::sqlite::wal::fuzzing;
pub use crate::sqlite::wal::gauge::WAL_BYTES_MAX;
use crate::sqlite::wal::gauge::WalGauge;
use crate::sqlite::write::WriteHalf;

pub use audit::{EventColumns, ScopedMessage};
pub use upkeep::backup::{
    BackupPieces, CheckDepth, CheckError, CheckedChains, DatabaseContent, RestoredDatabase,
};

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
    /// The loss that the next start will find; only of a read-only store.
    pending_loss: Option<WalLoss>,
    /// The checkpoint thread; `None` for a read-only store and after a clean shutdown.
    checkpointer: Mutex<Option<Checkpointer>>,
    write_half: Arc<Mutex<WriteHalf>>,
    readers: Arc<ReaderPool>,
    health: Arc<StoreHealth>,
    gauge: Arc<WalGauge>,
    /// `None` for a read-only store. Dropped after the connections, which use the same files.
    mark: Option<Arc<CommitMark>>,
    /// The locks of the folder, until the store is dropped; `None` for a read-only store.
    _lock: Option<FolderLock>,
}

impl SqliteStore {
    /// Opens the database for reading and writing, in one process at a time. Creates a missing
    /// database and migrates an older one.
    pub fn open(options: &SqliteOptions) -> Result<Self, OpenError> {
        private::create_folder(&options.dir).map_err(|e| io_error(&options.dir, &e))?;
        folder::check_file_types(&options.dir)?;
        let lock = FolderLock::acquire(&options.dir)?;
        // Of a `turnwire compact` that was killed: it has what was deleted since.
        let _ = std::fs::remove_file(options.dir.join(upkeep::compact::DRAFT_FILE));
        folder::check_no_restore(&options.dir)?;
        // Before a missing file is created.
        folder::check_not_missing(&options.dir)?;
        let path = options.dir.join(DATABASE_FILE);
        // SQLite gives its other files the mode of this one. A file that was copied here may be in
        // memory only: the first checkpoint would sync it while commits wait.
        private::open_file(&path)
            .and_then(|file| file.sync_all())
            .map_err(|e| io_error(&path, &e))?;
        // Before SQLite reads the WAL: its recovery ends at a damaged frame without a word.
        let wal_error = |e| io_error(&options.dir, &e);
        let loss = commit_mark::find_loss(&options.dir, |tail| has_commits(&path, tail));
        let loss = loss.map_err(wal_error)?;
        match loss {
            Some(loss) => commit_mark::keep_damaged(&options.dir, loss),
            None => commit_mark::record_copied(&options.dir),
        }
        .map_err(wal_error)?;
        let mut connection = connection::open_writer(&path)?;
        // Before any change, so that the file of another program stays unchanged.
        migrate::check_supported(&connection, &path)?;
        let gauge = Arc::new(WalGauge::default());
        connection::set_up_writer(&mut connection, &path, &gauge)?;
        if loss.is_some() {
            connection::check_after_loss(&connection, &path)?;
        }
        migrate::migrate(&connection, &path, options.durability, loss)?;
        if let Some(loss) = loss {
            report_loss(&options.dir, loss);
        }
        if options.durability == CommitDurability::Relaxed {
            connection::relax_sync(&connection, &path)?;
        }
        maintain::report_vacuum_mode(&connection, &path)?;
        let mut write_half = WriteHalf::new(connection, gauge.clone());
        write_half.tail = CommitTail::read(&write_half.connection)
            .map_err(|error| connection::open_error(&path, &error))?;
        let mark = CommitMark::open(&options.dir, write_half.tail).map_err(wal_error)?;
        let mark = Arc::new(mark);
        let mut store = Self::new(&options.dir, write_half, gauge.clone());
        store._lock = Some(lock);
        let checkpointer = Checkpointer::start(
            connection::open_checkpointer(&path)?,
            wal_path(&path),
            gauge,
            (store.write_half.clone(), store.readers.clone()),
            mark.clone(),
        );
        *store.checkpointer.lock() = Some(checkpointer.map_err(|e| io_error(&path, &e))?);
        store.mark = Some(mark);
        let watch = folder::watch(&options.dir).map_err(wal_error)?;
        store.health.watch(watch);
        Ok(store)
    }

    fn new(dir: &Path, write_half: WriteHalf, gauge: Arc<WalGauge>) -> Self {
        let path = dir.join(DATABASE_FILE);
        let health = Arc::new(StoreHealth::new(path.clone()));
        Self {
            pending_loss: None,
            checkpointer: Mutex::new(None),
            write_half: Arc::new(Mutex::new(write_half)),
            readers: Arc::new(ReaderPool::new(path, health.clone())),
            health,
            gauge,
            mark: None,
            _lock: None,
        }
    }

    /// Ends the checkpoint thread: while it runs a checkpoint, no other can.
    fn stop_checkpoints(&self) {
        drop(self.checkpointer.lock().take());
    }

    /// Bounds the WAL: above `bytes` it is copied into the database file and starts again.
    pub fn set_wal_bytes_max(&self, bytes: u64) -> Result<(), OpenError> {
        let write_half = self.write_half.lock();
        let limit = i64::try_from(bytes).unwrap_or(i64::MAX);
        let set = write_half
            .connection
            .pragma_update(None, "journal_size_limit", limit);
        set.map_err(|error| OpenError::Io {
            path: DATABASE_FILE.to_owned(),
            cause: error.to_string(),
        })?;
        self.gauge.set_bytes_max(bytes);
        Ok(())
    }

    /// Opens an existing database read-only, also while a server writes to it.
    pub fn open_read_only(dir: &Path) -> Result<Self, OpenError> {
        let path = dir.join(DATABASE_FILE);
        folder::check_file_types(dir)?;
        folder::check_not_missing(dir)?;
        // Before the connections: closing a file that SQLite has open would release its locks.
        let find = || {
            let loss = commit_mark::find_loss(dir, |tail| has_commits(&path, tail));
            loss.ok().flatten()
        };
        // A server that runs writes to the files while they are read: its own check has passed.
        let pending_loss = find()
            .filter(|_| !lock::is_locked(dir))
            .and_then(|_| find());
        let connection = connection::open_reader(&path)
            .map_err(|error| connection::open_error(&path, &error))?;
        migrate::check_current(&connection, &path)?;
        let gauge = Arc::new(WalGauge::default());
        let write_half = WriteHalf::new(connection, gauge.clone());
        Ok(Self {
            pending_loss,
            ..Self::new(dir, write_half, gauge)
        })
    }

    /// The schema of the database in `dir`, and that of this release.
    pub fn schema(dir: &Path) -> Result<(i64, i64), OpenError> {
        let path = dir.join(DATABASE_FILE);
        folder::check_file_types(dir)?;
        folder::check_not_missing(dir)?;
        let connection = connection::open_reader(&path)
            .map_err(|error| connection::open_error(&path, &error))?;
        migrate::schemas(&connection, &path)
    }

    /// Returns the commits that a damaged WAL has lost while `session` existed.
    pub fn wal_losses(&self, session: SessionId) -> Result<WalLosses, ReadError> {
        let recorded = self.readers.with(|c| migrate::recorded_loss(c, session))?;
        Ok(WalLosses {
            recorded_frames: recorded,
            pending_frames: self.pending_loss.map_or(0, |loss| loss.frames.into()),
        })
    }

    /// Runs a write on the one writing connection, and records its commit in the mark.
    fn write<T>(
        &self,
        write: impl FnOnce(&mut WriteHalf) -> Result<T, AppendError>,
    ) -> Result<T, AppendError> {
        let mut half = self.write_half.lock();
        let result = write(&mut half);
        if let Some(mark) = &self.mark {
            mark.set_tail(half.tail);
            mark.record();
        }
        if let Err(AppendError::Damaged(cause)) = &result {
            self.health.report_damage(cause);
        }
        result
    }
}

/// Commits that a damaged WAL has lost, from [`SqliteStore::wal_losses`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalLosses {
    /// Frames that were lost at earlier starts.
    pub recorded_frames: u64,
    /// Frames that the next start will report as lost.
    pub pending_frames: u64,
}

fn io_error(path: &Path, error: &std::io::Error) -> OpenError {
    OpenError::Io {
        path: path.display().to_string(),
        cause: error.to_string(),
    }
}

/// True if the database has the commits that `tail` ends.
fn has_commits(path: &Path, tail: &CommitTail) -> bool {
    let found = connection::open_reader(path).and_then(|connection| tail.is_in(&connection));
    found.unwrap_or(false)
}

/// Tells the operator that commits are lost.
fn report_loss(dir: &Path, loss: WalLoss) {
    let copy = commit_mark::damaged_copy(dir);
    tracing::error!(
        frames_lost = loss.frames,
        copy = %copy.display(),
        "the WAL of the database is damaged or missing: commits that clients may have seen are lost. \
         Every session begins a new epoch, so that no id is given twice. Restore a backup, or check \
         the sessions with `turnwire verify SESSION --data DIR`"
    );
    metrics::counter!(metric::LOG_WAL_FRAMES_LOST_TOTAL).increment(loss.frames.into());
}

/// The file of the WAL beside its database.
fn wal_path(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

#[cfg(test)]
mod tests;

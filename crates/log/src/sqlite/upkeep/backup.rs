//! A copy of a database while a server writes to it, the check of a copy, and its return into a folder.
//!
//! ```text
//!   back_up   one read transaction; pages in pieces, with a rest after each     commits do not wait
//!   check     the pages and indexes of the file, then the hash chains of sessions
//!   restore   draft ─▶ next epoch ─▶ old files aside ─▶ draft gets the name     under the folder's locks
//! ```
//!
//! A start refuses a folder with a draft: the files of a restore that was cut off belong to two lives.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OptionalExtension as _, params};
use turnwire_event::{Epoch, SessionId, Timestamp};

use crate::error::{OpenError, ReadError};
use crate::log::Log as _;
use crate::private;
use crate::selection::{EventSelection, ReadLimits};
use crate::sqlite::column::query_value;
use crate::sqlite::folder::lock::FolderLock;
use crate::sqlite::folder::{self, RESTORE_DRAFT};
use crate::sqlite::{DATABASE_FILE, SqliteStore, connection, io_error, migrate};

/// The endings of the files beside a database, in the order in which a restore moves them aside: what
/// the mark says is compared with the database until the last moment.
const ASIDE_BEFORE: [&str; 2] = ["-wal", "-shm"];
const ASIDE_AFTER: [&str; 1] = ["-mark"];

/// The pieces of a backup.
#[derive(Clone, Copy, Debug)]
pub struct BackupPieces {
    /// Pages copied at once: 1,024 are 4 MiB.
    pub pages: i32,
    /// The rest after each piece, which leaves the disk to commits.
    pub rest: Duration,
}

impl Default for BackupPieces {
    fn default() -> Self {
        Self {
            pages: 1_024,
            rest: Duration::from_millis(5),
        }
    }
}

/// What a database file has, from [`SqliteStore::back_up`] and [`SqliteStore::check`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseContent {
    /// The number of the last migration.
    pub schema: u32,
    pub sessions: u64,
    pub events: u64,
    pub newest_event: Option<Timestamp>,
}

/// How much of a database is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckDepth {
    /// The pages, and the chains of the newest sessions up to this number of events.
    Sample { events: u64 },
    /// The pages, every entry of every index, and the chains of all sessions.
    Full,
}

/// What a check found to be sound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckedChains {
    pub sessions: u64,
    pub events: u64,
}

/// Why a database did not pass its check.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The file cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A page or an index is damaged.
    #[error("{path} is damaged: {finding}")]
    Pages { path: String, finding: String },
    /// A session does not match its hashes.
    #[error("{session}: {cause}")]
    Session {
        session: SessionId,
        cause: ReadError,
    },
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// What a restore did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredDatabase {
    pub sessions: u64,
    /// The lowest epoch in which any session goes on.
    pub epoch: Option<Epoch>,
    /// The folder with the files that were there before.
    pub replaced: Option<PathBuf>,
}

impl SqliteStore {
    /// Copies the database of `dir` into the new file `to`, as it is at one moment, also while a server
    /// writes to it. `progress` gets the pages that are left and all pages. The WAL of the server grows
    /// meanwhile, because a read keeps it from starting again.
    pub fn back_up(
        dir: &Path,
        to: &Path,
        pieces: BackupPieces,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<DatabaseContent, OpenError> {
        // Checks what a start would check.
        let store = Self::open_read_only(dir)?;
        if let Some(loss) = store.pending_loss {
            return Err(OpenError::Corrupt {
                path: dir.join(DATABASE_FILE).display().to_string(),
                cause: format!(
                    "its WAL is damaged: {} committed frames are lost; start the server first, which \
                     begins a new epoch",
                    loss.frames
                ),
            });
        }
        drop(store);
        let path = dir.join(DATABASE_FILE);
        create_new(to)?;
        let copied = copy(&path, to, pieces, progress);
        if copied.is_err() {
            let _ = fs::remove_file(to);
        }
        copied
    }

    /// Checks the database of `dir`, which no server writes to.
    pub fn check(
        dir: &Path,
        depth: CheckDepth,
    ) -> Result<(DatabaseContent, CheckedChains), CheckError> {
        let store = Self::open_read_only(dir)?;
        let path = dir.join(DATABASE_FILE);
        let pragma = match depth {
            CheckDepth::Sample { .. } => "PRAGMA quick_check(1)",
            CheckDepth::Full => "PRAGMA integrity_check(1)",
        };
        let (finding, content) = store.readers.with_all(|c| -> rusqlite::Result<_> {
            let finding: String = c.query_row(pragma, [], |row| row.get(0))?;
            Ok((finding, content(c)?))
        })?;
        if finding != "ok" {
            let path = path.display().to_string();
            return Err(CheckError::Pages { path, finding });
        }
        let events_max = match depth {
            CheckDepth::Sample { events } => events,
            CheckDepth::Full => u64::MAX,
        };
        let checked = store.check_chains(events_max)?;
        Ok((content, checked))
    }

    /// Reads the events of sessions, the newest first, up to about `events_max` of them.
    fn check_chains(&self, events_max: u64) -> Result<CheckedChains, CheckError> {
        let mut checked = CheckedChains::default();
        let mut before = i64::MAX;
        while checked.events < events_max {
            let sql = "SELECT sid, id FROM session WHERE sid < ?1 ORDER BY sid DESC LIMIT 1";
            let next: Option<(i64, String)> = self.readers.with_all(|c| {
                let row = c.query_row(sql, [before], |row| Ok((row.get(0)?, row.get(1)?)));
                row.optional()
            })?;
            let Some((sid, id)) = next else {
                return Ok(checked);
            };
            before = sid;
            let unreadable = || ReadError::Corrupt(format!("the id {id:?} of a session"));
            let session: SessionId = id.parse().map_err(|_| unreadable())?;
            checked.events += self
                .check_chain(session)
                .map_err(|cause| CheckError::Session { session, cause })?;
            checked.sessions += 1;
        }
        Ok(checked)
    }

    fn check_chain(&self, session: SessionId) -> Result<u64, ReadError> {
        let Some(tail) = self.tail(session)? else {
            return Ok(0);
        };
        let limits = ReadLimits {
            events: 1_000,
            bytes: 4 << 20,
            scanned: 1_000,
        };
        let mut after = tail.low;
        while after < tail.seq {
            let batch = self.read(session, after, tail.seq, &EventSelection::all(), limits)?;
            if batch.end <= after {
                break;
            }
            after = batch.end;
        }
        Ok(tail.seq.0 - tail.low.0)
    }

    /// Puts the database `from`, which passed its check, into `dir`, where no server may run, and
    /// begins an epoch in every session that is above all that clients of the replaced database have
    /// seen. `aside` is a new folder for the files that are there.
    pub fn restore(dir: &Path, from: &Path, aside: &Path) -> Result<RestoredDatabase, OpenError> {
        private::create_folder(dir).map_err(|error| io_error(dir, &error))?;
        folder::check_file_types(dir)?;
        let _lock = FolderLock::acquire(dir)?;
        let (path, draft) = (dir.join(DATABASE_FILE), dir.join(RESTORE_DRAFT));
        let used = highest_epoch(&path);
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(io_error(&draft, &error));
            }
            _ => {}
        }
        create_new(&draft)?;
        fs::copy(from, &draft).map_err(|error| io_error(&draft, &error))?;
        let (sessions, epoch) = raise_epochs(&draft, used)?;
        let replaced = swap(dir, &draft, aside).map_err(|error| io_error(&path, &error))?;
        Ok(RestoredDatabase {
            sessions,
            epoch,
            replaced: replaced.then(|| aside.to_owned()),
        })
    }
}

/// Creates an empty private file that was not there.
fn create_new(path: &Path) -> Result<(), OpenError> {
    let mut options = File::options();
    let options = options
        .create_new(true)
        .write(true)
        .mode(private::FILE_MODE);
    let created = options.open(path).map(drop);
    created.map_err(|error| io_error(path, &error))
}

fn copy(
    from: &Path,
    to: &Path,
    pieces: BackupPieces,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<DatabaseContent, OpenError> {
    let mut copy = || -> rusqlite::Result<DatabaseContent> {
        let source = connection::open_reader(from)?;
        // Held until the end: otherwise every commit of the server would start the copy again.
        let snapshot = source.unchecked_transaction()?;
        let content = content(&snapshot)?;
        let mut target = Connection::open(to)?;
        // A copy that is cut off is thrown away.
        target.pragma_update(None, "journal_mode", "OFF")?;
        target.pragma_update(None, "synchronous", "OFF")?;
        {
            let backup = Backup::new(&snapshot, &mut target)?;
            loop {
                let step = backup.step(pieces.pages)?;
                let at = backup.progress();
                let count = |pages: i32| u64::try_from(pages).unwrap_or(0);
                progress(count(at.remaining), count(at.pagecount));
                match step {
                    StepResult::Done => break,
                    _ => std::thread::sleep(pieces.rest),
                }
            }
        }
        // One file, without a WAL beside it.
        target.pragma_update(None, "journal_mode", "DELETE")?;
        Ok(content)
    };
    let content = copy().map_err(|error| connection::open_error(from, &error))?;
    let sync = File::open(to).and_then(|file| file.sync_all());
    sync.map_err(|error| io_error(to, &error))?;
    Ok(content)
}

fn content(c: &Connection) -> rusqlite::Result<DatabaseContent> {
    let newest = "SELECT time FROM event ORDER BY gid DESC LIMIT 1";
    let newest: Option<i64> = query_value(c, newest, []).optional()?;
    Ok(DatabaseContent {
        schema: query_value(c, "PRAGMA user_version", [])?,
        sessions: query_value::<i64>(c, "SELECT count(*) FROM session", [])?.unsigned_abs(),
        // The smallest index of the table.
        events: query_value::<i64>(c, "SELECT count(*) FROM event", [])?.unsigned_abs(),
        newest_event: newest.map(Timestamp::from_millis),
    })
}

/// The highest epoch in a database file; 0 if it cannot be read.
fn highest_epoch(path: &Path) -> u32 {
    let read = || -> rusqlite::Result<u32> {
        let sql = "SELECT coalesce(max(epoch), 0) FROM session";
        query_value(&connection::open_reader(path)?, sql, [])
    };
    match path.is_file() {
        true => read().unwrap_or(0),
        false => 0,
    }
}

/// Moves every session of the draft into an epoch above its own and above `used`. Returns the number of
/// sessions and the lowest epoch.
fn raise_epochs(draft: &Path, used: u32) -> Result<(u64, Option<Epoch>), OpenError> {
    let raise = || -> rusqlite::Result<(u64, Option<u32>)> {
        let mut connection = Connection::open(draft)?;
        // One file, also if the copy has been opened by a server before.
        connection.pragma_update(None, "journal_mode", "DELETE")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        let tx = connection.transaction()?;
        migrate::begin_epoch_above(&tx, used)?;
        let sql = "SELECT count(*), min(epoch) FROM session";
        let raised = tx.query_row(sql, params![], |row| {
            Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get(1)?))
        })?;
        tx.commit()?;
        Ok(raised)
    };
    let (sessions, epoch) = raise().map_err(|error| connection::open_error(draft, &error))?;
    if let Some(epoch) = epoch.filter(|epoch| *epoch > Epoch::MAX) {
        return Err(OpenError::Corrupt {
            path: draft.display().to_string(),
            cause: format!("epoch {epoch} is above the last one, {}", Epoch::MAX),
        });
    }
    let sync = File::open(draft).and_then(|file| file.sync_all());
    sync.map_err(|error| io_error(draft, &error))?;
    Ok((sessions, epoch.map(Epoch)))
}

/// Gives the draft the name of the database; what is there goes into `aside`. Returns whether there was
/// a database.
fn swap(dir: &Path, draft: &Path, aside: &Path) -> io::Result<bool> {
    let file = |suffix: &str| format!("{DATABASE_FILE}{suffix}");
    let move_aside =
        |suffix: &str| match fs::rename(dir.join(file(suffix)), aside.join(file(suffix))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    let database = dir.join(DATABASE_FILE);
    let is_there = database.try_exists()?;
    let has_files = ["", "-wal", "-mark"]
        .iter()
        .any(|suffix| dir.join(file(suffix)).exists());
    if has_files {
        private::create_folder(aside)?;
    }
    if is_there && !aside.join(DATABASE_FILE).exists() {
        // A second name: the first is replaced below, in one step.
        fs::hard_link(&database, aside.join(DATABASE_FILE))?;
    }
    ASIDE_BEFORE
        .iter()
        .try_for_each(|suffix| move_aside(suffix))?;
    fs::rename(draft, &database)?;
    File::open(dir)?.sync_all()?;
    ASIDE_AFTER
        .iter()
        .try_for_each(|suffix| move_aside(suffix))?;
    File::open(dir)?.sync_all()?;
    Ok(is_there)
}

#[cfg(test)]
mod tests;

//! The commit mark: a small file beside the database that says how far the WAL was committed.
//!
//! ```text
//!   commit returns ─▶ the index of the WAL (-shm) is read ─▶ 88 bytes are written, not synced
//! ```
//!
//! A commit is on disk before its mark is written, so a mark never promises too much, and it may
//! lag: after a power failure it is ignored as far as the WAL is ahead of it. At the next start a WAL
//! that ends before the mark has lost commits (see [`WalScan::loss`]). The damaged WAL is copied
//! before SQLite reads it, and the mark says so until the store has begun a new epoch: a crash in
//! between repeats the same steps.
//!
//! The index is read through a descriptor that stays open while SQLite uses the file: closing it
//! would release SQLite's locks.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use crate::private;
use crate::sqlite::DATABASE_FILE;
use crate::sqlite::wal::commit_tail::CommitTail;
use crate::sqlite::wal::{WalLoss, WalSalts, WalScan, WalState};

/// The first bytes of a mark file.
const MAGIC: [u8; 8] = *b"TWMARK01";
/// Bytes of a mark before its hash.
const FIELD_BYTES: usize = 56;
const MARK_BYTES: usize = FIELD_BYTES + 32;

/// The file of the database that `suffix` names.
fn file(dir: &Path, suffix: &str) -> PathBuf {
    dir.join(format!("{DATABASE_FILE}{suffix}"))
}

/// The copy of a damaged WAL; a later one replaces it.
pub(crate) fn damaged_copy(dir: &Path) -> PathBuf {
    file(dir, "-wal.damaged")
}

/// What a process recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// The last commit of a process that has not closed the store.
    Open(WalState, CommitTail),
    /// The store was closed: every commit is in the database file, with or without a WAL.
    Closed,
    /// The WAL was found damaged, and the new epoch is not committed yet.
    Damaged(WalLoss),
}

impl Mark {
    fn encode(self) -> [u8; MARK_BYTES] {
        let closed = WalState::default();
        let none = CommitTail::default();
        let (kind, state, lost, tail): (u32, WalState, u32, CommitTail) = match self {
            Self::Open(state, tail) => (0, state, 0, tail),
            Self::Closed => (1, closed, 0, none),
            Self::Damaged(loss) => {
                let kind = if loss.discard { 3 } else { 2 };
                (kind, closed, loss.frames, none)
            }
        };
        let mut bytes = [0; MARK_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&kind.to_le_bytes());
        bytes[12..20].copy_from_slice(&state.salts.0);
        bytes[20..24].copy_from_slice(&state.frames.to_le_bytes());
        bytes[24..28].copy_from_slice(&state.backfilled.to_le_bytes());
        bytes[28..32].copy_from_slice(&lost.to_le_bytes());
        bytes[32..40].copy_from_slice(&tail.event.to_le_bytes());
        bytes[40..48].copy_from_slice(&tail.hash);
        bytes[48..56].copy_from_slice(&tail.changes.to_le_bytes());
        let hash = Sha256::digest(&bytes[..FIELD_BYTES]);
        bytes[FIELD_BYTES..].copy_from_slice(&hash);
        bytes
    }

    /// `None` if the bytes are not a whole mark, for example after a power failure.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; MARK_BYTES] = bytes.try_into().ok()?;
        let (fields, hash) = bytes.split_at(FIELD_BYTES);
        if fields[..8] != MAGIC || Sha256::digest(fields)[..] != *hash {
            return None;
        }
        let number = |at: usize| {
            let word = fields.get(at..at + 4).and_then(|word| word.try_into().ok());
            word.map_or(0, u32::from_le_bytes)
        };
        let state = WalState {
            salts: WalSalts(fields[12..20].try_into().ok()?),
            frames: number(20),
            backfilled: number(24),
        };
        let damaged = |discard| {
            let frames = number(28);
            Self::Damaged(WalLoss { frames, discard })
        };
        let tail = CommitTail {
            event: i64::from_le_bytes(fields[32..40].try_into().ok()?),
            hash: fields[40..48].try_into().ok()?,
            changes: i64::from_le_bytes(fields[48..56].try_into().ok()?),
        };
        match number(8) {
            0 => Some(Self::Open(state, tail)),
            1 => Some(Self::Closed),
            2 => Some(damaged(false)),
            3 => Some(damaged(true)),
            _ => None,
        }
    }

    fn read(dir: &Path) -> Option<Self> {
        // One byte more, so that a longer file is not taken for a mark.
        let bytes = private::read_file(&file(dir, "-mark"), MARK_BYTES as u64 + 1);
        Self::decode(&bytes.ok()?)
    }
}

/// True if `bytes` are a whole mark, which is then encoded to the same bytes.
#[cfg(feature = "fuzzing")]
pub fn is_mark(bytes: &[u8]) -> bool {
    Mark::decode(bytes).is_some_and(|mark| {
        assert_eq!(Mark::decode(&mark.encode()), Some(mark));
        true
    })
}

/// A mark with the fields in `bytes` and the right hash.
#[cfg(feature = "fuzzing")]
pub fn sealed_mark(bytes: &[u8]) -> Vec<u8> {
    let mut mark = MAGIC.to_vec();
    mark.extend_from_slice(bytes);
    mark.resize(FIELD_BYTES, 0);
    let hash = Sha256::digest(&mark);
    mark.extend_from_slice(&hash);
    mark
}

/// Looks for commits that SQLite's recovery of the WAL in `dir` would lose. `has_commits` tells whether
/// the database file has the commits that a tail ends.
pub(crate) fn find_loss(
    dir: &Path,
    has_commits: impl FnOnce(&CommitTail) -> bool,
) -> io::Result<Option<WalLoss>> {
    let mark = Mark::read(dir);
    if let Some(Mark::Damaged(loss)) = mark {
        return Ok(Some(loss));
    }
    let marked = match mark {
        Some(Mark::Open(state, tail)) => {
            // No WAL, and nothing is missing: another program, such as the `sqlite3` shell, opened the
            // database after a crash and copied the WAL.
            if is_empty(&file(dir, "-wal")) && has_commits(&tail) {
                return Ok(None);
            }
            Some(state)
        }
        _ => None,
    };
    // A killed process leaves the index as it was at its last commit.
    let index = private::open_to_read(&file(dir, "-shm")).ok();
    let indexed = index.as_ref().and_then(WalState::read_index);
    let known = match mark {
        Some(Mark::Closed) => None,
        _ => WalState::latest(marked, indexed),
    };
    Ok(WalScan::read(&file(dir, "-wal"))?.loss(known))
}

/// Records at a start without loss that an open mark has no WAL any more: the next WAL begins with
/// other salts, and the mark must not be compared with them.
pub(crate) fn record_copied(dir: &Path) -> io::Result<()> {
    if !matches!(Mark::read(dir), Some(Mark::Open(..))) || !is_empty(&file(dir, "-wal")) {
        return Ok(());
    }
    let mark = private::open_file(&file(dir, "-mark"))?;
    mark.write_all_at(&Mark::Closed.encode(), 0)?;
    mark.sync_all()
}

fn is_empty(path: &Path) -> bool {
    match path.metadata() {
        Ok(file) => file.len() == 0,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Keeps a copy of a damaged WAL before SQLite reads it, and records `loss` until
/// [`CommitMark::open`] is called.
pub(crate) fn keep_damaged(dir: &Path, loss: WalLoss) -> io::Result<()> {
    let is_recorded = matches!(Mark::read(dir), Some(Mark::Damaged(_)));
    let wal = file(dir, "-wal");
    let has_wal = wal.metadata().is_ok_and(|meta| meta.len() > 0);
    // A start that did not finish has made the copy already.
    if !is_recorded {
        if has_wal {
            copy(&wal, &damaged_copy(dir))?;
        }
        let mark = private::open_file(&file(dir, "-mark"))?;
        mark.write_all_at(&Mark::Damaged(loss).encode(), 0)?;
        mark.set_len(MARK_BYTES as u64)?;
        mark.sync_all()?;
        File::open(dir)?.sync_all()?;
    }
    if loss.discard && has_wal {
        File::options().write(true).open(&wal)?.set_len(0)?;
    }
    Ok(())
}

/// Copies a file under a temporary name first, so that a copy is whole.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let part = to.with_extension("part");
    let copied = (|| {
        let mut target = private::create_file(&part)?;
        io::copy(&mut File::open(from)?, &mut target)?;
        target.sync_all()?;
        fs::rename(&part, to)
    })();
    if copied.is_err() {
        let _ = fs::remove_file(&part);
    }
    copied
}

/// The mark file of an open store.
#[derive(Debug)]
pub(crate) struct CommitMark {
    dir: PathBuf,
    mark: File,
    index: File,
    last: Mutex<Option<Mark>>,
    tail: Mutex<CommitTail>,
}

impl CommitMark {
    /// Opens the mark beside a database that is open in WAL mode, and records its last commit.
    pub(crate) fn open(dir: &Path, tail: CommitTail) -> io::Result<Self> {
        let mark = Self {
            dir: dir.to_owned(),
            mark: private::open_file(&file(dir, "-mark"))?,
            index: private::open_to_read(&file(dir, "-shm"))?,
            last: Mutex::new(None),
            tail: Mutex::new(tail),
        };
        mark.mark.set_len(MARK_BYTES as u64)?;
        let state = WalState::read_index(&mark.index);
        mark.write(Mark::Open(state.unwrap_or_default(), tail));
        // After a power failure the mark of an earlier process would be compared with a WAL that
        // has nothing to do with it.
        mark.mark.sync_data()?;
        Ok(mark)
    }

    /// Records the last commit: a read and a write of some bytes in the page cache. Called after
    /// every write of the one writing connection, also one that was checkpointed.
    pub(crate) fn record(&self) {
        if let Some(state) = WalState::read_index(&self.index) {
            let tail = *self.tail.lock();
            self.write(Mark::Open(state, tail));
        }
    }

    /// Sets the tail for the next [`record`](Self::record).
    pub(crate) fn set_tail(&self, tail: CommitTail) {
        *self.tail.lock() = tail;
    }

    /// Records the last commit and syncs the mark. Called before the WAL is cut.
    pub(crate) fn record_synced(&self) {
        self.record();
        if let Err(error) = self.mark.sync_data() {
            tracing::warn!(%error, "the commit mark could not be synced");
        }
    }

    /// Records that every commit is in the database file. Called after the last commit.
    pub(crate) fn close(&self) {
        self.write(Mark::Closed);
        if let Err(error) = self.mark.sync_data() {
            tracing::warn!(%error, "the commit mark could not be synced");
        }
    }

    fn write(&self, mark: Mark) {
        let mut last = self.last.lock();
        if *last == Some(mark) || *last == Some(Mark::Closed) {
            return;
        }
        match self.mark.write_all_at(&mark.encode(), 0) {
            Ok(()) => *last = Some(mark),
            // An old mark promises less, never too much.
            Err(error) => tracing::warn!(%error, "the commit mark could not be written"),
        }
    }
}

impl Drop for CommitMark {
    /// The connections are closed by now. SQLite removes the WAL with the last of them, after
    /// copying it into the database file.
    fn drop(&mut self) {
        let wal = file(&self.dir, "-wal");
        if matches!(wal.try_exists(), Ok(false)) {
            self.close();
        }
    }
}

#[cfg(test)]
mod tests;

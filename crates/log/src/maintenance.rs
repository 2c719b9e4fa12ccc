//! The contract of background removal. Each call is one *piece*: a transaction of its own, bounded by
//! a [`PieceBudget`], so that appends wait for one piece at most. Work that stops goes on from where
//! it stopped, also after a crash.
//!
//! ```text
//!   trim            events past their retention     from a TrimCursor, oldest session first
//!   remove_deleted  rows of deleted sessions        from the table of pending removals
//!   release_pages   free pages of the file          from the end of the file
//!   erase_removed   what removed rows have left     page by page
//! ```

use std::time::{Duration, Instant};

use turnwire_event::{Seq, SessionId, Timestamp};

use crate::error::{AppendError, ReadError};

/// The bounds of one piece. A piece ends with the first row that reaches one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceBudget {
    /// Rows removed or visited. Each may dirty a page of its own in the table and in its indexes.
    pub rows: usize,
    /// Bytes of the removed rows.
    pub bytes: u64,
    /// Time until the commit begins.
    pub time: Duration,
}

impl Default for PieceBudget {
    /// 256 rows dirty 3 MB of pages at most, 4 MiB are 1,000 pages to free, 10 ms leave room for the
    /// sync of the commit below 50 ms.
    fn default() -> Self {
        Self {
            rows: 256,
            bytes: 4 << 20,
            time: Duration::from_millis(10),
        }
    }
}

/// Counts the work of one piece against its [`PieceBudget`].
#[derive(Debug)]
pub(crate) struct PieceMeter {
    budget: PieceBudget,
    started: Instant,
    rows: usize,
    bytes: u64,
}

impl PieceMeter {
    pub(crate) fn start(budget: &PieceBudget) -> Self {
        Self {
            budget: *budget,
            started: Instant::now(),
            rows: 0,
            bytes: 0,
        }
    }

    pub(crate) fn add(&mut self, rows: usize, bytes: u64) {
        self.rows += rows;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Rows that the piece may still remove; at least one, so that every piece makes progress.
    pub(crate) fn rows_left(&self) -> usize {
        self.budget.rows.saturating_sub(self.rows).max(1)
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.rows >= self.budget.rows
            || self.bytes >= self.budget.bytes
            || self.started.elapsed() >= self.budget.time
    }
}

/// Whether a background task has work left after a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    More,
    /// Work is left that cannot go on yet: it waits for another thread or another process.
    Later,
    Done,
}

/// Where a sweep of [`Log::trim`](crate::Log::trim) stopped: a time and a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrimCursor {
    pub(crate) oldest: i64,
    pub(crate) sid: i64,
}

impl TrimCursor {
    /// The begin of a sweep.
    pub const START: Self = Self {
        oldest: i64::MIN,
        sid: i64::MIN,
    };
}

/// What one piece of [`Log::trim`](crate::Log::trim) removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrimPiece {
    /// Each trimmed session with its new low-water mark.
    pub trimmed: Vec<(SessionId, Seq)>,
    /// Where the next piece begins; `None` at the end of the sweep.
    pub next: Option<TrimCursor>,
}

/// What a store knows of the time, for a [trusted clock](Maintenance::clock_mark).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockMark {
    /// The trusted time when the mark was written.
    pub trusted: Timestamp,
    /// The trusted time of the last sweep of the retention.
    pub swept: Timestamp,
    /// The boot in which the mark was written, and the uptime of the machine then; `None` where the
    /// system does not tell.
    pub uptime: Option<Uptime>,
}

/// The time for which the machine has run since one boot, without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uptime {
    /// A number that every boot has for itself.
    pub boot: i64,
    /// Milliseconds since the boot.
    pub millis: i64,
}

/// Removal in pieces, and the stored time that decides what is due.
pub trait Maintenance: Send + Sync + 'static {
    /// Removes rows of sessions that [`Log::delete`](crate::Log::delete) deleted. Durable on return.
    fn remove_deleted(&self, budget: &PieceBudget) -> Result<Progress, AppendError>;

    /// Gives free pages back to the file system until `keep_bytes` of them are left for reuse. Returns
    /// [`Progress::Later`] while a checkpoint has yet to cut the file. Does nothing for a database
    /// that was created without incremental vacuum.
    fn release_pages(&self, keep_bytes: u64, budget: &PieceBudget)
    -> Result<Progress, AppendError>;

    /// Overwrites what removed rows have left in unused parts of the file, and has the log of its
    /// changes emptied: when it is [`Progress::Done`], no file of the store has a byte of what was
    /// removed before it began. Returns [`Progress::Later`] while a checkpoint is to come. Does nothing
    /// if nothing was removed.
    fn erase_removed(&self, budget: &PieceBudget) -> Result<Progress, AppendError>;

    /// The stored [`ClockMark`]; `None` before the first one.
    fn clock_mark(&self) -> Result<Option<ClockMark>, ReadError>;

    /// Stores a [`ClockMark`]. Durable on return.
    fn set_clock_mark(&self, mark: &ClockMark) -> Result<(), AppendError>;

    /// The time of the newest event of any session, if there is one.
    fn newest_event_time(&self) -> Result<Option<Timestamp>, ReadError>;
}

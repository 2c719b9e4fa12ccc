//! Whether removed rows may have left something in the files: a row of the table `meta`, and how far a
//! pass of the erasure is.

use rusqlite::{Connection, OptionalExtension as _, Transaction};

use crate::sqlite::column::{execute, query_value};

/// The key of the row: present while there is something to erase.
const DUE: &str = "erase_due";

/// Where the erasure is.
#[derive(Debug, Default)]
pub(crate) struct EraseState {
    /// Whether `meta` says that something is due; `None` before it was read.
    is_due: Option<bool>,
    /// Removals since the start; an erasure is done only if none came after its begin.
    pub(crate) removals: u64,
    pub(crate) pass: Option<ErasePass>,
}

/// One pass over the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ErasePass {
    pub(crate) next_page: u32,
    /// The removals when the pass began.
    pub(crate) removals: u64,
    pub(crate) stage: EraseStage,
}

/// What a pass does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EraseStage {
    /// Read and overwrite pages.
    Pages,
    /// Every page was read; a checkpoint has to cut the WAL.
    Wal,
}

impl EraseState {
    /// Records in the transaction of a removal that there is something to erase.
    pub(crate) fn add_removal(&mut self, tx: &Transaction<'_>) -> rusqlite::Result<()> {
        self.removals += 1;
        let sql = "INSERT OR IGNORE INTO meta (key, value) VALUES (?1, 1)";
        execute(tx, sql, [DUE])?;
        // If the transaction fails, a pass finds nothing.
        self.is_due = Some(true);
        Ok(())
    }

    /// True if something is due; read from `meta` the first time.
    pub(crate) fn is_due(&mut self, c: &Connection) -> rusqlite::Result<bool> {
        if let Some(is_due) = self.is_due {
            return Ok(is_due);
        }
        let sql = "SELECT value FROM meta WHERE key = ?1";
        let value: Option<i64> = query_value(c, sql, [DUE]).optional()?;
        Ok(*self.is_due.insert(value == Some(1)))
    }

    /// Nothing is due any more.
    pub(crate) fn clear(&mut self, c: &Connection) -> rusqlite::Result<()> {
        execute(c, "DELETE FROM meta WHERE key = ?1", [DUE])?;
        self.is_due = Some(false);
        Ok(())
    }
}

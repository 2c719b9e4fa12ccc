//! Overwrites what removed rows leave behind in the unused parts of pages, so that no file has it.
//!
//! ```text
//!   DELETE              zeroes the row and the pages that it frees (`secure_delete`)
//!   SQLite moves rows   and may leave an older copy in the gap or the free blocks of a page
//!   erase, in pieces    reads the pages of trees, zeroes what is unused in them
//!   TRUNCATE            the WAL has older versions of pages: it is copied and cut
//! ```
//!
//! That there is something to erase is stored in the transaction of the removal, so that a start goes on
//! with it. Pages are read and written as rows of `sqlite_dbpage`, through the cache and the WAL like
//! every write. The kind of a page is read from the pointer map of the file.

use rusqlite::{Connection, params};

use crate::error::{AppendError, ReadError};
use crate::maintenance::{PieceBudget, PieceMeter, Progress};
use crate::sqlite::SqliteStore;
use crate::sqlite::column::{execute, query_value};
use crate::sqlite::table::erasure::{ErasePass, EraseStage};
use crate::sqlite::upkeep::maintain::is_incremental;
use crate::sqlite::write::{WriteHalf, begin};

/// The first page of a file that has rows of sessions: the first is the schema, the second maps pages.
const FIRST_PAGE: u32 = 3;

/// The byte at which a file of SQLite is locked; no page with it is used.
const PENDING_BYTE: u64 = 0x4000_0000;

/// Pages read between two looks at the time.
const PAGES_PER_LOOK: u32 = 16;

impl SqliteStore {
    /// Reads some pages on a reader, and overwrites those with something in them on the writer; the
    /// last piece waits for the checkpoint. [`Maintenance`](crate::Maintenance) has the promise.
    pub(crate) fn erase_piece(&self, budget: &PieceBudget) -> Result<Progress, AppendError> {
        let Some(pass) = self.write(WriteHalf::erase_pass)? else {
            return Ok(Progress::Done);
        };
        if pass.stage == EraseStage::Wal {
            return self.write(WriteHalf::finish_erase);
        }
        let mut meter = PieceMeter::start(budget);
        let found = self.readers.with_all(|c| -> Result<_, ReadError> {
            Ok(find_residue(c, pass.next_page, &mut meter)?)
        });
        let found = match found {
            Ok(found) => found,
            // A page that cannot be read is reported by the reads of its rows.
            Err(error) => return Err(AppendError::Refused(error.to_string())),
        };
        self.write(|half| half.overwrite(&found, &mut meter))?;
        Ok(Progress::More)
    }
}

/// Pages of one look that need work, and where the next look begins.
struct ResidueFound {
    /// Pages with something in their unused parts.
    pages: Vec<u32>,
    /// The page after the last one that was read; `None` at the end of the file.
    next_page: Option<u32>,
}

impl WriteHalf {
    /// The pass that goes on, or a new one if something is due.
    fn erase_pass(&mut self) -> Result<Option<ErasePass>, AppendError> {
        if !self.erase.is_due(&self.connection)? {
            return Ok(None);
        }
        if self.erase.pass.is_none() && !can_erase(&self.connection)? {
            tracing::warn!(
                "this database was created by an older release: parts of deleted sessions may stay in unused \
                 space; stop the server and run `turnwire compact` once to convert it"
            );
            self.clear_due()?;
            return Ok(None);
        }
        let removals = self.erase.removals;
        let pass = self.erase.pass.get_or_insert(ErasePass {
            next_page: FIRST_PAGE,
            removals,
            stage: EraseStage::Pages,
        });
        Ok(Some(*pass))
    }

    /// Zeroes the unused parts of pages, and moves the pass on.
    fn overwrite(
        &mut self,
        found: &ResidueFound,
        meter: &mut PieceMeter,
    ) -> Result<(), AppendError> {
        if !found.pages.is_empty() {
            let map = PageMap::read(&self.connection)?;
            let tx = begin(&mut self.connection)?;
            for page in &found.pages {
                // Again: a commit may have changed the page, and its kind.
                if let Some(bytes) = map.clean_page(&tx, *page)? {
                    let sql = "UPDATE sqlite_dbpage SET data = ?2 WHERE pgno = ?1";
                    execute(&tx, sql, params![page, bytes])?;
                    meter.add(1, 0);
                }
            }
            tx.commit()?;
            self.after_commit()?;
        }
        if let Some(pass) = &mut self.erase.pass {
            match found.next_page {
                Some(page) => pass.next_page = page,
                None => {
                    pass.stage = EraseStage::Wal;
                    self.request_truncate();
                }
            }
        }
        Ok(())
    }

    /// Ends the pass when the WAL is cut.
    fn finish_erase(&mut self) -> Result<Progress, AppendError> {
        if self.is_truncate_due() {
            return Ok(Progress::Later);
        }
        let pass = self.erase.pass.take();
        // What was removed during the pass is erased by the next one.
        if pass.is_some_and(|pass| pass.removals == self.erase.removals) {
            self.clear_due()?;
        }
        Ok(Progress::Done)
    }

    fn clear_due(&mut self) -> Result<(), AppendError> {
        self.erase.clear(&self.connection)?;
        self.after_commit()
    }
}

/// True if pages can be read and told apart: the file has a map of its pages, and this SQLite the table
/// of pages.
fn can_erase(c: &Connection) -> rusqlite::Result<bool> {
    Ok(is_incremental(c)?
        && c.prepare_cached("SELECT data FROM sqlite_dbpage WHERE pgno = ?1")
            .is_ok())
}

/// Reads pages from `from` on within the budget, and finds those with something to overwrite.
fn find_residue(
    c: &Connection,
    from: u32,
    meter: &mut PieceMeter,
) -> rusqlite::Result<ResidueFound> {
    let map = PageMap::read(c)?;
    let mut found = ResidueFound {
        pages: Vec::new(),
        next_page: Some(from),
    };
    while let Some(first) = found.next_page.filter(|_| !meter.is_spent()) {
        let end = first.saturating_add(PAGES_PER_LOOK).min(map.pages + 1);
        for page in first..end {
            if map.clean_page(c, page)?.is_some() {
                found.pages.push(page);
                meter.add(1, 0); // it will be written
            }
        }
        found.next_page = (end <= map.pages).then_some(end);
    }
    Ok(found)
}

/// The layout of a file with a map of its pages: after each page of the map come the pages that it maps.
#[derive(Clone, Copy, Debug)]
struct PageMap {
    /// The number of pages of the file.
    pages: u32,
    page_bytes: u32,
}

/// The kinds of pages that are part of a tree, in the map.
const ROOT_PAGE: u8 = 1;
const TREE_PAGE: u8 = 5;
/// Bytes of an entry of the map: the kind and the parent.
const ENTRY_BYTES: u32 = 5;

impl PageMap {
    fn read(c: &Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            pages: query_value(c, "PRAGMA page_count", [])?,
            page_bytes: query_value(c, "PRAGMA page_size", [])?,
        })
    }

    /// The page of the map for `page`, and the place of its entry; `None` for a page of the map itself.
    fn entry(&self, page: u32) -> Option<(u32, usize)> {
        let group = self.page_bytes / ENTRY_BYTES + 1;
        let mut map_page = (page - 2) / group * group + 2;
        if map_page == self.locked_page() {
            map_page += 1;
        }
        let place = ENTRY_BYTES * page.checked_sub(map_page + 1)?;
        Some((map_page, place as usize))
    }

    /// The page that no file uses.
    fn locked_page(&self) -> u32 {
        u32::try_from(PENDING_BYTE / u64::from(self.page_bytes)).map_or(0, |page| page + 1)
    }

    /// A page of a tree with its unused parts zeroed, if there was something in them.
    fn clean_page(&self, c: &Connection, page: u32) -> rusqlite::Result<Option<Vec<u8>>> {
        if page < FIRST_PAGE || page > self.pages || page == self.locked_page() {
            return Ok(None);
        }
        let Some((map_page, place)) = self.entry(page) else {
            return Ok(None);
        };
        let mut read = c.prepare_cached("SELECT data FROM sqlite_dbpage WHERE pgno = ?1")?;
        let kind = read.query_row([map_page], |row| {
            Ok(row.get_ref(0)?.as_blob()?.get(place).copied())
        })?;
        if !matches!(kind, Some(ROOT_PAGE | TREE_PAGE)) {
            return Ok(None);
        }
        read.query_row([page], |row| Ok(cleaned(row.get_ref(0)?.as_blob()?)))
    }
}

/// The page with its gap and its free blocks zeroed, or `None` if they are, and for a page that is no
/// page of a tree.
fn cleaned(page: &[u8]) -> Option<Vec<u8>> {
    let unused = unused_parts(page)?;
    let is_clean = |part: &(usize, usize)| page[part.0..part.1].iter().all(|byte| *byte == 0);
    if unused.iter().all(is_clean) {
        return None;
    }
    let mut bytes = page.to_vec();
    for (from, to) in unused {
        bytes[from..to].fill(0);
    }
    Some(bytes)
}

/// The ranges of a page of a tree that belong to no row: the gap between the list of rows and the rows,
/// and the free blocks without their four bytes of list.
fn unused_parts(page: &[u8]) -> Option<Vec<(usize, usize)>> {
    let number = |at: usize| {
        let bytes = page.get(at..at + 2)?;
        Some(usize::from(u16::from_be_bytes([bytes[0], bytes[1]])))
    };
    let header = match page.first()? {
        2 | 5 => 12,
        10 | 13 => 8,
        _ => return None,
    };
    let list_end = header + 2 * number(3)?;
    let content = match number(5)? {
        0 => 65_536,
        content => content,
    };
    if list_end > content || content > page.len() {
        return None;
    }
    let mut parts = vec![(list_end, content)];
    let mut block = number(1)?;
    while block != 0 {
        let (next, bytes) = (number(block)?, number(block + 2)?);
        // The list goes forward, and every block is among the rows.
        if block < content
            || bytes < 4
            || block + bytes > page.len()
            || (next != 0 && next <= block)
        {
            return None;
        }
        parts.push((block + 4, block + bytes));
        block = next;
    }
    Some(parts)
}

#[cfg(test)]
mod tests;

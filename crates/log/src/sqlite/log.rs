//! [`Log`] and [`Maintenance`] over SQLite: writes on the one writing connection, reads on the pool of readers.

use turnwire_event::row::AuditEntry;
use turnwire_event::{Seq, SessionId, Timestamp};

use crate::chain::ChainHash;
use crate::error::{AppendError, ReadError, StoreFault};
use crate::log::Log;
use crate::maintenance::{ClockMark, Maintenance, PieceBudget, Progress, TrimCursor, TrimPiece};
use crate::record::{CountedEvents, EventBatch, LogTail, SessionAppend};
use crate::selection::{EventSelection, ReadLimits};
use crate::sqlite::read::LogRow;
use crate::sqlite::upkeep::checkpoint::run_checkpoint;
use crate::sqlite::upkeep::clock_mark;
use crate::sqlite::{SqliteStore, migrate};

impl Log for SqliteStore {
    fn append(&self, batch: &[SessionAppend]) -> Result<(), AppendError> {
        self.write(|half| half.append(batch))
    }

    fn read(
        &self,
        session: SessionId,
        after: Seq,
        upto: Seq,
        selection: &EventSelection,
        limits: ReadLimits,
    ) -> Result<EventBatch, ReadError> {
        self.readers.with(|c| {
            let log = LogRow::open(c, session, after)?;
            log.read(c, (after, upto), selection, limits)
        })
    }

    fn tail(&self, session: SessionId) -> Result<Option<LogTail>, ReadError> {
        self.readers.with(|c| {
            let log = LogRow::find(c, session)?;
            log.map(|log| log.tail(c)).transpose()
        })
    }

    fn hash_at(&self, session: SessionId, seq: Seq) -> Result<ChainHash, ReadError> {
        self.readers
            .with(|c| LogRow::open(c, session, seq)?.hash_at(c, seq))
    }

    fn count(
        &self,
        session: SessionId,
        after: Seq,
        upto: Seq,
        selection: &EventSelection,
        scanned_max: usize,
    ) -> Result<CountedEvents, ReadError> {
        self.readers.with(|c| {
            let log = LogRow::open(c, session, after)?;
            log.count(c, (after, upto), selection, scanned_max)
        })
    }

    fn trim(
        &self,
        before: Timestamp,
        after: TrimCursor,
        budget: &PieceBudget,
    ) -> Result<TrimPiece, AppendError> {
        self.write(|half| half.trim(before, after, budget))
    }

    fn delete(&self, sessions: &[SessionId], audit: &[AuditEntry]) -> Result<(), AppendError> {
        self.write(|half| half.delete(sessions, audit))
    }

    fn fault(&self) -> Option<StoreFault> {
        self.health.fault()
    }

    fn close(&self) {
        self.stop_checkpoints();
        let half = self.write_half.lock();
        // After a power failure an older mark would miss the frames of the emptied WAL.
        if let Some(mark) = &self.mark {
            let _ = run_checkpoint(&half.connection, "PASSIVE");
            mark.record_synced();
        }
        if migrate::mark_clean(&half.connection)
            && let Some(mark) = &self.mark
        {
            mark.close();
        }
    }
}

impl Maintenance for SqliteStore {
    fn remove_deleted(&self, budget: &PieceBudget) -> Result<Progress, AppendError> {
        self.write(|half| half.remove_deleted(budget))
    }

    fn release_pages(
        &self,
        keep_bytes: u64,
        budget: &PieceBudget,
    ) -> Result<Progress, AppendError> {
        self.write(|half| half.release_pages(keep_bytes, budget))
    }

    fn erase_removed(&self, budget: &PieceBudget) -> Result<Progress, AppendError> {
        self.erase_piece(budget)
    }

    fn clock_mark(&self) -> Result<Option<ClockMark>, ReadError> {
        self.readers.with_all(clock_mark::clock_mark)
    }

    fn set_clock_mark(&self, mark: &ClockMark) -> Result<(), AppendError> {
        self.write(|half| half.set_clock_mark(mark))
    }

    fn newest_event_time(&self) -> Result<Option<Timestamp>, ReadError> {
        self.readers.with_all(clock_mark::newest_event_time)
    }
}

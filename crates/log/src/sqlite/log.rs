//! [`Log`] over SQLite: writes on the one writing connection, reads on the pool of readers.

use turnwire_event::{Seq, SessionId, Timestamp};

use crate::chain::ChainHash;
use crate::error::{AppendError, ReadError};
use crate::log::Log;
use crate::record::{LogTail, SessionAppend, StoredEvent};
use crate::selection::EventSelection;
use crate::sqlite::read::LogRow;
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
        limit: usize,
    ) -> Result<Vec<StoredEvent>, ReadError> {
        self.readers.with(|c| {
            let log = LogRow::open(c, session, after)?;
            log.read(c, (after, upto), selection, limit)
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
    ) -> Result<u64, ReadError> {
        self.readers
            .with(|c| LogRow::open(c, session, after)?.count(c, (after, upto), selection))
    }

    fn trim(
        &self,
        before: Timestamp,
        sessions_max: usize,
    ) -> Result<Vec<(SessionId, Seq)>, AppendError> {
        self.write(|half| half.trim(before, sessions_max))
    }

    fn delete(&self, session: SessionId) -> Result<(), AppendError> {
        self.write(|half| half.delete(session))
    }

    fn close(&self) {
        let half = self.write_half.lock();
        if migrate::mark_clean(&half.connection)
            && let Some(mark) = &self.mark
        {
            mark.close();
        }
    }
}

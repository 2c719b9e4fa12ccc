//! The embedded store: one SQLite file in WAL mode, one writing connection, readers on a pool.
//!
//! The folder is locked for one process. `synchronous=FULL` unless the operator chose `relaxed`,
//! in which case an unclean start begins a new epoch: history a client saw may be gone.

mod column;
mod connection;
mod migrate;
mod queue;
mod read;
mod status;
mod rows;
mod approval;
mod call;
mod messages;
mod row;
mod write;

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rusqlite::Connection;
use turnwire_event::row::{
    ApprovalRow, KeyRow, KeyScope, LlmCallRow, MessagePart, QueuedRow, SessionRow, StoredMessage,
    ToolCallRow, TurnRow,
};
use turnwire_event::{
    ApprovalId, CallId, Day, Filter, MessageId, Owner, Position, Seq, SessionId, TenantId,
    Timestamp, ToolUseId, TurnId,
};

use crate::error::{AppendError, OpenError, ReadError};
use crate::record::{Append, StoredEvent, Tail};
use crate::sqlite::connection::Pool;
use crate::sqlite::write::Tails;
use crate::store::{StatusCount, Store, UsageDay, View};

/// How much a commit is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Survives a power cut.
    Full,
    /// Survives a crash of the process; a power cut may take the last commits.
    Relaxed,
}

/// How to open the store.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder.
    pub dir: PathBuf,
    /// How much a commit is worth.
    pub durability: Durability,
}

/// The name of the database inside its folder.
pub const FILE: &str = "turnwire.sqlite3";

/// The SQLite store.
#[derive(Debug)]
pub struct Sqlite {
    writer: Mutex<WriteHalf>,
    readers: Pool,
    /// Held for as long as the store lives; the lock goes with it.
    _lock: Option<File>,
}

#[derive(Debug)]
struct WriteHalf {
    connection: Connection,
    tails: Tails,
    /// About how many bytes were written since the last checkpoint.
    uncopied: usize,
}

/// How much is written to the side file before it is copied into the database: large enough that
/// copying is rare, small enough that opening after a crash is quick.
const CHECKPOINT_BYTES: usize = 32 << 20;

impl WriteHalf {
    fn new(connection: Connection) -> Self {
        Self {
            connection,
            tails: Tails(HashMap::new()),
            uncopied: 0,
        }
    }

    fn append(&mut self, batch: &[Append]) -> Result<(), AppendError> {
        write::append(&mut self.connection, &mut self.tails, batch)?;
        self.wrote(batch.iter().map(write::weight).sum())
    }

    fn forget_keys(&mut self, before: Timestamp, max: usize) -> Result<usize, AppendError> {
        let removed = queue::forget_keys(&self.connection, before, max)?;
        self.wrote(queue::weight(removed))?;
        Ok(removed)
    }

    /// Counts what a commit has written aside, and copies it when it is enough.
    fn wrote(&mut self, bytes: usize) -> Result<(), AppendError> {
        self.uncopied += bytes;
        if self.uncopied >= CHECKPOINT_BYTES {
            self.checkpoint()
        } else {
            Ok(())
        }
    }

    fn checkpoint(&mut self) -> Result<(), AppendError> {
        self.uncopied = 0;
        write::checkpoint(&self.connection)
    }
}

impl Sqlite {
    /// Opens the store for this process alone, making it if there is none.
    pub fn open(options: &Options) -> Result<Self, OpenError> {
        let io = |path: &Path, error: std::io::Error| OpenError::Io {
            path: path.display().to_string(),
            what: error.to_string(),
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
        let path = options.dir.join(FILE);
        let connection = connection::plain(&path)?;
        // Looked at before anything is changed: another program's file stays as it is.
        migrate::check_known(&connection, &path)?;
        connection::prepare(&connection, &path)?;
        migrate::migrate(&connection, &path, options.durability)?;
        if options.durability == Durability::Relaxed {
            connection::relax(&connection, &path)?;
        }
        Ok(Self {
            writer: Mutex::new(WriteHalf::new(connection)),
            readers: Pool::new(path),
            _lock: Some(lock),
        })
    }

    /// Opens the store of another process for reading only.
    pub fn open_read_only(dir: &Path) -> Result<Self, OpenError> {
        let path = dir.join(FILE);
        let connection =
            connection::reader(&path).map_err(|error| connection::open_error(&path, &error))?;
        migrate::check(&connection, &path)?;
        Ok(Self {
            writer: Mutex::new(WriteHalf::new(connection)),
            readers: Pool::new(path),
            _lock: None,
        })
    }
}

impl Store for Sqlite {
    fn append(&self, batch: &[Append]) -> Result<(), AppendError> {
        self.writer.lock().append(batch)
    }

    fn delete(&self, session: SessionId) -> Result<(), AppendError> {
        let mut half = self.writer.lock();
        let WriteHalf {
            connection, tails, ..
        } = &mut *half;
        tails.0.remove(&session);
        write::delete(connection, session)?;
        half.checkpoint()
    }

    fn trim(
        &self,
        before: Timestamp,
        sessions_max: usize,
    ) -> Result<Vec<(SessionId, Seq)>, AppendError> {
        let mut half = self.writer.lock();
        let trimmed = write::trim(&mut half.connection, before, sessions_max)?;
        if !trimmed.is_empty() {
            half.checkpoint()?;
        }
        Ok(trimmed)
    }

    fn close(&self) {
        migrate::mark_clean(&self.writer.lock().connection);
    }

    fn tail(&self, session: SessionId) -> Result<Option<Tail>, ReadError> {
        self.readers.with(|c| read::tail(c, session))
    }

    fn hash_at(&self, session: SessionId, seq: Seq) -> Result<[u8; 32], ReadError> {
        self.readers
            .with(|c| read::hash_at(c, session, seq))
            .map(|hash| hash.0)
    }

    fn events(
        &self,
        session: SessionId,
        after: Seq,
        upto: Seq,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, ReadError> {
        self.readers
            .with(|c| read::events(c, session, after, upto, limit))
    }

    fn count(
        &self,
        session: SessionId,
        after: Seq,
        upto: Seq,
        filter: &Filter,
    ) -> Result<u64, ReadError> {
        self.readers
            .with(|c| read::count(c, session, after, upto, filter))
    }

    fn session(&self, id: SessionId) -> Result<Option<SessionRow>, ReadError> {
        self.readers.with(|c| rows::session(c, id))
    }

    fn sessions(
        &self,
        owner: &Owner,
        before: Option<SessionId>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, ReadError> {
        self.readers
            .with(|c| rows::sessions(c, owner, before, limit))
    }

    fn turn(&self, id: TurnId) -> Result<Option<(Owner, TurnRow)>, ReadError> {
        self.readers.with(|c| rows::turn(c, id))
    }

    fn turns(
        &self,
        session: SessionId,
        before: Option<TurnId>,
        limit: usize,
    ) -> Result<Vec<TurnRow>, ReadError> {
        self.readers
            .with(|c| rows::turns(c, session, before, limit))
    }

    fn open_turns(&self) -> Result<Vec<TurnRow>, ReadError> {
        self.readers.with(rows::open_turns)
    }

    fn queued(&self, session: SessionId) -> Result<Vec<QueuedRow>, ReadError> {
        self.readers.with(|c| queue::queued(c, session))
    }

    fn queues(&self) -> Result<Vec<SessionId>, ReadError> {
        self.readers.with(queue::queues)
    }

    fn key(&self, scope: &KeyScope) -> Result<Option<KeyRow>, ReadError> {
        self.readers.with(|c| queue::key(c, scope))
    }

    fn forget_keys(&self, before: Timestamp, max: usize) -> Result<usize, AppendError> {
        self.writer.lock().forget_keys(before, max)
    }

    fn messages(
        &self,
        session: SessionId,
        view: View<'_>,
        upto: Position,
        before: Option<MessageId>,
        limit: usize,
    ) -> Result<Vec<StoredMessage>, ReadError> {
        self.readers
            .with(|c| messages::messages(c, session, view, upto, before, limit))
    }

    fn messages_since(
        &self,
        session: SessionId,
        view: View<'_>,
        after: Position,
        upto: Position,
    ) -> Result<Vec<StoredMessage>, ReadError> {
        self.readers
            .with(|c| messages::messages_since(c, session, view, after, upto))
    }

    fn message(
        &self,
        session: SessionId,
        id: MessageId,
    ) -> Result<Option<StoredMessage>, ReadError> {
        self.readers.with(|c| messages::message(c, session, id))
    }

    fn message_count(
        &self,
        session: SessionId,
        view: View<'_>,
        upto: Position,
    ) -> Result<u64, ReadError> {
        self.readers
            .with(|c| messages::message_count(c, session, view, upto))
    }

    fn streamed(
        &self,
        session: SessionId,
        after: Position,
        upto: Position,
    ) -> Result<Vec<StoredMessage>, ReadError> {
        self.readers
            .with(|c| messages::streamed(c, session, after, upto))
    }

    fn parts(&self, turn: TurnId) -> Result<Vec<MessagePart>, ReadError> {
        self.readers.with(|c| messages::parts(c, turn))
    }

    fn status_counts(&self, since: Timestamp) -> Result<Vec<StatusCount>, ReadError> {
        self.readers.with(|c| status::counts(c, since))
    }

    fn tool_calls(
        &self,
        session: SessionId,
        before: Option<ToolUseId>,
        limit: usize,
    ) -> Result<Vec<ToolCallRow>, ReadError> {
        self.readers
            .with(|c| rows::tool_calls(c, session, before, limit))
    }

    fn llm_calls(
        &self,
        session: SessionId,
        before: Option<CallId>,
        limit: usize,
    ) -> Result<Vec<LlmCallRow>, ReadError> {
        self.readers
            .with(|c| call::calls(c, session, before, limit))
    }

    fn usage(
        &self,
        tenant: Option<TenantId>,
        days: (Day, Day),
        limit: usize,
    ) -> Result<Vec<UsageDay>, ReadError> {
        self.readers.with(|c| call::usage(c, tenant, days, limit))
    }

    fn workers(
        &self,
        parent: SessionId,
        before: Option<SessionId>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, ReadError> {
        self.readers
            .with(|c| rows::workers(c, parent, before, limit))
    }

    fn approval(&self, id: ApprovalId) -> Result<Option<(Owner, ApprovalRow)>, ReadError> {
        self.readers.with(|c| approval::approval(c, id))
    }

    fn approvals(&self, turn: TurnId) -> Result<Vec<ApprovalRow>, ReadError> {
        self.readers.with(|c| approval::of_turn(c, turn))
    }

    fn open_approvals(&self, session: SessionId) -> Result<Vec<ApprovalRow>, ReadError> {
        self.readers.with(|c| approval::open(c, session))
    }

    fn leg(&self, paused: TurnId) -> Result<Option<TurnRow>, ReadError> {
        self.readers.with(|c| rows::leg(c, paused))
    }

    fn turn_tool_calls(&self, turn: TurnId) -> Result<Vec<ToolCallRow>, ReadError> {
        self.readers.with(|c| rows::turn_tool_calls(c, turn))
    }
}

#[cfg(test)]
mod tests;

//! Errors of a store; a variant is a condition that the caller can act on.

use turnwire_event::SessionId;

/// The store could not be opened. The text is for the person who starts the server.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has locked the folder.
    #[error(
        "{0} is in use by another turnwire process; stop it, or give this one a folder of its own with TURNWIRE_HOME"
    )]
    InUse(String),
    /// The file is not a database, or is damaged.
    #[error(
        "{path} cannot be read as a turnwire database ({cause}); restore it from a backup, or move it and its -wal, -shm \
         and -mark files away to start empty"
    )]
    Corrupt { path: String, cause: String },
    /// The database file is missing or empty, and files beside it say that there was one.
    #[error(
        "{path} {state}, but {evidence} beside it: the database was lost or not restored completely. Nothing was changed. \
         Restore the database from a backup (docs/operations.md, \"Backup and restore\"), or move {path}-wal, {path}-shm \
         and {path}-mark away to start with an empty one"
    )]
    Missing {
        path: String,
        /// Is it missing, or empty?
        state: &'static str,
        /// The files that are left.
        evidence: String,
    },
    /// A restore was cut off.
    #[error(
        "{0} is there: a restore was interrupted. Run `turnwire restore` again; or, to go on with the database that \
         is there, check it with `turnwire verify` and remove this file"
    )]
    UnfinishedRestore(String),
    /// A link, a FIFO or a folder has the name of a file of the store.
    #[error(
        "{path} is {kind}, not a regular file; nothing was changed. Move it away, or put the file itself in its place"
    )]
    NotAFile { path: String, kind: &'static str },
    /// The file was written by a newer release.
    #[error(
        "{path} has schema {schema}, this release supports up to {supported}; start the newer release that wrote it"
    )]
    Newer {
        path: String,
        /// The number of its last migration.
        schema: i64,
        /// The number of this release's last migration.
        supported: i64,
    },
    /// The file is a database of another program.
    #[error(
        "{0} is a SQLite database, but not one of turnwire's; move it away or choose another folder"
    )]
    Foreign(String),
    /// The operating system refused access to a path.
    #[error("{path}: {cause}")]
    Io {
        /// The folder or file.
        path: String,
        /// The error of the operating system.
        cause: String,
    },
}

/// A write failed; nothing of it is stored.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// Write the same batch again when there is free space.
    #[error("the disk is full")]
    Full,
    /// Another process has locked the file; write the same batch again.
    #[error("the database is busy")]
    Busy,
    /// The state of the file is unknown; the process must end.
    #[error("the disk failed: {0}")]
    Fatal(String),
    /// A later owner has taken over the session.
    #[error("session {0} belongs to a later term")]
    Fenced(SessionId),
    /// This batch can never be written; other batches can.
    #[error("the batch was refused: {0}")]
    Refused(String),
    /// A page that the batch needs is damaged: other batches may need it too.
    #[error("the database is damaged: {0}")]
    Damaged(String),
}

/// Why a read of the log failed.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// An event does not match its hash, is missing or is unreadable.
    #[error("session {session}: record {seq} does not match its hash")]
    Damaged {
        /// The session to quarantine.
        session: SessionId,
        /// The first event that cannot be trusted.
        seq: u64,
    },
    /// The range begins before the first retained event.
    #[error("events up to {low} are trimmed")]
    Trimmed { low: u64 },
    /// The session does not exist or was deleted.
    #[error("there is no such session")]
    SessionNotFound,
    /// A row, or a page with events of the session, is damaged: quarantine the session that was read.
    #[error("the rows of the session are damaged: {0}")]
    Corrupt(String),
    /// A page of a table or an index that sessions share is damaged.
    #[error("the database is damaged: {0}")]
    DatabaseDamaged(String),
    /// The database returned an error.
    #[error("the database could not be read: {0}")]
    Database(String),
}

/// Why a store should get no new work; see [`Log::fault`](crate::Log::fault).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFault {
    /// A page that sessions share is damaged. Stays until the store is opened again.
    Damaged,
    /// The folder or a file of the store was removed, moved or replaced: what is written now is lost with
    /// the process.
    FolderLost,
}

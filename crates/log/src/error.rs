//! What can go wrong in a store, by what the caller can do about it.

use turnwire_event::SessionId;

/// A store could not be opened. Said to a person at start, so it says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the folder.
    #[error(
        "{0} is in use by another turnwire process; stop it, or give this one a folder of its own with TURNWIRE_HOME"
    )]
    InUse(String),
    /// Not a database, or a damaged one.
    #[error(
        "{path} cannot be read as a turnwire database ({what}); restore it from a backup, or move it away to start empty"
    )]
    Corrupt {
        /// Which file.
        path: String,
        /// What SQLite says.
        what: String,
    },
    /// Written by a newer release.
    #[error(
        "{path} has schema {found}, this release knows up to {known}; start the newer release that wrote it"
    )]
    Newer {
        /// Which file.
        path: String,
        /// Its schema.
        found: i64,
        /// The newest known here.
        known: i64,
    },
    /// Some other program's database.
    #[error(
        "{0} is a SQLite database, but not one of turnwire's; move it away or choose another folder"
    )]
    Foreign(String),
    /// The folder cannot be used.
    #[error("{path}: {what}")]
    Io {
        /// Which path.
        path: String,
        /// What the system says.
        what: String,
    },
}

/// A batch was not written; none of it is.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// No room on the disk; try again later with the same batch.
    #[error("the disk is full")]
    Full,
    /// Someone else has the file; try again with the same batch.
    #[error("the database is busy")]
    Busy,
    /// Nothing can be trusted any more; the process must end.
    #[error("the disk failed: {0}")]
    Fatal(String),
    /// Another owner has the session.
    #[error("session {0} belongs to a later term")]
    Fenced(SessionId),
    /// This batch cannot be written, another may.
    #[error("the batch was refused: {0}")]
    Refused(String),
}

/// Something could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A record does not match its hash, or a row makes no sense: the session is not trustworthy.
    #[error("session {session}: record {seq} does not match its hash")]
    Damaged {
        /// Which session.
        session: SessionId,
        /// Which record.
        seq: u64,
    },
    /// What was asked for was trimmed.
    #[error("events up to {low} are no longer kept")]
    Trimmed {
        /// The low-water mark.
        low: u64,
    },
    /// The session is not there.
    #[error("there is no such session")]
    Gone,
    /// The store did not answer.
    #[error("the store could not be read: {0}")]
    Store(String),
}

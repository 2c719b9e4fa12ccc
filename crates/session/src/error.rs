//! Errors of this crate, one variant for each condition that a caller can act on.

use turnwire_event::{ApprovalId, JobName, TurnId, metric};
use turnwire_fair::FairRefusal;
use turnwire_log::{AppendError, ReadError, SequencerError, StoreFault};

use crate::metering::quota::QuotaExceeded;

/// A resource that all owners share, each up to its own bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedResource {
    /// Turns that run: see [`Options::running_max`](crate::Options::running_max).
    RunningTurns,
    /// Queued turns: see [`Options::queued_max`](crate::Options::queued_max).
    QueuedTurns,
    /// Turns of workers that run: see
    /// [`Options::workers_running_max`](crate::Options::workers_running_max).
    RunningWorkers,
    /// Bytes of the inputs of running and queued turns: see
    /// [`Options::inputs_bytes_max`](crate::Options::inputs_bytes_max).
    InputBytes,
    /// Sessions in memory: see [`Options::open_max`](crate::Options::open_max).
    OpenSessions,
    /// Jobs that one service has made known: see [`Options::jobs_max`](crate::Options::jobs_max).
    Jobs,
}

impl SharedResource {
    /// The name in metrics and problems.
    pub fn name(self) -> &'static str {
        match self {
            Self::RunningTurns => "running_turns",
            Self::QueuedTurns => "queued_turns",
            Self::RunningWorkers => "running_workers",
            Self::InputBytes => "input_bytes",
            Self::OpenSessions => "open_sessions",
            Self::Jobs => "jobs",
        }
    }
}

/// The reason that a session refused a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No session has this id, or it belongs to another owner.
    #[error("the session does not exist")]
    SessionNotFound,
    /// No turn has this id, or it belongs to another owner.
    #[error("the turn does not exist")]
    TurnNotFound,
    /// The session has no message with this id.
    #[error("the message does not exist")]
    MessageNotFound,
    /// The session has no tool call with this id.
    #[error("the tool call does not exist")]
    ToolCallNotFound,
    /// The turn has no approval with this id.
    #[error("the approval does not exist")]
    ApprovalNotFound,
    /// The tenant has no job with this name.
    #[error("the job does not exist")]
    JobNotFound,
    /// The job of a scheduler is paused: there is no turn.
    #[error("job {0} is paused")]
    JobPaused(JobName),
    /// The approval was decided otherwise, or expired.
    #[error("approval {0} is already resolved")]
    ApprovalResolved(ApprovalId),
    /// The decision is about another input than the one that the tool would run with.
    #[error("approval {0} has another input")]
    ApprovalInputMismatch(ApprovalId),
    /// The turn is not waiting for approvals.
    #[error("the turn is not paused")]
    TurnNotPaused,
    /// The session is busy with this turn.
    #[error("turn {0} is in flight")]
    TurnInFlight(TurnId),
    /// The session has [`Options::queue_max`](crate::Options::queue_max) queued turns.
    #[error("the queue of the session is full")]
    QueueFull,
    /// The idempotency key was used with another body.
    #[error("the idempotency key was used with another body")]
    IdempotencyMismatch,
    /// The cursor is not a position of this session.
    #[error("the cursor is not a position of this session")]
    InvalidCursor,
    /// Retention has removed the events after the cursor.
    #[error("the events after the cursor were removed by retention")]
    CursorExpired,
    /// A record of the session does not match its hash, or a page of the database is damaged.
    #[error("the log of the session is damaged")]
    Quarantined,
    /// A page of the database that sessions share is damaged: no new turn is accepted.
    #[error("the database is damaged")]
    DatabaseDamaged,
    /// The data folder, or a file of the store in it, was removed or replaced: no new turn is accepted.
    #[error("the data folder was removed or replaced")]
    FolderLost,
    /// The disk is full: no new turn is accepted.
    #[error("the disk is full: no new turn is accepted")]
    StorageFull,
    /// The server drains: no new turn is accepted.
    #[error("the server is shutting down")]
    Draining,
    /// The owner, or all owners together, have as many of a resource as allowed.
    #[error("{max} {} are allowed: {refusal}", resource.name())]
    LimitReached {
        /// What the request would have taken.
        resource: SharedResource,
        /// Whose bound was reached.
        refusal: FairRefusal,
        /// The bound that was reached, as a number.
        max: usize,
    },
    /// A quota of the owner or of its tenant is used up.
    #[error(transparent)]
    QuotaExceeded(#[from] QuotaExceeded),
    /// A limit on keys or events was reached.
    #[error("a limit was reached")]
    TooMany,
    /// The owner has [`Options::reads_waiting_per_owner`](crate::Options::reads_waiting_per_owner)
    /// reads of the store waiting.
    #[error("too many reads of the owner wait")]
    TooManyReads,
    /// The owner has [`Options::writes_waiting_per_owner`](crate::Options::writes_waiting_per_owner)
    /// writes waiting, or the writer does not go on.
    #[error("too many writes of the owner wait")]
    TooManyWrites,
    /// An internal failure; its cause is in the server's log.
    #[error("internal error")]
    Internal,
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Damaged { session, seq } => {
                tracing::error!(%session, seq, "record does not match its hash: session quarantined");
                metrics::counter!(metric::SESSION_DAMAGED_TOTAL).increment(1);
                Self::Quarantined
            }
            ReadError::Trimmed { .. } => Self::CursorExpired,
            ReadError::SessionNotFound => Self::SessionNotFound,
            ReadError::Corrupt(cause) => {
                tracing::error!(
                    cause,
                    "rows of a session are damaged; restore the database from a backup, or delete the session"
                );
                metrics::counter!(metric::SESSION_DAMAGED_TOTAL).increment(1);
                Self::Quarantined
            }
            // The store has logged it.
            ReadError::DatabaseDamaged(_) => Self::DatabaseDamaged,
            ReadError::Database(cause) => {
                tracing::error!(cause, "the database could not be read");
                Self::Internal
            }
        }
    }
}

impl From<&AppendError> for Error {
    /// The error of a small write that is not repeated.
    fn from(error: &AppendError) -> Self {
        match error {
            AppendError::Full => Self::StorageFull,
            AppendError::Busy => Self::TooMany,
            AppendError::Damaged(_) => Self::DatabaseDamaged,
            AppendError::Refused(_) | AppendError::Fenced(_) | AppendError::Fatal(_) => {
                Self::Internal
            }
        }
    }
}

impl From<StoreFault> for Error {
    fn from(fault: StoreFault) -> Self {
        match fault {
            StoreFault::Damaged => Self::DatabaseDamaged,
            StoreFault::FolderLost => Self::FolderLost,
        }
    }
}

impl From<SequencerError> for Error {
    fn from(refused: SequencerError) -> Self {
        match refused {
            SequencerError::Full => Self::TooMany,
            SequencerError::Ended | SequencerError::Cancelled => Self::TurnNotFound,
            SequencerError::Closed => Self::SessionNotFound,
        }
    }
}

//! Why a session cannot do what was asked, by what the caller can do about it.

use turnwire_event::{ApprovalId, TurnId};
use turnwire_log::{ReadError, SequencerError};

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No such session, or another owner's.
    #[error("there is no such session")]
    SessionNotFound,
    /// No such turn, or another owner's.
    #[error("there is no such turn")]
    TurnNotFound,
    /// No such message.
    #[error("there is no such message")]
    MessageNotFound,
    /// No such tool call.
    #[error("there is no such tool call")]
    ToolCallNotFound,
    /// No such question of that turn.
    #[error("there is no such question")]
    ApprovalNotFound,
    /// The question has another answer, or was taken back.
    #[error("question {0} has its answer")]
    ApprovalResolved(ApprovalId),
    /// The turn waits for no answers.
    #[error("the turn did not pause")]
    TurnNotPaused,
    /// The session is busy with this turn.
    #[error("turn {0} is in flight")]
    TurnInFlight(TurnId),
    /// As many turns wait as may.
    #[error("too many turns are waiting")]
    QueueFull,
    /// The key was used with another body.
    #[error("the key was used with another body")]
    IdempotencyMismatch,
    /// The cursor is no position of this session.
    #[error("the cursor is not one of this session's")]
    InvalidCursor,
    /// What the cursor points at is gone.
    #[error("the cursor points behind what is kept")]
    CursorExpired,
    /// The attach token is unknown, used, expired or another session's.
    #[error("the attach token is not valid")]
    Unauthorized,
    /// The session's log is damaged.
    #[error("the session's log is damaged")]
    Quarantined,
    /// The disk is full.
    #[error("there is no room for a new turn")]
    StorageFull,
    /// The server is going away.
    #[error("the server is shutting down")]
    Draining,
    /// A limit was reached.
    #[error("too many at once")]
    TooMany,
    /// Something inside; the cause is in the server's log.
    #[error("internal error")]
    Internal,
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Damaged { session, seq } => {
                tracing::error!(%session, seq, "a record does not match its hash: session quarantined");
                Self::Quarantined
            }
            ReadError::Trimmed { .. } => Self::CursorExpired,
            ReadError::SessionNotFound => Self::SessionNotFound,
            ReadError::Database(cause) => {
                tracing::error!(cause, "the database could not be read");
                Self::Internal
            }
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

//! The answers to a cancel frame: every cancel gets exactly one, in the order of the cancels.

use serde::{Deserialize, Serialize};
use turnwire_event::TurnId;
use turnwire_event::code::TurnState;

/// Characters of the client's text that an error repeats.
const ECHO_CHARS_MAX: usize = 64;

/// The answer to a cancel of a turn of this session, or of a worker that the connection carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CancelAck {
    pub turn_id: TurnId,
    /// `cancelling` while the turn stops, `cancelled` for a turn that was queued, else the state in
    /// which the turn had ended before.
    pub state: TurnState,
}

/// The stable code of a cancel that has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CancelErrorCode {
    /// The frame has no `turn_id`, or a field of the wrong type.
    InvalidFrame,
    /// Neither this session nor a worker on this connection has such a turn.
    TurnNotFound,
    /// The session was deleted.
    SessionNotFound,
    /// The state of the turn could not be read now; the cancel can be sent again.
    Busy,
}

/// The answer to a cancel that has no effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CancelError {
    pub code: CancelErrorCode,
    pub message: String,
    /// The `turn_id` of the cancel, cut to 64 characters; null if it had none.
    pub turn_id: Option<String>,
}

impl CancelError {
    /// The frame is not a cancel; `reason` says what is missing.
    pub fn invalid_frame(reason: &str) -> Self {
        Self {
            code: CancelErrorCode::InvalidFrame,
            message: reason.to_owned(),
            turn_id: None,
        }
    }

    /// The answer to a cancel of `turn_id`, which the client wrote.
    pub fn of(code: CancelErrorCode, turn_id: &str) -> Self {
        let message = match code {
            CancelErrorCode::InvalidFrame => "the frame is no cancel",
            CancelErrorCode::TurnNotFound => "this session has no such turn",
            CancelErrorCode::SessionNotFound => "the session was deleted",
            CancelErrorCode::Busy => "the turn could not be read now; cancel again",
        };
        Self {
            code,
            message: message.to_owned(),
            turn_id: Some(turn_id.chars().take(ECHO_CHARS_MAX).collect()),
        }
    }
}

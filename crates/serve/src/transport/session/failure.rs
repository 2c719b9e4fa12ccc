//! Why a subscribe fails.

use turnwire_session::{Error, ReplayError};
use turnwire_wire::session::SubscribeError;

/// The failure of a subscribe.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) enum SubscribeFailure {
    /// The client gets this error as the answer.
    Refused(#[from] SubscribeError),
    /// A session cannot be read.
    Session(#[from] Error),
}

impl SubscribeFailure {
    /// The failure of a replay with at most `events_max` events.
    pub(super) fn of_replay(error: ReplayError, events_max: u64) -> Self {
        match error {
            ReplayError::Expired => SubscribeError::cursor_expired().into(),
            ReplayError::TooLarge(..) => SubscribeError::replay_too_large(events_max).into(),
            ReplayError::Session(error) => error.into(),
        }
    }
}

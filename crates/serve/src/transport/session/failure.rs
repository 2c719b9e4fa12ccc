//! Why a subscribe starts nothing.

use turnwire_session::{Error, ReplayError};
use turnwire_wire::session::SubscribeError;

/// The failure of a subscribe.
pub(super) enum SubscribeFailure {
    /// The subscribe is answered with this error.
    Refused(SubscribeError),
    /// A session cannot be read.
    Session(Error),
}

impl SubscribeFailure {
    /// The failure of a replay that is bounded to `events_max` events.
    pub(super) fn of_replay(error: ReplayError, events_max: u64) -> Self {
        match error {
            ReplayError::Expired => SubscribeError::cursor_expired().into(),
            ReplayError::TooLarge(..) => SubscribeError::replay_too_large(events_max).into(),
            ReplayError::Session(error) => error.into(),
        }
    }
}

impl From<SubscribeError> for SubscribeFailure {
    fn from(error: SubscribeError) -> Self {
        Self::Refused(error)
    }
}

impl From<Error> for SubscribeFailure {
    fn from(error: Error) -> Self {
        Self::Session(error)
    }
}

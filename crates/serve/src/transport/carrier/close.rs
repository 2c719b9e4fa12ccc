//! Why a connection ends. The [`Carrier`](super::Carrier) gives the reason; the wire and its
//! framing decide which last bytes the client gets for it.

use turnwire_hub::RingClosed;
use turnwire_identity::LeaseState;
use turnwire_session::{Error, LiveSession, ReplayError};
use turnwire_wire::session::SessionCloseReason;

/// The reason for the end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    /// The stream has an end, and the client has every frame up to it.
    Complete,
    /// The client reads more slowly than the session writes.
    TooSlow,
    /// The server is shutting down.
    Draining,
    SessionDeleted,
    /// The session's log is damaged.
    Quarantined,
    /// An event gave a frame that is too large to be sent.
    FrameTooLarge,
    /// The store dropped the client's next events while they were being replayed.
    CursorExpired,
    /// The owner has as many reads of the store waiting as allowed.
    Busy,
    /// The store cannot be read now; the client may try again.
    Internal,
    /// The identity that the connection was opened with is over, or was renewed with until then.
    IdentityExpired,
    /// The credential of the client was revoked.
    IdentityRevoked,
    /// The client broke a rule of its wire.
    Rejected(SessionCloseReason),
    /// The client sent a close frame.
    PeerClosed,
    /// The client, or the network, dropped the connection.
    PeerGone,
}

impl CloseReason {
    /// True if the server ends the connection for a reason that says nothing about the client's wish:
    /// its leave cancels no turn.
    pub(crate) fn leaves_quietly(self) -> bool {
        matches!(
            self,
            Self::Draining | Self::IdentityExpired | Self::IdentityRevoked
        )
    }

    /// The reason to close a connection whose identity is in this state.
    pub(crate) fn of_identity(state: LeaseState) -> Option<Self> {
        match state {
            LeaseState::Valid => None,
            LeaseState::Expired => Some(Self::IdentityExpired),
            LeaseState::Revoked => Some(Self::IdentityRevoked),
        }
    }

    /// The reason as a word, for the trace of a delivery.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::TooSlow => "client_too_slow",
            Self::Draining => "draining",
            Self::SessionDeleted => "session_deleted",
            Self::Quarantined => "session_quarantined",
            Self::FrameTooLarge => "frame_too_large",
            Self::CursorExpired => "cursor_expired",
            Self::Busy => "busy",
            Self::Internal => "internal",
            Self::Rejected(_) => "rejected",
            Self::IdentityExpired => "identity_expired",
            Self::IdentityRevoked => "identity_revoked",
            Self::PeerClosed | Self::PeerGone => "client_left",
        }
    }

    /// The reason for a [`ReplayError`] of `live`, which is quarantined if its log is damaged.
    pub(crate) fn of_replay(error: &ReplayError, live: &LiveSession) -> Self {
        match error {
            ReplayError::Session(Error::Quarantined) => {
                live.quarantine();
                Self::Quarantined
            }
            ReplayError::Session(Error::SessionNotFound) => Self::SessionDeleted,
            ReplayError::Expired => Self::CursorExpired,
            ReplayError::Session(Error::TooManyReads) => Self::Busy,
            ReplayError::Session(Error::DatabaseDamaged) => Self::Quarantined,
            ReplayError::Session(_) | ReplayError::TooLarge(..) => Self::Internal,
        }
    }

    /// The reason for which the ring of `live` was closed, if it was.
    pub(crate) fn of_ring(live: &LiveSession) -> Option<Self> {
        if !live.ring.is_closed() {
            return None;
        }
        Some(match live.ring.close_reason() {
            Some(RingClosed::Deleted) => Self::SessionDeleted,
            Some(RingClosed::Quarantined) | None => Self::Quarantined,
        })
    }
}

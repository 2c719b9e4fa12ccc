//! Ids in paths. A malformed id gets the same response as an unknown one (law 10).

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use turnwire_event::{ApprovalId, MessageId, ResponseId, SessionId, TurnId, Ulid};
use turnwire_session::Error;

use crate::error::RequestFault;

/// The [`SessionId`] in a path.
#[derive(Clone, Copy, Debug)]
pub struct SessionPath(pub SessionId);

/// The [`TurnId`] in a path, as a turn id or a response id.
#[derive(Clone, Copy, Debug)]
pub struct TurnPath(pub TurnId);

/// The [`TurnId`] and the [`ApprovalId`] in a path.
#[derive(Clone, Copy, Debug)]
pub struct ApprovalPath(pub TurnId, pub ApprovalId);

impl<S: Sync + Send> FromRequestParts<S> for SessionPath {
    type Rejection = RequestFault;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, RequestFault> {
        let id = segment(parts, state).await.and_then(|id| id.parse().ok());
        id.map(Self).ok_or_else(|| Error::SessionNotFound.into())
    }
}

impl<S: Sync + Send> FromRequestParts<S> for TurnPath {
    type Rejection = RequestFault;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, RequestFault> {
        let id = segment(parts, state).await.and_then(|id| turn_id(&id));
        id.map(Self).ok_or_else(|| Error::TurnNotFound.into())
    }
}

impl<S: Sync + Send> FromRequestParts<S> for ApprovalPath {
    type Rejection = RequestFault;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, RequestFault> {
        let path = Path::<(String, String)>::from_request_parts(parts, state).await;
        let Path((turn, approval)) = path.map_err(|_| Error::TurnNotFound)?;
        let turn = turn_id(&turn).ok_or(Error::TurnNotFound)?;
        // An id of the wrong form is one that no turn has.
        let approval = approval.parse().unwrap_or(ApprovalId(Ulid(0)));
        Ok(Self(turn, approval))
    }
}

/// The [`SessionId`] and the [`MessageId`] in a path.
#[derive(Clone, Copy, Debug)]
pub struct MessagePath(pub SessionId, pub MessageId);

impl<S: Sync + Send> FromRequestParts<S> for MessagePath {
    type Rejection = RequestFault;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, RequestFault> {
        let path = Path::<(String, String)>::from_request_parts(parts, state).await;
        let Path((session, message)) = path.map_err(|_| Error::SessionNotFound)?;
        let session = session.parse().map_err(|_| Error::SessionNotFound)?;
        let message = message.parse().map_err(|_| Error::MessageNotFound)?;
        Ok(Self(session, message))
    }
}

async fn segment<S: Sync + Send>(parts: &mut Parts, state: &S) -> Option<String> {
    let path = Path::<String>::from_request_parts(parts, state).await;
    path.ok().map(|Path(segment)| segment)
}

/// Parses a [`TurnId`] or a [`ResponseId`].
pub fn turn_id(text: &str) -> Option<TurnId> {
    let response = || text.parse::<ResponseId>().ok().map(TurnId::from);
    text.parse().ok().or_else(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    // D-03
    #[test]
    fn turn_is_addressable_by_turn_or_response_id() {
        let turn = TurnId(Ulid(7));
        assert_eq!(turn_id(&turn.to_string()), Some(turn));
        assert_eq!(turn_id(&format!("resp_{turn}")), Some(turn));
        for bad in ["", "x", "sess_00000000000000000000000007", "resp_"] {
            assert_eq!(turn_id(bad), None, "{bad}");
        }
    }
}

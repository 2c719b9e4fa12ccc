//! Ids in paths. A malformed id gets the same response as an unknown one (law 10).

use axum::extract::{FromRef as _, FromRequestParts, Path};
use axum::http::request::Parts;
use turnwire_event::{ApprovalId, MessageId, Owner, SessionId, TurnId, Ulid};
use turnwire_session::{Error, SessionReader};

use super::identity;
use crate::error::RequestFault;
use crate::state::AppState;

/// The [`SessionId`] in a path.
#[derive(Clone, Copy, Debug)]
pub struct SessionPath(pub SessionId);

/// The [`TurnId`] in a path, as a turn id, a response id, or the response id of an upstream.
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

impl FromRequestParts<AppState> for TurnPath {
    type Rejection = RequestFault;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, RequestFault> {
        let id = segment(parts, state).await.ok_or(Error::TurnNotFound)?;
        let owner = identity::caller(parts)?.owner.clone();
        let turn = find_turn(&SessionReader::from_ref(state), &owner, &id).await?;
        Ok(Self(turn))
    }
}

impl<S: Sync + Send> FromRequestParts<S> for ApprovalPath {
    type Rejection = RequestFault;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, RequestFault> {
        let path = Path::<(String, String)>::from_request_parts(parts, state).await;
        let Path((turn, approval)) = path.map_err(|_| Error::TurnNotFound)?;
        let turn = TurnId::named(&turn).map_err(|_| Error::TurnNotFound)?;
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

/// The turn that `text` names. The response id of an upstream is looked up for its owner only.
pub async fn find_turn(reader: &SessionReader, owner: &Owner, text: &str) -> Result<TurnId, Error> {
    if let Ok(turn) = TurnId::named(text) {
        return Ok(turn);
    }
    let upstream_id = text.parse().map_err(|_| Error::TurnNotFound)?;
    reader.turn_of_response(owner, upstream_id).await
}

//! Cancelling turns: by turn id, by session, or by the idempotency key of a submit.

use hyper::StatusCode;
use turnwire_event::{SessionId, TurnId};
use turnwire_wire::rest::turn::{
    SessionCancel, SessionCancelAccepted, TurnCancel, TurnCancelAccepted, TurnInfo,
};

use crate::client::Client;
use crate::error::Result;

/// The response to [`Client::cancel_and_wait`].
#[derive(Clone, Debug, PartialEq)]
pub enum CancelOutcome {
    /// The turn has ended; its receipt lists how everything that ran ended.
    Ended(Box<TurnInfo>),
    /// The turn is still ending after the longest time that the server waits.
    Pending(TurnCancelAccepted),
}

impl Client {
    /// Requests the cancellation of a turn without waiting for its end, as
    /// [`Client::cancel_and_wait`] does. The server responds when the request is on disk.
    pub async fn cancel(&self, id: TurnId, reason: Option<&str>) -> Result<TurnCancelAccepted> {
        let path = format!("/turns/{id}/cancel");
        let response = self.http.post(&path, &cancel_body(reason), None).await?;
        response.json()
    }

    /// Cancels a turn and waits for its end. The server responds when the terminal event is on
    /// disk.
    pub async fn cancel_and_wait(&self, id: TurnId, reason: Option<&str>) -> Result<CancelOutcome> {
        let path = format!("/turns/{id}/cancel?wait=true");
        let body = cancel_body(reason);
        let response = self.http.post(&path, &body, None).await?;
        match response.status {
            StatusCode::OK => response.json().map(CancelOutcome::Ended),
            _ => response.json().map(CancelOutcome::Pending),
        }
    }

    /// Cancels the running turn of a session, or the turn that was or will be submitted with the
    /// key in [`SessionCancel`]. With `wait`, the response contains the turn as it ended.
    pub async fn cancel_session(
        &self,
        id: SessionId,
        cancel: &SessionCancel,
        wait: bool,
    ) -> Result<SessionCancelAccepted> {
        let path = format!("/sessions/{id}/cancel?wait={wait}");
        self.http.post(&path, cancel, None).await?.json()
    }
}

fn cancel_body(reason: Option<&str>) -> TurnCancel {
    TurnCancel {
        reason: reason.map(str::to_owned),
    }
}

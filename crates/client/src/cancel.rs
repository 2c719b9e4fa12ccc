//! Cancelling turns: by turn id, by session, or by the idempotency key of a submit.

use hyper::StatusCode;
use turnwire_event::{SessionId, TurnId};
use turnwire_wire::rest::turn;

use crate::client::Client;
use crate::error::Error;

/// The response to [`Client::cancel_and_wait`].
#[derive(Clone, Debug, PartialEq)]
pub enum CancelOutcome {
    /// The turn has ended; its receipt lists how everything that ran ended.
    Ended(Box<turn::TurnInfo>),
    /// The turn is still ending after the longest time that the server waits.
    Pending(turn::TurnCancelAccepted),
}

impl Client {
    /// Requests the cancellation of a turn. The server responds when the request is on disk.
    pub async fn cancel(
        &self,
        id: TurnId,
        reason: Option<&str>,
    ) -> Result<turn::TurnCancelAccepted, Error> {
        let path = format!("/turns/{id}/cancel");
        self.http.post(&path, &cancel_body(reason), None).await
    }

    /// Cancels a turn and waits for its end. The server responds when the terminal event is on
    /// disk.
    pub async fn cancel_and_wait(
        &self,
        id: TurnId,
        reason: Option<&str>,
    ) -> Result<CancelOutcome, Error> {
        let path = format!("/turns/{id}/cancel?wait=true");
        let body = cancel_body(reason);
        let response = self.http.post_for_response(&path, &body, None).await?;
        if response.status == StatusCode::OK {
            return response.json().map(CancelOutcome::Ended);
        }
        response.json().map(CancelOutcome::Pending)
    }

    /// Cancels the running turn of a session, or the turn that was or will be submitted with the
    /// key in `cancel`. With `wait`, the response contains the turn as it ended.
    pub async fn cancel_session(
        &self,
        id: SessionId,
        cancel: &turn::SessionCancel,
        wait: bool,
    ) -> Result<turn::SessionCancelAccepted, Error> {
        let path = format!("/sessions/{id}/cancel?wait={wait}");
        self.http.post(&path, cancel, None).await
    }
}

fn cancel_body(reason: Option<&str>) -> turn::TurnCancel {
    turn::TurnCancel {
        reason: reason.map(str::to_owned),
    }
}

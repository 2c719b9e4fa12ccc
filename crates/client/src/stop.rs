//! Stopping turns: by id, by session, by the key of a submit; and waiting for how they ended.

use hyper::{Method, StatusCode};
use serde::Serialize;
use turnwire_event::{SessionId, TurnId};
use turnwire_wire::rest::turn;

use crate::api::{Client, read};
use crate::error::Error;
use crate::http::Answer;

/// What became of a stop that was waited for.
#[derive(Clone, Debug, PartialEq)]
pub enum Stopped {
    /// The turn has ended; its receipt says what became of everything that ran.
    Ended(Box<turn::Turn>),
    /// It stops, and takes longer than the server waits.
    Stopping(turn::CancelAccepted),
}

impl Client {
    /// Asks a turn to stop. The answer comes after the request is on disk.
    pub async fn cancel(
        &self,
        id: TurnId,
        reason: Option<&str>,
    ) -> Result<turn::CancelAccepted, Error> {
        let path = format!("/turns/{id}/cancel");
        read(&self.stop(&path, &cancel(reason)).await?)
    }

    /// Asks a turn to stop, and waits until it has: the answer comes after its end is on disk.
    pub async fn cancel_and_wait(
        &self,
        id: TurnId,
        reason: Option<&str>,
    ) -> Result<Stopped, Error> {
        let path = format!("/turns/{id}/cancel?wait=true");
        let answer = self.stop(&path, &cancel(reason)).await?;
        if answer.status == StatusCode::OK {
            return read(&answer).map(Stopped::Ended);
        }
        read(&answer).map(Stopped::Stopping)
    }

    /// Asks what a session does to stop: the turn that runs now, or the one that was or will be
    /// submitted with the key in `cancel`. With `wait` the answer has the turn as it ended.
    pub async fn cancel_session(
        &self,
        id: SessionId,
        cancel: &turn::SessionCancel,
        wait: bool,
    ) -> Result<turn::SessionCancelAccepted, Error> {
        let path = format!("/sessions/{id}/cancel?wait={wait}");
        read(&self.stop(&path, cancel).await?)
    }

    async fn stop(&self, path: &str, body: &impl Serialize) -> Result<Answer, Error> {
        let body = serde_json::to_vec(body).expect("request bodies are plain data");
        self.http()
            .exchange(Method::POST, path, Some(body), None)
            .await
    }
}

fn cancel(reason: Option<&str>) -> turn::Cancel {
    turn::Cancel {
        reason: reason.map(str::to_owned),
    }
}

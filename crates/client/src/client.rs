//! The REST client: sessions, turns and their cancellation, each call with its typed response.
//!
//! A [`Client`] is cheap to clone and shares its connections. An error response becomes
//! [`Error::Problem`] with the code that the server sent. Lists of one session are in
//! [`SessionRecords`], health, metrics and usage in [`ServerOperations`].

use std::sync::Arc;

use turnwire_event::{Owner, SessionId, TurnId};
use turnwire_wire::rest::{feedback, session, turn};

use crate::error::Error;
use crate::http::HttpConnections;
use crate::key::SubmitKey;
use crate::operations::ServerOperations;
use crate::records::SessionRecords;
use crate::rest::page_path;

/// A server, and the owner in whose name this client sends requests.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) http: Arc<HttpConnections>,
}

impl Client {
    /// A client of the server at `base_url` (`http://host:port`), for the default owner.
    pub fn new(base_url: &str) -> Result<Self, Error> {
        Ok(Self {
            http: Arc::new(HttpConnections::new(base_url.parse()?, Vec::new())),
        })
    }

    /// A client of the same server that sends its requests in the name of `owner`.
    #[must_use]
    pub fn for_owner(&self, owner: &Owner) -> Self {
        let headers = vec![
            ("x-tenant-id", owner.tenant.to_string()),
            ("x-turnwire-principal", owner.principal.to_string()),
        ];
        Self {
            http: Arc::new(HttpConnections::new(self.http.address().clone(), headers)),
        }
    }

    /// The stored messages, events, calls and workers of one session.
    pub fn records(&self, session: SessionId) -> SessionRecords<'_> {
        SessionRecords::new(&self.http, session)
    }

    /// The state of the server itself: health, metrics, usage and registered statuses.
    pub fn operations(&self) -> ServerOperations<'_> {
        ServerOperations::new(&self.http)
    }

    /// Creates a session for the owner.
    pub async fn create_session(
        &self,
        new: &session::SessionCreate,
    ) -> Result<session::SessionCreatedBody, Error> {
        self.http.post("/sessions", new, None).await
    }

    /// The sessions of the owner, newest first.
    pub async fn sessions(
        &self,
        before: Option<SessionId>,
        limit: Option<usize>,
    ) -> Result<session::SessionList, Error> {
        self.http.get(&page_path("/sessions", before, limit)).await
    }

    /// A session, with a token that opens one connection to its stream.
    pub async fn attach(&self, id: SessionId) -> Result<session::SessionAttached, Error> {
        self.http.get(&format!("/sessions/{id}")).await
    }

    /// Deletes a session with all of its records.
    pub async fn delete_session(&self, id: SessionId) -> Result<(), Error> {
        self.http.delete(&format!("/sessions/{id}")).await
    }

    /// Submits a turn and returns its ids. If the response is lost, the turn may have started; see
    /// [`Client::submit_once`].
    pub async fn submit(
        &self,
        id: SessionId,
        submit: &turn::TurnSubmit,
    ) -> Result<turn::TurnAccepted, Error> {
        let path = format!("/sessions/{id}/turns");
        self.http.post(&path, submit, None).await
    }

    /// Submits a turn that starts once, however often it is submitted with the same key.
    pub async fn submit_once(
        &self,
        id: SessionId,
        submit: &turn::TurnSubmit,
        key: &SubmitKey,
    ) -> Result<turn::TurnAccepted, Error> {
        let path = format!("/sessions/{id}/turns");
        self.http.post(&path, submit, Some(key)).await
    }

    /// The turns of a session, newest first.
    pub async fn turns(
        &self,
        id: SessionId,
        before: Option<TurnId>,
        limit: Option<usize>,
    ) -> Result<turn::TurnList, Error> {
        let path = page_path(&format!("/sessions/{id}/turns"), before, limit);
        self.http.get(&path).await
    }

    /// The current state of a turn.
    pub async fn turn(&self, id: TurnId) -> Result<turn::TurnInfo, Error> {
        self.http.get(&format!("/turns/{id}")).await
    }

    /// Records a person's rating of a message or a turn.
    pub async fn feedback(
        &self,
        id: SessionId,
        feedback: &feedback::FeedbackRequest,
    ) -> Result<feedback::FeedbackAccepted, Error> {
        let path = format!("/sessions/{id}/feedback");
        self.http.post(&path, feedback, None).await
    }
}

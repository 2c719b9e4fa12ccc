//! The REST client: sessions, turns and their cancellation, each call with its typed response.
//!
//! A [`Client`] is cheap to clone and shares its connections. An error response becomes
//! [`Error::Problem`](crate::Error::Problem) with the code that the server sent. Lists of one
//! session are in [`SessionRecords`].

use std::sync::Arc;

use turnwire_event::{Owner, Principal, SessionId, TenantId, TurnId};
use turnwire_wire::rest::feedback::{FeedbackAccepted, FeedbackRequest};
use turnwire_wire::rest::session::{
    SessionAttached, SessionCreate, SessionCreatedBody, SessionList,
};
use turnwire_wire::rest::turn::{TurnAccepted, TurnInfo, TurnList, TurnSubmit};

use crate::address::ServerAddress;
use crate::error::Result;
use crate::http::HttpConnections;
use crate::key::SubmitKey;
use crate::records::SessionRecords;
use crate::rest::page_path;
use crate::tls::ExtraAuthorities;

/// A server, and the owner in whose name this client sends requests.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) http: Arc<HttpConnections>,
}

impl Client {
    /// A client of the server at `base_url` (`http://host:port` or `https://host:port`), for the
    /// default owner.
    pub fn new(base_url: &str) -> Result<Self> {
        Self::trusting(base_url, ExtraAuthorities::default())
    }

    /// A client that also trusts the certificates of `authorities`, if the server is at an `https`
    /// address.
    pub fn trusting(base_url: &str, authorities: ExtraAuthorities) -> Result<Self> {
        let http = HttpConnections::new(base_url.parse()?, authorities)?;
        Ok(Self {
            http: Arc::new(http),
        })
    }

    /// The address of the server.
    pub fn address(&self) -> &ServerAddress {
        &self.http.address
    }

    /// A client of the same server that sends its requests in the name of `owner`.
    #[must_use]
    pub fn for_owner(&self, owner: &Owner) -> Self {
        let headers = vec![
            ("x-tenant-id", owner.tenant.to_string()),
            ("x-turnwire-principal", owner.principal.to_string()),
        ];
        self.with_headers(headers)
    }

    /// A client of the same server that sends its requests with a bearer token. The token names the
    /// principal; a service may name another, and a tenant to be checked.
    #[must_use]
    pub fn with_token(
        &self,
        token: &str,
        principal: Option<&Principal>,
        tenant: Option<TenantId>,
    ) -> Self {
        let mut headers = vec![("authorization", format!("Bearer {token}"))];
        headers.extend(principal.map(|name| ("x-turnwire-principal", name.to_string())));
        headers.extend(tenant.map(|tenant| ("x-tenant-id", tenant.to_string())));
        self.with_headers(headers)
    }

    fn with_headers(&self, headers: Vec<(&'static str, String)>) -> Self {
        Self {
            http: Arc::new(self.http.with_headers(headers)),
        }
    }

    /// The [`SessionRecords`] of one session: messages, events, calls and workers.
    pub fn records(&self, session: SessionId) -> SessionRecords<'_> {
        SessionRecords {
            http: &self.http,
            session,
        }
    }

    /// Creates a session for the owner.
    pub async fn create_session(&self, new: &SessionCreate) -> Result<SessionCreatedBody> {
        self.http.post("/sessions", new, None).await?.json()
    }

    /// The sessions of the owner, newest first.
    pub async fn sessions(
        &self,
        before: Option<SessionId>,
        limit: Option<usize>,
    ) -> Result<SessionList> {
        self.http.get(&page_path("/sessions", before, limit)).await
    }

    /// A session, with a token that opens one connection to its stream; [`Client::watch`] uses it.
    pub async fn attach(&self, id: SessionId) -> Result<SessionAttached> {
        self.http.get(&format!("/sessions/{id}")).await
    }

    /// Deletes a session with all of its records.
    pub async fn delete_session(&self, id: SessionId) -> Result<()> {
        self.http.delete(&format!("/sessions/{id}")).await
    }

    /// Submits a turn and returns its ids. If the response is lost, the turn may have started; see
    /// [`Client::submit_once`].
    pub async fn submit(&self, id: SessionId, submit: &TurnSubmit) -> Result<TurnAccepted> {
        let path = format!("/sessions/{id}/turns");
        self.http.post(&path, submit, None).await?.json()
    }

    /// Submits a turn that starts once, however often it is submitted with the same [`SubmitKey`].
    pub async fn submit_once(
        &self,
        id: SessionId,
        submit: &TurnSubmit,
        key: &SubmitKey,
    ) -> Result<TurnAccepted> {
        let path = format!("/sessions/{id}/turns");
        self.http.post(&path, submit, Some(key)).await?.json()
    }

    /// The turns of a session, newest first.
    pub async fn turns(
        &self,
        id: SessionId,
        before: Option<TurnId>,
        limit: Option<usize>,
    ) -> Result<TurnList> {
        let path = page_path(&format!("/sessions/{id}/turns"), before, limit);
        self.http.get(&path).await
    }

    /// The current state of a turn.
    pub async fn turn(&self, id: TurnId) -> Result<TurnInfo> {
        self.http.get(&format!("/turns/{id}")).await
    }

    /// Records a person's rating of a message or a turn.
    pub async fn feedback(
        &self,
        id: SessionId,
        feedback: &FeedbackRequest,
    ) -> Result<FeedbackAccepted> {
        let path = format!("/sessions/{id}/feedback");
        self.http.post(&path, feedback, None).await?.json()
    }
}

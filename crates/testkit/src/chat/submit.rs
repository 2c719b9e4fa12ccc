//! The body and headers of a chat submit, and how a resume sends its cursor.

use serde_json::{Map, Value, json};
use turnwire_event::SessionId;

use crate::rng::SeededRng;

/// The request `POST /chat/stream` that submits a turn.
#[derive(Clone, Debug)]
pub struct ChatSubmit {
    fields: Map<String, Value>,
    headers: Vec<(&'static str, String)>,
    session: Option<SessionId>,
    version: Option<String>,
}

impl ChatSubmit {
    /// Submits a message in a new session, with defaults for all other fields.
    pub fn new(message: &str) -> Self {
        Self {
            fields: Map::from_iter([("message".to_owned(), json!(message))]),
            headers: Vec::new(),
            session: None,
            version: None,
        }
    }

    /// Submits in an existing session.
    #[must_use]
    pub fn session(mut self, session: SessionId) -> Self {
        self.session = Some(session);
        self.field("session_id", session.to_string())
    }

    /// Adds a field to the body.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    /// Requests a version of the chat wire.
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        self.version = Some(version.to_owned());
        self.header("x-wire-version", version)
    }

    /// Adds a header to the request.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Lets the turn continue without viewers.
    #[must_use]
    pub fn continue_on_disconnect(self) -> Self {
        self.field("on_disconnect", "continue")
    }

    /// Cancels the turn after `ms` milliseconds without a viewer.
    #[must_use]
    pub fn grace_ms(self, ms: u64) -> Self {
        self.field("on_disconnect", "cancel")
            .field("disconnect_grace_ms", ms)
    }

    pub(crate) fn body(&self) -> String {
        Value::Object(self.fields.clone()).to_string()
    }

    pub(crate) fn headers(&self) -> &[(&'static str, String)] {
        &self.headers
    }

    pub(crate) fn requested_session(&self) -> Option<SessionId> {
        self.session
    }

    pub(crate) fn requested_version(&self) -> Option<&str> {
        self.version.as_deref()
    }
}

/// How a resume sends its cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorPlacement {
    /// In the `Last-Event-ID` header, as an `EventSource` does.
    Header,
    /// In the `last_event_id` query, as a newly created client does.
    Query,
    /// In both; the header takes precedence.
    Both,
}

impl CursorPlacement {
    /// One of the three at random.
    pub fn any(rng: &mut SeededRng) -> Self {
        [Self::Header, Self::Query, Self::Both][rng.index(3)]
    }
}

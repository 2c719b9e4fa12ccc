//! What a viewer asks with: the fields of a submit, and how a resume carries its cursor.

use serde_json::{Map, Value, json};
use turnwire_event::SessionId;

use crate::rng::SeededRng;

/// A turn to be submitted by `POST /chat/stream`.
#[derive(Clone, Debug)]
pub struct ChatSubmit {
    fields: Map<String, Value>,
    headers: Vec<(&'static str, String)>,
    session: Option<SessionId>,
    version: Option<String>,
}

impl ChatSubmit {
    /// Says something in a new session, everything else left to the server.
    pub fn new(message: &str) -> Self {
        Self {
            fields: Map::from_iter([("message".to_owned(), json!(message))]),
            headers: Vec::new(),
            session: None,
            version: None,
        }
    }

    /// Says it in a session.
    #[must_use]
    pub fn session(mut self, session: SessionId) -> Self {
        self.session = Some(session);
        self.field("session_id", session.to_string())
    }

    /// With one field more.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    /// In a version of the wire.
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        self.version = Some(version.to_owned());
        self.header("x-wire-version", version)
    }

    /// With one header more.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// The turn goes on when nobody watches.
    #[must_use]
    pub fn goes_on(self) -> Self {
        self.field("on_disconnect", "continue")
    }

    /// The turn is cancelled when nobody has watched for so long.
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

    pub(crate) fn asked_session(&self) -> Option<SessionId> {
        self.session
    }

    pub(crate) fn asked_version(&self) -> Option<&str> {
        self.version.as_deref()
    }
}

/// How a resume says what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorPlacement {
    /// By the `Last-Event-ID` header, as an `EventSource` does.
    Header,
    /// By the `last_event_id` query, as one does that was built anew.
    Query,
    /// By both; the header is the newer one and counts.
    Both,
}

impl CursorPlacement {
    /// Any of them.
    pub fn any(rng: &mut SeededRng) -> Self {
        [Self::Header, Self::Query, Self::Both][rng.index(3)]
    }
}

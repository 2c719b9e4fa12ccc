//! The request to run a turn, its target, and the answer to its caller.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use turnwire_event::code::{OnBusy, OnDisconnect, Origin, TurnKind, TurnState};
use turnwire_event::{
    ContentBlock, JsonObject, Position, SessionId, TraceContext, TracePropagation, TurnId,
};

/// The clients whose disconnect cancels a turn with [`OnDisconnect::Cancel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DisconnectScope {
    /// The last watcher of the session.
    Session,
    /// The last stream of this turn; other watchers of the session do not count.
    Stream,
}

/// A request to run a turn. The store keeps the JSON of this struct for each queued turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubmitRequest {
    /// The content of the person's message; empty in a turn that resumes a paused one.
    pub content: Vec<ContentBlock>,
    /// The language of the answer.
    pub locale: String,
    /// Whether the turn is cancelled when the clients of
    /// [`disconnect_scope`](Self::disconnect_scope) have left.
    pub on_disconnect: OnDisconnect,
    /// How long those clients may be away before that.
    pub disconnect_grace_ms: u64,
    /// The trace context of the caller.
    pub trace: Option<TraceContext>,
    /// What the caller's trace has beside its ids.
    #[serde(default)]
    pub propagation: TracePropagation,
    /// What happens to the turn while the session is busy with another.
    pub on_busy: OnBusy,
    /// The version of the chat wire that streams of the turn speak; opaque to this crate.
    pub wire_version: String,
    /// Client data, stored with the message.
    pub metadata: JsonObject,
    /// The person's location as the client reports it, stored with the message.
    pub location: Option<String>,
    /// The clients whose disconnect counts.
    #[serde(rename = "bound")]
    pub disconnect_scope: DisconnectScope,
    /// What started the turn.
    #[serde(default)]
    pub origin: Origin,
    /// The type of the direct message, if a message service started the turn.
    #[serde(default)]
    pub dm_type: Option<String>,
}

impl SubmitRequest {
    /// The bytes of the person's texts.
    pub(crate) fn content_bytes(&self) -> usize {
        let texts = self.content.iter().map(|block| match block {
            ContentBlock::Text { text } => text.len(),
            _ => 0,
        });
        texts.sum()
    }

    /// A request without content that no client waits for.
    pub(crate) fn unattended(locale: String) -> Self {
        Self {
            content: Vec::new(),
            locale,
            on_disconnect: OnDisconnect::Continue,
            disconnect_grace_ms: 0,
            trace: None,
            propagation: TracePropagation::default(),
            on_busy: OnBusy::Reject,
            wire_version: String::new(),
            metadata: JsonObject::default(),
            location: None,
            disconnect_scope: DisconnectScope::Session,
            origin: Origin::Chat,
            dm_type: None,
        }
    }

    /// The clients whose disconnect cancels the turn, and how long they may be away before that;
    /// `None` for [`OnDisconnect::Continue`].
    pub(crate) fn cancel_grace(&self) -> Option<(DisconnectScope, u64)> {
        let cancels = self.on_disconnect == OnDisconnect::Cancel;
        cancels.then_some((self.disconnect_scope, self.disconnect_grace_ms))
    }

    /// The kind of a turn with this origin in a person's own session.
    pub(crate) fn turn_kind(&self) -> TurnKind {
        match self.origin {
            Origin::Chat => TurnKind::Chat,
            Origin::Scheduled | Origin::Dm => TurnKind::Scheduled,
        }
    }

    /// The origin for `turn.started`, which omits [`Origin::Chat`].
    pub(crate) fn unattended_origin(&self) -> Option<Origin> {
        (self.origin != Origin::Chat).then_some(self.origin)
    }

    /// The metadata of the person's message: that of the client, and the location.
    pub(crate) fn message_metadata(&self) -> JsonObject {
        let mut metadata = self.metadata.clone();
        if let Some(location) = &self.location {
            metadata.set("location", &Value::from(location.as_str()));
        }
        metadata
    }
}

/// The properties of a session to create.
#[derive(Clone, Debug, Default)]
pub struct NewSession {
    /// The working folder of its tools.
    pub workspace_path: Option<String>,
    /// Client data, stored with the session.
    pub metadata: JsonObject,
}

/// The session that a turn is submitted to.
#[derive(Clone, Debug)]
pub enum SubmitTarget {
    /// A session that exists.
    Existing(SessionId),
    /// A session created in the same commit as the turn.
    New(NewSession),
}

/// Makes a submit repeatable: the same key with the same body refers to the same turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The HTTP route of the submit; keys of different routes are independent.
    pub route: &'static str,
    /// The value that the caller chose.
    pub key: String,
    /// SHA-256 of the request body.
    pub body_sha256: [u8; 32],
}

/// A turn that was accepted and is durable, as [`TurnSubmitter`](crate::TurnSubmitter) returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmittedTurn {
    /// The id of the turn.
    pub turn_id: TurnId,
    /// The session of the turn.
    pub session_id: SessionId,
    /// The state of the turn when it was accepted.
    pub state: TurnState,
    /// A position before the turn: as a cursor it gives every event of the turn.
    pub position: Position,
    /// The version of the chat wire that the turn is bound to.
    pub wire_version: String,
    /// True if an earlier submit with the same [`IdempotencyKey`] created the turn.
    pub repeated: bool,
}

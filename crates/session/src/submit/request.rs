//! What is asked for when a turn is submitted, and what the asker is told.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use turnwire_event::code::{OnBusy, OnDisconnect, Origin, TurnKind, TurnState};
use turnwire_event::{ContentBlock, Position, SessionId, Trace, TurnId};

/// Whose leaving counts for a turn that is cancelled on disconnect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DisconnectScope {
    /// The last watcher of the session.
    Session,
    /// The last stream of this very turn; others who watch do not count.
    Stream,
}

/// What a person asks for. Its JSON is what is kept of a turn that waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubmitRequest {
    /// What they say.
    pub content: Vec<ContentBlock>,
    /// In which language they want the answer.
    pub locale: String,
    /// What happens when those who count leave.
    pub on_disconnect: OnDisconnect,
    /// How long they may be away.
    pub disconnect_grace_ms: u64,
    /// The caller's trace.
    pub trace: Option<Trace>,
    /// What becomes of it while the session is busy.
    pub on_busy: OnBusy,
    /// The version of the chat wire that its streams speak; a name here, nothing more.
    pub wire_version: String,
    /// Whatever the client sent along; kept with the message.
    pub metadata: Map<String, Value>,
    /// Where the person is, if the client says; kept with the message.
    pub location: Option<String>,
    /// Whose leaving counts.
    pub bound: DisconnectScope,
    /// Who or what began it.
    #[serde(default)]
    pub origin: Origin,
    /// What kind of message it is for, where a message service began it.
    #[serde(default)]
    pub dm_type: Option<String>,
}

impl SubmitRequest {
    /// What the turn is for.
    pub(crate) fn kind(&self) -> TurnKind {
        match self.origin {
            Origin::Chat => TurnKind::Chat,
            Origin::Scheduled | Origin::Dm => TurnKind::Scheduled,
        }
    }

    /// Who or what began it, where it was not a person.
    pub(crate) fn origin(&self) -> Option<Origin> {
        (self.origin != Origin::Chat).then_some(self.origin)
    }

    /// What is kept with the person's message.
    pub(crate) fn message_metadata(&self) -> Map<String, Value> {
        let mut metadata = self.metadata.clone();
        if let Some(location) = &self.location {
            metadata.insert("location".to_owned(), Value::from(location.as_str()));
        }
        metadata
    }
}

/// What a session is made with.
#[derive(Clone, Debug, Default)]
pub struct NewSession {
    /// The folder it works in.
    pub workspace_path: Option<String>,
    /// Whatever its creator wants to keep with it.
    pub metadata: Map<String, Value>,
}

/// Where a turn goes.
#[derive(Clone, Debug)]
pub enum SubmitTarget {
    /// Into this session.
    In(SessionId),
    /// Into one that is made for it.
    New(NewSession),
}

/// What makes a submit repeatable: the same key with the same body is the same turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The route it came by.
    pub route: &'static str,
    /// The caller's key.
    pub key: String,
    /// SHA-256 of the body.
    pub body_sha256: [u8; 32],
}

/// An accepted turn: durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmittedTurn {
    /// Its id.
    pub turn_id: TurnId,
    /// Its session.
    pub session_id: SessionId,
    /// Where it stands.
    pub state: TurnState,
    /// A position before it: a cursor that gives the whole turn.
    pub position: Position,
    /// The version of the chat wire it is bound to.
    pub wire_version: String,
    /// Whether an earlier submit with the same key made it.
    pub repeated: bool,
}

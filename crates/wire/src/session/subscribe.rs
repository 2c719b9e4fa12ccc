//! What a client asks for when it subscribes, read strictly, and why it is refused.
//!
//! A wrongly typed or unknown field is `invalid_filter` and is named; a cursor that cannot be
//! read is `cursor_expired` (D-40). After a refusal the connection stays open.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use turnwire_event::{Filter, FilterSpec, Position, SessionId};

/// Why a subscribe was refused, in one word (S3-024).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubscribeCode {
    /// The session is gone.
    SessionNotFound,
    /// The cursor is outside what is kept.
    CursorExpired,
    /// More events are missing than are replayed.
    ReplayTooLarge,
    /// The frame names something unknown or is wrongly typed.
    InvalidFilter,
}

impl SubscribeCode {
    /// The word on the wire, also the metric's label.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SessionNotFound => "session_not_found",
            Self::CursorExpired => "cursor_expired",
            Self::ReplayTooLarge => "replay_too_large",
            Self::InvalidFilter => "invalid_filter",
        }
    }
}

/// A refused subscribe: the word and a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct SubscribeError {
    /// The word.
    pub code: SubscribeCode,
    /// What is wrong and what to do.
    pub message: String,
}

impl SubscribeError {
    /// The session is gone.
    pub fn session_not_found() -> Self {
        Self::new(SubscribeCode::SessionNotFound, "The session is gone.")
    }

    /// The cursor is of another epoch, ahead of the tail or behind retention.
    pub fn cursor_expired() -> Self {
        let message = "The cursor is outside what is kept; subscribe with snapshot: true.";
        Self::new(SubscribeCode::CursorExpired, message)
    }

    /// More than `max` matching events are missing.
    pub fn replay_too_large(max: u64) -> Self {
        let message =
            format!("More than {max} events are missing; subscribe with snapshot: true instead.");
        Self::new(SubscribeCode::ReplayTooLarge, message)
    }

    /// A field is wrong.
    pub fn invalid_filter(message: impl Into<String>) -> Self {
        Self::new(SubscribeCode::InvalidFilter, message)
    }

    /// `since` names a session that is no worker of the one subscribed to.
    pub fn no_worker(name: &str) -> Self {
        let name: String = name.chars().take(64).collect();
        Self::invalid_filter(format!(
            "since names {name:?}, which is no worker of this session"
        ))
    }

    fn new(code: SubscribeCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// The most sessions a `since` may name. A client drops a worker that has ended, so a few dozen
/// are usual; each is looked up before anything is sent.
pub const SINCE_SESSIONS_MAX: usize = 256;

/// A client's cursor as it wrote it: one id, or an id for each session. It is echoed as it came
/// and read when the session is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Since {
    /// The id of the last event the client has.
    Id(String),
    /// The last id by session, for streams that carry several.
    BySession(BTreeMap<String, String>),
}

impl Since {
    /// Where in `session` the client stands.
    pub fn position(&self, session: SessionId) -> Result<Position, SubscribeError> {
        let text = match self {
            Self::Id(id) => id,
            Self::BySession(ids) => ids.get(&session.to_string()).ok_or_else(|| {
                SubscribeError::invalid_filter("since has no entry for this session")
            })?,
        };
        text.parse().map_err(|_| SubscribeError::cursor_expired())
    }

    /// Where in sessions other than `session` the client stands: in its workers, as it says.
    pub fn workers(
        &self,
        session: SessionId,
    ) -> Result<BTreeMap<SessionId, Position>, SubscribeError> {
        let Self::BySession(ids) = self else {
            return Ok(BTreeMap::new());
        };
        if ids.len() > SINCE_SESSIONS_MAX {
            return Err(SubscribeError::invalid_filter(format!(
                "since names more than {SINCE_SESSIONS_MAX} sessions; leave out workers that ended"
            )));
        }
        let mut workers = BTreeMap::new();
        for (name, id) in ids {
            let worker: SessionId = name.parse().map_err(|_| SubscribeError::no_worker(name))?;
            let at = id.parse().map_err(|_| SubscribeError::cursor_expired())?;
            if worker != session {
                workers.insert(worker, at);
            }
        }
        Ok(workers)
    }
}

impl From<Position> for Since {
    fn from(at: Position) -> Self {
        Self::Id(at.to_string())
    }
}

/// A subscribe frame, its filter resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct Subscribe {
    /// What the client wants to see.
    pub filter: Filter,
    /// Where it stands; none for no replay.
    pub since: Option<Since>,
    /// Whether it wants a snapshot first; then `since` is not read.
    pub snapshot: bool,
}

impl Subscribe {
    /// Reads the fields of a subscribe frame.
    pub(super) fn read(fields: Map<String, Value>) -> Result<Self, SubscribeError> {
        let mut subscribe = Self {
            filter: Filter::full(),
            since: None,
            snapshot: false,
        };
        for (name, value) in fields {
            match name.as_str() {
                "type" => {}
                "filter" => subscribe.filter = filter(value)?,
                "since" => subscribe.since = since(value)?,
                "snapshot" => subscribe.snapshot = flag("snapshot", &value)?,
                unknown => return Err(unknown_field(unknown)),
            }
        }
        Ok(subscribe)
    }
}

fn wrong(field: &str, expected: &str) -> SubscribeError {
    SubscribeError::invalid_filter(format!("{field} must be {expected}"))
}

fn unknown_field(name: &str) -> SubscribeError {
    let name: String = name.chars().take(64).collect();
    SubscribeError::invalid_filter(format!("unknown field {name:?}"))
}

fn flag(field: &str, value: &Value) -> Result<bool, SubscribeError> {
    value.as_bool().ok_or_else(|| wrong(field, "true or false"))
}

fn names(field: &str, value: Value) -> Result<Option<Vec<String>>, SubscribeError> {
    if value.is_null() {
        return Ok(None);
    }
    serde_json::from_value(value)
        .map(Some)
        .map_err(|_| wrong(field, "a list of strings or null"))
}

fn since(value: Value) -> Result<Option<Since>, SubscribeError> {
    serde_json::from_value(value)
        .map_err(|_| wrong("since", "an event id, a map of them by session, or null"))
}

fn filter(value: Value) -> Result<Filter, SubscribeError> {
    let resolved = if value.is_null() {
        return Ok(Filter::full());
    } else if let Value::String(preset) = &value {
        Filter::preset(preset)
    } else if let Value::Object(fields) = value {
        let mut spec = FilterSpec::default();
        for (name, value) in fields {
            match name.as_str() {
                "event_types" => spec.event_types = names("filter.event_types", value)?,
                "actors" => spec.actors = names("filter.actors", value)?,
                "include_worker_sessions" => {
                    spec.include_worker_sessions = flag("filter.include_worker_sessions", &value)?;
                }
                "include_suppressed" => {
                    spec.include_suppressed = flag("filter.include_suppressed", &value)?;
                }
                unknown => return Err(unknown_field(&format!("filter.{unknown}"))),
            }
        }
        Filter::resolve(&spec)
    } else {
        return Err(wrong("filter", "an object, a preset or null"));
    };
    resolved.map_err(|bad| SubscribeError::invalid_filter(bad.to_string()))
}

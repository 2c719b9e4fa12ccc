//! The subscribe frame, parsed strictly, and the reasons to reject it.
//!
//! An unknown or mistyped field is `invalid_filter`, and the error names it; a malformed cursor is
//! `cursor_expired` (D-40). After a rejection the connection stays open.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use turnwire_event::{EventFilter, FilterSpec, Position, SessionId};

/// The stable code of a rejected subscribe (S3-024).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SubscribeCode {
    /// The session was deleted.
    SessionNotFound,
    /// The cursor is outside the stored events.
    CursorExpired,
    /// More events are missing than the server replays.
    ReplayTooLarge,
    /// The frame has an unknown field, a wrong type or an unknown name.
    InvalidFilter,
}

impl SubscribeCode {
    /// The code on the wire, also the label of a metric.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SessionNotFound => "session_not_found",
            Self::CursorExpired => "cursor_expired",
            Self::ReplayTooLarge => "replay_too_large",
            Self::InvalidFilter => "invalid_filter",
        }
    }
}

/// The answer to a rejected [`SubscribeFrame`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{message}")]
pub struct SubscribeError {
    /// Tells the client how to react.
    pub code: SubscribeCode,
    /// The sentence for people: what is wrong and what to do.
    pub message: String,
}

impl SubscribeError {
    /// The session was deleted.
    pub fn session_not_found() -> Self {
        Self::new(SubscribeCode::SessionNotFound, "The session is gone.")
    }

    /// The cursor has another epoch, is ahead of the newest event, or was removed by retention.
    pub fn cursor_expired() -> Self {
        let message = "The cursor is outside the retained events; subscribe with snapshot: true.";
        Self::new(SubscribeCode::CursorExpired, message)
    }

    /// More than `max` matching events are missing.
    pub fn replay_too_large(max: u64) -> Self {
        let message =
            format!("More than {max} events are missing; subscribe with snapshot: true instead.");
        Self::new(SubscribeCode::ReplayTooLarge, message)
    }

    /// A field has an unknown name or a wrong type.
    pub fn invalid_filter(message: impl Into<String>) -> Self {
        Self::new(SubscribeCode::InvalidFilter, message)
    }

    /// `since` names a session that is not a worker of the subscribed session.
    pub fn not_a_worker(name: &str) -> Self {
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

/// The largest number of sessions in a `since`. A client drops workers that have ended, so a few
/// dozen are usual; the server looks up each of them before it sends anything.
pub const SINCE_SESSIONS_MAX: usize = 256;

/// The cursor of a subscribe: one event id, or one per session. The text is echoed unchanged in the
/// answer and parsed when the session is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum SinceCursor {
    /// The id of the last event that the client has received.
    Id(String),
    /// The last id by session, for a connection that carries several.
    BySession(BTreeMap<String, String>),
}

impl SinceCursor {
    /// The position in `session`.
    pub fn position(&self, session: SessionId) -> Result<Position, SubscribeError> {
        let text = match self {
            Self::Id(id) => id,
            Self::BySession(ids) => ids.get(&session.to_string()).ok_or_else(|| {
                SubscribeError::invalid_filter("since has no entry for this session")
            })?,
        };
        text.parse().map_err(|_| SubscribeError::cursor_expired())
    }

    /// The positions in the sessions other than `session`, which should be its workers.
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
            let worker: SessionId = name
                .parse()
                .map_err(|_| SubscribeError::not_a_worker(name))?;
            let at = id.parse().map_err(|_| SubscribeError::cursor_expired())?;
            if worker != session {
                workers.insert(worker, at);
            }
        }
        Ok(workers)
    }
}

impl From<Position> for SinceCursor {
    fn from(at: Position) -> Self {
        Self::Id(at.to_string())
    }
}

/// A parsed subscribe frame.
#[derive(Clone, Debug, PartialEq)]
pub struct SubscribeFrame {
    /// The filter with presets expanded.
    pub filter: EventFilter,
    /// The cursor, or `None` to receive new events only.
    pub since: Option<SinceCursor>,
    /// True to receive a snapshot first; `since` is ignored then.
    pub snapshot: bool,
}

impl SubscribeFrame {
    /// Parses the fields of a subscribe frame.
    pub(super) fn read(fields: Map<String, Value>) -> Result<Self, SubscribeError> {
        let mut subscribe = Self {
            filter: EventFilter::full(),
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

fn mistyped(field: &str, expected: &str) -> SubscribeError {
    SubscribeError::invalid_filter(format!("{field} must be {expected}"))
}

fn unknown_field(name: &str) -> SubscribeError {
    let name: String = name.chars().take(64).collect();
    SubscribeError::invalid_filter(format!("unknown field {name:?}"))
}

fn flag(field: &str, value: &Value) -> Result<bool, SubscribeError> {
    value
        .as_bool()
        .ok_or_else(|| mistyped(field, "true or false"))
}

fn names(field: &str, value: Value) -> Result<Option<Vec<String>>, SubscribeError> {
    if value.is_null() {
        return Ok(None);
    }
    serde_json::from_value(value)
        .map(Some)
        .map_err(|_| mistyped(field, "a list of strings or null"))
}

fn since(value: Value) -> Result<Option<SinceCursor>, SubscribeError> {
    serde_json::from_value(value)
        .map_err(|_| mistyped("since", "an event id, a map of them by session, or null"))
}

fn filter(value: Value) -> Result<EventFilter, SubscribeError> {
    let resolved = if value.is_null() {
        return Ok(EventFilter::full());
    } else if let Value::String(preset) = &value {
        EventFilter::preset(preset)
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
        EventFilter::resolve(&spec)
    } else {
        return Err(mistyped("filter", "an object, a preset or null"));
    };
    resolved.map_err(|error| SubscribeError::invalid_filter(error.to_string()))
}

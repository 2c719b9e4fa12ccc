//! The options of a subscribe request on the session wire.

use std::collections::BTreeMap;

use serde::Deserialize as _;
use serde_json::{Value, json};
use turnwire_event::{EventFilter, FilterSpec, Position, SessionId};

/// The fields of a subscribe request.
#[derive(Clone, Debug)]
pub struct SubscribeOptions {
    /// The filter as JSON, as sent.
    pub filter: Value,
    pub since: Option<Position>,
    /// The cursor of each worker session.
    pub workers: BTreeMap<SessionId, Position>,
    /// True requests a snapshot.
    pub snapshot: bool,
}

impl SubscribeOptions {
    /// All events from now on.
    pub fn live() -> Self {
        Self {
            filter: "preset:full".into(),
            since: None,
            workers: BTreeMap::new(),
            snapshot: false,
        }
    }

    /// All events after a position.
    pub fn since(position: Position) -> Self {
        Self {
            since: Some(position),
            ..Self::live()
        }
    }

    /// A snapshot and all events after it.
    pub fn snapshot() -> Self {
        Self {
            snapshot: true,
            ..Self::live()
        }
    }

    /// Replaces the filter of the request.
    #[must_use]
    pub fn filter(mut self, filter: impl Into<Value>) -> Self {
        self.filter = filter.into();
        self
    }

    /// Sets the cursors of worker sessions.
    #[must_use]
    pub fn workers(mut self, workers: BTreeMap<SessionId, Position>) -> Self {
        self.workers = workers;
        self
    }

    /// The subscribe frame as JSON.
    pub fn frame(&self) -> Value {
        self.frame_with(json!(self.since))
    }

    /// The subscribe frame for a session; with cursors of workers, `since` is a map.
    pub(super) fn frame_for(&self, session: SessionId) -> Value {
        let since = match self.since {
            Some(at) if !self.workers.is_empty() => {
                let mut all = self.workers.clone();
                all.insert(session, at);
                json!(all)
            }
            since => json!(since),
        };
        self.frame_with(since)
    }

    fn frame_with(&self, since: Value) -> Value {
        json!({"type": "subscribe", "filter": self.filter, "since": since, "snapshot": self.snapshot})
    }

    /// The filter as the server should resolve it; `None` if it should refuse it.
    pub(super) fn resolved(&self) -> Option<EventFilter> {
        match &self.filter {
            Value::Null => Some(EventFilter::full()),
            Value::String(preset) => EventFilter::preset(preset).ok(),
            spec => EventFilter::resolve(&FilterSpec::deserialize(spec).ok()?).ok(),
        }
    }
}

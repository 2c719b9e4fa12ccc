//! What a client of a session's stream asks for.

use std::collections::BTreeMap;

use serde::Deserialize as _;
use serde_json::{Value, json};
use turnwire_event::{Filter, FilterSpec, Position, SessionId};

/// What a client asks for.
#[derive(Clone, Debug)]
pub struct SubscribeOptions {
    /// The filter, as it is sent.
    pub filter: Value,
    pub since: Option<Position>,
    /// The cursors of workers.
    pub workers: BTreeMap<SessionId, Position>,
    /// Whether a snapshot is wanted.
    pub snapshot: bool,
}

impl SubscribeOptions {
    /// Everything from now on.
    pub fn live() -> Self {
        Self {
            filter: "preset:full".into(),
            since: None,
            workers: BTreeMap::new(),
            snapshot: false,
        }
    }

    /// Everything after a position.
    pub fn since(position: Position) -> Self {
        Self {
            since: Some(position),
            ..Self::live()
        }
    }

    /// The state, and everything after it.
    pub fn snapshot() -> Self {
        Self {
            snapshot: true,
            ..Self::live()
        }
    }

    /// The same through a filter.
    #[must_use]
    pub fn filter(mut self, filter: impl Into<Value>) -> Self {
        self.filter = filter.into();
        self
    }

    /// The same with the cursors of workers.
    #[must_use]
    pub fn workers(mut self, workers: BTreeMap<SessionId, Position>) -> Self {
        self.workers = workers;
        self
    }

    /// The frame.
    pub fn frame(&self) -> Value {
        self.framed(json!(self.since))
    }

    /// The frame for a session: with cursors of workers, the cursor is a map.
    pub(super) fn frame_for(&self, session: SessionId) -> Value {
        let since = match self.since {
            Some(at) if !self.workers.is_empty() => {
                let mut all = self.workers.clone();
                all.insert(session, at);
                json!(all)
            }
            since => json!(since),
        };
        self.framed(since)
    }

    fn framed(&self, since: Value) -> Value {
        json!({"type": "subscribe", "filter": self.filter, "since": since, "snapshot": self.snapshot})
    }

    /// The filter as the server should understand it; none if it should not.
    pub(super) fn resolved(&self) -> Option<Filter> {
        match &self.filter {
            Value::Null => Some(Filter::full()),
            Value::String(preset) => Filter::preset(preset).ok(),
            spec => Filter::resolve(&FilterSpec::deserialize(spec).ok()?).ok(),
        }
    }
}

//! The events that a connection wants: a spec as the client writes it, resolved strictly to a
//! bitset of types and a list of actors.

use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::envelope::EventHead;
use crate::kind::{EventType, TypeSet};

/// A filter as a client writes it and as the server echoes it, presets expanded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct FilterSpec {
    /// Names of event types; null selects all.
    pub event_types: Option<Vec<String>>,
    /// Actors, exact or by kind; null selects all.
    pub actors: Option<Vec<String>>,
    /// True to include the events of worker sessions.
    pub include_worker_sessions: bool,
    /// True to include events that the rendering policy hides.
    pub include_suppressed: bool,
}

/// Why a [`FilterSpec`] is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The event type does not exist or cannot be filtered for.
    #[error("unknown event type \"{0}\"")]
    Type(String),
    /// The actor is not valid.
    #[error("unknown actor \"{0}\"")]
    Actor(String),
    /// The spec names more actors than [`ACTORS_MAX`].
    #[error("{0} actors; a filter may name {ACTORS_MAX}")]
    TooManyActors(usize),
    /// The preset does not exist.
    #[error("unknown preset \"{0}\"; there are preset:chat and preset:full")]
    Preset(String),
}

/// Actors that a filter may name: a turn has a handful, and every connection keeps its own list.
pub const ACTORS_MAX: usize = 64;

/// The start of a client's text, for an error message.
fn shortened(text: &str) -> String {
    text.chars().take(64).collect()
}

/// A resolved [`FilterSpec`]: one AND per event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFilter {
    types: TypeSet,
    actors: Option<Vec<Actor>>,
    /// True to include the events of worker sessions.
    pub include_worker_sessions: bool,
    include_suppressed: bool,
}

impl EventFilter {
    /// Selects every event that a client may see.
    pub fn full() -> Self {
        Self::of(TypeSet::filterable())
    }

    /// Selects the events that an end-user view needs (D-35).
    pub fn chat() -> Self {
        use EventType as T;
        Self::of(
            [
                T::MessageStart,
                T::MessageComplete,
                T::TextDelta,
                T::ThinkingDelta,
                T::ToolUseStart,
                T::ToolUseInputDelta,
                T::ToolUseEnd,
                T::ToolCalled,
                T::ToolCompleted,
                T::ToolFailed,
                T::RouteDecided,
                T::TurnStarted,
                T::TurnCompleted,
                T::TurnCancelled,
                T::LlmCallFailed,
                T::LlmCallStarted,
                T::LlmCallCompleted,
                T::FeedbackRecorded,
                T::DelegateStarted,
                T::DelegateCompleted,
                T::DelegateFailed,
                T::StatusEmitted,
                T::ErrorReported,
                T::DataLoading,
                T::DataLoaded,
                T::ComponentRendered,
            ]
            .into_iter()
            .collect(),
        )
    }

    /// The preset called `name`: `preset:chat` or `preset:full`.
    pub fn preset(name: &str) -> Result<Self, FilterError> {
        match name {
            "preset:chat" => Ok(Self::chat()),
            "preset:full" => Ok(Self::full()),
            _ => Err(FilterError::Preset(shortened(name))),
        }
    }

    /// Selects `types` from every actor.
    pub fn of(types: TypeSet) -> Self {
        Self {
            types,
            actors: None,
            include_worker_sessions: false,
            include_suppressed: false,
        }
    }

    /// Resolves a spec strictly: an unknown name is an error, never ignored (S3-017).
    pub fn resolve(spec: &FilterSpec) -> Result<Self, FilterError> {
        let all = TypeSet::filterable();
        let types = match &spec.event_types {
            None => all,
            Some(names) => {
                let kind = |name: &String| {
                    let kind = name.parse().ok().filter(|&kind| all.contains(kind));
                    kind.ok_or_else(|| FilterError::Type(shortened(name)))
                };
                names.iter().map(kind).collect::<Result<_, _>>()?
            }
        };
        let actor = |name: &String| {
            let actor = name.parse();
            actor.map_err(|_| FilterError::Actor(shortened(name)))
        };
        let actors = spec.actors.as_ref();
        if let Some(names) = actors.filter(|names| names.len() > ACTORS_MAX) {
            return Err(FilterError::TooManyActors(names.len()));
        }
        let actors = actors.map(|names| names.iter().map(actor).collect::<Result<_, _>>());
        let actors = actors.transpose()?;
        Ok(Self {
            types,
            actors,
            include_worker_sessions: spec.include_worker_sessions,
            include_suppressed: spec.include_suppressed,
        })
    }

    /// The filter as a spec with presets expanded, for the acknowledgement.
    pub fn spec(&self) -> FilterSpec {
        let types = self.types.iter().map(|kind| kind.name().to_owned());
        let actors = self.actors.as_ref();
        FilterSpec {
            event_types: Some(types.collect()),
            actors: actors.map(|actors| actors.iter().map(Actor::to_string).collect()),
            include_worker_sessions: self.include_worker_sessions,
            include_suppressed: self.include_suppressed,
        }
    }

    /// The event types that pass.
    pub fn types(&self) -> TypeSet {
        self.types
    }

    /// The actors that pass; `None` if all do.
    pub fn actors(&self) -> Option<&[Actor]> {
        self.actors.as_deref()
    }

    /// A filter that passes everything that this one does, and events of `types` by actors that match
    /// `actor`, hidden ones included. It may pass more: the caller still matches each event.
    #[must_use]
    pub fn widened(&self, types: TypeSet, actor: Actor) -> Self {
        let mut wider = self.clone();
        wider.types = types.iter().fold(wider.types, TypeSet::with);
        wider
            .actors
            .iter_mut()
            .for_each(|actors| actors.push(actor.clone()));
        wider.include_suppressed = true;
        wider
    }

    /// True if events that the rendering policy hides pass too.
    pub fn includes_suppressed(&self) -> bool {
        self.include_suppressed
    }

    /// True if every visible event of `types` passes, so that no event needs a check of its own.
    pub fn passes_all(&self, types: TypeSet) -> bool {
        self.actors.is_none() && self.types.covers(types)
    }

    /// True if an event with this header passes.
    pub fn matches(&self, head: &EventHead) -> bool {
        self.types.contains(head.kind)
            && (!head.suppressed || self.include_suppressed)
            && self
                .actors
                .as_ref()
                .is_none_or(|wanted| wanted.iter().any(|a| head.actor.matches(a)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::{Epoch, Position, Seq};

    fn head(kind: EventType, actor: Actor) -> EventHead {
        EventHead {
            position: Position::persisted(Epoch(1), Seq(1)),
            kind,
            turn: None,
            actor,
            suppressed: false,
        }
    }

    // S3-017
    #[test]
    fn unknown_type_is_named() {
        let spec = FilterSpec {
            event_types: Some(vec!["text.delta".into(), "made.up.thing".into()]),
            ..Default::default()
        };
        assert_eq!(
            EventFilter::resolve(&spec),
            Err(FilterError::Type("made.up.thing".into()))
        );
        for reserved in [
            "tool.use_input_partial_parsed",
            "mcp.session_started",
            "support.noted",
        ] {
            let spec = FilterSpec {
                event_types: Some(vec![reserved.into()]),
                ..Default::default()
            };
            assert!(EventFilter::resolve(&spec).is_err(), "{reserved}");
        }
    }

    #[test]
    fn actors_are_bounded() {
        let spec = |count: usize| FilterSpec {
            actors: Some(vec!["user".into(); count]),
            ..Default::default()
        };
        assert!(EventFilter::resolve(&spec(ACTORS_MAX)).is_ok());
        assert_eq!(
            EventFilter::resolve(&spec(ACTORS_MAX + 1)),
            Err(FilterError::TooManyActors(ACTORS_MAX + 1))
        );
    }

    // S3-016
    #[test]
    fn every_catalog_and_streaming_type_is_accepted() {
        for kind in TypeSet::filterable().iter() {
            let spec = FilterSpec {
                event_types: Some(vec![kind.name().into()]),
                ..Default::default()
            };
            assert!(
                EventFilter::resolve(&spec)
                    .expect("accepted")
                    .matches(&head(kind, Actor::SYSTEM))
            );
        }
    }

    // S3-021
    #[test]
    fn preset_equals_its_expansion() {
        for preset in ["preset:chat", "preset:full"] {
            let filter = EventFilter::preset(preset).expect("a preset");
            assert_eq!(
                EventFilter::resolve(&filter.spec()).expect("its own expansion"),
                filter
            );
        }
        assert_eq!(EventFilter::chat().types().iter().count(), 26);
        assert!(
            !EventFilter::chat()
                .types()
                .contains(EventType::TurnCancelRequested)
        );
        assert!(
            EventFilter::full()
                .types()
                .contains(EventType::TurnCancelRequested)
        );
        let reloaded = EventType::RoutingPolicyReloaded;
        assert!(EventFilter::full().types().contains(reloaded), "S3-104");
        assert!(!EventFilter::chat().types().contains(reloaded));
    }

    // S3-026
    #[test]
    fn actors_match_exactly_or_by_kind() {
        let spec = FilterSpec {
            actors: Some(vec!["tool".into()]),
            ..Default::default()
        };
        let filter = EventFilter::resolve(&spec).expect("a filter");
        assert!(filter.matches(&head(EventType::ToolCalled, Actor::tool("clock"))));
        assert!(!filter.matches(&head(EventType::TurnStarted, Actor::USER)));
        assert!(!filter.passes_all(TypeSet::EMPTY.with(EventType::ToolCalled)));
    }

    #[test]
    fn hidden_events_pass_only_when_requested() {
        let mut hidden = head(EventType::ToolCalled, Actor::tool("clock"));
        hidden.suppressed = true;
        assert!(!EventFilter::full().matches(&hidden));
        let spec = FilterSpec {
            include_suppressed: true,
            ..Default::default()
        };
        assert!(
            EventFilter::resolve(&spec)
                .expect("a filter")
                .matches(&hidden)
        );
    }
}

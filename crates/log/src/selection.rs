//! Which events of a range a read returns: by type, turn, actor and visibility; and how much one
//! read may return and look at.
//!
//! An [`EventSelection`] compares the columns beside an event's bytes, never the bytes. The columns
//! are written with the event and are not part of the hash chain.

use turnwire_event::{Actor, EventFilter, TurnId, TypeSet};

/// The events that [`Log::read`](crate::Log::read) returns and [`Log::count`](crate::Log::count)
/// counts. Every condition that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventSelection {
    pub(crate) types: Option<TypeSet>,
    pub(crate) turn: Option<TurnId>,
    /// Patterns of which one must match the event's actor, as [`Actor::matches`] decides.
    pub(crate) actors: Option<Vec<Actor>>,
    pub(crate) visible_only: bool,
}

impl EventSelection {
    /// Every event of the range, hidden events included.
    pub fn all() -> Self {
        Self::default()
    }

    /// Keeps events whose type is in `types`.
    #[must_use]
    pub fn with_types(mut self, types: TypeSet) -> Self {
        self.types = Some(types);
        self
    }

    /// Keeps events of `turn`.
    #[must_use]
    pub fn with_turn(mut self, turn: TurnId) -> Self {
        self.turn = Some(turn);
        self
    }

    /// Keeps events whose actor matches one of `patterns`; see [`Actor::matches`].
    #[must_use]
    pub fn with_actors(mut self, patterns: Vec<Actor>) -> Self {
        self.actors = Some(patterns);
        self
    }

    /// Leaves out events that the rendering policy hides.
    #[must_use]
    pub fn visible_only(mut self) -> Self {
        self.visible_only = true;
        self
    }

    /// True if a condition other than the types is set.
    pub(crate) fn has_more_than_types(&self) -> bool {
        self.turn.is_some() || self.actors.is_some() || self.visible_only
    }

    /// True if an event with these columns meets every condition but the types.
    pub(crate) fn matches(&self, turn: Option<TurnId>, actor: &Actor, hidden: bool) -> bool {
        self.turn.is_none_or(|wanted| turn == Some(wanted))
            && !(self.visible_only && hidden)
            && self
                .actors
                .as_ref()
                .is_none_or(|patterns| patterns.iter().any(|pattern| actor.matches(pattern)))
    }

    /// True if no condition is set, so that the events of a range are dense.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }
}

/// The bounds of one [`Log::read`](crate::Log::read). The first that is reached ends the read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimits {
    /// The largest number of events.
    pub events: usize,
    /// The largest sum of the sizes of the events. The first event is returned even if it alone is
    /// larger.
    pub bytes: usize,
    /// The largest number of events that are looked at to find those that the selection matches.
    pub scanned: usize,
}

impl ReadLimits {
    /// The bounds of a read of one event at a known position.
    pub const ONE: Self = Self {
        events: 1,
        bytes: 0,
        scanned: 1,
    };
}

impl From<&EventFilter> for EventSelection {
    /// The stored events that can pass `filter`. A filter that names every filterable type sets no
    /// condition on types: the few types that no filter can name are then selected and counted too,
    /// and [`EventFilter::matches`] leaves them out afterwards.
    fn from(filter: &EventFilter) -> Self {
        let every_type = filter.types().covers(TypeSet::filterable());
        Self {
            types: (!every_type).then(|| filter.types()),
            turn: None,
            actors: filter.actors().map(<[Actor]>::to_vec),
            visible_only: !filter.includes_suppressed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::{EventType, FilterSpec};

    #[test]
    fn filter_with_every_type_selects_without_a_type_condition() {
        let spec = FilterSpec {
            include_suppressed: true,
            ..FilterSpec::default()
        };
        let every = EventFilter::resolve(&spec).expect("a filter");
        assert!(EventSelection::from(&every).is_all());
        let visible = EventSelection::from(&EventFilter::full());
        assert_eq!(visible, EventSelection::all().visible_only());
    }

    #[test]
    fn filter_conditions_are_kept_in_the_selection() {
        let types = TypeSet::EMPTY.with(EventType::ToolCalled);
        let spec = FilterSpec {
            event_types: Some(vec!["tool.called".into()]),
            actors: Some(vec!["tool".into()]),
            ..FilterSpec::default()
        };
        let filter = EventFilter::resolve(&spec).expect("a filter");
        let expected = EventSelection::all()
            .with_types(types)
            .with_actors(vec!["tool".parse().expect("an actor")])
            .visible_only();
        assert_eq!(EventSelection::from(&filter), expected);
    }
}

//! The counters of one table: looked up by their labels once, then an addition each.
//!
//! A counter is looked up when it is first used, so that `/metrics` lists what happened and not
//! what might, and so that a recorder that is installed late still gets every count.

use std::sync::OnceLock;
use std::time::Duration;

use metrics::{Counter, Histogram};
use turnwire_event::{Actor, ActorKind, EventType, RenderPolicy, metric};

use crate::kind::{KINDS, label};

/// Labels a row of `applied` has: one for each type, and one for each policy of a status, the only
/// type whose policy is decided by more than the type.
const ROW: usize = KINDS + 4;

/// A sub-agent, as metrics name it.
#[derive(Clone, Debug)]
pub(crate) struct Who {
    /// Which one.
    pub sub_agent_id: String,
    /// Whose it is.
    pub vertical: String,
}

/// Which row of counters an actor has: 0 for whoever is not a sub-agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row(usize);

#[derive(Debug)]
pub(crate) struct Meter {
    definition: String,
    /// The row of all who are no sub-agent first.
    who: Vec<Who>,
    applied: Box<[OnceLock<Counter>]>,
    emitted: Box<[OnceLock<Counter>]>,
    unregistered: OnceLock<Counter>,
    decision: OnceLock<Histogram>,
}

impl Meter {
    /// Counters for these sub-agents and so many statuses.
    pub(crate) fn new(definition: String, agents: Vec<Who>, statuses: usize) -> Self {
        let nobody = Who {
            sub_agent_id: String::new(),
            vertical: String::new(),
        };
        let who: Vec<Who> = std::iter::once(nobody).chain(agents).collect();
        let empty = |count| (0..count).map(|_| OnceLock::new()).collect();
        Self {
            applied: empty(who.len() * ROW),
            emitted: empty(who.len() * statuses),
            definition,
            who,
            unregistered: OnceLock::new(),
            decision: OnceLock::new(),
        }
    }

    /// The row of an actor.
    pub(crate) fn row(&self, actor: &Actor) -> Row {
        if actor.kind() != ActorKind::Subagent {
            return Row(0);
        }
        let named = |who: &Who| Some(who.sub_agent_id.as_str()) == actor.name();
        Row(self.who.iter().position(named).unwrap_or(0))
    }

    /// One event of `kind` was decided (S1-050).
    pub(crate) fn applied(&self, row: Row, kind: EventType, policy: RenderPolicy) {
        let column = if matches!(kind, EventType::StatusEmitted) {
            KINDS + policy as usize
        } else {
            kind as usize
        };
        let counter = self.applied[row.0 * ROW + column].get_or_init(|| {
            let mut labels = self.dimensions(row);
            labels.push(("event_type", label(kind).to_owned()));
            labels.push(("policy", word(policy).to_owned()));
            metrics::counter!(metric::STREAM_RENDERING_POLICY_APPLIED_TOTAL, &labels)
        });
        counter.increment(1);
    }

    /// The status `id`, which stands at `index`, was emitted (S1-124).
    pub(crate) fn emitted(&self, row: Row, index: usize, id: &str) {
        let counter = self.emitted[index * self.who.len() + row.0].get_or_init(|| {
            let mut labels = self.dimensions(row);
            labels.push(("event_id", id.to_owned()));
            metrics::counter!(metric::STREAM_STATUS_EVENT_EMITTED_TOTAL, &labels)
        });
        counter.increment(1);
    }

    /// A status was withheld because its id is not one for who emitted it (S1-132).
    pub(crate) fn unregistered(&self) {
        let counter = self
            .unregistered
            .get_or_init(|| metrics::counter!(metric::STATUS_EVENT_UNREGISTERED_ID));
        counter.increment(1);
    }

    /// A decision took so long.
    pub(crate) fn decided(&self, took: Duration) {
        let histogram = self.decision.get_or_init(|| {
            let labels = self.dimensions(Row(0));
            metrics::histogram!(metric::STREAM_POLICY_DECISION_US, &labels)
        });
        histogram.record(took.as_nanos() as f64 / 1_000.0);
    }

    fn dimensions(&self, row: Row) -> Vec<(&'static str, String)> {
        let who = &self.who[row.0];
        let mut labels: Vec<_> = metric::dimensions(&self.definition).into();
        for (name, value) in &mut labels {
            match *name {
                "vertical" => value.clone_from(&who.vertical),
                "sub_agent_id" => value.clone_from(&who.sub_agent_id),
                _ => {}
            }
        }
        labels
    }
}

/// The word for a policy.
pub(crate) const fn word(policy: RenderPolicy) -> &'static str {
    match policy {
        RenderPolicy::Forward => "forward",
        RenderPolicy::Transform => "transform",
        RenderPolicy::Suppress => "suppress",
        RenderPolicy::Batch => "batch",
    }
}

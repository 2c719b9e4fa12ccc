//! The models that an agent asks in a turn: the one that was chosen, and those that stand in for
//! it. Chosen when the turn is bound, before its first call (S2-001); what stands in is asked when
//! the one before it failed without a word.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use turnwire_event::Body;
use turnwire_event::body::route::Decided;
use turnwire_event::code::LlmErrorClass;
use turnwire_model::Provider;
use turnwire_model::routing::Route;

use crate::options::Retries;

/// The policy that has one model to choose from.
const ONLY: (&str, &str) = ("builtin-1", "only model");

/// A model that can be asked.
#[derive(Clone)]
pub(crate) struct Candidate {
    /// Its name, `provider:model`.
    pub(crate) model: String,
    pub(crate) provider: Arc<dyn Provider>,
    /// How often it is asked.
    pub(crate) retries: Retries,
}

/// What was chosen for one agent.
pub(crate) struct Choice {
    first: Candidate,
    others: Vec<Candidate>,
    /// All that the policy named, where it named more than one.
    named: Vec<String>,
    policy: String,
    reason: String,
}

/// Where an agent stands among its candidates in one turn: it stays with the one that worked.
#[derive(Debug, Default)]
pub(crate) struct Standing(AtomicUsize);

impl Choice {
    /// One model, because there is no other.
    pub(crate) fn only(first: Candidate) -> Self {
        Self {
            first,
            others: Vec::new(),
            named: Vec::new(),
            policy: ONLY.0.to_owned(),
            reason: ONLY.1.to_owned(),
        }
    }

    /// What a policy chose: of all that `route` names, `first` and `others` are served.
    pub(crate) fn new(
        route: &Route,
        policy: &str,
        first: Candidate,
        others: Vec<Candidate>,
    ) -> Self {
        let mut named = names(route);
        if named.len() == 1 {
            named.clear();
        }
        let reason = if first.model == route.model {
            route.reason.clone()
        } else {
            format!("{}; {} is not served", route.reason, route.model)
        };
        Self {
            first,
            others,
            named: named.into_iter().map(str::to_owned).collect(),
            policy: policy.to_owned(),
            reason,
        }
    }

    /// The candidate that is asked.
    pub(crate) fn at(&self, standing: &Standing) -> &Candidate {
        let at = standing.0.load(Ordering::Relaxed);
        let other = at.checked_sub(1).and_then(|at| self.others.get(at));
        other.unwrap_or(&self.first)
    }

    /// Goes on to the next candidate; none if there is none.
    pub(crate) fn next(&self, standing: &Standing) -> Option<&Candidate> {
        let at = standing.0.load(Ordering::Relaxed);
        let next = self.others.get(at)?;
        standing.0.store(at + 1, Ordering::Relaxed);
        Some(next)
    }

    /// That it was chosen.
    pub(crate) fn decided(&self) -> Body {
        self.told(&self.first, self.reason.clone())
    }

    /// That `stand_in` takes over from one that failed.
    pub(crate) fn replaced(&self, stand_in: &Candidate, class: LlmErrorClass) -> Body {
        self.told(stand_in, format!("fallback after {}", word(class)))
    }

    fn told(&self, candidate: &Candidate, reason: String) -> Body {
        Body::RouteDecided(Decided {
            model: candidate.model.clone(),
            routing_policy_version: self.policy.clone(),
            reason,
            candidates: self.named.clone(),
        })
    }
}

/// The models that `route` names, in its order, each once.
pub(crate) fn names(route: &Route) -> Vec<&str> {
    let mut names = vec![route.model.as_str()];
    for model in &route.fallbacks {
        if !names.contains(&model.as_str()) {
            names.push(model);
        }
    }
    names
}

/// Whether another model may do better: one that failed for what the house did will not be
/// bettered by another.
pub(crate) const fn may_stand_in(class: LlmErrorClass) -> bool {
    match class {
        LlmErrorClass::RateLimited
        | LlmErrorClass::Timeout
        | LlmErrorClass::Transport
        | LlmErrorClass::Provider => true,
        LlmErrorClass::Cancelled | LlmErrorClass::Internal => false,
    }
}

/// A class as events spell it.
pub(crate) const fn word(class: LlmErrorClass) -> &'static str {
    match class {
        LlmErrorClass::Cancelled => "cancelled",
        LlmErrorClass::RateLimited => "rate_limited",
        LlmErrorClass::Timeout => "timeout",
        LlmErrorClass::Transport => "transport",
        LlmErrorClass::Provider => "provider",
        LlmErrorClass::Internal => "internal",
    }
}

/// The provider's part of `provider:model`.
pub(crate) fn provider_of(model: &str) -> &str {
    model
        .split_once(':')
        .map_or(model, |(provider, _)| provider)
}

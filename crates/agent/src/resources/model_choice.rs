//! The models that an agent may call in a turn: the one that the routing policy chose, and its
//! fallbacks. Chosen when the turn is bound, before its first call (S2-001); a fallback is called
//! when the model before it failed without output.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use turnwire_event::Body;
use turnwire_event::body::route::RouteDecided;
use turnwire_event::code::LlmErrorClass;
use turnwire_model::ModelProvider;
use turnwire_model::routing::ModelRoute;

use crate::options::RetryOptions;

/// Version and reason of the routing decision where there is only one model.
const ONLY_MODEL: (&str, &str) = ("builtin-1", "only model");

/// A model that can be called.
#[derive(Clone)]
pub(crate) struct ModelCandidate {
    pub(crate) model: String,
    pub(crate) provider: Arc<dyn ModelProvider>,
    pub(crate) retries: RetryOptions,
}

/// The [`ModelCandidate`]s chosen for one agent.
pub(crate) struct ModelChoice {
    first: ModelCandidate,
    fallbacks: Vec<ModelCandidate>,
    /// All models that the policy named, available or not; empty if it named only one.
    named_models: Vec<String>,
    policy_version: String,
    reason: String,
}

/// The position of an agent among its candidates in one turn. An agent stays with a fallback that
/// worked.
#[derive(Debug, Default)]
pub(crate) struct CandidateCursor(AtomicUsize);

impl ModelChoice {
    /// A single model without fallbacks.
    pub(crate) fn only(first: ModelCandidate) -> Self {
        Self {
            first,
            fallbacks: Vec::new(),
            named_models: Vec::new(),
            policy_version: ONLY_MODEL.0.to_owned(),
            reason: ONLY_MODEL.1.to_owned(),
        }
    }

    /// The choice of a policy: `first` and `fallbacks` are the models of `route` that are
    /// available.
    pub(crate) fn new(
        route: &ModelRoute,
        policy_version: &str,
        first: ModelCandidate,
        fallbacks: Vec<ModelCandidate>,
    ) -> Self {
        let mut named_models = model_names(route);
        if named_models.len() == 1 {
            named_models.clear();
        }
        let reason = if first.model == route.model {
            route.reason.clone()
        } else {
            format!("{}; {} is not served", route.reason, route.model)
        };
        Self {
            first,
            fallbacks,
            named_models: named_models.into_iter().map(str::to_owned).collect(),
            policy_version: policy_version.to_owned(),
            reason,
        }
    }

    /// The candidate at a [`CandidateCursor`].
    pub(crate) fn current(&self, cursor: &CandidateCursor) -> &ModelCandidate {
        let index = cursor.0.load(Ordering::Relaxed);
        let fallback = index.checked_sub(1).and_then(|at| self.fallbacks.get(at));
        fallback.unwrap_or(&self.first)
    }

    /// Moves `cursor` to the next candidate and returns it; `None` if there is no other.
    pub(crate) fn advance(&self, cursor: &CandidateCursor) -> Option<&ModelCandidate> {
        let index = cursor.0.load(Ordering::Relaxed);
        let next = self.fallbacks.get(index)?;
        cursor.0.store(index + 1, Ordering::Relaxed);
        Some(next)
    }

    /// The event for the first choice.
    pub(crate) fn decided_event(&self) -> Body {
        self.event(&self.first, self.reason.clone())
    }

    /// The event for `fallback`, which replaces a model that failed with `class`.
    pub(crate) fn fallback_event(&self, fallback: &ModelCandidate, class: LlmErrorClass) -> Body {
        self.event(fallback, format!("fallback after {}", class_name(class)))
    }

    fn event(&self, candidate: &ModelCandidate, reason: String) -> Body {
        Body::RouteDecided(RouteDecided {
            relayed: None,
            model: candidate.model.clone(),
            routing_policy_version: self.policy_version.clone(),
            reason,
            candidates: self.named_models.clone(),
        })
    }
}

/// The models that a [`ModelRoute`] names, in its order, without duplicates.
pub(crate) fn model_names(route: &ModelRoute) -> Vec<&str> {
    let mut names = vec![route.model.as_str()];
    for model in &route.fallbacks {
        if !names.contains(&model.as_str()) {
            names.push(model);
        }
    }
    names
}

/// True if another model may succeed where one failed with `class`. A failure that the server
/// caused would repeat with any model.
pub(crate) const fn allows_fallback(class: LlmErrorClass) -> bool {
    match class {
        LlmErrorClass::RateLimited
        | LlmErrorClass::Timeout
        | LlmErrorClass::Transport
        | LlmErrorClass::Provider => true,
        LlmErrorClass::Cancelled | LlmErrorClass::Internal => false,
    }
}

/// The name of an error class in events.
pub(crate) const fn class_name(class: LlmErrorClass) -> &'static str {
    match class {
        LlmErrorClass::Cancelled => "cancelled",
        LlmErrorClass::RateLimited => "rate_limited",
        LlmErrorClass::Timeout => "timeout",
        LlmErrorClass::Transport => "transport",
        LlmErrorClass::Provider => "provider",
        LlmErrorClass::Internal => "internal",
    }
}

/// The provider in `provider:model`.
pub(crate) fn provider_name(model: &str) -> &str {
    model
        .split_once(':')
        .map_or(model, |(provider, _)| provider)
}

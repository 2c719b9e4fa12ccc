//! Routing rules: which model serves which turn.

use turnwire_event::code::TurnKind;

/// A model, and the models to try if it fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelChoice {
    /// The model, as `provider:model`.
    pub model: String,
    /// Models to try instead, first to last, each as `provider:model`.
    pub fallbacks: Vec<String>,
}

/// When a rule matches: all conditions must match, and of a list any entry. An empty list matches
/// every turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoutingCondition {
    /// Tenants, as UUIDs in lower case.
    pub tenants: Vec<String>,
    /// Agents by id, or `orchestrator`.
    pub agents: Vec<String>,
    /// Language tags with `-`; `de` matches `de-AT` too.
    pub locales: Vec<String>,
    /// What the turn is for.
    pub kinds: Vec<TurnKind>,
    /// Matches if the session has cost more than this before the turn.
    pub cost_above_usd: Option<f64>,
}

/// A rule that makes a [`ModelChoice`].
#[derive(Clone, Debug, PartialEq)]
pub struct RoutingRule {
    /// The rule's name; its number from 1 if it has no name.
    pub name: String,
    /// The [`RoutingCondition`] of the turns that the rule matches.
    pub when: RoutingCondition,
    /// The model of a matching turn.
    pub choice: ModelChoice,
}

/// The routing rules of a pack.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutingPolicy {
    /// The version that the author wrote, or a digest of the file.
    pub version: String,
    /// The rules in order: the first that matches counts.
    pub rules: Vec<RoutingRule>,
    /// The choice if no rule matches; `None` for the agent's own model.
    pub default: Option<ModelChoice>,
}

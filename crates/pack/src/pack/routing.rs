//! Which model serves which turn: rules from the first to the last, and what holds where none
//! does.

use turnwire_event::code::TurnKind;

/// A model, and who is asked where it fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelChoice {
    /// The model, as `provider:model`.
    pub model: String,
    /// Whom to ask instead, first to last, each as `provider:model`.
    pub fallbacks: Vec<String>,
}

/// When a rule holds: every condition that is given must, and of a list any. One that is empty is
/// not given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoutingCondition {
    /// Tenants, as UUIDs in lower case.
    pub tenants: Vec<String>,
    /// Agents by id; `orchestrator` is the one that speaks.
    pub agents: Vec<String>,
    /// Language tags with `-`; `de` holds for `de-AT` too.
    pub locales: Vec<String>,
    /// What the turn is for.
    pub kinds: Vec<TurnKind>,
    /// The session has cost more than this before the turn.
    pub cost_above_usd: Option<f64>,
}

/// One rule.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutingRule {
    /// Its name, or its number from 1 where it has none.
    pub name: String,
    /// When it holds.
    pub when: RoutingCondition,
    /// What is used then.
    pub choice: ModelChoice,
}

/// All rules.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutingPolicy {
    /// The version its author gave it, or a digest of the file.
    pub version: String,
    /// The first that holds counts.
    pub rules: Vec<RoutingRule>,
    /// What is used where none holds; without it the agent's own model.
    pub default: Option<ModelChoice>,
}

//! `routing.yaml` as it is written.

use serde::Deserialize;
#[cfg(feature = "schema")]
use turnwire_event::code::TurnKind;

use super::form::Many;
use crate::place::At;

/// Which model serves which turn.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct RoutingSource {
    /// The version of these rules, in quotes; a digest of the file where it is left out.
    pub(crate) version: Option<At<String>>,
    /// The rules: the first that holds counts. At most 200.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(max = 200)))]
    pub(crate) rules: Vec<At<RuleSource>>,
    /// What is used where no rule holds; the agent's own model where it is left out.
    pub(crate) default: Option<At<ChoiceSource>>,
}

/// One rule.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleSource {
    /// Its name: a to z, 0 to 9 and _, beginning with a letter, at most 48 characters; its number
    /// where it is left out.
    #[cfg_attr(
        feature = "schema",
        schemars(regex(pattern = "^[a-z][a-z0-9_]{0,47}$"))
    )]
    pub(crate) name: Option<At<String>>,
    /// When it holds; always where it is left out.
    pub(crate) when: Option<At<WhenSource>>,
    /// The model: `provider:model`, or a name of `models` in pack.yaml.
    #[serde(rename = "use")]
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) model: Option<At<String>>,
    /// Whom to ask where it fails, first to last.
    pub(crate) fallback: Option<At<Many>>,
}

/// What is used where no rule holds.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ChoiceSource {
    /// The model: `provider:model`, or a name of `models` in pack.yaml.
    #[serde(rename = "use")]
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) model: Option<At<String>>,
    /// Whom to ask where it fails, first to last.
    pub(crate) fallback: Option<At<Many>>,
}

/// When a rule holds: every condition that is written must, and of a list any.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct WhenSource {
    /// Whose turn it is: UUIDs.
    pub(crate) tenant: Option<At<Many>>,
    /// The agent that asks: ids; `orchestrator` is the one that speaks.
    pub(crate) agent: Option<At<Many>>,
    /// The language of the turn: tags; `de` holds for `de-AT` too.
    pub(crate) locale: Option<At<Many>>,
    /// What the turn is for.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Kinds>"))]
    pub(crate) kind: Option<At<Many>>,
    /// The session has cost more than this before the turn.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1_000_000)))]
    pub(crate) cost_above_usd: Option<At<f64>>,
}

/// What a turn is for: one, or any of a list.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum Kinds {
    One(TurnKind),
    Any(Vec<TurnKind>),
}

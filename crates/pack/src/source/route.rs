//! The shape of `routing.yaml`.

use serde::Deserialize;
#[cfg(feature = "schema")]
use turnwire_event::code::TurnKind;

#[cfg(feature = "schema")]
use super::form::ID_PATTERN;
use super::form::OneOrMany;
use crate::yaml::Located;

/// Which model serves which turn.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct RoutingSource {
    /// The version of these rules, in quotes: 1 to 64 characters without a space, such as
    /// `"2026-11-16T10:00:00Z"`. The default is a digest of the file.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = r"^\s*[!-~]{1,64}\s*$")))]
    pub(crate) version: Option<Located<String>>,
    /// The rules: the first that matches counts. At most 200.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(max = 200)))]
    pub(crate) rules: Vec<Located<RuleSource>>,
    /// The choice if no rule matches. The default is the agent's own model.
    pub(crate) default: Option<Located<ChoiceSource>>,
}

/// One rule of `routing.yaml`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleSource {
    /// The rule's name: a to z, 0 to 9 and _, beginning with a letter, at most 48 characters. The
    /// default is the rule's number.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = ID_PATTERN)))]
    pub(crate) name: Option<Located<String>>,
    /// When the rule matches. The default is always.
    pub(crate) when: Option<Located<WhenSource>>,
    /// The model: `provider:model`, or a name of `models` in pack.yaml.
    #[serde(rename = "use")]
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) model: Option<Located<String>>,
    /// Models to try if the model fails, first to last.
    pub(crate) fallback: Option<Located<OneOrMany>>,
}

/// The choice if no rule matches.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ChoiceSource {
    /// The model: `provider:model`, or a name of `models` in pack.yaml.
    #[serde(rename = "use")]
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) model: Option<Located<String>>,
    /// Models to try if the model fails, first to last.
    pub(crate) fallback: Option<Located<OneOrMany>>,
}

/// When a rule matches: all conditions must match, and of a list any entry.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct WhenSource {
    /// The tenant of the turn: UUIDs.
    pub(crate) tenant: Option<Located<OneOrMany>>,
    /// The agent that calls the model: ids, or `orchestrator`.
    pub(crate) agent: Option<Located<OneOrMany>>,
    /// The language of the turn: tags; `de` matches `de-AT` too.
    pub(crate) locale: Option<Located<OneOrMany>>,
    /// What the turn is for.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Kinds>"))]
    pub(crate) kind: Option<Located<OneOrMany>>,
    /// The session has cost more than this before the turn, in USD.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1_000_000)))]
    pub(crate) cost_above_usd: Option<Located<f64>>,
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

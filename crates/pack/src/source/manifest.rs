//! The shape of `pack.yaml`.

use serde::Deserialize;

#[cfg(feature = "schema")]
use super::form::{ID_PATTERN, NOT_BLANK, TAG_PATTERN, id_names, model};
use super::form::{Pairs, ShortOrLong};
use crate::yaml::Located;

/// The pack's name and version, its models, limits and flags.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ManifestSource {
    /// The pack's name: a to z, 0 to 9 and _, beginning with a letter, at most 48 characters.
    #[cfg_attr(feature = "schema", schemars(required, regex(pattern = ID_PATTERN)))]
    pub(crate) name: Option<Located<String>>,
    /// The pack's version, in quotes: `"1.0.0"`.
    #[cfg_attr(feature = "schema", schemars(required, regex(pattern = NOT_BLANK)))]
    pub(crate) version: Option<Located<String>>,
    /// The language that every text must exist in, such as `en` or `es-MX`. The default is `en`.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = TAG_PATTERN), length(max = 35), extend("title" = "language tag")))]
    pub(crate) default_locale: Option<Located<String>>,
    /// Names that agents use for models → `provider:model`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("propertyNames" = id_names(), "additionalProperties" = model())))]
    pub(crate) models: Pairs<Located<String>>,
    /// How many sub-agents run at once.
    pub(crate) fan_out: Option<FanOutSource>,
    /// Limits of a turn.
    pub(crate) limits: Option<LimitsSource>,
    /// Flags, each named `ai_assistant_…` → for whom it is on.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("propertyNames" = { "pattern": "^ai_assistant_[a-z0-9_]{1,35}$", "description": "`ai_assistant_`, then a to z, 0 to 9 and _, at most 48 characters in all." })))]
    pub(crate) flags: Pairs<Located<ShortOrLong<bool, RolloutSource>>>,
}

/// How many sub-agents run at once.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct FanOutSource {
    /// The maximum number of sub-agents that run at once. The default is 3.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 10)))]
    pub(crate) cap: Option<u32>,
}

/// Limits of a turn.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitsSource {
    /// The maximum time of a sub-agent without a `timeout_ms`, in milliseconds. The default is 20000.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600_000)))]
    pub(crate) sub_agent_timeout_ms: Option<u64>,
    /// The maximum number of model calls of one agent in one turn. The default is 8.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 100)))]
    pub(crate) calls_max: Option<u32>,
    /// The maximum number of tool calls in one message of a model. The default is 32.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1_000)))]
    pub(crate) tool_calls_max: Option<u32>,
    /// The maximum number of input and output tokens of one turn. The default is 1000000.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1_000_000_000)))]
    pub(crate) turn_tokens_max: Option<u64>,
    /// The maximum cost of one turn, in USD. There is no limit by default.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1_000_000)))]
    pub(crate) turn_cost_max_usd: Option<f64>,
    /// The maximum number of workers of one turn. The default is 8.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 64)))]
    pub(crate) workers_max: Option<u32>,
    /// How long statuses are collected before they are shown together, in milliseconds. The default
    /// is 150.
    #[cfg_attr(feature = "schema", schemars(range(max = 10_000)))]
    pub(crate) status_window_ms: Option<u64>,
    /// The silence after which a sub-agent's `default_status` is shown, in milliseconds. The default
    /// is 1500.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600_000)))]
    pub(crate) watchdog_ms: Option<u64>,
    /// The characters of the conversation that a sub-agent gets. The default is 2000.
    #[cfg_attr(feature = "schema", schemars(range(max = 100_000)))]
    pub(crate) prior_context_chars: Option<u32>,
    /// The bytes of shown ids and items that one sub-agent's result gives the orchestrator's model. The
    /// default is 16384.
    #[cfg_attr(feature = "schema", schemars(range(max = 1_000_000)))]
    pub(crate) component_bytes: Option<u32>,
}

/// For whom a flag is on: exactly one of the two.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct RolloutSource {
    /// A share of the principals, 0 to 1: 0.25 is a quarter.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub(crate) share: Option<Located<f64>>,
    pub(crate) principals: Option<Vec<String>>,
}

//! `pack.yaml` as it is written.

use serde::Deserialize;

use super::form::{Either, Pairs};
use crate::place::At;

/// What the pack is, which models it uses, and the numbers that bound it.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ManifestSource {
    /// The pack's name: a to z, 0 to 9 and _, beginning with a letter, at most 48 characters.
    #[cfg_attr(
        feature = "schema",
        schemars(required, regex(pattern = "^[a-z][a-z0-9_]{0,47}$"))
    )]
    pub(crate) name: Option<At<String>>,
    /// The pack's version, in quotes.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) version: Option<At<String>>,
    /// The language that every text must exist in; `en` where it is left out.
    pub(crate) default_locale: Option<At<String>>,
    /// Names that definitions use for models → `provider:model`.
    #[serde(default)]
    pub(crate) models: Pairs<At<String>>,
    /// How many sub-agents are asked at once.
    pub(crate) fan_out: Option<FanOutSource>,
    /// Numbers that bound a turn.
    pub(crate) limits: Option<LimitsSource>,
    /// Flags, each named `ai_assistant_…` → for whom it is active.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("propertyNames" = { "pattern": "^ai_assistant_[a-z0-9_]+$" })))]
    pub(crate) flags: Pairs<At<Either<bool, RolloutSource>>>,
}

/// How many sub-agents are asked at once.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct FanOutSource {
    /// Sub-agents asked at once at most; 3 where it is left out.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 10)))]
    pub(crate) cap: Option<At<u64>>,
}

/// Numbers that bound a turn.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitsSource {
    /// How long a sub-agent may take where its file does not say; 20000.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600_000)))]
    pub(crate) sub_agent_timeout_ms: Option<At<u64>>,
    /// Model calls of one agent in one turn; 8.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 100)))]
    pub(crate) calls_max: Option<At<u64>>,
    /// Tools that one message of a model may ask for; 32.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1_000)))]
    pub(crate) tool_calls_max: Option<At<u64>>,
    /// Tokens, read and written, of all model calls of one turn; 1000000.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1_000_000_000)))]
    pub(crate) turn_tokens_max: Option<At<u64>>,
    /// USD of all model calls of one turn; no bound where it is left out.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub(crate) turn_cost_max_usd: Option<At<f64>>,
    /// Workers that one turn may have, one after the other or at once; 8.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 64)))]
    pub(crate) workers_max: Option<At<u64>>,
    /// How long statuses are gathered before they are shown together; 150.
    #[cfg_attr(feature = "schema", schemars(range(max = 10_000)))]
    pub(crate) status_window_ms: Option<At<u64>>,
    /// Silence after which a sub-agent's `default_status` is shown; 1500.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600_000)))]
    pub(crate) watchdog_ms: Option<At<u64>>,
    /// Characters of the conversation that a sub-agent is given; 2000.
    #[cfg_attr(feature = "schema", schemars(range(max = 100_000)))]
    pub(crate) prior_context_chars: Option<At<u64>>,
}

/// For whom a flag is active: exactly one of the two.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct RolloutSource {
    /// A share of the principals, 0 to 1.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub(crate) share: Option<At<f64>>,
    /// These principals.
    pub(crate) principals: Option<Vec<String>>,
}

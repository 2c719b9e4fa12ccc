//! `providers.yaml` and `prices.yaml` as they are written.

use serde::Deserialize;
use serde_json::Value;

use super::form::Pairs;
use crate::place::At;
#[cfg(feature = "schema")]
use crate::provider::DialectName;

/// Who can be asked for words.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ProvidersSource {
    /// Providers by name: what stands before the `:` of a model.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("propertyNames" = { "pattern": "^[a-z][a-z0-9_]{0,47}$" })))]
    pub(crate) providers: Pairs<At<ProviderSource>>,
}

/// A provider.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ProviderSource {
    /// How it is spoken to.
    #[cfg_attr(feature = "schema", schemars(required, with = "Option<DialectName>"))]
    pub(crate) dialect: Option<At<String>>,
    /// Where it is, as the vendor's own client wants it; `${NAME}` and `${NAME:-default}` are
    /// filled in from the environment.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) base_url: Option<At<String>>,
    /// The variable that has its key: `${NAME}` and nothing else. Without `key` and `key_file` it
    /// is asked without one.
    pub(crate) key: Option<At<String>>,
    /// The file that has its key, from `/` on; variables are filled in.
    pub(crate) key_file: Option<At<String>>,
    /// Headers of every request besides those that are always sent; no secrets.
    #[serde(default)]
    pub(crate) headers: Pairs<At<String>>,
    /// What every model of it is asked to keep to.
    pub(crate) params: Option<At<ParamsSource>>,
    /// What single models are asked to keep to, over `params`: the vendor's name → params.
    #[serde(default)]
    pub(crate) models: Pairs<At<ParamsSource>>,
    /// How long it is waited for; the server's `model` settings where it is left out.
    pub(crate) timeouts: Option<TimeoutsSource>,
    /// How often it is asked again; the server's `model` settings where it is left out.
    pub(crate) retries: Option<RetriesSource>,
}

/// What a model is asked to keep to.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ParamsSource {
    /// Tokens of one answer, at most.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1_000_000)))]
    pub(crate) max_tokens: Option<At<u64>>,
    /// How freely it speaks, 0 to 2.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 2)))]
    pub(crate) temperature: Option<At<f64>>,
    /// Tokens it may think with.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1_000_000)))]
    pub(crate) thinking_tokens: Option<At<u64>>,
    /// How hard it thinks, in the vendor's word.
    #[cfg_attr(
        feature = "schema",
        schemars(regex(pattern = "^[a-z][a-z0-9_]{0,47}$"))
    )]
    pub(crate) effort: Option<At<String>>,
    /// Fields put into the request as they are, over those above.
    #[serde(default)]
    pub(crate) extra: Pairs<Value>,
}

/// How long a provider is waited for.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct TimeoutsSource {
    /// Until there is a connection.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600_000)))]
    pub(crate) connect_ms: Option<At<u64>>,
    /// Until the first byte of the answer.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600_000)))]
    pub(crate) first_byte_ms: Option<At<u64>>,
    /// Between two pieces of the answer.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600_000)))]
    pub(crate) idle_ms: Option<At<u64>>,
    /// For the whole answer.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600_000)))]
    pub(crate) total_ms: Option<At<u64>>,
}

/// How often a call is tried again that failed before it said anything.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct RetriesSource {
    /// Calls in all, the first among them.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 10)))]
    pub(crate) attempts: Option<At<u64>>,
    /// The pause before the second; it doubles.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 60_000)))]
    pub(crate) base_ms: Option<At<u64>>,
    /// The longest pause.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600_000)))]
    pub(crate) max_ms: Option<At<u64>>,
}

/// What models cost.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct PricesSource {
    /// `provider:model`, or the beginning of it with `*` behind → USD for a million tokens. The
    /// longest name that fits counts.
    #[serde(default)]
    pub(crate) prices: Pairs<At<PriceSource>>,
}

/// USD for a million tokens.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct PriceSource {
    /// Tokens that are read.
    #[cfg_attr(
        feature = "schema",
        schemars(required, range(min = 0, max = 1_000_000))
    )]
    pub(crate) input: Option<At<f64>>,
    /// Tokens that are written, reasoning among them.
    #[cfg_attr(
        feature = "schema",
        schemars(required, range(min = 0, max = 1_000_000))
    )]
    pub(crate) output: Option<At<f64>>,
    /// Tokens that are read from the vendor's cache; as `input` where it is left out.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1_000_000)))]
    pub(crate) cached_input: Option<At<f64>>,
    /// Tokens that are put into the vendor's cache; as `input` where it is left out.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1_000_000)))]
    pub(crate) cache_write: Option<At<f64>>,
}

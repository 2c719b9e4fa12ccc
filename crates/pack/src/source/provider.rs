//! The shapes of `providers.yaml` and `prices.yaml`: the structs that they are deserialized to.

use serde::Deserialize;
use serde_json::Value;

use super::form::Pairs;
#[cfg(feature = "schema")]
use super::form::{ID_PATTERN, header_names, id_names, price_names, vendor_model_names};
#[cfg(feature = "schema")]
use crate::pack::provider::DialectName;
use crate::yaml::Located;

/// The model providers of a pack.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ProvidersSource {
    /// Providers by name: the part of a model before the `:`, as in `provider:model`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("propertyNames" = id_names(), "maxProperties" = 50)))]
    pub(crate) providers: Pairs<Located<ProviderSource>>,
}

/// One model provider of a pack.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ProviderSource {
    /// The API format of the provider.
    #[cfg_attr(feature = "schema", schemars(required, with = "Option<DialectName>"))]
    pub(crate) dialect: Option<Located<String>>,
    /// The base URL, in the form that the vendor's own client expects; `${NAME}` and
    /// `${NAME:-default}` are filled in from the environment.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) base_url: Option<Located<String>>,
    /// The environment variable with the API key, as `${NAME}`; the key itself is not allowed here.
    /// Without `key` and `key_file` no key is sent.
    pub(crate) key: Option<Located<String>>,
    /// The absolute path of a file with the API key; variables are filled in as in `base_url`.
    pub(crate) key_file: Option<Located<String>>,
    /// Additional headers of every request; secrets are not allowed here.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("propertyNames" = header_names(), "maxProperties" = 32)))]
    pub(crate) headers: Pairs<Located<String>>,
    /// Parameters of all models of the provider.
    pub(crate) params: Option<Located<ParamsSource>>,
    /// Parameters of single models by the vendor's model name. They override `params`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("propertyNames" = vendor_model_names())))]
    pub(crate) models: Pairs<Located<ParamsSource>>,
    /// Timeouts of a call. The defaults are the server's `model` settings.
    pub(crate) timeouts: Option<TimeoutsSource>,
    /// Retries of a call. The defaults are the server's `model` settings.
    pub(crate) retries: Option<RetriesSource>,
}

/// Parameters of a model call.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ParamsSource {
    /// The maximum number of output tokens.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1_000_000)))]
    pub(crate) max_tokens: Option<Located<u64>>,
    /// The sampling temperature, 0 to 2.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 2)))]
    pub(crate) temperature: Option<Located<f64>>,
    /// The token budget for reasoning.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1_000_000)))]
    pub(crate) thinking_tokens: Option<Located<u64>>,
    /// The reasoning effort, as the vendor names it, for example `high`.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = ID_PATTERN)))]
    pub(crate) effort: Option<Located<String>>,
    /// Fields that are added to the request unchanged. They override the parameters above.
    #[serde(default)]
    pub(crate) extra: Pairs<Value>,
}

/// Timeouts of a model call, in milliseconds.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct TimeoutsSource {
    /// The maximum time until the connection is open.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600_000)))]
    pub(crate) connect_ms: Option<Located<u64>>,
    /// The maximum time until the first byte of the response.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600_000)))]
    pub(crate) first_byte_ms: Option<Located<u64>>,
    /// The maximum time between two chunks of the response.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600_000)))]
    pub(crate) idle_ms: Option<Located<u64>>,
    /// The maximum time for the whole response.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600_000)))]
    pub(crate) total_ms: Option<Located<u64>>,
}

/// Retries of a call that failed before its first output.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct RetriesSource {
    /// The maximum number of attempts, including the first.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 10)))]
    pub(crate) attempts: Option<Located<u64>>,
    /// The pause before the second attempt, in milliseconds. It doubles with each further attempt.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 60_000)))]
    pub(crate) base_ms: Option<Located<u64>>,
    /// The longest pause between two attempts, in milliseconds.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600_000)))]
    pub(crate) max_ms: Option<Located<u64>>,
}

/// The prices of a pack's models.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct PricesSource {
    /// Prices by model: `provider:model`, or a prefix that ends with `*`. An exact name takes
    /// precedence over prefixes, and a longer prefix over a shorter one.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("propertyNames" = price_names(), "maxProperties" = 1_000)))]
    pub(crate) prices: Pairs<Located<PriceSource>>,
}

/// The price of a model, in USD per million tokens.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct PriceSource {
    /// USD per million input tokens.
    #[cfg_attr(
        feature = "schema",
        schemars(required, range(min = 0, max = 1_000_000))
    )]
    pub(crate) input: Option<Located<f64>>,
    /// USD per million output tokens, including reasoning.
    #[cfg_attr(
        feature = "schema",
        schemars(required, range(min = 0, max = 1_000_000))
    )]
    pub(crate) output: Option<Located<f64>>,
    /// USD per million input tokens that are read from the vendor's cache. The default is `input`.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1_000_000)))]
    pub(crate) cached_input: Option<Located<f64>>,
    /// USD per million input tokens that are written to the vendor's cache. The default is `input`.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1_000_000)))]
    pub(crate) cache_write: Option<Located<f64>>,
}

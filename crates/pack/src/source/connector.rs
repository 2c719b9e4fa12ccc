//! `connectors.yaml` as it is written.

use serde::Deserialize;
use serde_json::Value;

use super::form::Pairs;
use crate::place::At;

/// Services, and what can be asked of them.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ConnectorsSource {
    /// Services by name.
    #[serde(default)]
    pub(crate) services: Pairs<At<ServiceSource>>,
    /// Enrichers: one for each pair of `enricher_id` and `domain_type`.
    #[serde(default)]
    pub(crate) enrichers: Vec<At<EnricherSource>>,
}

/// A service: it is asked with `POST {url}/v1/enrich`, or through a tool server.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ServiceSource {
    /// Where it is; `${NAME}` and `${NAME:-default}` are filled in from the environment.
    pub(crate) url: Option<At<String>>,
    /// The tool server that it is behind, a name of `mcp_servers` in tools.yaml; exactly one of
    /// `url` and `mcp`.
    pub(crate) mcp: Option<At<String>>,
    /// How long one request may take, at most ten seconds; 10000 where it is left out.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 10_000)))]
    pub(crate) timeout_ms: Option<At<u64>>,
    /// Bytes of an answer at most; 1048576 where it is left out.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1_048_576)))]
    pub(crate) max_bytes: Option<At<u64>>,
}

/// An enricher.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct EnricherSource {
    /// Its id.
    #[cfg_attr(
        feature = "schema",
        schemars(required, regex(pattern = "^[a-z][a-z0-9_]{0,47}$"))
    )]
    pub(crate) enricher_id: Option<At<String>>,
    /// The type of its data.
    #[cfg_attr(
        feature = "schema",
        schemars(required, regex(pattern = "^[a-z][a-z0-9_]{0,47}$"))
    )]
    pub(crate) domain_type: Option<At<String>>,
    /// A name of `services`.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) service: Option<At<String>>,
    /// The version that is asked for, in quotes: `"1.2.0"`.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) version: Option<At<String>>,
    /// The field of the payload that has the items; `items` where it is left out.
    pub(crate) items: Option<At<String>>,
    /// The field of an item that has its id; `id` where it is left out.
    pub(crate) item_id: Option<At<String>>,
    /// The JSON Schema of the payload: written here, or the path of a file of the pack.
    pub(crate) payload_schema: Option<At<Value>>,
}

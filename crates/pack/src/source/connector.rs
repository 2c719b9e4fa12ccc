//! The shape of `connectors.yaml`.

use serde::Deserialize;
use serde_json::Value;

use super::form::Pairs;
#[cfg(feature = "schema")]
use super::form::{ID_PATTERN, NOT_BLANK, header_names, id_names};
use crate::yaml::Located;

/// Data services and their enrichers.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ConnectorsSource {
    /// The data services, by name.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("propertyNames" = id_names())))]
    pub(crate) services: Pairs<Located<ServiceSource>>,
    /// Enrichers: one for each pair of `enricher_id` and `domain_type`.
    #[serde(default)]
    pub(crate) enrichers: Vec<Located<EnricherSource>>,
}

/// A data service: called with `POST {url}/v1/enrich`, or through a tool server.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ServiceSource {
    /// The service's address; `${NAME}` and `${NAME:-default}` are filled in from the environment.
    pub(crate) url: Option<Located<String>>,
    /// The tool server that the service is behind, a name of `mcp_servers` in tools.yaml; exactly
    /// one of `url` and `mcp`.
    pub(crate) mcp: Option<Located<String>>,
    /// The maximum time for one request, in milliseconds. The default is 10000.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 10_000)))]
    pub(crate) timeout_ms: Option<Located<u64>>,
    /// The maximum size of a response, in bytes. The default is 1048576.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1_048_576)))]
    pub(crate) max_bytes: Option<Located<u64>>,
    /// Additional headers of every request; secrets are not allowed here.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("propertyNames" = header_names(), "maxProperties" = 16)))]
    pub(crate) headers: Pairs<Located<String>>,
    /// Headers with a key, by name: each says where the server finds the key, for example
    /// `authorization: {key: "${NAME}", prefix: "Bearer "}`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("propertyNames" = header_names(), "maxProperties" = 8)))]
    pub(crate) key_headers: Pairs<Located<KeyHeaderSource>>,
    /// The certificate with which the server identifies itself to a service over https.
    pub(crate) client_certificate: Option<Located<ClientCertificateSource>>,
}

/// A header with a key; exactly one of `key` and `key_file`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyHeaderSource {
    /// The environment variable with the key, as `${NAME}`; the key itself is not allowed here.
    pub(crate) key: Option<Located<String>>,
    /// The absolute path of a file with the key; variables are filled in as in `url`.
    pub(crate) key_file: Option<Located<String>>,
    /// What stands before the key, for example `"Bearer "`. The default is nothing.
    #[cfg_attr(feature = "schema", schemars(length(max = 32)))]
    pub(crate) prefix: Option<Located<String>>,
}

/// A client certificate, in files of the PEM format.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientCertificateSource {
    /// The absolute path of the certificate and the intermediate ones after it; variables are filled
    /// in as in `url`.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) cert_file: Option<Located<String>>,
    /// The absolute path of its private key; variables are filled in as in `url`.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) key_file: Option<Located<String>>,
}

/// A kind of data that a service returns.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct EnricherSource {
    #[cfg_attr(feature = "schema", schemars(required, regex(pattern = ID_PATTERN)))]
    pub(crate) enricher_id: Option<Located<String>>,
    /// The type of the enricher's data.
    #[cfg_attr(feature = "schema", schemars(required, regex(pattern = ID_PATTERN)))]
    pub(crate) domain_type: Option<Located<String>>,
    /// A name of `services`.
    #[cfg_attr(feature = "schema", schemars(required, regex(pattern = NOT_BLANK)))]
    pub(crate) service: Option<Located<String>>,
    /// The requested version: numbers with points between them, in quotes: `"1.2.0"`.
    #[cfg_attr(
        feature = "schema",
        schemars(required, regex(pattern = "^[0-9]{1,9}([.][0-9]{1,9}){0,2}$"))
    )]
    pub(crate) version: Option<Located<String>>,
    /// The field of the payload that has the items. The default is `items`.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = NOT_BLANK)))]
    pub(crate) items: Option<Located<String>>,
    /// The field of an item that has its id. The default is `id`.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = NOT_BLANK)))]
    pub(crate) item_id: Option<Located<String>>,
    /// The JSON Schema of the payload: inline, or the path of a file of the pack.
    pub(crate) payload_schema: Option<Located<Value>>,
}

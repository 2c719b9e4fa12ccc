//! The shape of the `relay` block of an agent's file.

#[cfg(feature = "schema")]
use std::collections::BTreeMap;

use serde::Deserialize;
#[cfg(feature = "schema")]
use turnwire_event::code::InnerType;

#[cfg(feature = "schema")]
use super::form::header_names;
use super::form::{Pairs, ShortOrLong};
#[cfg(feature = "schema")]
use crate::pack::relay::RelayDialect;
use crate::yaml::Located;

/// Where an agent runs that is not in the server's process.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct RelaySource {
    /// Where turns are posted to; `${NAME}` and `${NAME:-default}` are filled in from the environment.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) url: Option<Located<String>>,
    /// What the upstream speaks. The default is `turnwire`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<RelayDialect>"))]
    pub(crate) dialect: Option<Located<String>>,
    /// The model or agent to ask for: required for `openai_chat`, and for nothing else.
    pub(crate) model: Option<Located<String>>,
    /// What the upstream's own types of events are here, as `token: text`: for an agent whose `type` has
    /// other names. For `turnwire` only.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, InnerType>", extend("maxProperties" = 64)))]
    pub(crate) map: Pairs<Located<String>>,
    /// Where the stop of a turn is posted to. Without it a stop closes the connection alone.
    pub(crate) cancel_url: Option<Located<String>>,
    /// The environment variable with the key of the upstream, as `${NAME}`; the key itself is not
    /// allowed here. It is sent as a bearer token.
    pub(crate) key: Option<Located<String>>,
    /// The absolute path of a file with the key; variables are filled in as in `url`.
    pub(crate) key_file: Option<Located<String>>,
    /// Additional headers of every request; secrets are not allowed here.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("propertyNames" = header_names(), "maxProperties" = 32)))]
    pub(crate) headers: Pairs<Located<String>>,
    /// The longest time without an event, in milliseconds. The default is the server's
    /// `relay.idle_ms`.
    #[cfg_attr(feature = "schema", schemars(range(min = 10, max = 86_400_000)))]
    pub(crate) idle_ms: Option<Located<u64>>,
    /// The longest time until the connection is open, in milliseconds. The default is the server's
    /// `relay.connect_ms`.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600_000)))]
    pub(crate) connect_ms: Option<Located<u64>>,
    /// The messages of earlier turns that a request has: `none`, which is the default, or
    /// `{last: 20}`.
    pub(crate) history: Option<Located<ShortOrLong<String, RelayHistorySource>>>,
}

/// The newest messages of earlier turns.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct RelayHistorySource {
    /// The number of messages.
    #[cfg_attr(feature = "schema", schemars(required, range(min = 1, max = 1_000)))]
    pub(crate) last: Option<Located<u64>>,
}

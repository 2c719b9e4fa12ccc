//! Agents that run elsewhere: where an upstream is, and the bounds of a call.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use turnwire_event::code::InnerType;

use super::provider::ApiKeySource;

/// What an upstream speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RelayDialect {
    /// The request of `schema/relay/request.json`, answered by events of the inner vocabulary.
    #[default]
    Turnwire,
    /// The Chat Completions API of OpenAI, which most agents can serve.
    OpenaiChat,
}

/// The `relay` block of an agent: the agent runs elsewhere.
#[derive(Clone, PartialEq, Eq)]
pub struct RelayDef {
    pub dialect: RelayDialect,
    /// The model or agent to ask for, in a dialect that names one.
    pub model: Option<String>,
    /// The types of events that the upstream has names of its own for.
    pub types: BTreeMap<String, InnerType>,
    /// Where turns are posted to, with variables filled in.
    pub url: String,
    /// Where stops are posted to.
    pub cancel_url: Option<String>,
    /// The [`ApiKeySource`]: where the server finds the key, which is sent as a bearer token.
    pub key: ApiKeySource,
    /// Additional headers of every request; names in lower case.
    pub headers: Vec<(String, String)>,
    /// The longest time without an event; `None` for the server's setting.
    pub idle_ms: Option<u64>,
    /// The longest time until the connection is open; `None` for the server's setting.
    pub connect_ms: Option<u64>,
    /// The messages of earlier turns that a request has; 0 for none.
    pub history: u32,
    /// The position of the block in its file, for mistakes that only the server finds.
    pub position: (u64, u64),
}

impl fmt::Debug for RelayDef {
    /// Without addresses, which differ between environments: a definition has the same digest in all of
    /// them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelayDef")
            .field("dialect", &self.dialect)
            .field("model", &self.model)
            .field("types", &self.types)
            .field("cancels", &self.cancel_url.is_some())
            .field("history", &self.history)
            .finish_non_exhaustive()
    }
}

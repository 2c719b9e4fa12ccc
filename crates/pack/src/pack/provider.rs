//! Model providers: address, key, parameters, timeouts and retries.
//!
//! A key is never part of a pack, only the place where the server finds it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

/// The API of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DialectName {
    /// The Messages API of Anthropic.
    Anthropic,
    /// The Chat Completions API of OpenAI, which most compatible servers have.
    OpenaiChat,
    /// The Responses API of OpenAI.
    OpenaiResponses,
    /// The Gemini API of Google.
    Gemini,
}

impl DialectName {
    /// All dialects that providers can have.
    pub const ALL: [Self; 4] = [
        Self::Anthropic,
        Self::OpenaiChat,
        Self::OpenaiResponses,
        Self::Gemini,
    ];

    /// The name in `providers.yaml`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenaiChat => "openai_chat",
            Self::OpenaiResponses => "openai_responses",
            Self::Gemini => "gemini",
        }
    }
}

/// Where the server finds a provider's API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiKeySource {
    /// No key is sent.
    None,
    /// In the first of these environment variables that is set.
    Variables(Vec<String>),
    /// In the file at this absolute path.
    File(String),
}

/// Parameters of a model call; `None` where the pack sets none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParamsDef {
    /// The maximum number of output tokens.
    pub max_tokens: Option<u32>,
    pub temperature: Option<f64>,
    /// The token budget for reasoning.
    pub thinking_tokens: Option<u32>,
    /// The reasoning effort, as the vendor names it.
    pub effort: Option<String>,
    /// Fields that are added to the request unchanged. They override the parameters above.
    pub extra: Map<String, Value>,
}

/// Timeouts of a model call; `None` for the server's setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeoutsDef {
    /// The maximum time until the connection is open.
    pub connect_ms: Option<u64>,
    /// The maximum time until the first byte of the response.
    pub first_byte_ms: Option<u64>,
    /// The maximum time between two chunks of the response.
    pub idle_ms: Option<u64>,
    /// The maximum time for the whole response.
    pub total_ms: Option<u64>,
}

/// Retries of a call that failed before its first output; `None` for the server's setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetriesDef {
    /// The maximum number of attempts, including the first.
    pub attempts: Option<u32>,
    /// The pause before the second attempt. It doubles with each further attempt.
    pub base_ms: Option<u64>,
    /// The longest pause between attempts.
    pub max_ms: Option<u64>,
}

/// A model provider of `providers.yaml`.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderDef {
    pub dialect: DialectName,
    /// The base URL with variables filled in, without a slash at the end.
    pub base_url: String,
    /// The [`ApiKeySource`]: where the server finds the API key.
    pub key: ApiKeySource,
    /// Additional headers of every request; names in lower case.
    pub headers: Vec<(String, String)>,
    /// Parameters of all models of the provider.
    pub params: ParamsDef,
    /// Parameters of single models by the vendor's model name. They override [`Self::params`].
    pub models: BTreeMap<String, ParamsDef>,
    /// Timeouts of a call to the provider.
    pub timeouts: TimeoutsDef,
    /// Retries of a call to the provider.
    pub retries: RetriesDef,
}

impl ProviderDef {
    /// A provider without headers, parameters, timeouts or retries of its own.
    pub fn new(dialect: DialectName, base_url: impl Into<String>, key: ApiKeySource) -> Self {
        Self {
            dialect,
            base_url: base_url.into(),
            key,
            headers: Vec::new(),
            params: ParamsDef::default(),
            models: BTreeMap::new(),
            timeouts: TimeoutsDef::default(),
            retries: RetriesDef::default(),
        }
    }
}

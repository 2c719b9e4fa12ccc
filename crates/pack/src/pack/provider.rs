//! Who is asked for words: providers with their address, key, parameters and patience.
//!
//! A key is never part of a pack: only where it can be found is.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

/// How a provider is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DialectName {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions, which most compatible servers speak.
    OpenaiChat,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Google Gemini.
    Gemini,
}

impl DialectName {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Anthropic,
        Self::OpenaiChat,
        Self::OpenaiResponses,
        Self::Gemini,
    ];

    /// What files call it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenaiChat => "openai_chat",
            Self::OpenaiResponses => "openai_responses",
            Self::Gemini => "gemini",
        }
    }
}

/// Where a provider's key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiKeySource {
    /// Nowhere: the provider is asked without one.
    None,
    /// In the first of these environment variables that is set.
    Variables(Vec<String>),
    /// In this file.
    File(String),
}

/// What a model is asked to keep to, where the pack says so.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParamsDef {
    /// Tokens of one answer, at most.
    pub max_tokens: Option<u32>,
    /// How freely it speaks.
    pub temperature: Option<f64>,
    /// Tokens it may think with.
    pub thinking_tokens: Option<u32>,
    /// How hard it thinks, in the vendor's word.
    pub effort: Option<String>,
    /// Fields put into the request as they are, over those above.
    pub extra: Map<String, Value>,
}

/// How long a provider is waited for; what is none is the server's to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeoutsDef {
    /// Until there is a connection.
    pub connect_ms: Option<u64>,
    /// Until the first byte of the answer.
    pub first_byte_ms: Option<u64>,
    /// Between two pieces of the answer.
    pub idle_ms: Option<u64>,
    /// For the whole answer.
    pub total_ms: Option<u64>,
}

/// How often a call is tried again that failed before it said anything; what is none is the
/// server's to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetriesDef {
    /// Calls in all, the first among them.
    pub attempts: Option<u32>,
    /// The pause before the second; it doubles.
    pub base_ms: Option<u64>,
    /// The longest pause.
    pub max_ms: Option<u64>,
}

/// A provider.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderDef {
    /// How it is spoken to.
    pub dialect: DialectName,
    /// Where it is, variables filled in, without a slash at the end.
    pub base_url: String,
    /// Where its key is.
    pub key: ApiKeySource,
    /// Headers of every request besides the dialect's own; names in lower case.
    pub headers: Vec<(String, String)>,
    /// What every model of it is asked to keep to.
    pub params: ParamsDef,
    /// What single models are asked to keep to, over that.
    pub models: BTreeMap<String, ParamsDef>,
    /// How long it is waited for.
    pub timeouts: TimeoutsDef,
    /// How often it is asked again.
    pub retries: RetriesDef,
}

impl ProviderDef {
    /// One with nothing said about it but what it is.
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

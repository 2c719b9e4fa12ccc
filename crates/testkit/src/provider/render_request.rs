//! What of a request changes the form of its answer.

use serde_json::Value;

use super::dialect::{Dialect, gemini_model};

/// A request, as far as the renderers look at it.
#[derive(Clone, Debug)]
pub(crate) struct RenderRequest {
    /// The model it asks for.
    pub(crate) model: String,
    pub(crate) body: Value,
    /// How many calls came before it: makes ids differ.
    pub(crate) nth: usize,
}

impl RenderRequest {
    pub(crate) fn new(dialect: Dialect, path: &str, body: Value, nth: usize) -> Self {
        let model = match dialect {
            Dialect::Gemini => gemini_model(path),
            Dialect::Anthropic | Dialect::Chat | Dialect::Responses => body["model"].as_str(),
        };
        Self {
            model: model.unwrap_or_default().to_owned(),
            body,
            nth,
        }
    }

    /// Whether Chat Completions was asked for a chunk with the usage.
    pub(crate) fn wants_usage(&self) -> bool {
        self.body["stream_options"]["include_usage"] == true
    }

    /// Whether OpenAI was told to leave its filler out.
    pub(crate) fn wants_obfuscation(&self) -> bool {
        self.body["stream_options"]["include_obfuscation"] != false
    }

    /// Whether Responses was asked for the sealed reasoning.
    pub(crate) fn wants_encrypted(&self) -> bool {
        let include = self.body["include"].as_array();
        include.is_some_and(|list| {
            list.iter()
                .any(|word| word == "reasoning.encrypted_content")
        })
    }

    /// A made-up id in a provider's form.
    pub(crate) fn id(&self, prefix: &str, salt: usize) -> String {
        format!("{prefix}{:04}f4ke{:04}", self.nth, salt)
    }
}

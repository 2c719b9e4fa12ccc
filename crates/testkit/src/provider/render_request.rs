//! The parts of a request that change how its answer is rendered.

use serde_json::Value;

use super::dialect::{Dialect, gemini_model};

/// A request as the renderers of the four formats see it.
#[derive(Clone, Debug)]
pub(crate) struct RenderRequest {
    /// The requested model, from the body or the path.
    pub(crate) model: String,
    pub(crate) body: Value,
    /// The number of earlier calls; makes generated ids unique.
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

    /// True if a Chat Completions request asks for a usage chunk.
    pub(crate) fn wants_usage(&self) -> bool {
        self.body["stream_options"]["include_usage"] == true
    }

    /// True unless an OpenAI request turns obfuscation off.
    pub(crate) fn wants_obfuscation(&self) -> bool {
        self.body["stream_options"]["include_obfuscation"] != false
    }

    /// True if a Responses request asks for encrypted reasoning.
    pub(crate) fn wants_encrypted(&self) -> bool {
        let include = self.body["include"].as_array();
        include.is_some_and(|list| {
            list.iter()
                .any(|word| word == "reasoning.encrypted_content")
        })
    }

    /// A generated id in a provider's form.
    pub(crate) fn id(&self, prefix: &str, salt: usize) -> String {
        format!("{prefix}{:04}f4ke{:04}", self.nth, salt)
    }
}

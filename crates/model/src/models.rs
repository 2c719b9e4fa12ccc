//! The providers of a running server by name: `scripted:…` plays a script; every other provider is
//! in a table, whether it calls a vendor over the network or plays a cassette.

use std::collections::BTreeMap;
use std::sync::Arc;

use turnwire_pack::DialectName;

use crate::dialect::VendorDialect;
use crate::dialect::anthropic::AnthropicDialect;
use crate::dialect::gemini::GeminiDialect;
use crate::dialect::openai_chat::OpenAiChatDialect;
use crate::dialect::openai_responses::OpenAiResponsesDialect;
use crate::provider::{ModelProvider, ProviderLookup};
use crate::scripted::ScriptedProvider;

/// Name of the provider that plays a script.
const SCRIPTED: &str = "scripted";

/// The [`VendorDialect`] that a pack file selects by `name`.
pub fn dialect_for(name: DialectName) -> Arc<dyn VendorDialect> {
    match name {
        DialectName::Anthropic => Arc::new(AnthropicDialect),
        DialectName::OpenaiChat => Arc::new(OpenAiChatDialect),
        DialectName::OpenaiResponses => Arc::new(OpenAiResponsesDialect),
        DialectName::Gemini => Arc::new(GeminiDialect),
    }
}

/// The [`VendorDialect`] called `name`, as cassettes store it; `None` for an unknown name.
pub fn dialect_by_name(name: &str) -> Option<Arc<dyn VendorDialect>> {
    let mut names = DialectName::ALL.into_iter();
    let name = names.find(|listed| listed.as_str() == name)?;
    Some(dialect_for(name))
}

/// A table of [`ModelProvider`]s by name.
#[derive(Clone, Default)]
pub struct ProviderTable {
    providers: BTreeMap<String, Arc<dyn ModelProvider>>,
}

impl ProviderTable {
    /// A table with no provider but, if a script is given, `scripted`.
    pub fn new(scripted: Option<ScriptedProvider>) -> Self {
        let scripted = scripted.map(|scripted| (SCRIPTED.to_owned(), Arc::new(scripted) as _));
        Self {
            providers: scripted.into_iter().collect(),
        }
    }

    /// Adds `provider` for every model `name:…`, replacing an earlier one of that name.
    #[must_use]
    pub fn with(mut self, name: &str, provider: Arc<dyn ModelProvider>) -> Self {
        self.providers.insert(name.to_owned(), provider);
        self
    }

    /// Names of all providers, in ascending order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.providers.keys().map(String::as_str)
    }
}

impl ProviderLookup for ProviderTable {
    fn provider(&self, model: &str) -> Option<Arc<dyn ModelProvider>> {
        let (provider, name) = model.split_once(':')?;
        let provider = self.providers.get(provider)?;
        (!name.is_empty()).then(|| Arc::clone(provider))
    }
}

#[cfg(test)]
mod tests;

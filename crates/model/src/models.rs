//! The models of a running server, found by name: `scripted:…` plays a script, and every other
//! provider is in a table, whether it asks over the network or plays a cassette.

use std::collections::BTreeMap;
use std::sync::Arc;

use turnwire_pack::DialectName;

use crate::dialect::Dialect;
use crate::dialect::anthropic::Anthropic;
use crate::dialect::gemini::Gemini;
use crate::dialect::openai_chat::OpenAiChat;
use crate::dialect::openai_responses::OpenAiResponses;
use crate::provider::{Models, Provider};
use crate::scripted::Scripted;

/// The provider that plays a script.
const SCRIPTED: &str = "scripted";

/// The dialect that pack files name.
pub fn dialect(name: DialectName) -> Arc<dyn Dialect> {
    match name {
        DialectName::Anthropic => Arc::new(Anthropic),
        DialectName::OpenaiChat => Arc::new(OpenAiChat),
        DialectName::OpenaiResponses => Arc::new(OpenAiResponses),
        DialectName::Gemini => Arc::new(Gemini),
    }
}

/// The same by its name, as cassettes have it; none if nobody speaks it.
pub fn dialect_of(name: &str) -> Option<Arc<dyn Dialect>> {
    let mut all = DialectName::ALL.into_iter();
    all.find(|known| known.as_str() == name).map(dialect)
}

/// Providers by name.
#[derive(Clone, Default)]
pub struct ModelSet {
    providers: BTreeMap<String, Arc<dyn Provider>>,
}

impl ModelSet {
    /// Nobody is served but, with a script, `scripted:…`.
    pub fn new(scripted: Option<Scripted>) -> Self {
        let set = Self::default();
        match scripted {
            Some(scripted) => set.with(SCRIPTED, Arc::new(scripted)),
            None => set,
        }
    }

    /// With `provider` behind every `name:…`, in place of whoever stood there.
    #[must_use]
    pub fn with(mut self, name: &str, provider: Arc<dyn Provider>) -> Self {
        self.providers.insert(name.to_owned(), provider);
        self
    }

    /// The names of the providers, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.providers.keys().map(String::as_str)
    }
}

impl Models for ModelSet {
    fn provider(&self, model: &str) -> Option<Arc<dyn Provider>> {
        let (provider, name) = model.split_once(':')?;
        let provider = self.providers.get(provider)?;
        (!name.is_empty()).then(|| Arc::clone(provider))
    }
}

#[cfg(test)]
mod tests;

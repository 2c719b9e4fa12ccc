//! The models of a running server, found by name: `scripted:…` plays a script, and every other
//! provider is in a table, whether it asks over the network or plays a cassette.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::provider::{Models, Provider};
use crate::scripted::Scripted;

/// The provider that plays a script.
const SCRIPTED: &str = "scripted";

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

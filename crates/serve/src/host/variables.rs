//! What a pack may name by `${NAME}`: the environment of the server, and the demo data service.

use std::collections::BTreeMap;

/// Names and what they stand for.
#[derive(Clone, Debug, Default)]
pub struct Variables(BTreeMap<String, String>);

impl Variables {
    /// The environment of this process.
    pub fn from_env() -> Self {
        let text = |s: std::ffi::OsString| s.to_string_lossy().into_owned();
        let all = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
        Self(all.filter(|(_, value)| !value.is_empty()).collect())
    }

    /// With `name` standing for `value`, unless it stands for something already.
    #[must_use]
    pub fn or(mut self, name: &str, value: impl Into<String>) -> Self {
        self.0
            .entry(name.to_owned())
            .or_insert_with(|| value.into());
        self
    }

    /// What `name` stands for.
    pub fn get(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }
}

//! Which models a pack uses, with the position where each is written.

/// A model that an agent or a rule uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelUse {
    /// The model, as `provider:model`.
    pub model: String,
    /// The file that names it.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
}

impl ModelUse {
    /// What stands before the `:`.
    pub fn provider(&self) -> &str {
        let split = self.model.split_once(':');
        split.map_or(&self.model, |(provider, _)| provider)
    }
}

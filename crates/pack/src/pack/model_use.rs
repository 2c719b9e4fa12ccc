//! Uses of models in a pack, with the position of each.

use crate::yaml::TextPosition;

/// One use of a model by an agent or a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelUse {
    /// The model, as `provider:model`.
    pub model: String,
    /// The file that names the model.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
}

impl ModelUse {
    pub(crate) fn position(&self) -> TextPosition {
        TextPosition {
            line: self.line,
            column: self.column,
        }
    }

    /// The part before the `:`.
    pub fn provider(&self) -> &str {
        let split = self.model.split_once(':');
        split.map_or(&self.model, |(provider, _)| provider)
    }
}

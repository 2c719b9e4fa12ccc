//! Why a script cannot be used: the file, the place in it, and what is wrong there.

use turnwire_pack::yaml::{TextPosition, YamlError};

/// A script that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("{file}: cannot be read: {cause}")]
    Unreadable {
        /// Which file.
        file: String,
        /// What the system said.
        cause: std::io::Error,
    },
    /// Something in it is wrong.
    #[error("{file}:{line}:{column}: {what}{}", cure(.instead.as_deref()))]
    Wrong {
        /// Which file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The column, from 1.
        column: u64,
        /// What is wrong.
        what: String,
        /// What to write instead, where `what` does not say it.
        instead: Option<String>,
    },
}

fn cure(instead: Option<&str>) -> String {
    instead.map_or_else(String::new, |instead| format!("; write: {instead}"))
}

/// What is wrong, and where, before the file's name is put to it.
#[derive(Debug)]
pub(crate) struct Wrong {
    at: Option<TextPosition>,
    what: String,
    instead: Option<String>,
}

impl Wrong {
    pub(crate) fn new(at: TextPosition, what: impl Into<String>) -> Self {
        Self {
            at: Some(at),
            what: what.into(),
            instead: None,
        }
    }

    /// The line it is on, if that is known.
    pub(crate) fn line(&self) -> Option<u64> {
        self.at.map(|at| at.line)
    }

    pub(crate) fn of(self, file: &str) -> ScriptError {
        let TextPosition { line, column } = self.at.unwrap_or_default();
        ScriptError::Wrong {
            file: file.to_owned(),
            line,
            column,
            what: self.what,
            instead: self.instead,
        }
    }
}

impl From<YamlError> for Wrong {
    fn from(error: YamlError) -> Self {
        Self {
            at: error.position,
            what: error.message,
            instead: error.instead,
        }
    }
}

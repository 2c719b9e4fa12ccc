//! Errors of scripts: the file, the location and the mistake. [`ScriptMistake`] is raised while a
//! file is checked; [`ScriptError`] is what callers see.

use turnwire_pack::yaml::{TextPosition, YamlError};

/// A script is invalid or cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// Reading the file failed.
    #[error("{file}: cannot be read: {cause}")]
    Unreadable {
        /// Name of the file.
        file: String,
        /// Error of the operating system.
        cause: std::io::Error,
    },
    /// The script has a mistake.
    #[error("{file}:{line}:{column}: {message}{}", write_instead(.suggestion.as_deref()))]
    Invalid {
        /// Name of the file.
        file: String,
        /// Number of the line, from 1.
        line: u64,
        /// Number of the column, from 1.
        column: u64,
        /// Description of the mistake.
        message: String,
        /// What to write instead, unless `message` says it.
        suggestion: Option<String>,
    },
}

fn write_instead(instead: Option<&str>) -> String {
    instead.map_or_else(String::new, |instead| format!("; write: {instead}"))
}

/// The result of a check.
pub(crate) type Checked<T> = Result<T, ScriptMistake>;

/// A mistake and its location; [`ScriptMistake::in_file`] adds the file name.
#[derive(Debug)]
pub(crate) struct ScriptMistake {
    location: Option<TextPosition>,
    message: String,
    suggestion: Option<String>,
}

impl ScriptMistake {
    pub(crate) fn new(location: TextPosition, message: impl Into<String>) -> Self {
        Self {
            location: Some(location),
            message: message.into(),
            suggestion: None,
        }
    }

    /// Line of the mistake, if known.
    pub(crate) fn line(&self) -> Option<u64> {
        self.location.map(|location| location.line)
    }

    pub(crate) fn in_file(self, file: &str) -> ScriptError {
        let TextPosition { line, column } = self.location.unwrap_or_default();
        ScriptError::Invalid {
            file: file.to_owned(),
            line,
            column,
            message: self.message,
            suggestion: self.suggestion,
        }
    }
}

impl From<YamlError> for ScriptMistake {
    fn from(error: YamlError) -> Self {
        Self {
            location: error.position,
            message: error.message,
            suggestion: error.instead,
        }
    }
}

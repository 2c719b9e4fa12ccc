//! Why a script cannot be used: the file, the place in it, and what is wrong there.

use serde_saphyr::{Location, MessageFormatter as _};

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
    #[error("{file}:{line}:{column}: {what}")]
    Wrong {
        /// Which file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The column, from 1.
        column: u64,
        /// What is wrong, and what to write instead.
        what: String,
    },
}

/// What is wrong, and where, before the file's name is put to it.
#[derive(Debug)]
pub(crate) struct Wrong {
    at: Option<Location>,
    what: String,
}

impl Wrong {
    pub(crate) fn new(at: Location, what: impl Into<String>) -> Self {
        Self {
            at: Some(at),
            what: what.into(),
        }
    }

    pub(crate) fn of(self, file: &str) -> ScriptError {
        let (line, column) = self.at.map_or((1, 1), |at| (at.line(), at.column()));
        ScriptError::Wrong {
            file: file.to_owned(),
            line: line.max(1),
            column: column.max(1),
            what: self.what,
        }
    }
}

impl From<serde_saphyr::Error> for Wrong {
    fn from(error: serde_saphyr::Error) -> Self {
        let error = error.without_snippet();
        let message = serde_saphyr::UserMessageFormatter.format_message(error);
        Self {
            at: error.location(),
            what: plain(&message),
        }
    }
}

/// The parser's words for a person who writes YAML, not Rust.
fn plain(message: &str) -> String {
    match message {
        "expected sequence start" => "a list is expected here".to_owned(),
        "expected mapping start" => "`key: value` is expected here".to_owned(),
        "expected string scalar" => "text is expected here".to_owned(),
        _ if message.starts_with("invalid u") || message.starts_with("invalid i") => {
            "a whole number is expected here".to_owned()
        }
        _ => match message.rsplit_once(", expected ") {
            Some((found, wanted)) if found.starts_with("invalid type: ") => {
                format!("{} is expected here", wanted.escape_debug())
            }
            Some(_) | None => message.escape_debug().to_string(),
        },
    }
}

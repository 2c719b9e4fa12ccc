//! A finding of a check: a place and a message.

use std::fmt;

/// A place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, from the root of the repository; a package's name for findings about packages.
    pub place: String,
    /// The line, from 1; 0 for findings about a whole file or package.
    pub line: usize,
    /// What is wrong, and what to do.
    pub message: String,
}

impl Finding {
    /// A finding about a line of a file.
    pub fn at(place: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            place: place.to_owned(),
            line,
            message: message.into(),
        }
    }

    /// A finding about a whole file or package.
    pub fn about(place: &str, message: impl Into<String>) -> Self {
        Self::at(place, 0, message)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.place, self.message),
            line => write!(f, "{}:{line}: {}", self.place, self.message),
        }
    }
}

//! A mistake in a pack: the position, what is wrong there, and what to write instead.

use std::fmt;

use crate::wording::{closest_name, one_line, quoted_list};
use crate::yaml::{Located, TextPosition};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The pack cannot be used.
    Error,
    /// The pack works; somebody should look.
    Warning,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// One thing that `check` has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// The file, relative to the pack's folder.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
    /// What is wrong.
    pub what: String,
    /// What to write instead.
    pub instead: Option<String>,
    /// Whether it is about a status id that an agent may not emit: not registered, not active, or
    /// without the agent among its emitters (S1-068, S1-070).
    pub unregistered: bool,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}:{}: {}: {}",
            self.file, self.line, self.column, self.level, self.what
        )?;
        match &self.instead {
            Some(instead) => write!(f, "; write: {instead}"),
            None => Ok(()),
        }
    }
}

impl Finding {
    /// An error.
    pub fn error(file: impl Into<String>, line: u64, column: u64, what: impl Into<String>) -> Self {
        Self::new(
            Level::Error,
            file.into(),
            TextPosition { line, column },
            what,
        )
    }

    /// A warning.
    pub fn warning(
        file: impl Into<String>,
        line: u64,
        column: u64,
        what: impl Into<String>,
    ) -> Self {
        Self::new(
            Level::Warning,
            file.into(),
            TextPosition { line, column },
            what,
        )
    }

    fn new(level: Level, file: String, position: TextPosition, what: impl Into<String>) -> Self {
        Self {
            level,
            file,
            line: position.line,
            column: position.column,
            what: what.into(),
            instead: None,
            unregistered: false,
        }
    }

    /// Says that it is about a status id that an agent may not emit.
    pub(crate) fn emitted(&mut self) -> &mut Self {
        self.unregistered = true;
        self
    }

    /// Adds what to write instead.
    pub(crate) fn write(&mut self, instead: impl Into<String>) {
        self.instead = Some(instead.into());
    }
}

/// Names that may be pointed at. Where a file that gives some of them is broken nobody can say
/// that a name is unknown, and `hidden` is set: one mistake is told once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub(crate) names: Vec<String>,
    pub(crate) hidden: bool,
}

impl Known {
    pub(crate) fn lacks(&self, name: &str) -> bool {
        !self.hidden && !self.names.iter().any(|known| known == name)
    }

    /// These and others.
    pub(crate) fn and(&self, others: &Self) -> Self {
        Self {
            names: [self.names.as_slice(), &others.names].concat(),
            hidden: self.hidden || others.hidden,
        }
    }
}

/// Findings as they are gathered.
#[derive(Debug, Default)]
pub(crate) struct Findings(Vec<Finding>);

impl Findings {
    pub(crate) fn error(
        &mut self,
        file: &str,
        position: TextPosition,
        what: impl Into<String>,
    ) -> &mut Finding {
        self.add(Level::Error, file, position, what.into())
    }

    pub(crate) fn warning(
        &mut self,
        file: &str,
        position: TextPosition,
        what: impl Into<String>,
    ) -> &mut Finding {
        self.add(Level::Warning, file, position, what.into())
    }

    fn add(
        &mut self,
        level: Level,
        file: &str,
        position: TextPosition,
        what: String,
    ) -> &mut Finding {
        self.0
            .push(Finding::new(level, file.to_owned(), position, what));
        self.0.last_mut().expect("one was pushed just now")
    }

    /// A name that points at nothing; `what` is the noun. None if it points at something.
    pub(crate) fn unknown(
        &mut self,
        file: &str,
        name: &Located<String>,
        what: &str,
        known: &Known,
    ) -> Option<&mut Finding> {
        if !known.lacks(&name.value) {
            return None;
        }
        let names = || known.names.iter().map(String::as_str);
        let written = one_line(&name.value);
        match closest_name(&name.value, names()) {
            Some(meant) => {
                let what = format!("unknown {what} `{written}`, did you mean `{meant}`?");
                self.error(file, name.position, what);
            }
            None if known.names.is_empty() => {
                let what = format!("unknown {what} `{written}`: the pack has none");
                self.error(file, name.position, what);
            }
            None => {
                self.error(file, name.position, format!("unknown {what} `{written}`"))
                    .write(format!("one of {}", quoted_list(names())));
            }
        }
        self.0.last_mut()
    }

    /// True if something is reported at a position of a file.
    pub(crate) fn has(&self, file: &str, position: TextPosition) -> bool {
        let at = |finding: &Finding| (finding.line, finding.column);
        let mut of_file = self.0.iter().filter(|finding| finding.file == file);
        of_file.any(|finding| at(finding) == (position.line, position.column))
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.0.iter().any(|finding| finding.level == Level::Error)
    }

    /// By file and position.
    pub(crate) fn sorted(mut self) -> Vec<Finding> {
        self.0.sort_by(|a, b| {
            let key = |finding: &Finding| (finding.line, finding.column, finding.level);
            a.file.cmp(&b.file).then(key(a).cmp(&key(b)))
        });
        self.0
    }
}

//! A mistake in a pack: the position, what is wrong there, and what to write instead.

use std::fmt;

use crate::text::wording::{closest_name, one_line, quoted_list};
use crate::yaml::{Located, TextPosition};

/// The severity of a [`PackFinding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingLevel {
    /// The pack cannot be used.
    Error,
    /// The pack works, but its author should look.
    Warning,
}

impl fmt::Display for FindingLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// One mistake that [`crate::check`] reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackFinding {
    /// An error refuses the pack, a warning does not.
    pub level: FindingLevel,
    /// The file, relative to the pack's folder.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
    /// What is wrong, as one sentence without a full stop.
    pub message: String,
    /// What to write instead; `None` if the message says it.
    pub instead: Option<String>,
    /// True if the finding is about a status id that an agent may not emit: not registered, not
    /// active, or without the agent among its emitters (S1-068, S1-070).
    pub unregistered: bool,
}

impl fmt::Display for PackFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}:{}: {}: {}",
            self.file, self.line, self.column, self.level, self.message
        )?;
        match &self.instead {
            Some(instead) => write!(f, "; write: {instead}"),
            None => Ok(()),
        }
    }
}

impl PackFinding {
    /// Makes a finding that refuses the pack.
    pub fn error(
        file: impl Into<String>,
        line: u64,
        column: u64,
        message: impl Into<String>,
    ) -> Self {
        Self::new(
            FindingLevel::Error,
            file.into(),
            TextPosition { line, column },
            message,
        )
    }

    /// Makes a finding that does not refuse the pack.
    pub fn warning(
        file: impl Into<String>,
        line: u64,
        column: u64,
        message: impl Into<String>,
    ) -> Self {
        Self::new(
            FindingLevel::Warning,
            file.into(),
            TextPosition { line, column },
            message,
        )
    }

    fn new(
        level: FindingLevel,
        file: String,
        position: TextPosition,
        message: impl Into<String>,
    ) -> Self {
        Self {
            level,
            file,
            line: position.line,
            column: position.column,
            message: message.into(),
            instead: None,
            unregistered: false,
        }
    }

    pub(crate) fn mark_unregistered(&mut self) -> &mut Self {
        self.unregistered = true;
        self
    }

    /// Adds what to write instead.
    pub(crate) fn suggest(&mut self, instead: impl Into<String>) {
        self.instead = Some(instead.into());
    }
}

/// Names that may be referred to. If a file that defines some of them is broken, `incomplete` is set
/// and no name counts as unknown: one mistake is reported once.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownNames {
    pub(crate) names: Vec<String>,
    pub(crate) incomplete: bool,
}

impl KnownNames {
    pub(crate) fn lacks(&self, name: &str) -> bool {
        !self.incomplete && !self.names.iter().any(|known| known == name)
    }

    /// The names of both; incomplete if one of them is.
    pub(crate) fn and(&self, others: &Self) -> Self {
        Self {
            names: [self.names.as_slice(), &others.names].concat(),
            incomplete: self.incomplete || others.incomplete,
        }
    }
}

/// The findings of all files so far.
#[derive(Debug, Default)]
pub(crate) struct Findings(Vec<PackFinding>);

impl Findings {
    pub(crate) fn error(
        &mut self,
        file: &str,
        position: TextPosition,
        message: impl Into<String>,
    ) -> &mut PackFinding {
        self.add(FindingLevel::Error, file, position, message.into())
    }

    pub(crate) fn warning(
        &mut self,
        file: &str,
        position: TextPosition,
        message: impl Into<String>,
    ) -> &mut PackFinding {
        self.add(FindingLevel::Warning, file, position, message.into())
    }

    fn add(
        &mut self,
        level: FindingLevel,
        file: &str,
        position: TextPosition,
        message: String,
    ) -> &mut PackFinding {
        self.0
            .push(PackFinding::new(level, file.to_owned(), position, message));
        self.0.last_mut().expect("one was pushed just now")
    }

    /// Reports a name that is not known; `noun` says what it should name. `None` if it is known.
    pub(crate) fn unknown(
        &mut self,
        file: &str,
        name: &Located<String>,
        noun: &str,
        known: &KnownNames,
    ) -> Option<&mut PackFinding> {
        if !known.lacks(&name.value) {
            return None;
        }
        let names = || known.names.iter().map(String::as_str);
        let written = one_line(&name.value);
        match closest_name(&name.value, names()) {
            Some(suggestion) => {
                let message = format!("unknown {noun} `{written}`, did you mean `{suggestion}`?");
                self.error(file, name.position, message);
            }
            None if known.names.is_empty() => {
                let message = format!("unknown {noun} `{written}`: the pack has none");
                self.error(file, name.position, message);
            }
            None => {
                self.error(file, name.position, format!("unknown {noun} `{written}`"))
                    .suggest(format!("one of {}", quoted_list(names())));
            }
        }
        self.0.last_mut()
    }

    /// True if something is reported at a position of a file.
    pub(crate) fn has(&self, file: &str, position: TextPosition) -> bool {
        let at = |finding: &PackFinding| (finding.line, finding.column);
        let mut of_file = self.0.iter().filter(|finding| finding.file == file);
        of_file.any(|finding| at(finding) == (position.line, position.column))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.0
            .iter()
            .any(|finding| finding.level == FindingLevel::Error)
    }

    /// The findings by file and position.
    pub(crate) fn sorted(mut self) -> Vec<PackFinding> {
        self.0.sort_by(|a, b| {
            let key = |finding: &PackFinding| (finding.line, finding.column, finding.level);
            a.file.cmp(&b.file).then(key(a).cmp(&key(b)))
        });
        self.0
    }
}

//! A mistake in a pack: the position, what is wrong there, and what to write instead.

use std::fmt;

use crate::text::wording::{did_you_mean, one_line, quoted_list};
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

/// One mistake that [`crate::check()`] reports.
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
        Self {
            level: FindingLevel::Error,
            file: file.into(),
            line,
            column,
            message: message.into(),
            instead: None,
            unregistered: false,
        }
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
    /// Names that are all known.
    pub(crate) fn complete(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            names: names.into_iter().map(Into::into).collect(),
            incomplete: false,
        }
    }

    pub(crate) fn lacks(&self, name: &str) -> bool {
        !self.incomplete && !self.names.iter().any(|known| known == name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The names of both; incomplete if one of them is.
    pub(crate) fn and(&self, others: &Self) -> Self {
        Self {
            names: [self.names.as_slice(), &others.names].concat(),
            incomplete: self.incomplete || others.incomplete,
        }
    }
}

/// The [`PackFinding`]s of all files so far.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Vec<PackFinding>,
    /// True if an unknown key was taken out of a file: what seems unused may be used there.
    has_removed_keys: bool,
}

impl Findings {
    /// Adds a finding that refuses the pack; `instead` is empty if `message` says what to write.
    pub(crate) fn error(
        &mut self,
        file: &str,
        position: TextPosition,
        message: impl Into<String>,
        instead: impl Into<String>,
    ) {
        let instead = Some(instead.into()).filter(|instead| !instead.is_empty());
        self.list.push(PackFinding {
            instead,
            ..PackFinding::error(file, position.line, position.column, message)
        });
    }

    /// As [`Self::error`], for a finding that does not refuse the pack.
    pub(crate) fn warning(
        &mut self,
        file: &str,
        position: TextPosition,
        message: impl Into<String>,
        instead: impl Into<String>,
    ) {
        self.error(file, position, message, instead);
        if let Some(finding) = self.list.last_mut() {
            finding.level = FindingLevel::Warning;
        }
    }

    /// Marks the last finding as one about a status that an agent may not emit.
    pub(crate) fn mark_unregistered(&mut self) {
        if let Some(finding) = self.list.last_mut() {
            finding.unregistered = true;
        }
    }

    /// Reports a name that is not known, and returns true; `noun` says what it should name.
    pub(crate) fn unknown(
        &mut self,
        file: &str,
        name: &Located<String>,
        noun: &str,
        known: &KnownNames,
    ) -> bool {
        let is_unknown = known.lacks(&name.value);
        if is_unknown {
            let message = format!("unknown {noun} `{}`", one_line(&name.value));
            let (message, instead) = match known.names.is_empty() {
                true => (format!("{message}: the pack has none"), String::new()),
                false => {
                    let instead = format!("one of {}", quoted_list(known.iter()));
                    did_you_mean(message, &name.value, known.iter(), instead)
                }
            };
            self.error(file, name.position, message, instead);
        }
        is_unknown
    }

    /// Notes that an unknown key was taken out of a file.
    pub(crate) fn mark_removed_key(&mut self) {
        self.has_removed_keys = true;
    }

    /// True if something that seems unused may be used under an unknown key.
    pub(crate) fn has_removed_keys(&self) -> bool {
        self.has_removed_keys
    }

    pub(crate) fn count(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.list
            .iter()
            .any(|finding| finding.level == FindingLevel::Error)
    }

    /// The findings by file and position.
    pub(crate) fn sorted(mut self) -> Vec<PackFinding> {
        self.list.sort_by(|a, b| {
            let key = |finding: &PackFinding| (finding.line, finding.column, finding.level);
            a.file.cmp(&b.file).then(key(a).cmp(&key(b)))
        });
        self.list
    }
}

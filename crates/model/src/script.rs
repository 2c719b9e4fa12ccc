//! A script: the answers of the scripted model and the conditions for them. Parsed from YAML and
//! checked as a whole before anything is played.
//!
//! ```yaml
//! - when: {user: "(?i)time"}          # all conditions must hold; all are optional
//!   steps:
//!     - {thinking: "A clock will know.", signature: seal}
//!     - tool: {name: clock, input: {}}
//!     - {text: "It is {{last_tool_result}}.", delay_ms: 15}
//! ```
//! The first rule that matches wins. The module `source` describes the keys of rules, conditions
//! and steps, and `placeholder` the placeholders in text and tool inputs. Several files form one
//! script, in the order of their names.

mod error;
mod split;
mod block_numbers;
mod request_view;
mod placeholder;
mod source;
mod pattern;
mod condition;
mod step;
mod check;
mod names;
pub(crate) mod call_plan;
mod rule;

use std::path::Path;
use std::sync::Arc;

use crate::request::ModelRequest;

pub use error::ScriptError;
pub use names::{ReferenceKind, ScriptReference};

use call_plan::CallPlan;
use error::ScriptMistake;
use pattern::PatternCache;
use request_view::RequestView;
use rule::{PlannedCall, ScriptRule};

/// Name of the built-in script in errors, and its YAML.
const DEFAULT: (&str, &str) = ("default.yaml", include_str!("../scripts/default.yaml"));
/// Largest number of patterns listed in the answer to unmatched text.
const LISTED_PATTERNS_MAX: usize = 12;
/// Largest number of mistakes reported for one file.
const MISTAKES_MAX: usize = 20;

/// A script that has passed all checks.
#[derive(Debug)]
pub struct ModelScript {
    rules: Vec<ScriptRule>,
    names: Vec<ScriptReference>,
}

impl ModelScript {
    /// Reads and parses a script file.
    pub fn read(path: &Path) -> Result<Self, ScriptError> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(yaml) => Self::parse(&file, &yaml),
            Err(cause) => Err(ScriptError::Unreadable { file, cause }),
        }
    }

    /// Parses a script from YAML; `file` is named in errors. Returns the first mistake.
    pub fn parse(file: &str, yaml: &str) -> Result<Self, ScriptError> {
        let mut script = Self::empty();
        script.add_file(file, yaml, &mut PatternCache::default())?;
        Ok(script)
    }

    /// Like [`Script::parse`], but returns all mistakes: at least the first of each rule and of
    /// each step.
    pub fn parse_all(file: &str, yaml: &str) -> Result<Self, Vec<ScriptError>> {
        let mut script = Self::empty();
        script.add_file_with_all_mistakes(file, yaml, &mut PatternCache::default())?;
        Ok(script)
    }

    fn empty() -> Self {
        Self {
            rules: Vec::new(),
            names: Vec::new(),
        }
    }

    fn add_file(
        &mut self,
        file: &str,
        yaml: &str,
        patterns: &mut PatternCache,
    ) -> Result<(), ScriptError> {
        let mut mistakes = match self.add_file_with_all_mistakes(file, yaml, patterns) {
            Ok(()) => return Ok(()),
            Err(mistakes) => mistakes,
        };
        Err(mistakes.swap_remove(0))
    }

    /// Adds the rules of a file; on failure returns at least one error, sorted by location.
    fn add_file_with_all_mistakes(
        &mut self,
        file: &str,
        yaml: &str,
        patterns: &mut PatternCache,
    ) -> Result<(), Vec<ScriptError>> {
        let (sources, mut mistakes) = source::read(yaml);
        if sources.is_empty() && mistakes.is_empty() {
            return Err(vec![ScriptError::Invalid {
                file: file.to_owned(),
                line: 1,
                column: 1,
                message: "the script has no rules: write a list of `when` and `steps`".to_owned(),
                suggestion: None,
            }]);
        }
        for source in sources {
            self.names.extend(names::in_rule(file, &source.value));
            match ScriptRule::new(source, patterns) {
                Ok(rule) => self.rules.extend(rule),
                Err(rule_mistakes) => mistakes.extend(rule_mistakes),
            }
        }
        if mistakes.is_empty() {
            return Ok(());
        }
        mistakes.sort_by_key(ScriptMistake::line);
        mistakes.truncate(MISTAKES_MAX);
        Err(mistakes
            .into_iter()
            .map(|mistake| mistake.in_file(file))
            .collect())
    }

    /// Agents and tools that the script refers to ([`Named`]), in the order of the file.
    pub fn names(&self) -> &[ScriptReference] {
        &self.names
    }

    /// Parses a script from several files, each a name and its YAML; rules are in the order of the
    /// file names.
    pub fn parse_many<N: AsRef<str>, Y: AsRef<str>>(files: &[(N, Y)]) -> Result<Self, ScriptError> {
        let mut files: Vec<(&str, &str)> = files
            .iter()
            .map(|(name, yaml)| (name.as_ref(), yaml.as_ref()))
            .collect();
        files.sort_unstable();
        let mut patterns = PatternCache::default();
        let mut script = Self::empty();
        for (name, yaml) in files {
            script.add_file(name, yaml, &mut patterns)?;
        }
        Ok(script)
    }

    /// The script that is used if no other is configured.
    pub fn builtin() -> Self {
        Self::parse(DEFAULT.0, DEFAULT.1).expect("the built-in script is checked by a test")
    }

    /// The [`CallPlan`] that is played for a request.
    pub(crate) fn plan(&self, request: &ModelRequest) -> Arc<CallPlan> {
        let view = RequestView::new(request);
        // Earlier calls that rules with their own `call` answer.
        let mut answered_calls: Vec<u32> = Vec::new();
        for rule in &self.rules {
            if !rule.is_match(&view) {
                continue;
            }
            let nth = match rule.call {
                Some(call) if call == request.call => 0,
                Some(call) => {
                    if call < request.call && !answered_calls.contains(&call) {
                        answered_calls.push(call);
                    }
                    continue;
                }
                None => (request.call as usize).saturating_sub(1 + answered_calls.len()),
            };
            match rule.call(nth) {
                Some(PlannedCall::Ready(plan)) => return Arc::clone(plan),
                Some(PlannedCall::PerRequest(steps)) => {
                    return Arc::new(CallPlan::new(steps, Some(&view)));
                }
                None => continue,
            }
        }
        Arc::new(CallPlan::from_text(self.no_match_answer()))
    }

    /// The answer to a request that no rule matches.
    fn no_match_answer(&self) -> String {
        let patterns: Vec<&str> = self.rules.iter().filter_map(ScriptRule::pattern).collect();
        if patterns.is_empty() {
            return "This script has nothing to say to that.".to_owned();
        }
        let suffix = if patterns.len() > LISTED_PATTERNS_MAX {
            ", …"
        } else {
            ""
        };
        let listed = &patterns[..patterns.len().min(LISTED_PATTERNS_MAX)];
        format!(
            "This script has nothing to say to that. It listens for: {}{suffix}",
            listed.join(", ")
        )
    }
}

#[cfg(test)]
mod tests;

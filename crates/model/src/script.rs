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
mod request_view;
mod placeholder;
mod source;
mod pattern;
mod condition;
mod step;
mod check;
mod names;
pub(crate) mod pace;
pub(crate) mod call_plan;
mod rule;

use std::path::Path;
use std::sync::Arc;

use crate::request::ModelRequest;

pub use error::ScriptError;
pub use names::{ReferenceKind, ScriptReference};

use call_plan::CallPlan;
use error::ScriptMistake;
use pace::ScriptPace;
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
#[derive(Debug, Default)]
pub struct ModelScript {
    rules: Vec<ScriptRule>,
    names: Vec<ScriptReference>,
    /// The pauses of every call; those of the last item that has any.
    pace: ScriptPace,
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
        Self::parse_all(file, yaml).map_err(first)
    }

    /// Like [`ModelScript::parse`], but returns all mistakes: at least the first of each rule and
    /// of each step.
    pub fn parse_all(file: &str, yaml: &str) -> Result<Self, Vec<ScriptError>> {
        let mut script = Self::default();
        script.add_file(file, yaml, &mut PatternCache::default())?;
        Ok(script)
    }

    /// Adds the rules of a file; on failure returns at least one error, sorted by location.
    fn add_file(
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
            if source.value.pace.is_some() {
                match ScriptPace::new(source) {
                    Ok(pace) => self.pace = pace.unwrap_or_default(),
                    Err(mistake) => mistakes.push(mistake),
                }
                continue;
            }
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
        let errors = mistakes.into_iter().map(|mistake| mistake.in_file(file));
        Err(errors.collect())
    }

    /// Agents and tools that the script refers to ([`ScriptReference`]), in the order of the file.
    pub fn names(&self) -> &[ScriptReference] {
        &self.names
    }

    /// The pauses of every call.
    pub(crate) fn pace(&self) -> ScriptPace {
        self.pace
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
        let mut script = Self::default();
        for (name, yaml) in files {
            let added = script.add_file(name, yaml, &mut patterns);
            added.map_err(first)?;
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
            if !rule.when.is_met(&view) {
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
                None => {}
            }
        }
        Arc::new(CallPlan::from_text(self.no_match_answer()))
    }

    /// The answer to a request that no rule matches.
    fn no_match_answer(&self) -> String {
        let rules = self.rules.iter();
        let patterns: Vec<&str> = rules.filter_map(|rule| rule.when.user_pattern()).collect();
        if patterns.is_empty() {
            return "This script has nothing to say to that.".to_owned();
        }
        let (listed, suffix) = match patterns.get(..LISTED_PATTERNS_MAX) {
            Some(listed) if listed.len() < patterns.len() => (listed, ", …"),
            Some(_) | None => (&*patterns, ""),
        };
        let listed = listed.join(", ");
        format!("This script has nothing to say to that. It listens for: {listed}{suffix}")
    }
}

/// The first of several errors.
fn first(mut errors: Vec<ScriptError>) -> ScriptError {
    errors.swap_remove(0)
}

#[cfg(test)]
mod tests;

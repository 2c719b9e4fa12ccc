//! A script: what the scripted model says, and when. Read from YAML, checked as a whole before
//! anything is played, and then only looked up.
//!
//! ```yaml
//! - when: {user: "(?i)time"}          # what must hold; all of it, and all of it optional
//!   steps:
//!     - {thinking: "A clock will know.", signature: seal}
//!     - tool: {name: clock, input: {}}
//!     - {text: "It is {{last_tool_result}}.", delay_ms: 15}
//! ```
//! The first rule that matches wins. `when` of a rule may name:
//!
//! | key | holds if |
//! |---|---|
//! | `user`, `not` | the pattern is found, or is not found, in what the person said; of a list, all are, or none is |
//! | `says` | the person said this, word for word, and nothing else |
//! | `agent` | this agent asks |
//! | `call` | it is this call of the agent's invocation, from 1 |
//! | `attempt` | it is this try of the call, from 1; every call begins with its first |
//! | `turn` | the person has spoken so often in what the model is shown, these words with it |
//! | `locale` | the request's language is this one or a narrower one: `de` is heard in `de-AT` |
//! | `result` | the pattern is found in one of the newest tool results of the turn |
//! | `results: {tool: pattern}` | it is found in the newest result of that tool |
//! | `answered`, `failed` | the newest result of this tool is no error, or is one |
//! | `answers` | at least so many tools have answered since the model last spoke |
//!
//! A step may have a `when` of its own (all but `call`): without it the step is left out. Words
//! in several languages are `texts: {en: …, de: …}`; a language that is not there gets the first.
//! `said: [It, " is", …]` and `thought: […]` are words and reasoning in the pieces they came in: each
//! is one delta as it is, and nothing in it is quoted. That is how recorded sessions are written.
//! An item `define: {name: &anchor pattern}` is no rule: later ones take its patterns as `*anchor`.
//! What may be quoted in words and tool inputs is in `quote`. Several files are one script, in
//! the order of their names.

mod error;
mod chunk;
mod block;
mod asked;
mod quote;
mod source;
mod pattern;
mod condition;
mod step;
mod check;
mod naming;
pub(crate) mod reel;
mod rule;

use std::path::Path;
use std::sync::Arc;

use crate::request::Request;

pub use error::ScriptError;
pub use naming::{Named, Subject};

use asked::Asked;
use error::Wrong;
use pattern::Patterns;
use reel::Reel;
use rule::{Rule, Take};

/// The built-in script's name in errors and the YAML itself.
const DEFAULT: (&str, &str) = ("default.yaml", include_str!("../scripts/default.yaml"));
/// Patterns named to a person whose words no rule heard.
const NAMED_MAX: usize = 12;
/// Mistakes that are reported of one file.
const WRONG_MAX: usize = 20;

/// A script that can be played.
#[derive(Debug)]
pub struct Script {
    rules: Vec<Rule>,
    names: Vec<Named>,
}

impl Script {
    /// Reads a script from a file.
    pub fn read(path: &Path) -> Result<Self, ScriptError> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(yaml) => Self::parse(&file, &yaml),
            Err(cause) => Err(ScriptError::Unreadable { file, cause }),
        }
    }

    /// Reads a script from its YAML; `file` is named in errors. Tells the first mistake.
    pub fn parse(file: &str, yaml: &str) -> Result<Self, ScriptError> {
        let mut script = Self::empty();
        script.take(file, yaml, &mut Patterns::default())?;
        Ok(script)
    }

    /// The same, but tells every mistake: at least the first one of each rule and of each step.
    pub fn parse_all(file: &str, yaml: &str) -> Result<Self, Vec<ScriptError>> {
        let mut script = Self::empty();
        script.take_all(file, yaml, &mut Patterns::default())?;
        Ok(script)
    }

    fn empty() -> Self {
        Self {
            rules: Vec::new(),
            names: Vec::new(),
        }
    }

    fn take(&mut self, file: &str, yaml: &str, patterns: &mut Patterns) -> Result<(), ScriptError> {
        let mut wrong = match self.take_all(file, yaml, patterns) {
            Ok(()) => return Ok(()),
            Err(wrong) => wrong,
        };
        Err(wrong.swap_remove(0))
    }

    /// Adds the rules of a file; the errors are at least one, by place.
    fn take_all(
        &mut self,
        file: &str,
        yaml: &str,
        patterns: &mut Patterns,
    ) -> Result<(), Vec<ScriptError>> {
        let (sources, mut wrong) = source::read(yaml);
        if sources.is_empty() && wrong.is_empty() {
            return Err(vec![ScriptError::Wrong {
                file: file.to_owned(),
                line: 1,
                column: 1,
                what: "the script has no rules: write a list of `when` and `steps`".to_owned(),
                instead: None,
            }]);
        }
        for source in sources {
            self.names.extend(naming::of(file, &source.value));
            match Rule::new(source, patterns) {
                Ok(rule) => self.rules.extend(rule),
                Err(more) => wrong.extend(more),
            }
        }
        if wrong.is_empty() {
            return Ok(());
        }
        wrong.sort_by_key(Wrong::line);
        wrong.truncate(WRONG_MAX);
        Err(wrong.into_iter().map(|wrong| wrong.of(file)).collect())
    }

    /// What the script names outside itself, in the order it is written.
    pub fn names(&self) -> &[Named] {
        &self.names
    }

    /// Reads a script from several files, each its name and its YAML: their rules, in the order of
    /// the names.
    pub fn parse_many<N: AsRef<str>, Y: AsRef<str>>(files: &[(N, Y)]) -> Result<Self, ScriptError> {
        let mut files: Vec<(&str, &str)> = files
            .iter()
            .map(|(name, yaml)| (name.as_ref(), yaml.as_ref()))
            .collect();
        files.sort_unstable();
        let mut patterns = Patterns::default();
        let mut script = Self::empty();
        for (name, yaml) in files {
            script.take(name, yaml, &mut patterns)?;
        }
        Ok(script)
    }

    /// The script that is built in.
    pub fn builtin() -> Self {
        Self::parse(DEFAULT.0, DEFAULT.1).expect("the built-in script is checked by a test")
    }

    /// What is played for a request.
    pub(crate) fn reel(&self, request: &Request) -> Arc<Reel> {
        let asked = Asked::new(request);
        // Calls before this one that a rule with its own `call` has taken.
        let mut taken: Vec<u32> = Vec::new();
        for rule in &self.rules {
            if !rule.hears(&asked) {
                continue;
            }
            let nth = match rule.call {
                Some(call) if call == request.call => 0,
                Some(call) => {
                    if call < request.call && !taken.contains(&call) {
                        taken.push(call);
                    }
                    continue;
                }
                None => (request.call as usize).saturating_sub(1 + taken.len()),
            };
            match rule.take(nth) {
                Some(Take::Ready(reel)) => return Arc::clone(reel),
                Some(Take::Fresh(cues)) => return Arc::new(Reel::new(cues, Some(&asked))),
                None => continue,
            }
        }
        Arc::new(Reel::saying(self.known()))
    }

    /// What to say to words no rule heard.
    fn known(&self) -> String {
        let patterns: Vec<&str> = self.rules.iter().filter_map(Rule::pattern).collect();
        if patterns.is_empty() {
            return "This script has nothing to say to that.".to_owned();
        }
        let more = if patterns.len() > NAMED_MAX {
            ", …"
        } else {
            ""
        };
        let named = &patterns[..patterns.len().min(NAMED_MAX)];
        format!(
            "This script has nothing to say to that. It listens for: {}{more}",
            named.join(", ")
        )
    }
}

#[cfg(test)]
mod tests;

//! Bounds on the work of checking data against a JSON Schema, which may come from a stranger.
//!
//! A few bytes of schema can mean more steps than there is time for, and a check that runs cannot
//! be stopped. So a schema is measured before it is used, and an input before it is checked:
//!
//! ```text
//! schema ──▶ references, patterns, steps of every part for one value ──▶ used?
//! input  ──▶ steps of its check, counted up to a limit ──▶ checked?
//! ```
//! Both counts take every branch, where a check stops at the first that decides, so that no check
//! takes many more steps. Patterns have size limits, and none may backtrack: the regex engine tries
//! a pattern in one pass over the text.

mod keyword;
mod pattern;
mod steps;
mod lenient;

use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value};

use crate::text::wording::one_line;
use keyword::{parts, patterns, target};
use pattern::Patterns;
use steps::{StepBound, StepCounter};

pub use lenient::without_unsupported_patterns;

/// Steps of all parts for one value: more than any schema that people write, and a few
/// milliseconds.
const SCHEMA_STEPS_MAX: u64 = 20_000;
/// Parts inside each other that apply to one value.
const SCHEMA_DEPTH_MAX: usize = 64;
/// Steps of the check of an input: about a tenth of a second. An input of 64 KiB and a schema that
/// people write take a tenth of it.
const INPUT_STEPS_MAX: u64 = 2_000_000;
/// Parts of the schema and of the input inside each other.
const INPUT_DEPTH_MAX: usize = 256;

/// A schema that cannot be checked in bounded time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TooComplex {
    pub message: String,
    /// The JSON pointer of the part of the schema that is wrong.
    pub pointer: String,
    /// Which limit the schema is over.
    pub limit: ComplexityLimit,
}

/// The limit that a schema is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComplexityLimit {
    /// The number of steps for one value.
    Steps,
    /// A reference that is not followed, or a name that references could count from.
    Reference,
    /// A pattern that is not a regular expression.
    PatternSyntax,
    /// The size of a pattern when it is compiled.
    PatternSize,
    /// A pattern with a look-around or a back-reference.
    Backtracking,
}

impl ComplexityLimit {
    fn error(self, message: String, pointer: &str) -> TooComplex {
        TooComplex {
            message,
            pointer: pointer.to_owned(),
            limit: self,
        }
    }
}

/// The cost of checking data against a schema.
#[derive(Debug)]
pub struct SchemaCost {
    schema: Value,
    patterns: Patterns,
}

impl SchemaCost {
    /// Measures `schema`.
    ///
    /// # Errors
    /// Fails if the check of a single value can take too long, a reference cannot be followed, or
    /// a pattern cannot be tried in one pass.
    pub fn new(schema: &Value) -> Result<Self, TooComplex> {
        let parts = parts(schema);
        check_references(schema, &parts)?;
        let mut cost = Self {
            schema: schema.clone(),
            patterns: Patterns::default(),
        };
        cost.check_steps(&parts)?;
        cost.measure_patterns(&parts)?;
        Ok(cost)
    }

    /// True if checking `input` takes at most about a tenth of a second.
    pub fn allows(&self, input: &Value) -> bool {
        let bounds = (INPUT_STEPS_MAX, INPUT_DEPTH_MAX);
        let mut counter = StepCounter::new(&self.schema, &self.patterns, bounds);
        counter.part(&self.schema, Some(input), 1).is_ok()
    }

    /// Fails with the part at which the schema takes too many steps for one value.
    fn check_steps(&self, parts: &[SchemaPart<'_>]) -> Result<(), TooComplex> {
        let bounds = (SCHEMA_STEPS_MAX, SCHEMA_DEPTH_MAX);
        let mut counter = StepCounter::new(&self.schema, &self.patterns, bounds);
        for (at, _) in parts {
            let part = self.schema.pointer(at).unwrap_or(&Value::Null);
            let message = match counter.any(part) {
                Ok(()) => continue,
                Err(StepBound::Steps) => format!(
                    "it is more than {SCHEMA_STEPS_MAX} steps for one value, with references followed"
                ),
                Err(StepBound::Depth) => {
                    format!("more than {SCHEMA_DEPTH_MAX} of its parts stand inside each other")
                }
                Err(StepBound::Circle) => {
                    "a `$ref` leads back to where it stands without going into the data".to_owned()
                }
            };
            return Err(ComplexityLimit::Steps.error(message, at));
        }
        Ok(())
    }

    /// Fails with the first pattern that cannot be used.
    fn measure_patterns(&mut self, parts: &[SchemaPart<'_>]) -> Result<(), TooComplex> {
        for (text, at) in parts.iter().flat_map(|(at, part)| patterns(part, at)) {
            let Err(limit) = self.patterns.measure(text) else {
                continue;
            };
            let reason = match limit {
                ComplexityLimit::Backtracking => "has a look-around or a back-reference",
                ComplexityLimit::PatternSize if self.patterns.is_full() => {
                    "is too large together with the others"
                }
                ComplexityLimit::PatternSize => "is too large with its repeats written out",
                _ => "is not a regular expression",
            };
            return Err(limit.error(format!("the `pattern` `{}` {reason}", one_line(text)), &at));
        }
        Ok(())
    }
}

/// A part of a schema, with its JSON pointer.
type SchemaPart<'s> = (String, &'s Map<String, Value>);

/// Fails with the first reference that is not followed, or name that references could count from.
fn check_references(schema: &Value, parts: &[SchemaPart<'_>]) -> Result<(), TooComplex> {
    let error = |message: String, at: &str| Err(ComplexityLimit::Reference.error(message, at));
    let text = |part: &Map<_, _>, key| part.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut drafts = parts.iter().filter_map(|(_, part)| text(part, "$schema"));
    let is_draft_4 = drafts.any(|draft| draft.contains("draft-04"));
    for (at, part) in parts {
        for (key, is_name) in [("$id", true), ("id", is_draft_4)] {
            if is_name && !at.is_empty() && text(part, key).is_some() {
                let message = format!("it has a `{key}` inside, and only its root may have one");
                return error(message, at);
            }
        }
        for key in ["$dynamicRef", "$recursiveRef"] {
            if part.contains_key(key) {
                let message = format!("`{key}` is not followed; `$ref` is");
                return error(message, &format!("{at}/{key}"));
            }
        }
        let reference = text(part, "$ref");
        if let Some(reference) = reference.filter(|text| target(schema, text).is_none()) {
            let message = format!(
                "the `$ref` to `{}` is not followed: it must be `#` or `#/…` and lead to a part of the schema",
                one_line(&reference)
            );
            return error(message, &format!("{at}/$ref"));
        }
    }
    Ok(())
}

/// Compiles a schema that a [`SchemaCost`] was made of. References to other documents are not
/// fetched.
///
/// # Errors
/// Fails if `schema` is not a valid JSON Schema.
pub fn validator(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    jsonschema::options()
        .with_pattern_options(pattern::options())
        // Or a text in the data would be compiled.
        .with_format("regex", |_: &str| true)
        .build(schema)
}

#[cfg(test)]
mod tests;

//! Bounds on the work of checking data against a JSON Schema, which may come from a stranger.
//!
//! A few bytes of schema can mean more steps than there is time for, and a check that runs cannot
//! be stopped. So a schema is measured before it is used, and an input before it is checked:
//!
//! ```text
//! schema ──▶ SchemaGraph ──▶ weight: all that applies to one value, memoised ──▶ used?
//! input  ──▶ input cost: the steps that its check takes, counted up to a limit ──▶ checked?
//! ```
//! Both measures take every branch, where a check stops at the first that decides, so that no check
//! takes many more steps. Patterns have size limits, and none may backtrack: the regex engine tries
//! a pattern in one pass over the text.

mod keyword;
mod pattern;
mod graph;
mod pattern_limit;
mod weight;
mod input;
mod lenient;

use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use graph::SchemaGraph;

pub use lenient::without_unsupported_patterns;

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

impl TooComplex {
    fn new(message: impl Into<String>, pointer: &str) -> Self {
        Self {
            message: message.into(),
            pointer: pointer.to_owned(),
            limit: ComplexityLimit::Steps,
        }
    }
}

/// The cost of checking data against a schema.
#[derive(Debug)]
pub struct SchemaCost {
    graph: SchemaGraph,
}

impl SchemaCost {
    /// Measures `schema`.
    ///
    /// # Errors
    /// Fails if the check of a single value can take too long, a reference cannot be followed, or
    /// a pattern cannot be tried in one pass.
    pub fn new(schema: &Value) -> Result<Self, TooComplex> {
        let graph = SchemaGraph::new(schema)?;
        weight::check(&graph)?;
        pattern_limit::check(&graph)?;
        Ok(Self { graph })
    }

    /// True if checking `input` takes at most about a tenth of a second.
    pub fn allows(&self, input: &Value) -> bool {
        input::steps(&self.graph, input).is_some()
    }
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

//! How much work it is to check data against a JSON Schema, which may be a stranger's.
//!
//! A few bytes of schema can be more steps than there is time for, and a check that runs cannot be
//! stopped. So a schema is weighed before it is used, and an input is walked before it is checked:
//!
//! ```text
//! schema ──▶ parts ──▶ weigh: all that applies to one value, references followed ──▶ used?
//! input  ──▶ walk: the steps that its check takes, counted ──▶ checked?
//! ```
//! Both walks end after a fixed number of steps. They take every branch, where a check stops at
//! the first that decides, so that no check takes many more. No pattern goes back in its text: one
//! that had to give up would have the whole check run again.

mod keyword;
mod pattern;
mod reference;
mod part;
mod weigh;
mod walk;
mod engine;
mod loose;

use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use part::{Part, parts};

pub use loose::loose;

/// Why a schema is too much.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Heavy {
    /// In words.
    pub what: String,
    /// The JSON pointer of the part of the schema that is.
    pub pointer: String,
    /// What kind of too much.
    pub why: Why,
}

/// What is too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Its parts, or where a reference leads.
    Parts,
    /// A pattern that is none.
    NoPattern,
    /// A pattern, when it is compiled.
    Large,
    /// A pattern with a look-around or a back-reference.
    GoesBack,
}

impl Heavy {
    fn new(what: impl Into<String>, pointer: &str) -> Self {
        Self {
            what: what.into(),
            pointer: pointer.to_owned(),
            why: Why::Parts,
        }
    }
}

/// The work that a schema is.
#[derive(Debug)]
pub struct Effort {
    /// Those that can be reached from the first, which is the whole.
    parts: Vec<Part>,
}

impl Effort {
    /// That of `schema`.
    ///
    /// # Errors
    /// Fails if one value alone can be too much, a reference leads nowhere, or a pattern cannot be
    /// tried in one pass.
    pub fn new(schema: &Value) -> Result<Self, Heavy> {
        let (parts, pointers) = parts(schema)?;
        weigh::weigh(&parts, &pointers)?;
        engine::usable(&parts, &pointers)?;
        Ok(Self { parts })
    }

    /// Whether `input` can be checked in a moment.
    pub fn affords(&self, input: &Value) -> bool {
        walk::walk(&self.parts, input).is_ok()
    }
}

/// What checks data against `schema`, which has been weighed. Nothing is fetched for it.
///
/// # Errors
/// Fails if it is no schema.
pub fn validator(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    jsonschema::options()
        .with_pattern_options(engine::usual())
        // Or the data would be compiled.
        .with_format("regex", |_: &str| true)
        .build(schema)
}

/// Steps that are left.
#[derive(Debug)]
struct Steps(u64);

/// None is left.
struct Spent;

impl Steps {
    fn spend(&mut self, steps: u64) -> Result<(), Spent> {
        self.0 = self.0.checked_sub(steps).ok_or(Spent)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;

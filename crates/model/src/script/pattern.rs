//! Patterns, each made once for a script however often it is written or taken by an anchor: making
//! one is the slow part of reading a script.

use std::collections::HashMap;

use regex::Regex;
use turnwire_pack::yaml::{Located, TextPosition};

use super::error::Wrong;
use super::source::PatternsSource;

/// The patterns a script has so far.
#[derive(Default)]
pub(crate) struct Patterns {
    made: HashMap<String, Regex>,
}

impl Patterns {
    /// The pattern that is written, checked.
    pub(crate) fn one(&mut self, source: Located<String>) -> Result<Regex, Wrong> {
        self.at(source.value, source.position)
    }

    /// One or a list of them.
    pub(crate) fn several(
        &mut self,
        source: Option<Located<PatternsSource>>,
    ) -> Result<Vec<Regex>, Wrong> {
        let Some(source) = source else {
            return Ok(Vec::new());
        };
        match source.value {
            PatternsSource::One(one) => Ok(vec![self.at(one, source.position)?]),
            PatternsSource::Many(many) => many.into_iter().map(|one| self.one(one)).collect(),
        }
    }

    fn at(&mut self, written: String, at: TextPosition) -> Result<Regex, Wrong> {
        if let Some(made) = self.made.get(&written) {
            return Ok(made.clone());
        }
        let made = Regex::new(&written).map_err(|error| {
            let what = format!("the pattern cannot be used: {}", reason(&error));
            Wrong::new(at, what)
        })?;
        self.made.insert(written, made.clone());
        Ok(made)
    }
}

/// The last line of a regex error is what is wrong; the lines above draw where.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

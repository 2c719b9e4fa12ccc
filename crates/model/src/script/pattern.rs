//! Compiled patterns of a script, each compiled once however often it is written or referenced by
//! an anchor: compiling is the slow part of parsing a script.

use std::collections::HashMap;

use regex::Regex;
use turnwire_pack::yaml::{Located, TextPosition};

use super::error::{Checked, ScriptMistake};
use super::source::PatternsSource;

/// The patterns compiled so far.
#[derive(Default)]
pub(crate) struct PatternCache {
    compiled: HashMap<String, Regex>,
}

impl PatternCache {
    /// Compiles one pattern, or takes it from the cache.
    pub(crate) fn compile(&mut self, source: Located<String>) -> Checked<Regex> {
        self.compile_at(source.value, source.position)
    }

    /// Compiles one pattern or a list.
    pub(crate) fn compile_all(
        &mut self,
        source: Option<Located<PatternsSource>>,
    ) -> Checked<Vec<Regex>> {
        let Some(source) = source else {
            return Ok(Vec::new());
        };
        match source.value {
            PatternsSource::One(pattern) => Ok(vec![self.compile_at(pattern, source.position)?]),
            PatternsSource::Many(patterns) => {
                let patterns = patterns.into_iter();
                patterns.map(|pattern| self.compile(pattern)).collect()
            }
        }
    }

    fn compile_at(&mut self, pattern: String, location: TextPosition) -> Checked<Regex> {
        if let Some(compiled) = self.compiled.get(&pattern) {
            return Ok(compiled.clone());
        }
        let compiled = Regex::new(&pattern).map_err(|error| {
            let message = format!("the pattern is invalid: {}", reason(&error));
            ScriptMistake::new(location, message)
        })?;
        self.compiled.insert(pattern, compiled.clone());
        Ok(compiled)
    }
}

/// The last line of a regex error has the reason; the lines above point at the location.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

//! Compiled patterns of a script, each compiled once however often it is written or referenced by
//! an anchor: compiling is the slow part of parsing a script.

use std::collections::HashMap;

use regex::Regex;
use turnwire_pack::yaml::Located;

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
        if let Some(compiled) = self.compiled.get(&source.value) {
            return Ok(compiled.clone());
        }
        let compiled = Regex::new(&source.value).map_err(|error| {
            let message = format!("the pattern is invalid: {}", reason(&error));
            ScriptMistake::new(source.position, message)
        })?;
        self.compiled.insert(source.value, compiled.clone());
        Ok(compiled)
    }

    /// Compiles one pattern or a list.
    pub(crate) fn compile_all(
        &mut self,
        source: Option<Located<PatternsSource>>,
    ) -> Checked<Vec<Regex>> {
        let patterns = match source {
            None => Vec::new(),
            Some(Located { value, position }) => match value {
                PatternsSource::One(value) => vec![Located { value, position }],
                PatternsSource::Many(patterns) => patterns,
            },
        };
        let patterns = patterns.into_iter();
        patterns.map(|pattern| self.compile(pattern)).collect()
    }
}

/// The last line of a regex error has the reason; the lines above point at the location.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

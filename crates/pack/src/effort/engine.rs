//! What tries patterns: in one pass over the text, whatever the pattern. One that needs more, or is
//! too large when it is compiled, is not used.

use std::collections::HashSet;

use jsonschema::{PatternOptions, Regex};
use serde_json::json;

use super::part::Part;
use super::pattern::Pattern;
use super::reference::below;
use super::{Heavy, Steps, Why};
use crate::finding::shown;

/// Of a compiled pattern: what the engine takes of its own accord.
const BYTES_MAX: usize = 10 << 20;
/// Sizes that a pattern is tried to be compiled within, each in turn.
const BYTES: [usize; 3] = [16 << 10, 512 << 10, BYTES_MAX];
/// Of all patterns of a schema together.
const SUM_BYTES_MAX: u64 = 32 << 20;
/// Of what is remembered while a pattern is tried.
const MEMORY_BYTES_MAX: usize = 1 << 20;

/// How patterns are compiled.
pub(super) fn options(bytes_max: usize) -> PatternOptions<Regex> {
    let options = PatternOptions::regex().size_limit(bytes_max);
    options.dfa_size_limit(MEMORY_BYTES_MAX)
}

/// The same for all of a schema.
pub(super) fn usual() -> PatternOptions<Regex> {
    options(BYTES_MAX)
}

/// Why a pattern cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    Large,
    GoesBack,
}

/// The size that `pattern` has when it is compiled, at most. Only for those that have been weighed.
pub(super) fn bytes(pattern: &str) -> Result<usize, Fault> {
    let within = |pattern: &str, bytes| {
        let alone = json!({ "pattern": pattern });
        let options = jsonschema::options().with_pattern_options(options(bytes));
        options.build(&alone).is_ok()
    };
    if let Some(bytes) = BYTES.into_iter().find(|&bytes| within(pattern, bytes)) {
        return Ok(bytes);
    }
    let once = once(pattern);
    if within(&once, BYTES_MAX) {
        return Err(Fault::Large);
    }
    let going_back = PatternOptions::fancy_regex().size_limit(BYTES_MAX);
    let options = jsonschema::options().with_pattern_options(going_back);
    match options.build(&json!({ "pattern": once })) {
        Ok(_) => Err(Fault::GoesBack),
        // That engine does not know the names of groups.
        Err(_) if once.contains(r"\k<") => Err(Fault::GoesBack),
        Err(_) => Err(Fault::None),
    }
}

/// Fails with the first pattern of `parts` that cannot be used.
pub(super) fn usable(parts: &[Part], pointers: &[String]) -> Result<(), Heavy> {
    let (mut seen, mut left) = (HashSet::new(), Steps(SUM_BYTES_MAX));
    for (part, pointer) in parts.iter().zip(pointers) {
        let own = part.pattern.iter().map(|own| (own, "pattern"));
        let by_pattern = part.by_pattern.iter();
        let by_pattern = by_pattern.map(|(pattern, _)| (pattern, "patternProperties"));
        for (Pattern { text, .. }, key) in own.chain(by_pattern) {
            if !seen.insert(text) {
                continue;
            }
            let (what, why) = match bytes(text) {
                Ok(bytes) if left.spend(bytes as u64).is_ok() => continue,
                Ok(_) => ("is too large together with the others", Why::Large),
                Err(Fault::Large) => ("is too large with its repeats written out", Why::Large),
                Err(Fault::GoesBack) => ("looks around or refers back", Why::GoesBack),
                Err(Fault::None) => ("is not one", Why::NoPattern),
            };
            let mut at = below(pointer, key);
            if key == "patternProperties" {
                at = below(&at, text);
            }
            let what = format!("the `pattern` `{}` {what}", shown(text));
            return Err(Heavy {
                why,
                ..Heavy::new(what, &at)
            });
        }
    }
    Ok(())
}

/// `pattern` with every count of a repeat as one.
fn once(pattern: &str) -> String {
    let mut once = String::with_capacity(pattern.len());
    let mut rest = pattern;
    let mut in_class = false;
    while let Some(next) = rest.chars().next() {
        let mut end = next.len_utf8();
        match next {
            '\\' => {
                let escaped = rest[end..].chars().next();
                end += escaped.map_or(0, char::len_utf8);
                if rest[end..].starts_with('{') {
                    end = rest.find('}').map_or(end, |at| at + 1);
                }
                // A count, but for those that are named in braces.
                if !matches!(escaped, Some('p' | 'P' | 'u' | 'x')) {
                    end = 1 + escaped.map_or(0, char::len_utf8);
                }
            }
            '[' => in_class = true,
            ']' => in_class = false,
            '{' if !in_class => {
                if let Some((count, _)) = rest[end..].split_once('}')
                    && count.starts_with(|c: char| c.is_ascii_digit())
                    && count.chars().all(|c| c.is_ascii_digit() || c == ',')
                {
                    once.push_str("{1}");
                    rest = &rest[end + count.len() + 1..];
                    continue;
                }
            }
            _ => {}
        }
        once.push_str(&rest[..end]);
        rest = &rest[end..];
    }
    once
}

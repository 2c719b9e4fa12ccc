//! What tries patterns: in one pass over the text, whatever the pattern. One that needs more, or is
//! too large when it is compiled, is not used.

use std::collections::HashSet;

use jsonschema::{PatternOptions, Regex};
use serde_json::json;

use super::part::Part;
use super::pattern::Pattern;
use super::reference::below;
use super::{Heavy, Steps, Why};
use crate::wording::one_line;

/// Of a compiled pattern: what the engine takes of its own accord.
const BYTES_MAX: usize = 10 << 20;
/// Sizes that a pattern is tried to be compiled within, each in turn.
const BYTES: [usize; 3] = [16 << 10, 512 << 10, BYTES_MAX];
/// Of all patterns of a schema together.
const SUM_BYTES_MAX: u64 = 32 << 20;
/// Of what is remembered while a pattern is tried.
const MEMORY_BYTES_MAX: usize = 1 << 20;

/// How patterns are compiled, each within `bytes_max`.
fn options(bytes_max: usize) -> PatternOptions<Regex> {
    let options = PatternOptions::regex().size_limit(bytes_max);
    options.dfa_size_limit(MEMORY_BYTES_MAX)
}

/// How the patterns of a schema are compiled.
pub(super) fn usual() -> PatternOptions<Regex> {
    options(BYTES_MAX)
}

fn compiles<E>(pattern: &str, options: PatternOptions<E>) -> bool {
    let alone = json!({ "pattern": pattern });
    let options = jsonschema::options().with_pattern_options(options);
    options.build(&alone).is_ok()
}

/// The size that `pattern` has when it is compiled, at most; none if it cannot be used. Only for
/// those that have been weighed.
pub(super) fn bytes(pattern: &str) -> Option<usize> {
    let mut sizes = BYTES.into_iter();
    sizes.find(|&bytes| compiles(pattern, options(bytes)))
}

/// Why `pattern` cannot be used.
fn fault(pattern: &str) -> (&'static str, Why) {
    let once = once(pattern);
    if compiles(&once, usual()) {
        return ("is too large with its repeats written out", Why::Large);
    }
    let going_back = PatternOptions::fancy_regex().size_limit(BYTES_MAX);
    // That engine does not know the names of groups.
    match compiles(&once, going_back) || once.contains(r"\k<") {
        true => ("looks around or refers back", Why::GoesBack),
        false => ("is not one", Why::NoPattern),
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
                Some(bytes) if left.spend(bytes as u64).is_ok() => continue,
                Some(_) => ("is too large together with the others", Why::Large),
                None => fault(text),
            };
            let mut at = below(pointer, key);
            if key == "patternProperties" {
                at = below(&at, text);
            }
            let what = format!("the `pattern` `{}` {what}", one_line(text));
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
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(next) = chars.next() {
        once.push(next);
        match next {
            '\\' => {
                let Some(escaped) = chars.next() else {
                    break;
                };
                once.push(escaped);
                // Braces with a name or a number in them, and no count.
                if matches!(escaped, 'p' | 'P' | 'u' | 'x') {
                    once.extend(chars.next_if_eq(&'{'));
                }
            }
            '[' => in_class = true,
            ']' => in_class = false,
            '{' if !in_class && chars.peek().is_some_and(char::is_ascii_digit) => {
                while chars.next_if(|c| c.is_ascii_digit() || *c == ',').is_some() {}
                once.push('1');
            }
            _ => {}
        }
    }
    once
}

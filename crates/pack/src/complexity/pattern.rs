//! The cost of patterns. The regex engine tries a pattern in one pass over the text; a pattern is
//! measured with its repeats written out.

use std::collections::HashMap;

use jsonschema::{PatternOptions, Regex};
use regex_syntax::ast::{ErrorKind, parse::Parser};
use regex_syntax::hir::{Class, Hir, HirKind, Look};
use serde_json::json;

use super::ComplexityLimit;

/// Bytes of the text of a pattern: translating it takes quadratic time.
const TEXT_BYTES_MAX: usize = 16 << 10;
/// Bytes of one compiled pattern: the default of the engine.
const COMPILED_BYTES_MAX: usize = 10 << 20;
/// Bytes of the engine's cache while a pattern is tried.
const CACHE_BYTES_MAX: usize = 1 << 20;
/// Bytes of all compiled patterns of a schema, estimated.
const SCHEMA_BYTES_MAX: u64 = 32 << 20;
/// Compiled bytes of one range of characters, about.
const RANGE_BYTES: u64 = 40;
/// Steps of a class of characters with many ranges.
const LARGE_CLASS_STEPS: u64 = 4;

/// How patterns are compiled.
pub(super) fn options() -> PatternOptions<Regex> {
    let options = PatternOptions::regex().size_limit(COMPILED_BYTES_MAX);
    options.dfa_size_limit(CACHE_BYTES_MAX)
}

/// The patterns of a schema: for each text the steps of one character, or the limit that the
/// pattern is over.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    known: HashMap<String, Result<u64, ComplexityLimit>>,
    /// Bytes of the patterns so far, estimated.
    bytes: u64,
}

impl Patterns {
    /// Measures a pattern. Nothing is compiled once the patterns together are too large.
    pub(super) fn measure(&mut self, text: &str) -> Result<u64, ComplexityLimit> {
        if let Some(known) = self.known.get(text) {
            return *known;
        }
        let measured = parse(text).and_then(|hir| {
            let size = sum(&hir, ranges).saturating_mul(RANGE_BYTES);
            if size > SCHEMA_BYTES_MAX {
                return Err(ComplexityLimit::PatternSize);
            }
            self.bytes += size;
            match self.is_full() {
                false if compiles(text) => Ok(active(&hir)),
                _ => Err(ComplexityLimit::PatternSize),
            }
        });
        self.known.insert(text.to_owned(), measured);
        measured
    }

    /// True if the patterns together are over the size limit of a schema.
    pub(super) fn is_full(&self) -> bool {
        self.bytes > SCHEMA_BYTES_MAX
    }

    /// Steps of trying a pattern that is within its limits on `text`.
    pub(super) fn cost(&self, pattern: &str, text: &str) -> u64 {
        let steps = self.known.get(pattern).and_then(|known| known.ok());
        (text.len() as u64).saturating_mul(steps.unwrap_or_default()) / 8
    }
}

/// True if a pattern that can be parsed is within the size limit.
fn compiles(text: &str) -> bool {
    let options = jsonschema::options().with_pattern_options(options());
    options.build(&json!({ "pattern": text })).is_ok()
}

/// The parsed pattern, or the limit that it is over.
fn parse(text: &str) -> Result<Hir, ComplexityLimit> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(ComplexityLimit::PatternSize);
    }
    let translated = jsonschema_regex::to_rust_regex(text).ok();
    let hir = translated.and_then(|text| regex_syntax::parse(&text).ok());
    hir.ok_or_else(|| {
        let error = Parser::new().parse(text).err();
        match error.as_ref().map(|error| error.kind()) {
            Some(ErrorKind::UnsupportedLookAround | ErrorKind::UnsupportedBackreference) => {
                ComplexityLimit::Backtracking
            }
            Some(ErrorKind::EscapeUnrecognized) if text.contains(r"\k<") => {
                ComplexityLimit::Backtracking
            }
            Some(ErrorKind::DecimalInvalid) => ComplexityLimit::PatternSize,
            _ => ComplexityLimit::PatternSyntax,
        }
    })
}

/// The sum over the leaves of a pattern, each as often as it is repeated.
fn sum(hir: &Hir, leaf: fn(&Hir) -> u64) -> u64 {
    match hir.kind() {
        HirKind::Repetition(repeat) => {
            let times = repeat.max.unwrap_or(repeat.min).max(1);
            sum(&repeat.sub, leaf).saturating_mul(times.into())
        }
        HirKind::Capture(group) => sum(&group.sub, leaf).saturating_add(1),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            let parts = parts.iter().map(|part| sum(part, leaf));
            parts.fold(0, u64::saturating_add)
        }
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => leaf(hir),
    }
}

/// The ranges of characters of a leaf.
fn ranges(leaf: &Hir) -> u64 {
    let ranges = match leaf.kind() {
        HirKind::Literal(text) => text.0.len(),
        HirKind::Class(Class::Unicode(class)) => class.ranges().len(),
        HirKind::Class(Class::Bytes(class)) => class.ranges().len(),
        _ => 1,
    };
    ranges as u64
}

/// Steps of one pass through a pattern.
fn steps(hir: &Hir) -> u64 {
    sum(hir, |leaf| match leaf.kind() {
        HirKind::Class(_) if ranges(leaf) > 16 => LARGE_CLASS_STEPS,
        HirKind::Class(_) => 1,
        _ => ranges(leaf),
    })
}

/// Parts of a pattern that can be active at one character.
fn active(hir: &Hir) -> u64 {
    let repeat_of_leaf = |hir: &Hir| match hir.kind() {
        HirKind::Repetition(repeat) => {
            let is_leaf = matches!(repeat.sub.kind(), HirKind::Class(_) | HirKind::Literal(_));
            let bounded = repeat.max.filter(|_| is_leaf);
            bounded.map(|_| (steps(&repeat.sub), u64::from(repeat.min.max(1))))
        }
        _ => None,
    };
    if let Some((leaf, min)) = repeat_of_leaf(hir) {
        // The text matches as soon as the least count is reached.
        return leaf.saturating_mul(min);
    }
    // A repeat right behind `^` is entered once, so it is at one count at a time.
    if let HirKind::Concat(parts) = hir.kind()
        && let [start, first, others @ ..] = &parts[..]
        && *start.kind() == HirKind::Look(Look::Start)
        && let Some((leaf, _)) = repeat_of_leaf(first)
    {
        return others.iter().map(steps).fold(leaf, u64::saturating_add);
    }
    steps(hir)
}

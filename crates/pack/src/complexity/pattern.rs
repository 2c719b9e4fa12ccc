//! Size limits of patterns. The regex engine is linear in text and pattern; a pattern is measured
//! with its repeats written out.

use jsonschema::{PatternOptions, Regex};
use regex_syntax::ast::{ErrorKind, parse::Parser};
use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};
use serde_json::json;

use super::ComplexityLimit;

/// Bytes of the text of a pattern: translating it takes quadratic time.
const TEXT_BYTES_MAX: usize = 16 << 10;
/// Bytes of one compiled pattern: the default of the engine.
const COMPILED_BYTES_MAX: usize = 10 << 20;
/// Bytes of the engine's cache while a pattern is tried.
const CACHE_BYTES_MAX: usize = 1 << 20;
/// Compiled bytes of one range of characters, about.
const RANGE_BYTES: u64 = 40;
/// Steps of a class of characters with many ranges.
const LARGE_CLASS_STEPS: u64 = 4;

/// A pattern with its cost.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub(super) text: String,
    /// Steps of compiling the pattern.
    pub(super) weight: u64,
    /// Parts of the pattern that can be active at the same character.
    active: u64,
    pub(super) bytes: u64,
}

impl Pattern {
    /// Measures a pattern. One that cannot be used costs nothing: the check of patterns refuses it.
    pub(super) fn new(text: &str) -> Self {
        let hir = parse(text).unwrap_or_else(|_| Hir::empty());
        Self {
            text: text.to_owned(),
            weight: steps(&hir),
            active: active(&hir),
            bytes: bytes(&hir),
        }
    }

    /// Steps of trying the pattern on `text`.
    pub(super) fn cost(&self, text: &str) -> u64 {
        (text.len() as u64).saturating_mul(self.active) / 8
    }
}

/// How patterns are compiled.
pub(super) fn options() -> PatternOptions<Regex> {
    let options = PatternOptions::regex().size_limit(COMPILED_BYTES_MAX);
    options.dfa_size_limit(CACHE_BYTES_MAX)
}

/// True if a pattern can be used.
pub(super) fn is_supported(text: &str) -> bool {
    parse(text).is_ok() && compiles(text)
}

/// True if a pattern that can be parsed is within the size limit.
pub(super) fn compiles(text: &str) -> bool {
    let schema = json!({ "pattern": text });
    let options = jsonschema::options().with_pattern_options(options());
    options.build(&schema).is_ok()
}

/// The parsed pattern, or the limit that it is over.
pub(super) fn parse(text: &str) -> Result<Hir, ComplexityLimit> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(ComplexityLimit::PatternSize);
    }
    let translated = jsonschema_regex::to_rust_regex(text);
    let hir = translated
        .ok()
        .and_then(|text| regex_syntax::parse(&text).ok());
    hir.ok_or_else(|| {
        let error = Parser::new().parse(text).err();
        let kind = error.as_ref().map(|error| error.kind());
        match kind {
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

/// The sum over the parts of a pattern, each as often as it is repeated.
fn sum(hir: &Hir, leaf: fn(&Hir) -> u64) -> u64 {
    let all = |parts: &[Hir]| {
        let parts = parts.iter().map(|part| sum(part, leaf));
        parts.fold(0, u64::saturating_add)
    };
    match hir.kind() {
        HirKind::Repetition(repeat) => {
            let times = repeat.max.unwrap_or(repeat.min).max(1);
            sum(&repeat.sub, leaf).saturating_mul(times.into())
        }
        HirKind::Capture(group) => sum(&group.sub, leaf).saturating_add(1),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => all(parts),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => leaf(hir),
    }
}

/// Steps of one pass through a pattern.
fn steps(hir: &Hir) -> u64 {
    sum(hir, |leaf| match leaf.kind() {
        HirKind::Literal(text) => text.0.len() as u64,
        HirKind::Class(class) if ranges(class) > 16 => LARGE_CLASS_STEPS,
        _ => 1,
    })
}

/// Bytes of a compiled pattern.
fn bytes(hir: &Hir) -> u64 {
    sum(hir, |leaf| match leaf.kind() {
        HirKind::Literal(text) => text.0.len() as u64 * RANGE_BYTES,
        HirKind::Class(class) => ranges(class) * RANGE_BYTES,
        _ => RANGE_BYTES,
    })
}

fn ranges(class: &Class) -> u64 {
    match class {
        Class::Unicode(class) => class.ranges().len() as u64,
        Class::Bytes(class) => class.ranges().len() as u64,
    }
}

/// Parts of a pattern that can be active at once. A repeat at the beginning that is entered once
/// is at one count at a time, however high it counts.
fn active(hir: &Hir) -> u64 {
    let HirKind::Concat(parts) = hir.kind() else {
        return match single(hir) {
            // The text matches as soon as the least count is reached.
            Some(repeat) => steps(&repeat.sub).saturating_mul(repeat.min.max(1).into()),
            None => steps(hir),
        };
    };
    match &parts[..] {
        [start, first, others @ ..] if *start.kind() == HirKind::Look(Look::Start) => {
            match single(first) {
                Some(repeat) => {
                    let others = others.iter().map(steps);
                    others.fold(steps(&repeat.sub), u64::saturating_add)
                }
                None => steps(hir),
            }
        }
        _ => steps(hir),
    }
}

/// A bounded repeat of one character or class.
fn single(hir: &Hir) -> Option<&Repetition> {
    let HirKind::Repetition(repeat) = hir.kind() else {
        return None;
    };
    let is_one = match repeat.sub.kind() {
        HirKind::Class(_) => true,
        HirKind::Literal(text) => {
            std::str::from_utf8(&text.0).is_ok_and(|text| text.chars().count() == 1)
        }
        _ => false,
    };
    (is_one && repeat.max.is_some()).then_some(repeat)
}

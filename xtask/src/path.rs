//! The paths a file names inside its own crate, as absolute module paths with where they stand.
//!
//! `crate::a::b`, `super::b` and `self::b` are resolved from the file's own module; groups
//! `{a, b::c}` are taken apart. What exists only in tests is left out.

use std::ops::Range;

use crate::scan::{block_end, is_name};
use crate::source::Source;

/// A path named in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The offset of its first segment after `crate`, `super` or `self`.
    pub at: usize,
    /// Its segments from the crate's root: modules, then perhaps items.
    pub segments: Vec<String>,
}

/// Every path of `file` that begins in its own crate.
pub fn paths(file: &Source) -> Vec<Path> {
    let Some(module) = file.module() else {
        return Vec::new();
    };
    let code = &file.scan.code;
    let inline = inline_modules(code);
    let mut found = Vec::new();
    for word in ["crate::", "super::", "self::"] {
        for at in file.scan.finds(word) {
            let before = code[..at].bytes().next_back();
            let inside = code[..at].ends_with("::");
            if inside || before.is_some_and(|b| is_name(b) || b == b'$') {
                continue;
            }
            let supers = code[at..]
                .split("super::")
                .take_while(|part| part.is_empty());
            let up = match word {
                "super::" => supers.count(),
                _ => 0,
            };
            // An inline module is one more step down that `super` climbs first.
            let deeper = inline.iter().filter(|range| range.contains(&at)).count();
            let climbs = up.saturating_sub(deeper);
            let base = match word {
                "crate::" => &[][..],
                _ if up < deeper || (up == 0 && deeper > 0) => continue,
                _ => &module[..module.len().saturating_sub(climbs)],
            };
            let base: Vec<String> = base.iter().map(|&name| name.to_owned()).collect();
            let start = at + word.len() * up.max(1);
            walk(code, start, &base, &mut found);
        }
    }
    found
}

fn inline_modules(code: &str) -> Vec<Range<usize>> {
    code.match_indices("mod ")
        .filter(|&(at, _)| at == 0 || !is_name(code.as_bytes()[at - 1]))
        .filter_map(|(at, _)| {
            let stop = at + code[at..].find(['{', ';'])?;
            (code.as_bytes()[stop] == b'{').then(|| at..block_end(code, stop))
        })
        .collect()
}

/// The path at `at`, or each path of the group there, behind `base`.
fn walk(code: &str, at: usize, base: &[String], found: &mut Vec<Path>) {
    let bytes = code.as_bytes();
    let mut segments = base.to_vec();
    let mut here = at;
    loop {
        if bytes.get(here) == Some(&b'{') {
            return group(code, here, &segments, found);
        }
        let length = bytes[here..].iter().take_while(|&&b| is_name(b)).count();
        if length == 0 {
            break;
        }
        segments.push(code[here..here + length].to_owned());
        here += length;
        if !code[here..].starts_with("::") {
            break;
        }
        here += 2;
    }
    found.push(Path { at, segments });
}

fn group(code: &str, open: usize, base: &[String], found: &mut Vec<Path>) {
    let end = block_end(code, open);
    let mut depth = 0usize;
    let mut start = true;
    for (at, byte) in code.bytes().enumerate().take(end).skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 1 => start = true,
            byte if start && depth == 1 && is_name(byte) => {
                walk(code, at, base, found);
                start = false;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(path: &str, text: &str) -> Vec<String> {
        let source = Source::new(&format!("crates/x/src/{path}"), text);
        let mut all: Vec<_> = paths(&source)
            .iter()
            .map(|p| p.segments.join("::"))
            .collect();
        all.sort();
        all
    }

    #[test]
    fn paths_are_resolved_from_the_files_own_module() {
        assert_eq!(named("a/b.rs", "use crate::c::D;"), ["c::D"]);
        assert_eq!(named("a/b.rs", "use super::c;"), ["a::c"]);
        assert_eq!(named("a/b.rs", "use super::super::c;"), ["c"]);
        assert_eq!(
            named("a.rs", "use self::c::D;\nuse super::e;"),
            ["a::c::D", "e"]
        );
        assert_eq!(named("a.rs", "fn f() { crate::c::d(); }"), ["c::d"]);
    }

    #[test]
    fn groups_are_taken_apart() {
        let text = "use crate::{a, b::{c, d::E}, f::*};";
        assert_eq!(named("x.rs", text), ["a", "b::c", "b::d::E", "f"]);
    }

    #[test]
    fn an_inline_module_is_one_step_down() {
        let text = "mod inner { use super::c; use super::super::d; }";
        assert_eq!(named("a.rs", text), ["a::c", "d"]);
    }

    #[test]
    fn other_crates_macros_comments_and_tests_do_not_count() {
        let text = "use my_crate::a; $crate::b; // crate::c\n\"crate::d\";\n#[cfg(test)]\nmod t { use crate::e; }";
        assert_eq!(named("a.rs", text), [""; 0]);
    }
}

//! The paths that a file names inside its own crate, as module paths from the crate's root.
//!
//! `crate::a::b`, `super::b` and `self::b` are resolved from the file's own module; groups
//! `{a, b::c}` are taken apart. Code that exists only in tests is left out.

use std::ops::Range;

use crate::scan::{block_end, is_name};
use crate::source::Source;

/// A path named in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CratePath {
    /// The offset of the first segment after `crate`, `super` or `self`.
    pub at: usize,
    /// The segments from the crate's root: modules, then perhaps items.
    pub segments: Vec<String>,
    /// The name that a `use` of this path brings into scope; `None` for a glob.
    pub binding: Option<String>,
}

/// Every path of `file` that begins with `crate`, `super` or `self`.
pub fn paths(file: &Source) -> Vec<CratePath> {
    let Some(module) = file.module() else {
        return Vec::new();
    };
    let code = &file.scan.code;
    let inline = inline_modules(code);
    let mut paths = Vec::new();
    for word in ["crate::", "super::", "self::"] {
        for at in file.scan.finds(word) {
            let before = code[..at].bytes().next_back();
            let is_inner_segment = code[..at].ends_with("::");
            if is_inner_segment || before.is_some_and(|b| is_name(b) || b == b'$') {
                continue;
            }
            let depth = inline.iter().filter(|range| range.contains(&at)).count();
            if let Some((base, start)) = base(code, at, &module, depth) {
                walk(code, start, &base, &mut paths);
            }
        }
    }
    paths
}

/// What the `use` statements of `file` bring into the scope of its module, as far as it comes from
/// the same crate. `children` are the modules that the file declares.
pub fn imports(file: &Source, children: &[String]) -> Vec<CratePath> {
    let Some(module) = file.module() else {
        return Vec::new();
    };
    let code = &file.scan.code;
    let inline = inline_modules(code);
    let mut paths = Vec::new();
    for at in file.scan.finds("use ") {
        let before = code[..at].bytes().next_back();
        let is_nested = inline.iter().any(|range| range.contains(&at));
        if is_nested || before.is_some_and(is_name) {
            continue;
        }
        let start = at + "use ".len();
        let first: String = name_at(code, start);
        if children.contains(&first) {
            let base: Vec<String> = module.iter().map(|&name| name.to_owned()).collect();
            walk(code, start, &base, &mut paths);
        } else if let Some((base, start)) = base(code, start, &module, 0) {
            walk(code, start, &base, &mut paths);
        }
    }
    paths
}

/// The module that the path at `at` starts from and the offset of its first segment, if it begins with
/// `crate`, `super` or `self`. `depth` inline modules are around it: `super` leaves them first.
fn base(code: &str, at: usize, module: &[&str], depth: usize) -> Option<(Vec<String>, usize)> {
    let own = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let tail = &code[at..];
    if tail.starts_with("crate::") {
        return Some((Vec::new(), at + "crate::".len()));
    }
    if tail.starts_with("self::") {
        return (depth == 0).then(|| (own(module), at + "self::".len()));
    }
    let supers = tail
        .split("super::")
        .take_while(|part| part.is_empty())
        .count();
    if supers == 0 || supers < depth {
        return None;
    }
    let climbs = supers - depth;
    let base = &module[..module.len().saturating_sub(climbs)];
    Some((own(base), at + "super::".len() * supers))
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

fn name_at(code: &str, at: usize) -> String {
    let bytes = code[at..].bytes().take_while(|&byte| is_name(byte));
    bytes.map(char::from).collect()
}

/// Adds the path at `at`, or each path of the group there, behind `base`.
fn walk(code: &str, at: usize, base: &[String], paths: &mut Vec<CratePath>) {
    let mut segments = base.to_vec();
    let mut position = at;
    loop {
        if code[position..].starts_with('{') {
            return walk_group(code, position, &segments, paths);
        }
        let name = name_at(code, position);
        if name.is_empty() {
            break;
        }
        position += name.len();
        // `a::{self}` is `a`.
        if name != "self" {
            segments.push(name);
        }
        if !code[position..].starts_with("::") {
            break;
        }
        position += 2;
    }
    let after = code[position..].trim_start();
    let alias = after.strip_prefix("as ").map(|rest| name_at(rest, 0));
    let is_glob = code[position..].starts_with('*');
    let binding = alias.or_else(|| segments.last().cloned());
    paths.push(CratePath {
        at,
        segments,
        binding: binding.filter(|_| !is_glob),
    });
}

fn walk_group(code: &str, open: usize, base: &[String], paths: &mut Vec<CratePath>) {
    let end = block_end(code, open);
    let mut depth = 0usize;
    let mut expects_path = true;
    for (at, byte) in code.bytes().enumerate().take(end).skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 1 => expects_path = true,
            byte if expects_path && depth == 1 && (is_name(byte) || byte == b'*') => {
                walk(code, at, base, paths);
                expects_path = false;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(paths: &[CratePath]) -> Vec<String> {
        let mut joined: Vec<_> = paths.iter().map(|p| p.segments.join("::")).collect();
        joined.sort();
        joined
    }

    fn named(path: &str, text: &str) -> Vec<String> {
        let source = Source::new(&format!("crates/x/src/{path}"), text);
        shown(&paths(&source))
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
    fn use_groups_are_expanded() {
        let text = "use crate::{a, b::{self, c, d::E}, f::*};";
        assert_eq!(named("x.rs", text), ["a", "b", "b::c", "b::d::E", "f"]);
    }

    #[test]
    fn inline_module_is_one_level_down() {
        let text = "mod inner { use super::c; use super::super::d; }";
        assert_eq!(named("a.rs", text), ["a::c", "d"]);
    }

    #[test]
    fn other_crates_macros_comments_and_tests_do_not_count() {
        let text = "use my_crate::a; $crate::b; // crate::c\n\"crate::d\";\n#[cfg(test)]\nmod t { use crate::e; }";
        assert_eq!(named("a.rs", text), [""; 0]);
    }

    #[test]
    fn imports_have_the_name_they_bind() {
        let text = "pub use child::{One, Two as Second};\nuse crate::c::D as E;\nuse serde::F;\n\
                    pub(crate) use super::g::*;\nmod inner { use super::H; }\n";
        let source = Source::new("crates/x/src/a/b.rs", text);
        let imports = imports(&source, &["child".to_owned()]);
        let pairs: Vec<_> = imports
            .iter()
            .map(|path| (path.binding.as_deref(), path.segments.join("::")))
            .collect();
        let expected = [
            (Some("One"), "a::b::child::One"),
            (Some("Second"), "a::b::child::Two"),
            (Some("E"), "c::D"),
            (None, "a::g"),
        ];
        assert_eq!(pairs, expected.map(|(name, path)| (name, path.to_owned())));
    }
}

//! Module order: in a crate, a module may only use modules listed above it in `lib.rs`, and no
//! modules inside another may form a circle.
//!
//! That makes `lib.rs`, read from the top, the flow of the data. Modules count by their first path
//! segment; names re-exported by `lib.rs` count as the module they come from.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::finding::Finding;
use crate::path::{Path, paths};
use crate::scan::is_name;
use crate::source::Source;

/// What a crate's root file says: its modules in order, and where re-exported names come from.
#[derive(Debug, Default)]
struct Root {
    file: String,
    order: HashMap<String, usize>,
    reexports: HashMap<String, String>,
}

/// Uses that point down the list, and circles.
pub fn backward(sources: &[Source]) -> Vec<Finding> {
    let mut members: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in sources {
        members.entry(source.member()).or_default().push(source);
    }
    let mut found = Vec::new();
    for files in members.values() {
        let Some(root) = files.iter().find_map(|file| root(file, files)) else {
            continue;
        };
        let of_src = files.iter().filter(|file| !file.is_test());
        let named: Vec<(&Source, Vec<Path>)> = of_src.map(|file| (*file, paths(file))).collect();
        for (file, paths) in &named {
            found.extend(check(&root, file, paths));
        }
        found.extend(circles(&root, &named));
    }
    found
}

/// The crate's root, if `file` is it: `lib.rs`, or `main.rs` where there is no library.
fn root(file: &Source, files: &[&Source]) -> Option<Root> {
    let is = |name: &str, file: &Source| file.path == format!("{}/src/{name}", file.member());
    let has_lib = files.iter().any(|other| is("lib.rs", other));
    if !(is("lib.rs", file) || (!has_lib && is("main.rs", file))) {
        return None;
    }
    let mut root = Root {
        file: file.path.clone(),
        ..Root::default()
    };
    for line in file.scan.code.lines().map(str::trim) {
        let line = line.strip_prefix("pub ").unwrap_or(line);
        let line = line.strip_prefix("pub(crate) ").unwrap_or(line);
        if let Some(name) = line.strip_prefix("mod ").and_then(|l| l.strip_suffix(';')) {
            root.order.insert(name.to_owned(), root.order.len());
        }
    }
    for (at, _) in file.scan.code.match_indices("pub use ") {
        let rest = &file.scan.code[at + "pub use ".len()..];
        let statement = &rest[..rest.find(';').unwrap_or(rest.len())];
        let statement = statement.trim_start_matches("crate::");
        let Some((module, names)) = statement.split_once("::") else {
            continue;
        };
        for name in names.split(|c: char| !c.is_ascii() || !is_name(c as u8)) {
            root.reexports
                .insert(name.to_owned(), module.trim().to_owned());
        }
    }
    Some(root)
}

fn check(root: &Root, file: &Source, paths: &[Path]) -> Vec<Finding> {
    let Some(module) = file.module().filter(|module| !module.is_empty()) else {
        return Vec::new();
    };
    let Some(&own) = root.order.get(module[0]) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for path in paths {
        let Some(first) = path.segments.first() else {
            continue;
        };
        let target = root.reexports.get(first).unwrap_or(first);
        if let Some(&index) = root.order.get(target)
            && index > own
        {
            let message = format!(
                "`{}` uses `{target}`, which {} lists below it: move the code or the module",
                module[0], root.file
            );
            found.push(Finding::at(&file.path, file.scan.line(path.at), message));
        }
    }
    found
}

/// Modules inside one module that use each other in a circle. The top level needs no such look:
/// its order already forbids them.
fn circles(root: &Root, named: &[(&Source, Vec<Path>)]) -> Vec<Finding> {
    let modules: BTreeSet<Vec<&str>> = named.iter().filter_map(|(file, _)| file.module()).collect();
    let mut edges: BTreeMap<Vec<&str>, BTreeSet<Vec<&str>>> = BTreeMap::new();
    for (file, paths) in named {
        let Some(from) = file.module() else {
            continue;
        };
        for path in paths {
            let shared = from
                .iter()
                .zip(&path.segments)
                .take_while(|(a, b)| a == b)
                .count();
            let to: Vec<&str> = path
                .segments
                .iter()
                .take(shared + 1)
                .map(String::as_str)
                .collect();
            // Both must be modules beside each other, inside another one.
            if shared == 0 || shared >= from.len() || !modules.contains(&to) {
                continue;
            }
            edges
                .entry(from[..=shared].to_vec())
                .or_default()
                .insert(to);
        }
    }
    let round = |from: &Vec<&str>| reaches(&edges, from, from);
    let bad: Vec<_> = edges.keys().filter(|from| round(from)).collect();
    bad.iter()
        .map(|module| {
            let message = format!("`{}` is part of a circle of modules", module.join("::"));
            Finding::about(&root.file, message)
        })
        .collect()
}

fn reaches<'a>(
    edges: &BTreeMap<Vec<&'a str>, BTreeSet<Vec<&'a str>>>,
    from: &Vec<&'a str>,
    goal: &Vec<&'a str>,
) -> bool {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&Vec<&str>> = edges.get(from).into_iter().flatten().collect();
    while let Some(module) = open.pop() {
        if module == goal {
            return true;
        }
        if seen.insert(module) {
            open.extend(edges.get(module).into_iter().flatten());
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<_> = files
            .iter()
            .map(|(path, text)| Source::new(&format!("crates/a/src/{path}"), text))
            .collect();
        backward(&sources).iter().map(Finding::to_string).collect()
    }

    const LIB: &str = "pub mod id;\nmod word;\npub mod book;\n\npub use book::{Book, Page};\n";

    #[test]
    fn a_use_of_a_module_below_is_named() {
        let message = "`word` uses `book`, which crates/a/src/lib.rs lists below it: \
                       move the code or the module";
        let bad = [
            "use crate::book::Page;\n",
            "use crate::{id, book::Page};\n",
            "use crate::Page;\n",
            "fn f() { crate::book::open() }\n",
            "use super::book::Page;\n",
            "mod inner { use super::super::book::Page; }\n",
        ];
        for text in bad {
            assert_eq!(
                found(&[("lib.rs", LIB), ("word.rs", text)]),
                [format!("crates/a/src/word.rs:1: {message}")],
                "{text}"
            );
        }
        let nested = [
            ("lib.rs", LIB),
            ("word/deep.rs", "\nuse super::super::book;\n"),
        ];
        assert_eq!(
            found(&nested),
            [format!("crates/a/src/word/deep.rs:2: {message}")]
        );
    }

    #[test]
    fn uses_that_point_up_or_inside_are_fine() {
        let good = [
            "use crate::id::Id;\nuse crate::word::deep::X;\n",
            "// crate::book\nlet x = \"crate::book\";\n",
            "#[cfg(test)]\nmod tests { use crate::book::Page; }\n",
            "mod inner { use super::book; }\n",
            "use other_crate::book::Page;\n",
        ];
        for text in good {
            let files = [("lib.rs", LIB), ("word.rs", text)];
            assert_eq!(found(&files), [""; 0], "{text}");
        }
        let test = [
            ("lib.rs", LIB),
            ("word/tests.rs", "use crate::book::Page;\n"),
        ];
        assert_eq!(found(&test), [""; 0]);
    }

    #[test]
    fn a_circle_inside_a_module_is_named() {
        let round = [
            ("lib.rs", LIB),
            ("word/a.rs", "use super::b::B;\n"),
            ("word/b.rs", "use crate::word::c::C;\n"),
            ("word/c.rs", "use super::{a::A, d::D};\n"),
            ("word/d.rs", "use crate::id::Id;\n"),
        ];
        let lines = ["a", "b", "c"].map(|name| {
            format!("crates/a/src/lib.rs: `word::{name}` is part of a circle of modules")
        });
        assert_eq!(found(&round), lines);
        assert_eq!(found(&round[..3]), [""; 0]);
    }

    #[test]
    fn a_binary_without_a_library_is_held_to_its_main() {
        let main = "mod id;\nmod book;\nfn main() {}\n";
        let files = [("main.rs", main), ("id.rs", "use crate::book;\n")];
        assert_eq!(found(&files).len(), 1);
    }
}

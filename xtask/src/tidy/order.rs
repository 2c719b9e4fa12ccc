//! Module order: a module may only use modules that are listed above it.
//!
//! The rule holds at every depth. For a use of module `B` in module `A`, take the first segment where
//! the two paths differ: the module file that declares both must list `B`'s segment above `A`'s. So
//! each list of `mod` lines, read from the top, is the flow of the data, and no modules beside each
//! other depend on each other in a cycle.
//!
//! ```text
//! A = turn::cancel::receipt    B = turn::queue::line     turn.rs lists `queue` above `cancel`
//! A = turn::cancel             B = turn                  an item of turn.rs itself: no order
//! A = turn                     B = turn::cancel          a module may use all that it contains
//! ```
//!
//! A name that a module imports or re-exports counts as the module that defines it.

use std::collections::{BTreeMap, HashMap};

use super::path::{CratePath, imports, paths};
use crate::finding::Finding;
use crate::source::Source;

/// A module's path from the root of its crate.
type ModulePath = Vec<String>;

/// What a module file declares.
#[derive(Debug, Default)]
struct Declarations {
    file: String,
    /// The modules inside it, in the order of the file.
    children: Vec<String>,
    /// The names it imports from its own crate, with the paths they stand for.
    imports: HashMap<String, ModulePath>,
}

/// The modules of one crate.
struct CrateModules(HashMap<ModulePath, Declarations>);

/// A use that points down a list of modules, as the two paths show it.
#[derive(Debug, PartialEq, Eq)]
struct BackArrow {
    from: String,
    to: String,
    list: String,
}

/// Uses that point down a list of modules, and globs that hide what is used.
pub fn backward(sources: &[Source]) -> Vec<Finding> {
    let mut members: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        members.entry(source.member()).or_default().push(source);
    }
    let mut findings = Vec::new();
    for files in members.into_values() {
        let modules = CrateModules::new(&files);
        for file in files {
            for path in paths(file) {
                let line = file.scan.line(path.at);
                if path.binding.is_none() {
                    let message = "a glob import hides what it uses: name the items";
                    findings.push(Finding::at(&file.path, line, message));
                }
                let Some(arrow) = modules.back_arrow(file, &path) else {
                    continue;
                };
                let message = format!(
                    "`{}` uses `{}`, which {} lists below it: move the code or the module",
                    arrow.from, arrow.to, arrow.list
                );
                findings.push(Finding::at(&file.path, line, message));
            }
        }
    }
    findings.dedup();
    findings
}

impl CrateModules {
    fn new(files: &[&Source]) -> Self {
        let has_library = files.iter().any(|file| file.path.ends_with("/src/lib.rs"));
        let is_root = |file: &Source| {
            let name = if has_library { "lib.rs" } else { "main.rs" };
            file.path == format!("{}/src/{name}", file.member())
        };
        let mut modules = HashMap::new();
        for file in files {
            let Some(module) = file.module() else {
                continue;
            };
            if module.is_empty() && !is_root(file) {
                continue;
            }
            let children = children(file);
            let imports = imports(file, &children)
                .into_iter()
                .filter_map(|path| Some((path.binding?, path.segments)));
            let declarations = Declarations {
                file: file.path.clone(),
                imports: imports.collect(),
                children,
            };
            modules.insert(
                module.into_iter().map(str::to_owned).collect(),
                declarations,
            );
        }
        Self(modules)
    }

    /// The arrow of `path`, named in `file`, if it points down a list.
    fn back_arrow(&self, file: &Source, path: &CratePath) -> Option<BackArrow> {
        let from: ModulePath = file.module()?.into_iter().map(str::to_owned).collect();
        let to = self.defining_module(&path.segments);
        let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
        let (own, target) = (from.get(shared)?, to.get(shared)?);
        let list = self.0.get(&from[..shared])?;
        let place = |name: &String| list.children.iter().position(|child| child == name);
        (place(target)? > place(own)?).then(|| BackArrow {
            from: from[..=shared].join("::"),
            to: to[..=shared].join("::"),
            list: list.file.clone(),
        })
    }

    /// The module that defines the item at `path`: goes down declared modules and follows imports.
    fn defining_module(&self, path: &[String]) -> ModulePath {
        let mut module = ModulePath::new();
        let mut remaining = path.to_vec();
        // A chain of imports is short; two modules that import from each other would never end.
        let mut hops = 8;
        while let Some(declarations) = self.0.get(&module)
            && !remaining.is_empty()
        {
            let name = remaining.remove(0);
            if declarations.children.contains(&name) {
                module.push(name);
            } else if let Some(target) = declarations.imports.get(&name)
                && hops > 0
            {
                hops -= 1;
                let mut path = target.clone();
                path.extend(remaining);
                (module, remaining) = (ModulePath::new(), path);
            } else {
                break;
            }
        }
        module
    }
}

/// The modules that a file declares, those for tests left out.
fn children(file: &Source) -> Vec<String> {
    let mut children = Vec::new();
    let mut at = 0;
    for line in file.scan.code.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let declaration = line.trim();
        let declaration = match declaration.strip_prefix("pub") {
            None => declaration,
            Some(rest) if rest.starts_with('(') => rest.split_once(") ").map_or("", |(_, r)| r),
            Some(rest) => rest.trim_start(),
        };
        let name = declaration.strip_prefix("mod ");
        let name = name.and_then(|name| name.strip_suffix(';'));
        if let Some(name) = name.filter(|_| !file.scan.in_test(start)) {
            children.push(name.to_owned());
        }
    }
    children
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<_> = files
            .iter()
            .map(|(path, text)| Source::new(&format!("crates/a/src/{path}"), text))
            .collect();
        backward(&sources).iter().map(Finding::to_string).collect()
    }

    const LIB: &str =
        "pub mod id;\nmod word;\npub mod book;\n\npub use book::{Book, Page as Leaf};\n";

    #[test]
    fn use_of_a_module_below_is_a_finding() {
        let message = "`word` uses `book`, which crates/a/src/lib.rs lists below it: \
                       move the code or the module";
        let bad = [
            "use crate::book::Page;\n",
            "use crate::{id, book::Page};\n",
            "use crate::Leaf;\n",
            "fn f() { crate::book::open() }\n",
            "use super::book::Page;\n",
            "mod inner { use super::super::book::Page; }\n",
        ];
        for text in bad {
            let files = [("lib.rs", LIB), ("word.rs", text), ("book.rs", "")];
            let expected = format!("crates/a/src/word.rs:1: {message}");
            assert_eq!(findings(&files), [expected], "{text}");
        }
        let nested = [
            ("lib.rs", LIB),
            ("word.rs", "mod deep;\n"),
            ("word/deep.rs", "\nuse super::super::book;\n"),
            ("book.rs", ""),
        ];
        let expected = format!("crates/a/src/word/deep.rs:2: {message}");
        assert_eq!(findings(&nested), [expected]);
    }

    #[test]
    fn use_of_a_module_above_or_inside_is_allowed() {
        let good = [
            "use crate::id::Id;\nuse crate::word::deep::X;\n",
            "// crate::book\nlet x = \"crate::book\";\n",
            "#[cfg(test)]\nmod tests { use crate::book::Page; }\n",
            "mod inner { use super::book; }\n",
            "use other_crate::book::Page;\n",
        ];
        for text in good {
            let files = [("lib.rs", LIB), ("word.rs", text), ("book.rs", "")];
            assert_eq!(findings(&files), [""; 0], "{text}");
        }
        let test = [
            ("lib.rs", LIB),
            ("word/tests.rs", "use crate::book::Page;\n"),
        ];
        assert_eq!(findings(&test), [""; 0]);
    }

    /// Three modules inside `word`, in the order a, b, c; `b` re-exports a type of its own child.
    fn inside_word(path: &str, text: &str) -> Vec<String> {
        let mut files = vec![
            ("lib.rs", LIB),
            (
                "word.rs",
                "mod a;\npub(crate) mod b;\npub(super) mod c;\nuse c::C;\npub struct Own;\n",
            ),
            ("word/a.rs", ""),
            (
                "word/b.rs",
                "mod deep;\npub use deep::Deep;\nuse crate::id::Id;\n",
            ),
            ("word/b/deep.rs", ""),
            ("word/c.rs", ""),
        ];
        let place = files.iter().position(|(file, _)| *file == path);
        files[place.expect("one of the files")].1 = text;
        findings(&files)
    }

    #[test]
    fn order_holds_inside_a_module() {
        let below = |from: &str, to: &str| {
            format!(
                "`word::{from}` uses `word::{to}`, which crates/a/src/word.rs lists below it: move the code or the module"
            )
        };
        let bad = [
            ("word/a.rs", "use super::b::B;\n", below("a", "b")),
            ("word/a.rs", "use crate::word::b::Deep;\n", below("a", "b")),
            ("word/a.rs", "use super::C;\n", below("a", "c")),
            ("word/b/deep.rs", "use super::super::c;\n", below("b", "c")),
            ("word/b/deep.rs", "use crate::word::C;\n", below("b", "c")),
        ];
        for (path, text, message) in bad {
            let expected = format!("crates/a/src/{path}:1: {message}");
            assert_eq!(inside_word(path, text), [expected], "{text}");
        }
        let good = [
            ("word/c.rs", "use super::{a::A, b::Deep, Own};\n"),
            ("word/a.rs", "use super::Own;\nuse crate::id::Id;\n"),
            ("word/b/deep.rs", "use crate::word::a::A;\nuse super::Id;\n"),
        ];
        for (path, text) in good {
            assert_eq!(inside_word(path, text), [""; 0], "{text}");
        }
    }

    #[test]
    fn two_modules_that_use_each_other_are_a_finding() {
        let files = [
            ("lib.rs", LIB),
            ("word.rs", "mod a;\nmod b;\n"),
            ("word/a.rs", "use super::b::B;\n"),
            ("word/b.rs", "use super::a::A;\n"),
        ];
        assert_eq!(findings(&files).len(), 1);
    }

    #[test]
    fn names_imported_in_a_circle_end_the_search() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\n"),
            ("a.rs", "pub use crate::b::X;\n"),
            ("b.rs", "pub use crate::a::X;\n"),
        ];
        findings(&files);
    }

    #[test]
    fn glob_import_is_a_finding() {
        let files = [("lib.rs", LIB), ("word.rs", "use crate::id::*;\n")];
        let expected = "crates/a/src/word.rs:1: a glob import hides what it uses: name the items";
        assert_eq!(findings(&files), [expected]);
    }

    #[test]
    fn binary_without_a_library_has_the_order_of_its_main() {
        let main = "mod id;\nmod book;\nfn main() {}\n";
        let files = [("main.rs", main), ("id.rs", "use crate::book;\n")];
        assert_eq!(findings(&files).len(), 1);
    }
}

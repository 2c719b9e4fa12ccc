//! The Rust files of the workspace, read once, with the crate and the module of each.
//!
//! In: the root of the repository. Out: every `.rs` file of every member, in path order.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::finding::Finding;
use crate::scan::Scan;

/// A Rust file of the workspace.
#[derive(Debug)]
pub struct Source {
    /// The path from the root of the repository, with `/`.
    pub path: String,
    pub text: String,
    pub scan: Scan,
}

impl Source {
    /// A file from its text.
    pub fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            scan: Scan::new(text),
        }
    }

    /// The folder of the crate that contains the file.
    pub fn member(&self) -> &str {
        let inside = ["/src/", "/tests/", "/benches/", "/examples/"];
        let end = inside.iter().filter_map(|dir| self.path.find(dir)).min();
        end.map_or("", |end| &self.path[..end])
    }

    /// The module path inside the crate's library or binary; `None` outside of `src`.
    pub fn module(&self) -> Option<Vec<&str>> {
        let inside = self
            .path
            .strip_prefix(self.member())?
            .strip_prefix("/src/")?;
        let stem = inside.strip_suffix(".rs")?;
        if inside.starts_with("bin/") || stem == "lib" || stem == "main" {
            return Some(Vec::new());
        }
        Some(stem.trim_end_matches("/mod").split('/').collect())
    }

    /// True if only tests compile the file.
    pub fn is_test(&self) -> bool {
        let inside = self.path.strip_prefix(self.member()).unwrap_or(&self.path);
        let of_tests = |part: &str| part == "tests" || part == "tests.rs" || part == "benches";
        inside.split('/').any(of_tests)
    }
}

/// Every Rust file of the members, in path order.
pub fn all(root: &Path) -> Result<Vec<Source>> {
    let mut files = Vec::new();
    let members = [
        "crates",
        "apps",
        "xtask",
        "schemagen",
        "e2e",
        "bench",
        "fuzz/targets",
    ];
    for dir in members {
        walk(&root.join(dir), &mut files)?;
    }
    files.sort();
    files
        .iter()
        .map(|file| {
            let text = std::fs::read_to_string(file)
                .with_context(|| format!("reading {}", file.display()))?;
            let path = file.strip_prefix(root).unwrap_or(file);
            Ok(Source::new(
                &path.to_string_lossy().replace('\\', "/"),
                &text,
            ))
        })
        .collect()
}

fn walk(dir: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if !dir.exists() {
        return Ok(());
    }
    for entry in std::fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() {
            if name != "target" && name != "node_modules" {
                walk(&path, files)?;
            }
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// Files without a module comment at the top.
pub fn undocumented(sources: &[Source]) -> Vec<Finding> {
    sources
        .iter()
        .filter(|source| !source.text.starts_with("//!"))
        .map(|source| {
            let message = "the first line must be `//!`: say what the file holds";
            Finding::at(&source.path, 1, message)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_without_module_comment_is_a_finding() {
        let sources = [
            Source::new("crates/a/src/lib.rs", "//! Fine.\n"),
            Source::new("crates/a/src/b.rs", "use x;\n//! Too late.\n"),
        ];
        let findings: Vec<_> = undocumented(&sources)
            .iter()
            .map(Finding::to_string)
            .collect();
        assert_eq!(
            findings,
            ["crates/a/src/b.rs:1: the first line must be `//!`: say what the file holds"]
        );
    }

    #[test]
    fn path_gives_crate_module_and_test_flag() {
        let module = |path| Source::new(path, "").module().map(|m| m.join("::"));
        assert_eq!(module("crates/a/src/lib.rs"), Some(String::new()));
        assert_eq!(module("crates/a/src/b.rs"), Some("b".into()));
        assert_eq!(module("crates/a/src/b/c.rs"), Some("b::c".into()));
        assert_eq!(module("crates/a/src/b/mod.rs"), Some("b".into()));
        assert_eq!(module("crates/a/tests/b.rs"), None);
        assert_eq!(Source::new("crates/a/src/b/c.rs", "").member(), "crates/a");
        assert!(Source::new("crates/a/src/b/tests.rs", "").is_test());
        assert!(Source::new("crates/a/tests/b.rs", "").is_test());
        assert!(!Source::new("crates/testkit/src/b.rs", "").is_test());
    }
}

//! Requirements and the tests that answer them: the tables of `docs/wires/*.md`, kept true.
//!
//! A row is `| S3-017 | what it asks for | tests |`. A test whose name carries an id (`s3_017_…`)
//! belongs in the row of that id; others may be named in a row by hand, as long as they exist. The
//! first two columns are written by people, the third by `cargo xtask trace`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::finding::Finding;
use crate::scan::is_name;
use crate::source::Source;

/// The documents with tables.
pub const DOCUMENTS: [&str; 2] = ["docs/wires/session.md", "docs/wires/pc3.md"];

/// The families of requirements.
const FAMILIES: [&str; 6] = ["S1", "S2", "S3", "R", "D", "C"];

/// The names of all tests, and by requirement those that carry its id.
#[derive(Debug, Default)]
pub struct Tests {
    all: BTreeSet<String>,
    by_id: BTreeMap<String, BTreeSet<String>>,
}

impl Tests {
    /// Finds the tests of the tree.
    pub fn of(sources: &[Source]) -> Self {
        let mut tests = Self::default();
        for source in sources {
            let code = &source.scan.code;
            for (at, _) in code.match_indices("fn ") {
                let rest = &code.as_bytes()[at + "fn ".len()..];
                let length = rest.iter().take_while(|&&b| is_name(b)).count();
                let name = String::from_utf8_lossy(&rest[..length]).into_owned();
                if !is_test(code, at) {
                    continue;
                }
                for id in ids_of(&name) {
                    tests.by_id.entry(id).or_default().insert(name.clone());
                }
                tests.all.insert(name);
            }
        }
        tests
    }
}

impl Tests {
    /// The names of all tests.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(String::as_str)
    }
}

/// Whether the function at `at` carries a test's attribute.
fn is_test(code: &str, at: usize) -> bool {
    let before = &code[..at];
    let item = before.rfind([';', '{', '}']).map_or(0, |end| end + 1);
    let attributes = &before[item..];
    attributes.contains("#[test]") || attributes.contains("#[tokio::test")
}

/// The requirements a test's name carries: `s3_017_…` is `S3-017`, `sc_3_d_40_…` is `D-40`.
fn ids_of(name: &str) -> Vec<String> {
    let words: Vec<&str> = name.split('_').collect();
    let id = |pair: &[&str]| {
        let family = pair[0].to_uppercase();
        let known = FAMILIES.contains(&family.as_str());
        let number = pair[1].len() >= 2 && pair[1].bytes().all(|b| b.is_ascii_digit());
        (known && number).then(|| format!("{family}-{}", pair[1]))
    };
    words.windows(2).filter_map(id).collect()
}

/// A row of a table.
struct Row<'a> {
    id: &'a str,
    asks: &'a str,
    tests: Vec<&'a str>,
}

fn row(line: &str) -> Option<Row<'_>> {
    let mut cells = line.strip_prefix("| ")?.strip_suffix('|')?.split(" | ");
    let (id, asks) = (cells.next()?, cells.next()?);
    let family = id.split('-').next()?;
    if !FAMILIES.contains(&family) {
        return None;
    }
    let tests = cells.next().unwrap_or_default();
    let names = tests.split('`').skip(1).step_by(2);
    Some(Row {
        id,
        asks,
        tests: names.collect(),
    })
}

/// The document with the third column of its tables brought up to date.
pub fn rewrite(document: &str, tests: &Tests) -> String {
    let line = |line: &str| match row(line) {
        None => line.to_owned(),
        Some(row) => {
            let by_hand = row
                .tests
                .iter()
                .filter(|name| !ids_of(name).iter().any(|id| id == row.id));
            let by_hand = by_hand
                .filter(|name| tests.all.contains(**name))
                .map(|n| (*n).to_owned());
            let named = tests.by_id.get(row.id).into_iter().flatten().cloned();
            let names: BTreeSet<String> = named.chain(by_hand).collect();
            let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("| {} | {} | {} |", row.id, row.asks, names.join("<br>"))
        }
    };
    let mut text: String = document.lines().map(|l| line(l) + "\n").collect();
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// Rows that name no test, and documents that are not up to date.
pub fn untrue(path: &str, document: &str, tests: &Tests) -> Vec<Finding> {
    let fresh = rewrite(document, tests);
    let mut found = Vec::new();
    for (index, (line, fresh)) in document.lines().zip(fresh.lines()).enumerate() {
        if line != fresh {
            let message = "tests have come or gone: run `cargo xtask trace`";
            found.push(Finding::at(path, index + 1, message));
        }
        if let Some(row) = row(fresh)
            && row.tests.is_empty()
        {
            let message = format!("{} has no test", row.id);
            found.push(Finding::at(path, index + 1, message));
        }
    }
    found
}

/// Brings the documents up to date.
pub fn write(root: &Path, sources: &[Source]) -> Result<()> {
    let tests = Tests::of(sources);
    for path in DOCUMENTS {
        let file = root.join(path);
        let document = std::fs::read_to_string(&file).with_context(|| format!("reading {path}"))?;
        std::fs::write(&file, rewrite(&document, &tests))?;
    }
    Ok(())
}

/// What is untrue in the documents.
pub fn check(root: &Path, sources: &[Source]) -> Result<Vec<Finding>> {
    let tests = Tests::of(sources);
    let mut found = Vec::new();
    for path in DOCUMENTS {
        let file = root.join(path);
        let document = std::fs::read_to_string(&file).with_context(|| format!("reading {path}"))?;
        found.extend(untrue(path, &document, &tests));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Tests {
        let text = "fn s3_017_helper() {}\n#[test]\nfn s3_017_b() {}\n#[test]\nfn s3_017_a() {}\n\
                    #[test]\nfn plain() {}\n#[test]\nfn sc_1_d_40_c() {}\n";
        Tests::of(&[Source::new("crates/a/src/b.rs", text)])
    }

    #[test]
    fn tests_are_put_in_the_row_of_their_id_and_by_hand_ones_stay() {
        let document = "text\n\n| id | asks | tests |\n|---|---|---|\n\
                        | S3-017 | names it | `gone`<br>`plain` |\n| D-40 | waits | |\n";
        let fresh = "text\n\n| id | asks | tests |\n|---|---|---|\n\
                     | S3-017 | names it | `plain`<br>`s3_017_a`<br>`s3_017_b` |\n\
                     | D-40 | waits | `sc_1_d_40_c` |\n";
        assert_eq!(rewrite(document, &some()), fresh);
        assert_eq!(rewrite(fresh, &some()), fresh, "once is enough");
        assert_eq!(untrue("x.md", fresh, &some()), []);
        let lines: Vec<_> = untrue("x.md", document, &some())
            .iter()
            .map(|f| f.line)
            .collect();
        assert_eq!(lines, [5, 6]);
    }

    #[test]
    fn a_row_without_a_test_is_named() {
        let found = untrue("x.md", "| S3-099 | asks |  |\n", &some());
        assert_eq!(found, [Finding::at("x.md", 1, "S3-099 has no test")]);
    }
}

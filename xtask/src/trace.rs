//! Requirements and the tests that answer them: `docs/requirements.md`.
//!
//! ```text
//! xtask/requirements.txt ─┐
//! ids above the tests ────┼─▶ docs/requirements.md, and findings
//! docs/decisions ─────────┘
//! ```
//!
//! A requirement of the list has a test, a decision or an open point with its reason. [`check`]
//! names those that have none, so that neither a deleted test nor a forgotten line goes unnoticed.

pub mod test_index;
pub mod requirement;
pub mod page;

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::finding::Finding;
use crate::source::Source;
use page::{Decisions, has_tests, is_answered, page};
use requirement::{OpenExtent, Requirements};
use test_index::{TestIndex, dangling_comments};

/// The list of all requirements.
pub const LIST: &str = "xtask/requirements.txt";
/// The page that `cargo xtask trace` writes.
pub const PAGE: &str = "docs/requirements.md";
/// The folder of the decision pages.
const DECISIONS: &str = "docs/decisions";

/// Everything that the page is made of.
struct Inputs {
    list: Requirements,
    tests: TestIndex,
    decisions: Decisions,
    /// Text of each decision page, in the order of `decisions`.
    decision_texts: Vec<String>,
}

impl Inputs {
    fn read(root: &Path, sources: &[Source]) -> Result<Self> {
        let text = std::fs::read_to_string(root.join(LIST));
        let text = text.with_context(|| format!("reading {LIST}"))?;
        let list = Requirements::parse(&text).with_context(|| format!("reading {LIST}"))?;
        let mut names = Vec::new();
        for entry in std::fs::read_dir(root.join(DECISIONS)).context("reading the decisions")? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        let texts = names
            .iter()
            .map(|name| std::fs::read_to_string(root.join(DECISIONS).join(name)));
        let decision_texts = texts.collect::<Result<_, _>>()?;
        Ok(Self {
            list,
            tests: TestIndex::new(sources),
            decisions: Decisions(names),
            decision_texts,
        })
    }

    fn page(&self) -> String {
        page(&self.list, &self.tests, &self.decisions)
    }

    fn findings(&self) -> Vec<Finding> {
        let gaps = self.list.gaps();
        let mut findings: Vec<Finding> = gaps.iter().map(|gap| Finding::about(LIST, gap)).collect();
        for entry in self.list.entries() {
            let at = |message: String| Finding::at(LIST, entry.line, message);
            if !is_answered(entry, &self.tests) {
                let id = &entry.label;
                findings.push(at(format!(
                    "{id} has no test: write `// {id}` above the test that answers it, or `decision` or \
                     `open` below its line"
                )));
            }
            let extent = entry.open.as_ref().map(|open| open.extent);
            match (extent, has_tests(entry, &self.tests)) {
                (Some(OpenExtent::Whole), true) => findings.push(at(format!(
                    "{} is `open` and has tests: delete the line, or write `part` and what they \
                     leave out",
                    entry.label
                ))),
                (Some(OpenExtent::Part), false) => findings.push(at(format!(
                    "{} is covered in `part` and has no test: write `open`",
                    entry.label
                ))),
                _ => {}
            }
            for number in &entry.decisions {
                if !self.decides(number, &entry.ids) {
                    let id = &entry.label;
                    findings.push(at(format!("no page {number} in {DECISIONS} names {id}")));
                }
            }
        }
        let ids = self.list.ids();
        let families: Vec<&str> = ids.iter().filter_map(|id| id.split('-').next()).collect();
        for (id, test) in self.tests.requirements() {
            let family = id.split_once('-').map(|(family, _)| family);
            if !ids.contains(id) && family.is_some_and(|family| families.contains(&family)) {
                findings.push(Finding::about(
                    LIST,
                    format!("`// {id}` above `{test}` is not in the list"),
                ));
            }
        }
        findings
    }

    /// True if the page `number` exists and names one of `ids`.
    fn decides(&self, number: &str, ids: &[String]) -> bool {
        let pages = self.decisions.0.iter().zip(&self.decision_texts);
        pages
            .filter(|(file, _)| file.starts_with(&format!("{number}-")))
            .any(|(_, text)| ids.iter().any(|id| text.contains(id)))
    }
}

/// Writes the page anew; the findings are those that writing does not mend.
pub fn write(root: &Path, sources: &[Source]) -> Result<Vec<Finding>> {
    let inputs = Inputs::read(root, sources)?;
    std::fs::write(root.join(PAGE), inputs.page())?;
    check(root, sources)
}

/// Requirements without an answer, a page that is out of date, and declarations above no test.
pub fn check(root: &Path, sources: &[Source]) -> Result<Vec<Finding>> {
    let inputs = Inputs::read(root, sources)?;
    let mut findings = dangling_comments(sources);
    findings.extend(inputs.findings());
    let written = std::fs::read_to_string(root.join(PAGE));
    if written.with_context(|| format!("reading {PAGE}"))? != inputs.page() {
        let message = "the page is out of date: run `cargo xtask trace`";
        findings.push(Finding::about(PAGE, message));
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(list: &str, tests: &str, decision: &str) -> Vec<String> {
        let inputs = Inputs {
            list: Requirements::parse(list).unwrap(),
            tests: TestIndex::new(&[Source::new("crates/a/src/b.rs", tests)]),
            decisions: Decisions(vec!["0003-seam.md".to_owned()]),
            decision_texts: vec![decision.to_owned()],
        };
        let findings = inputs.findings().into_iter();
        // The short lists of these tests lack most ids.
        let findings = findings.filter(|finding| !finding.message.ends_with("is not listed"));
        findings.map(|finding| finding.message).collect()
    }

    #[test]
    fn requirement_without_an_answer_is_a_finding() {
        let list = "# a\nS3-001 b\nS3-002 b\n  part c\nS3-004 b\n  open c\n\
                    S3-003 b\n  decision 0003\n";
        let found = messages(list, "// S3-002\n#[test]\nfn b() {}\n", "about S3-003");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("S3-001 has no test"), "{found:?}");
        let tests = "// S3-001, S3-002\n#[test]\nfn b() {}\n";
        assert_eq!(messages(list, tests, "about S3-003"), [""; 0]);
    }

    #[test]
    fn open_point_that_tests_contradict_is_a_finding() {
        let list = "# a\nS3-001 b\n  open c\nS3-002..003 b\n  part c\nS3-004 b\n  part c\n";
        let found = messages(list, "// S3-001, S3-003\n#[test]\nfn b() {}\n", "");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("S3-001 is `open` and has tests"));
        assert!(found[1].starts_with("S3-004 is covered in `part` and has no test"));
    }

    #[test]
    fn range_needs_a_test_for_each_of_its_ids() {
        let list = "# a\nS3-001..002 b\n";
        let found = messages(list, "// S3-002\n#[test]\nfn b() {}\n", "");
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn decision_must_name_its_requirement() {
        let found = messages("# a\nS3-003 b\n  decision 0003\n", "", "about S3-004");
        assert_eq!(found, ["no page 0003 in docs/decisions names S3-003"]);
    }

    #[test]
    fn id_above_a_test_must_be_in_the_list() {
        let tests = "// S3-001, S3-999, LAW-1\n#[test]\nfn b() {}\n";
        let found = messages("# a\nS3-001 b\n", tests, "");
        assert_eq!(found, ["`// S3-999` above `b` is not in the list"]);
    }
}

//! The page `docs/requirements.md`: a table per section of [`Requirements`], with the tests, the
//! decision or the open point that answers each row.

use std::fmt::Write as _;

use crate::trace::requirement::{OpenExtent, OpenPoint, Requirement, Requirements};
use crate::trace::test_index::TestIndex;

const INTRODUCTION: &str = "\
# Requirements and their tests

`cargo xtask trace` writes this page from `xtask/requirements.txt`, the list of all requirements, and from the ids in the
comments above the tests. It fails, and so does a test, when a requirement has no test, no decision and no open point.

- A **test** covers a requirement if the id stands in a comment above the test (`// S3-017, D-40`).
- A **decision** says why the product does something else than the requirement's text.
- An **open point** says what is missing. A row that is covered **in part** has tests, and says what they leave out.
";

/// File names of `docs/decisions` by their four digits.
#[derive(Debug, Default)]
pub struct Decisions(pub Vec<String>);

impl Decisions {
    /// The file of page `number`.
    pub fn file(&self, number: &str) -> Option<&str> {
        let mut files = self.0.iter();
        let file = files.find(|file| file.starts_with(&format!("{number}-")));
        file.map(String::as_str)
    }
}

/// The text of `docs/requirements.md`.
pub fn page(list: &Requirements, tests: &TestIndex, decisions: &Decisions) -> String {
    let mut page = INTRODUCTION.to_owned();
    page.push_str(&counts(list, tests));
    for section in &list.sections {
        let _ = write!(page, "\n## {}\n\n", section.heading);
        page.push_str("| id | requirement | answered by |\n|---|---|---|\n");
        for entry in &section.entries {
            let answers = answers(entry, tests, decisions).join("<br>");
            let (label, summary) = (&entry.label, &entry.summary);
            let _ = writeln!(page, "| {label} | {summary} | {answers} |");
        }
    }
    page
}

/// True if the row has a test for each of its ids, a decision or an open point.
pub fn is_answered(entry: &Requirement, tests: &TestIndex) -> bool {
    entry.open.is_some() || !entry.decisions.is_empty() || is_tested(entry, tests)
}

fn is_tested(entry: &Requirement, tests: &TestIndex) -> bool {
    let mut ids = entry.ids.iter();
    ids.all(|id| tests.answering(id).next().is_some())
}

/// True if one of the row's ids has a test.
pub fn has_tests(entry: &Requirement, tests: &TestIndex) -> bool {
    let mut ids = entry.ids.iter();
    ids.any(|id| tests.answering(id).next().is_some())
}

fn answers(entry: &Requirement, tests: &TestIndex, decisions: &Decisions) -> Vec<String> {
    let names = entry.ids.iter().flat_map(|id| tests.answering(id));
    let mut answers: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    for number in &entry.decisions {
        let file = decisions.file(number).unwrap_or("");
        answers.push(format!("[decision {number}](decisions/{file})"));
    }
    if let Some(OpenPoint { extent, reason }) = &entry.open {
        let extent = match extent {
            OpenExtent::Whole => "open",
            OpenExtent::Part => "in part",
        };
        answers.push(format!("**{extent}**: {reason}"));
    }
    answers
}

fn counts(list: &Requirements, tests: &TestIndex) -> String {
    let (mut tested, mut decided, mut open) = (0, 0, 0);
    for entry in list.entries() {
        let ids = entry.ids.len();
        match (entry.open.is_some(), is_tested(entry, tests)) {
            (true, _) => open += ids,
            (false, true) => tested += ids,
            (false, false) => decided += ids,
        }
    }
    let all = tested + decided + open;
    format!(
        "\n{all} ids: {tested} with tests, {decided} with a decision alone, {open} open in whole or in part.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    #[test]
    fn rows_name_tests_decisions_and_open_points() {
        let list = "# Session wire\nS3-001 attach\nS3-034 buffer\n  decision 0003\n\
                    # Plans\nS4-001..003 steps\n  open not built\nS3-002 resume\n  part not twice\n";
        let list = Requirements::parse(list).unwrap();
        let text = "// S3-001\n#[test]\nfn b() {}\n// S3-001, S3-002\n#[test]\nfn a() {}\n";
        let tests = TestIndex::new(&[Source::new("crates/a/src/b.rs", text)]);
        let decisions = Decisions(vec!["0003-seam.md".to_owned()]);
        let page = page(&list, &tests, &decisions);
        let tables = page.strip_prefix(INTRODUCTION).unwrap();
        let expected = "\n6 ids: 1 with tests, 1 with a decision alone, 4 open in whole or in part.\n\
             \n## Session wire\n\n| id | requirement | answered by |\n|---|---|---|\n\
             | S3-001 | attach | `a`<br>`b` |\n\
             | S3-034 | buffer | [decision 0003](decisions/0003-seam.md) |\n\
             \n## Plans\n\n| id | requirement | answered by |\n|---|---|---|\n\
             | S4-001..003 | steps | **open**: not built |\n\
             | S3-002 | resume | `a`<br>**in part**: not twice |\n";
        assert_eq!(tables, expected);
    }
}

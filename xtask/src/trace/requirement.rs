//! The list of all requirements, `xtask/requirements.txt`: ids, a summary of each, and how those
//! without a test are answered.
//!
//! ```text
//! # Session wire                          heading of a table
//! S3-001 a session can be attached to     id and summary
//! S3-034 the hub buffers before the cut
//!   decision 0003                         a page of docs/decisions answers it
//! S4-001..059 plan steps                  59 ids with one summary
//!   open plan steps are not built         nothing answers it; the reason follows
//! S3-105 three event types are reserved
//!   part the third comes with plan steps  its tests leave something out; the reason follows
//! ```
//!
//! [`Requirements::parse`] refuses a line that it cannot read. A line that is deleted is found by
//! [`Requirements::gaps`], because the numbers of every family are known.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail};

/// Number of ids in each family whose numbers are dense from 1.
const FAMILY_SIZES: [(&str, usize); 9] = [
    ("S1", 147),
    ("S2", 89),
    ("S3", 110),
    ("S4", 59),
    ("S5", 62),
    ("R", 40),
    ("D", 87),
    ("C", 41),
    ("I", 22),
];

/// Numbers of the scenarios, the one family whose numbers have holes.
const SCENARIOS: [usize; 28] = [
    1, 2, 3, 4, 6, 7, 8, 10, 11, 12, 14, 15, 17, 18, 19, 21, 22, 23, 25, 27, 29, 30, 32, 34, 35,
    36, 38, 40,
];

/// The sections of the list, in its order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// The tables of the page.
    pub sections: Vec<Section>,
}

/// A heading and its requirements.
#[derive(Debug, PartialEq, Eq)]
pub struct Section {
    /// The text behind the `#`.
    pub heading: String,
    /// The rows below the heading.
    pub entries: Vec<Requirement>,
}

/// One line of the list with its indented lines.
#[derive(Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The id as printed: `S3-001`, or `S4-001..059` for several.
    pub label: String,
    /// Every id that the line stands for.
    pub ids: Vec<String>,
    /// The summary, in Markdown.
    pub summary: String,
    /// Numbers of the pages in `docs/decisions`, four digits each.
    pub decisions: Vec<String>,
    /// What neither a test nor a decision answers.
    pub open: Option<OpenPoint>,
    /// The line in the list, from 1.
    pub line: usize,
}

/// What a requirement's tests leave out.
#[derive(Debug, PartialEq, Eq)]
pub struct OpenPoint {
    pub extent: OpenExtent,
    pub reason: String,
}

/// How much of a requirement is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenExtent {
    /// It has no test.
    Whole,
    /// It has tests, and they leave something out.
    Part,
}

impl Requirements {
    /// Reads the list; an error names its line.
    pub fn parse(text: &str) -> Result<Self> {
        let mut sections: Vec<Section> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            if line.trim().is_empty() {
                continue;
            }
            if let Some(heading) = line.strip_prefix("# ") {
                sections.push(Section {
                    heading: heading.to_owned(),
                    entries: Vec::new(),
                });
                continue;
            }
            let section = sections.last_mut();
            let entries = &mut section
                .with_context(|| format!("line {number}: a heading must come first"))?
                .entries;
            if let Some(answer) = line.strip_prefix("  ") {
                let entry = entries.last_mut();
                let entry =
                    entry.with_context(|| format!("line {number}: an id must come first"))?;
                entry
                    .answer(answer)
                    .with_context(|| format!("line {number}"))?;
            } else {
                let entry = Requirement::parse(line, number);
                entries.push(entry.with_context(|| format!("line {number}"))?);
            }
        }
        Ok(Self { sections })
    }

    /// All rows, in the order of the list.
    pub fn entries(&self) -> impl Iterator<Item = &Requirement> {
        self.sections.iter().flat_map(|section| &section.entries)
    }

    /// Every id of the list.
    pub fn ids(&self) -> BTreeSet<&str> {
        let ids = self.entries().flat_map(|entry| &entry.ids);
        ids.map(String::as_str).collect()
    }

    /// Ids that the list must have and does not, and ids that it has twice.
    pub fn gaps(&self) -> Vec<String> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for id in self.entries().flat_map(|entry| &entry.ids) {
            *counts.entry(id).or_default() += 1;
        }
        let twice = counts.iter().filter(|(_, count)| **count > 1);
        let mut gaps: Vec<String> = twice
            .map(|(id, _)| format!("{id} is listed twice"))
            .collect();
        let dense = FAMILY_SIZES
            .into_iter()
            .flat_map(|(family, size)| (1..=size).map(move |number| format_id(family, number)));
        let scenarios = SCENARIOS.into_iter().map(|number| format_id("SC", number));
        let missing = dense
            .chain(scenarios)
            .filter(|id| !counts.contains_key(id.as_str()));
        gaps.extend(missing.map(|id| format!("{id} is not listed")));
        gaps
    }
}

impl Requirement {
    fn parse(line: &str, number: usize) -> Result<Self> {
        let (label, summary) = line.split_once(' ').context("the summary is missing")?;
        Ok(Self {
            label: label.to_owned(),
            ids: ids(label)?,
            summary: summary.to_owned(),
            decisions: Vec::new(),
            open: None,
            line: number,
        })
    }

    fn answer(&mut self, answer: &str) -> Result<()> {
        match answer.split_once(' ') {
            Some(("decision", page)) if page.len() == 4 && page.parse::<u16>().is_ok() => {
                self.decisions.push(page.to_owned());
            }
            Some((word @ ("open" | "part"), reason)) if self.open.is_none() => {
                let extent = match word {
                    "open" => OpenExtent::Whole,
                    _ => OpenExtent::Part,
                };
                let reason = reason.to_owned();
                self.open = Some(OpenPoint { extent, reason });
            }
            _ => bail!(
                "expected `decision NNNN`, or `open REASON` or `part REASON` once: {answer:?}"
            ),
        }
        Ok(())
    }
}

/// The ids of `S3-001` or `S4-001..059`.
fn ids(label: &str) -> Result<Vec<String>> {
    let (family, numbers) = label.split_once('-').context("an id has a dash")?;
    let (first, last) = numbers.split_once("..").unwrap_or((numbers, numbers));
    let number = |text: &str| {
        let parsed: Result<usize, _> = text.parse();
        parsed.with_context(|| format!("{text:?} is not the number of an id"))
    };
    let range = number(first)?..=number(last)?;
    Ok(range.map(|number| format_id(family, number)).collect())
}

fn format_id(family: &str, number: usize) -> String {
    match family.starts_with('S') && family != "SC" {
        true => format!("{family}-{number:03}"),
        false => format!("{family}-{number:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# Session wire\nS3-001 attach\nS3-034 buffer | cut\n  decision 0003\n\n\
                        # Plans\nS4-001..003 plan steps\n  open not built\nR-01 envelope\n  part not over HTTP\n";

    #[test]
    fn list_has_sections_ids_and_answers() {
        let list = Requirements::parse(LIST).unwrap();
        let headings: Vec<&str> = list.sections.iter().map(|s| s.heading.as_str()).collect();
        assert_eq!(headings, ["Session wire", "Plans"]);
        let entries: Vec<&Requirement> = list.entries().collect();
        assert_eq!(entries[0].summary, "attach");
        assert_eq!(entries[0].line, 2);
        assert_eq!(entries[1].decisions, ["0003"]);
        assert_eq!(entries[2].ids, ["S4-001", "S4-002", "S4-003"]);
        let open = |extent, reason: &str| {
            let reason = reason.to_owned();
            Some(OpenPoint { extent, reason })
        };
        assert_eq!(entries[2].open, open(OpenExtent::Whole, "not built"));
        assert_eq!(entries[3].open, open(OpenExtent::Part, "not over HTTP"));
        assert!(list.ids().contains("R-01"));
        assert_eq!(list.ids().len(), 6);
    }

    #[test]
    fn unreadable_line_is_refused_with_its_number() {
        for (text, line) in [
            ("S3-001 a", "line 1"),
            ("# a\n  open b", "line 2"),
            ("# a\nS3-001", "line 2"),
            ("# a\nS3001 b", "line 2"),
            ("# a\nS3-x b", "line 2"),
            ("# a\nS3-001 b\n  closed c", "line 3"),
            ("# a\nS3-001 b\n  decision 3", "line 3"),
            ("# a\nS3-001 b\n  open c\n  part d", "line 4"),
        ] {
            let error = Requirements::parse(text).unwrap_err();
            assert!(format!("{error:#}").contains(line), "{text:?}: {error:#}");
        }
    }

    #[test]
    fn deleted_and_repeated_ids_are_gaps() {
        let list = "# a\nS1-001..147 a\nS2-001..089 a\nS3-001..110 a\nS4-001..059 a\n\
                    S5-001..062 a\nR-01..40 a\nD-01..87 a\nC-01..41 a\nI-01..22 a\n";
        let scenarios = SCENARIOS.map(|number| format!("SC-{number:02} a\n"));
        let list = &(list.to_owned() + &scenarios.concat());
        assert_eq!(Requirements::parse(list).unwrap().gaps(), [""; 0]);
        let list = list.replace("S3-001..110", "S3-001..109");
        let list = list.replace("SC-40 a", "R-40 b");
        let gaps = Requirements::parse(&list).unwrap().gaps();
        assert_eq!(
            gaps,
            [
                "R-40 is listed twice",
                "S3-110 is not listed",
                "SC-40 is not listed"
            ]
        );
    }
}

//! The report as Markdown: measured figures, their references, and whether targets are reached.

use std::fmt::Write as _;

use crate::machine;
use crate::peer::{self, PeerFigures};
use crate::stat::{share, short};

/// A target for a figure, and the measured value.
#[derive(Clone, Debug, PartialEq)]
pub struct PerformanceTarget {
    /// The figure that the target is about.
    pub figure: String,
    /// The bound as text, with its unit.
    pub bound: String,
    /// The measured value as text, with its unit.
    pub measured: String,
    /// True if the target is reached.
    pub reached: bool,
    /// The requirement that the target is; a miss makes the command fail.
    pub requirement: Option<&'static str>,
}

impl PerformanceTarget {
    /// A target that is a lower bound.
    pub fn at_least(figure: &str, measured: f64, bound: f64, unit: &str) -> Self {
        Self::new(figure, "≥", measured, bound, unit, measured >= bound)
    }

    /// A target that is an upper bound.
    pub fn at_most(figure: &str, measured: f64, bound: f64, unit: &str) -> Self {
        Self::new(figure, "≤", measured, bound, unit, measured <= bound)
    }

    fn new(figure: &str, sign: &str, measured: f64, bound: f64, unit: &str, reached: bool) -> Self {
        Self {
            figure: figure.to_owned(),
            bound: format!("{sign} {}{unit}", short(bound)),
            measured: format!("{}{unit}", short(measured)),
            reached,
            requirement: None,
        }
    }

    /// Makes the target a requirement.
    #[must_use]
    pub fn required(mut self, requirement: &'static str) -> Self {
        self.figure = format!("{} ({requirement})", self.figure);
        self.requirement = Some(requirement);
        self
    }
}

/// One part of the report.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportSection {
    pub title: &'static str,
    /// What was done, in a few sentences.
    pub text: String,
    pub columns: Vec<&'static str>,
    pub rows: Vec<Vec<String>>,
    pub aims: Vec<PerformanceTarget>,
    pub peers: Option<PeerFigures>,
    /// The share of the machine that other programs used meanwhile.
    pub others: f64,
}

impl ReportSection {
    /// True if the machine was quiet enough to evaluate the targets.
    fn is_judged(&self) -> bool {
        self.others <= OTHERS_MAX
    }
}

/// Targets are not evaluated if other programs used more than this share of the machine: a server
/// that shares its core waits for it, which makes ratios random.
const OTHERS_MAX: f64 = 0.1;

/// The command and the number of rounds of a run.
#[derive(Clone, Debug)]
pub struct RunInfo {
    /// The command to repeat the run.
    pub command: String,
    /// Rounds that medians are taken of.
    pub rounds: usize,
}

/// The whole report as Markdown.
pub fn markdown(run: &RunInfo, sections: &[ReportSection]) -> String {
    let mut text = String::from("# Results\n\n");
    let _ = writeln!(
        text,
        "Made by `{}`; medians of {} rounds, Turnwire and its reference in turn within each \
         round. A figure counts as a ratio to its reference in the same run; a ratio is the \
         median of the rounds' ratios, with the least and the greatest.\n\n\
         Machine: {} × {}, {} GiB, Linux {}. {} Where other programs used more than {} of the \
         machine during a part, none of its aims is judged.\n",
        run.command,
        run.rounds,
        machine::cores(),
        machine::processor(),
        machine::memory_gib(),
        machine::kernel(),
        pinning(),
        share(OTHERS_MAX),
    );
    let aims: Vec<Vec<String>> = sections
        .iter()
        .flat_map(|section| section.aims.iter().map(|aim| verdict(section, aim)))
        .collect();
    if !aims.is_empty() {
        text.push_str("## Aims\n\n");
        table(&mut text, &["figure", "aim", "measured", "reached"], &aims);
    }
    for section in sections {
        let _ = writeln!(
            text,
            "## {}\n\n{} Other programs used {} of the machine meanwhile.\n",
            section.title,
            section.text,
            share(section.others)
        );
        table(&mut text, &section.columns, &section.rows);
        if let Some(peers) = section.peers {
            let _ = writeln!(text, "{}\n", peer::ABOVE);
            let of = |row: &&[&str]| row.iter().map(|&cell| cell.to_owned()).collect();
            let rows: Vec<Vec<String>> = peers.rows.iter().map(of).collect();
            table(&mut text, peers.columns, &rows);
        }
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// Fails if a requirement was missed, or could not be judged because other programs used the machine:
/// a run that judged nothing must not pass for one that met its requirements. The error has one line
/// for each.
pub fn check_required(sections: &[ReportSection]) -> Result<(), String> {
    let (mut missed, mut unjudged) = (String::new(), String::new());
    for section in sections {
        for aim in section.aims.iter().filter(|aim| aim.requirement.is_some()) {
            let (figure, measured, bound) = (&aim.figure, &aim.measured, &aim.bound);
            if !section.is_judged() {
                let others = share(section.others);
                let _ = write!(
                    unjudged,
                    "\n{figure}: not judged ({measured} for {bound}; others used {others})"
                );
            } else if !aim.reached {
                let _ = write!(missed, "\n{figure}: {measured} instead of {bound}");
            }
        }
    }
    let mut parts = Vec::new();
    if !missed.is_empty() {
        parts.push(format!("required figures were missed:{missed}"));
    }
    if !unjudged.is_empty() {
        parts.push(format!(
            "required figures were not judged, because other programs used more than {} of the machine; \
             stop them and run the part again:{unjudged}",
            share(OTHERS_MAX)
        ));
    }
    match parts.is_empty() {
        true => Ok(()),
        false => Err(parts.join("\n")),
    }
}

fn verdict(section: &ReportSection, aim: &PerformanceTarget) -> Vec<String> {
    let reached = match (section.is_judged(), aim.reached) {
        (false, _) => "not judged",
        (true, true) => "yes",
        (true, false) => "no",
    };
    vec![
        aim.figure.clone(),
        aim.bound.clone(),
        aim.measured.clone(),
        reached.to_owned(),
    ]
}

fn pinning() -> &'static str {
    match machine::cores() {
        0 | 1 => "One core: server and load client share it.",
        _ => {
            "Servers are pinned to the first core and load clients to the last core; the append runs \
             and the demo turns use all cores. Everything is on loopback."
        }
    }
}

fn table(text: &mut String, columns: &[&str], rows: &[Vec<String>]) {
    let _ = writeln!(text, "| {} |", columns.join(" | "));
    let _ = writeln!(text, "|{}", "---|".repeat(columns.len()));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_judged_by_their_bound() {
        let met = PerformanceTarget::at_most("first event p50", 2.5, 3.0, " ms");
        assert_eq!(
            met,
            PerformanceTarget {
                figure: "first event p50".into(),
                bound: "≤ 3.00 ms".into(),
                measured: "2.50 ms".into(),
                reached: true,
                requirement: None,
            }
        );
        assert!(!PerformanceTarget::at_least("fan-out", 0.69, 0.7, "").reached);
    }

    #[test]
    fn shared_machine_judges_nothing() {
        let section = |others| ReportSection {
            title: "Part",
            text: String::new(),
            columns: Vec::new(),
            rows: Vec::new(),
            aims: vec![
                PerformanceTarget::at_most("met", 1.0, 2.0, ""),
                PerformanceTarget::at_most("missed", 3.0, 2.0, ""),
            ],
            peers: None,
            others,
        };
        let verdicts = |others| {
            let run = RunInfo {
                command: String::new(),
                rounds: 1,
            };
            let text = markdown(&run, &[section(others)]);
            [" yes |", " no |", " not judged |"].map(|word| text.matches(word).count())
        };
        assert_eq!(verdicts(0.02), [1, 1, 0]);
        assert_eq!(verdicts(0.37), [0, 0, 2]);
    }

    fn required(others: f64) -> ReportSection {
        ReportSection {
            title: "t",
            text: String::new(),
            columns: Vec::new(),
            rows: Vec::new(),
            aims: vec![
                PerformanceTarget::at_most("kept", 1.0, 2.0, " ms").required("S1-048"),
                PerformanceTarget::at_most("late", 6.0, 5.0, " ms").required("S2-070"),
                PerformanceTarget::at_most("wished for", 3.0, 2.0, ""),
            ],
            peers: None,
            others,
        }
    }

    // S1-048, S2-070, S3-041
    #[test]
    fn missed_requirement_is_named_on_a_quiet_machine() {
        let expected = "required figures were missed:\n\
                        late (S2-070): 6.00 ms instead of ≤ 5.00 ms";
        assert_eq!(check_required(&[required(0.02)]), Err(expected.to_owned()));
        let mut met = required(0.02);
        met.aims.retain(|aim| aim.figure != "late (S2-070)");
        assert_eq!(check_required(&[met]), Ok(()), "the wish is not required");
    }

    // S1-048, S2-070, S3-041
    #[test]
    fn requirements_that_were_not_judged_fail_the_run() {
        let unjudged = "required figures were not judged, because other programs used more than 10 % of \
                        the machine; stop them and run the part again:\n\
                        kept (S1-048): not judged (1.00 ms for ≤ 2.00 ms; others used 37 %)\n\
                        late (S2-070): not judged (6.00 ms for ≤ 5.00 ms; others used 37 %)";
        assert_eq!(check_required(&[required(0.37)]), Err(unjudged.to_owned()));
        let both = check_required(&[required(0.37), required(0.02)]);
        let missed = "required figures were missed:\nlate (S2-070): 6.00 ms instead of ≤ 5.00 ms";
        assert_eq!(both, Err(format!("{missed}\n{unjudged}")));
        // A part without requirements may be measured on any machine.
        let mut wishes = required(0.37);
        wishes.aims.retain(|aim| aim.requirement.is_none());
        assert_eq!(check_required(&[wishes]), Ok(()));
    }

    #[test]
    fn table_has_one_line_per_row() {
        let mut text = String::new();
        table(&mut text, &["a", "b"], &[vec!["1".into(), "2".into()]]);
        assert_eq!(text, "| a | b |\n|---|---|\n| 1 | 2 |\n\n");
    }
}

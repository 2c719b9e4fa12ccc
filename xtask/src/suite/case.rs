//! The tests of the binaries, one case each, in the order they start: the longest of the last run
//! first, so that no long test is left alone at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::build::TestBinary;
use crate::trace::test_index::TestIndex;

/// The assumed duration of a test without a previous run.
const UNKNOWN: Duration = Duration::from_secs(1);

/// One test of a test binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    pub binary: TestBinary,
    /// The test's path inside the binary.
    pub name: String,
    /// True if the test runs alone.
    pub serial: bool,
}

impl Case {
    /// The name in reports: `e2e it: chat::cuts::…`.
    pub fn label(&self) -> String {
        format!("{}: {}", self.binary.label, self.name)
    }
}

/// The tests to run, and the ignored ones.
#[derive(Debug, Default)]
pub struct Catalog {
    pub cases: Vec<Case>,
    /// Labels of tests that carry `#[ignore]`: helper processes of other tests.
    pub ignored: Vec<String>,
}

impl Catalog {
    /// Lists the tests of every binary; `index` says which of them run alone.
    pub fn read(binaries: &[TestBinary], index: &TestIndex) -> Result<Self> {
        let mut catalog = Self::default();
        for binary in binaries {
            let ignored = list(binary, &["--list", "--format=terse", "--ignored"])?;
            for name in list(binary, &["--list", "--format=terse"])? {
                let case = Case {
                    serial: index.is_serial(&binary.label, &name),
                    binary: binary.clone(),
                    name,
                };
                if ignored.contains(&case.name) {
                    catalog.ignored.push(case.label());
                } else {
                    catalog.cases.push(case);
                }
            }
        }
        Ok(catalog)
    }

    /// Names of tests in the sources that no binary has: behind a feature that nothing turns on, or in
    /// a file that no module lists.
    pub fn unlisted(&self, index: &TestIndex) -> Vec<String> {
        let cases = self.cases.iter().map(|case| case.name.as_str());
        let all = cases.chain(self.ignored.iter().map(String::as_str));
        let names = all.map(|name| name.rsplit("::").next().unwrap_or(name));
        let listed: BTreeSet<&str> = names.collect();
        let missing = index.names().filter(|name| !listed.contains(name));
        missing.map(str::to_owned).collect()
    }

    /// Keeps only the tests whose label contains `filter`.
    pub fn retain(&mut self, filter: &str) {
        self.cases.retain(|case| case.label().contains(filter));
    }

    /// Sorts the tests by duration, longest first.
    pub fn sort(&mut self, times: &Times) {
        let last_time = |case: &Case| times.0.get(&case.label()).copied().unwrap_or(UNKNOWN);
        self.cases
            .sort_by_key(|case| std::cmp::Reverse(last_time(case)));
    }
}

fn list(binary: &TestBinary, args: &[&str]) -> Result<Vec<String>> {
    let output = Command::new(&binary.path)
        .args(args)
        .current_dir(&binary.dir)
        .output()
        .with_context(|| format!("starting {}", binary.path.display()))?;
    if !output.status.success() {
        bail!("{} cannot list its tests ({})", binary.label, output.status);
    }
    let text = String::from_utf8(output.stdout)?;
    let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
    Ok(names.map(str::to_owned).collect())
}

/// How long each test took in the last run, by label.
#[derive(Debug, Default)]
pub struct Times(BTreeMap<String, Duration>);

impl Times {
    /// Reads the durations of the last run; empty without a file.
    pub fn read(file: &Path) -> Self {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let pairs = text.lines().filter_map(|line| line.split_once(' '));
        let times = pairs.filter_map(|(millis, label)| {
            let time = Duration::from_millis(millis.parse().ok()?);
            Some((label.to_owned(), time))
        });
        Self(times.collect())
    }

    /// Records the duration of a test.
    pub fn record(&mut self, label: String, took: Duration) {
        self.0.insert(label, took);
    }

    /// Writes the file for the next run.
    pub fn write(&self, file: &Path) -> Result<()> {
        let lines = self.0.iter();
        let text: String = lines
            .map(|(label, time)| format!("{} {label}\n", time.as_millis()))
            .collect();
        std::fs::write(file, text).with_context(|| format!("writing {}", file.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn catalog(names: &[&str]) -> Catalog {
        let case = |name: &&str| Case {
            binary: TestBinary {
                label: "e2e it".to_owned(),
                path: "it".into(),
                dir: ".".into(),
            },
            name: (*name).to_owned(),
            serial: false,
        };
        Catalog {
            cases: names.iter().map(case).collect(),
            ignored: Vec::new(),
        }
    }

    fn names(catalog: &Catalog) -> Vec<&str> {
        catalog
            .cases
            .iter()
            .map(|case| case.name.as_str())
            .collect()
    }

    #[test]
    fn long_and_unknown_tests_start_first() {
        let folder = std::env::temp_dir().join(format!("xtask-times-{}", std::process::id()));
        let mut times = Times::default();
        times.record("e2e it: quick".to_owned(), Duration::from_millis(5));
        times.record("e2e it: long one".to_owned(), Duration::from_secs(9));
        times.write(&folder).expect("a file");
        let times = Times::read(&folder);
        std::fs::remove_file(&folder).expect("the file is there");
        let mut catalog = catalog(&["quick", "new", "long one"]);
        catalog.sort(&times);
        assert_eq!(names(&catalog), ["long one", "new", "quick"]);
    }

    #[test]
    fn unlisted_test_is_reported() {
        let text = "#[test]\nfn here() {}\n#[test]\nfn nowhere() {}\n";
        let index = TestIndex::new(&[Source::new("crates/a/src/b.rs", text)]);
        assert_eq!(catalog(&["b::tests::here"]).unlisted(&index), ["nowhere"]);
    }

    #[test]
    fn filter_keeps_matching_tests() {
        let mut catalog = catalog(&["chat::cuts", "chat::ask", "kills"]);
        catalog.retain("it: chat");
        assert_eq!(names(&catalog), ["chat::cuts", "chat::ask"]);
    }
}

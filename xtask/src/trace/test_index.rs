//! The tests of the sources, with what the comments above them declare.
//!
//! ```text
//! // S3-017, D-40                        the requirements that the test answers
//! // serial: measures one second         the test runs while no other test runs
//! #[tokio::test]
//! async fn unknown_filter_type_is_refused() {
//! ```
//!
//! [`TestIndex`] reads the comment lines between the previous item and the test. A line of
//! requirement ids may go on with prose after the last id.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::Finding;
use crate::scan::is_name;
use crate::source::Source;

/// Families of requirement ids that a test name may carry: `s3_017_…` is `S3-017`.
const FAMILIES_IN_NAMES: [&str; 6] = ["S1", "S2", "S3", "R", "D", "C"];
/// Opens the comment that keeps a test apart from all others.
const SERIAL: &str = "serial:";

/// All tests of the sources, by name and by requirement.
#[derive(Debug, Default)]
pub struct TestIndex {
    names: BTreeSet<String>,
    by_requirement: BTreeMap<String, BTreeSet<String>>,
    /// Folder of the crate and name of each test with a `// serial:` comment.
    serial: BTreeSet<(String, String)>,
}

impl TestIndex {
    /// Reads the tests of all files.
    pub fn new(sources: &[Source]) -> Self {
        let mut index = Self::default();
        for source in sources {
            // The name in a macro is a parameter.
            for test in tests_of(source).filter(|test| !test.name.is_empty()) {
                for line in &test.comments {
                    if line.text.starts_with(SERIAL) {
                        let member = source.member().to_owned();
                        index.serial.insert((member, test.name.clone()));
                    }
                }
                let comments = test.comments.iter();
                let ids = comments.flat_map(|line| leading_ids(line.text));
                for id in ids.chain(ids_in_name(&test.name)) {
                    let names = index.by_requirement.entry(id).or_default();
                    names.insert(test.name.clone());
                }
                index.names.insert(test.name);
            }
        }
        index
    }

    /// The names of all tests, without their module paths.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The names of the tests that answer the requirement `id`.
    pub fn answering(&self, id: &str) -> impl Iterator<Item = &str> {
        let names = self.by_requirement.get(id).into_iter().flatten();
        names.map(String::as_str)
    }

    /// Every requirement id with the name of each of its tests.
    pub fn requirements(&self) -> impl Iterator<Item = (&str, &str)> {
        let tests = self.by_requirement.iter();
        tests.flat_map(|(id, names)| names.iter().map(|name| (id.as_str(), name.as_str())))
    }

    /// True if the test at `path` in the test binary `label` (`crates/log`, `e2e it`) has a
    /// `// serial:` comment.
    pub fn is_serial(&self, label: &str, path: &str) -> bool {
        let member = label.split(' ').next().unwrap_or(label);
        let name = path.rsplit("::").next().unwrap_or(path);
        self.serial.contains(&(member.to_owned(), name.to_owned()))
    }
}

/// Comments that look like a declaration and stand above no test.
pub fn dangling_comments(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        let of_tests: BTreeSet<usize> = tests_of(source)
            .flat_map(|test| test.comments)
            .map(|line| line.at)
            .collect();
        for line in comment_lines(source, 0, source.text.len()) {
            let only_ids = leading_ids(line.text).count() == words(line.text).count();
            let declares = line.text.starts_with(SERIAL) || only_ids;
            let in_test = source.is_test() || source.scan.in_test(line.at);
            if in_test && declares && !of_tests.contains(&line.at) {
                let message = format!("`// {}` stands above no test: move it", line.text);
                findings.push(Finding::at(
                    &source.path,
                    source.scan.line(line.at),
                    message,
                ));
            }
        }
    }
    findings
}

/// A test function, and the comments between the previous item and its name.
struct TestFunction<'a> {
    name: String,
    comments: Vec<CommentLine<'a>>,
}

/// A line that is a `//` comment.
struct CommentLine<'a> {
    /// The offset of the line in the file.
    at: usize,
    /// The text behind the slashes.
    text: &'a str,
}

fn tests_of(source: &Source) -> impl Iterator<Item = TestFunction<'_>> {
    let code = &source.scan.code;
    code.match_indices("fn ").filter_map(move |(at, _)| {
        let item = code[..at].rfind([';', '{', '}']).map_or(0, |end| end + 1);
        let attributes = &code[item..at];
        if !attributes.contains("#[test]") && !attributes.contains("#[tokio::test") {
            return None;
        }
        let name = code[at + "fn ".len()..].bytes();
        let name: Vec<u8> = name.take_while(|&byte| is_name(byte)).collect();
        Some(TestFunction {
            name: String::from_utf8_lossy(&name).into_owned(),
            comments: comment_lines(source, item, at).collect(),
        })
    })
}

/// The comment lines between two offsets. A comment behind code on its line does not count.
fn comment_lines(source: &Source, from: usize, to: usize) -> impl Iterator<Item = CommentLine<'_>> {
    let mut at = from;
    source.text[from..to]
        .split_inclusive('\n')
        .enumerate()
        .filter_map(move |(index, line)| {
            let start = at;
            at += line.len();
            let text = line.trim().strip_prefix("// ")?;
            let whole_line = index > 0 || from == 0;
            whole_line.then_some(CommentLine { at: start, text })
        })
}

/// The requirement ids at the beginning of a comment, up to the first word that is no id. `D-12b` is
/// a part of `D-12` and counts for it.
fn leading_ids(comment: &str) -> impl Iterator<Item = String> {
    words(comment)
        .take_while(|word| is_id(word))
        .map(|word| word.trim_end_matches(|c: char| c.is_ascii_lowercase()))
        .map(str::to_owned)
}

fn words(comment: &str) -> impl Iterator<Item = &str> {
    comment
        .split([' ', ',', ':'])
        .filter(|word| !word.is_empty())
}

/// True for `S3-017`, `SC-02`, `LAW-4` and `G7`: capitals, perhaps digits and a dash, digits,
/// perhaps a letter.
fn is_id(word: &str) -> bool {
    let (family, number) = match word.split_once('-') {
        Some((family, number)) => (
            family.trim_end_matches(|c: char| c.is_ascii_digit()),
            number,
        ),
        None => word.split_at(word.bytes().take_while(u8::is_ascii_uppercase).count()),
    };
    let number = number
        .strip_suffix(|c: char| c.is_ascii_lowercase())
        .unwrap_or(number);
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let capitals = !family.is_empty() && family.bytes().all(|byte| byte.is_ascii_uppercase());
    digits && capitals
}

/// The requirement ids that a test name carries: `sc_3_d_40_…` carries `D-40`.
fn ids_in_name(name: &str) -> Vec<String> {
    let words: Vec<&str> = name.split('_').collect();
    let id = |pair: &[&str]| {
        let family = pair[0].to_uppercase();
        let number = pair[1].len() >= 2 && pair[1].bytes().all(|b| b.is_ascii_digit());
        let is_known = FAMILIES_IN_NAMES.contains(&family.as_str());
        (is_known && number).then(|| format!("{family}-{}", pair[1]))
    };
    words.windows(2).filter_map(id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(text: &str, id: &str) -> Vec<String> {
        let index = TestIndex::new(&[Source::new("crates/a/src/b.rs", text)]);
        index.answering(id).map(str::to_owned).collect()
    }

    #[test]
    fn test_in_a_macro_has_no_name() {
        let text =
            "macro_rules! t { ($n:ident) => { #[test]\nfn $n() {} }; }\n#[test]\nfn a() {}\n";
        let index = TestIndex::new(&[Source::new("e2e/tests/it/b.rs", text)]);
        assert_eq!(index.names().collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn ids_above_attributes_belong_to_the_test() {
        let text = "// S3-001\n#[test]\nfn one() {}\n\n// S3-001, SC-02: both at once\n\
                    #[tokio::test(start_paused = true)]\n#[ignore]\nasync fn two() {}\n";
        assert_eq!(answers(text, "S3-001"), ["one", "two"]);
        assert_eq!(answers(text, "SC-02"), ["two"]);
        assert_eq!(answers(text, "S3-002"), [""; 0]);
        let part = "// D-12b\n#[test]\nfn three() {}\n";
        assert_eq!(answers(part, "D-12"), ["three"]);
    }

    #[test]
    fn ids_elsewhere_do_not_belong_to_the_test() {
        let text = "fn helper() {} // S3-001\n#[test]\nfn one() {\n    // S3-002\n}\n\
                    // S3-003\nfn helper() {}\n// The rule S3-004 asks for it.\n#[test]\nfn two() {}\n";
        for id in ["S3-001", "S3-002", "S3-003", "S3-004"] {
            assert_eq!(answers(text, id), [""; 0], "{id}");
        }
    }

    #[test]
    fn ids_are_capitals_and_digits() {
        for word in [
            "S1-056", "SC-02", "C-16", "D-45", "LAW-4", "G7", "I-17", "D-12b",
        ] {
            assert!(is_id(word), "{word}");
        }
        for word in [
            "S1-", "S1-x", "S1-1bc", "A", "4", "Http-1", "-3", "", "s1-056",
        ] {
            assert!(!is_id(word), "{word}");
        }
    }

    #[test]
    fn ids_in_a_test_name_count_too() {
        let text = "fn s3_017_helper() {}\n#[test]\nfn sc_1_s3_017_c_10_a() {}\n";
        assert_eq!(answers(text, "S3-017"), ["sc_1_s3_017_c_10_a"]);
        assert_eq!(answers(text, "C-10"), ["sc_1_s3_017_c_10_a"]);
    }

    #[test]
    fn serial_comment_marks_the_test_of_its_crate() {
        let text = "// S3-001\n// serial: measures a second\n#[test]\nfn one() {}\n";
        let index = TestIndex::new(&[Source::new("e2e/tests/it/b.rs", text)]);
        assert!(index.is_serial("e2e it", "b::one"));
        assert!(!index.is_serial("e2e it", "b::two"));
        assert!(!index.is_serial("crates/log", "b::one"));
    }

    #[test]
    fn declaration_above_no_test_is_a_finding() {
        let lines = [
            "// S3-001\n#[test]\nfn one() {}",
            "// S3-002\nfn helper() {}",
            "// serial: slow\nfn other() {}",
            "// S3-003 asks for it.\nfn third() {}",
        ];
        let text = lines.join("\n");
        let findings = dangling_comments(&[Source::new("e2e/tests/it/b.rs", &text)]);
        let lines: Vec<usize> = findings.iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [4, 6]);
        let product =
            dangling_comments(&[Source::new("crates/a/src/b.rs", "// S3-002\nfn f() {}\n")]);
        assert_eq!(product, []);
    }
}

//! Words that may not stand in the code, each with its reason.
//!
//! `unwrap()` hides the invariant that `expect` would state; a note to self is work that looks
//! done; a wall clock outside the one clock file is an order that can jump. Tests are exempt from
//! the first and the last.

use crate::finding::Finding;
use crate::scan::is_name;
use crate::source::Source;

/// The one file that reads the wall clock.
const CLOCK_FILE: &str = "crates/session/src/clock.rs";

const CLOCKS: [&str; 6] = [
    "SystemTime::now",
    "Timestamp::now",
    "Zoned::now",
    "Utc::now",
    "Local::now",
    "Uuid::now_v7",
];

// Spelt in two halves so that this file passes its own check.
const NOTES: [&str; 3] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];
const UNFINISHED: [&str; 2] = [concat!("to", "do!"), concat!("unimpl", "emented!")];

/// Every word that may not stand where it does.
pub fn forbidden(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        notes(source, &mut findings);
        if source.is_test() {
            continue;
        }
        let mut refuse = |needle: &str, message: &str| {
            for at in source.scan.finds(needle) {
                findings.push(Finding::at(&source.path, source.scan.line(at), message));
            }
        };
        refuse(
            ".unwrap()",
            "`unwrap()` outside tests: return the error, or `expect` the invariant",
        );
        if source.path != CLOCK_FILE {
            for clock in CLOCKS {
                refuse(
                    clock,
                    "a wall clock outside the clock file: take time from the `Clock` port",
                );
            }
        }
    }
    findings
}

fn notes(source: &Source, found: &mut Vec<Finding>) {
    for (index, line) in source.text.lines().enumerate() {
        if NOTES.iter().any(|note| has_word(line, note)) {
            let message = "a note to self: do it, or write an issue";
            found.push(Finding::at(&source.path, index + 1, message));
        }
    }
    for needle in UNFINISHED {
        for (at, _) in source.scan.code.match_indices(needle) {
            let message = "unfinished code: finish it";
            found.push(Finding::at(&source.path, source.scan.line(at), message));
        }
    }
}

fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let bytes = line.as_bytes();
        let before = at.checked_sub(1).map(|at| bytes[at]);
        let after = bytes.get(at + word.len()).copied();
        !before.is_some_and(is_name) && !after.is_some_and(is_name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let findings = forbidden(&[Source::new(path, text)]);
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn unwrap_outside_tests_is_a_finding() {
        let text = "fn a() { b().unwrap() }\n// x.unwrap()\n#[cfg(test)]\nmod tests { fn c() { d().unwrap() } }\n";
        assert_eq!(lines("crates/a/src/b.rs", text), [1]);
        assert_eq!(lines("crates/a/tests/b.rs", text), [0; 0]);
        assert_eq!(
            lines("crates/a/src/b.rs", "fn a() { b().unwrap_or(0) }"),
            [0; 0]
        );
    }

    #[test]
    fn notes_in_comments_are_findings() {
        let text = format!(
            "// {} later\nlet mastodon = 1;\n{}();\n",
            NOTES[0], UNFINISHED[0]
        );
        assert_eq!(lines("crates/a/src/b.rs", &text), [1, 3]);
        assert_eq!(lines("crates/a/tests/b.rs", &text), [1, 3]);
    }

    #[test]
    fn wall_clock_is_read_in_one_place() {
        let text = "fn now() { std::time::SystemTime::now() }\n";
        assert_eq!(lines("crates/log/src/b.rs", text), [1]);
        assert_eq!(lines(CLOCK_FILE, text), [0; 0]);
    }
}

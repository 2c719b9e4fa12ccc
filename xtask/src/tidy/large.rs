//! What has grown large: files over 400 lines and functions over 70. Reported, not refused: the
//! question is "what is the second noun here?", and only a reader can answer it.

use crate::finding::Finding;
use crate::scan::{block_end, is_name};
use crate::source::Source;

/// Lines after which a file is reported.
pub const FILE_LINES_MAX: usize = 400;
/// Lines after which a function is reported.
pub const FUNCTION_LINES_MAX: usize = 70;

/// Files and functions over their size.
pub fn all(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        let lines = source.text.lines().count();
        if lines > FILE_LINES_MAX {
            let message = format!("{lines} lines (over {FILE_LINES_MAX})");
            findings.push(Finding::about(&source.path, message));
        }
        functions(source, &mut findings);
    }
    findings
}

fn functions(source: &Source, found: &mut Vec<Finding>) {
    let code = &source.scan.code;
    for (at, _) in code.match_indices("fn ") {
        if at > 0 && is_name(code.as_bytes()[at - 1]) {
            continue;
        }
        let name_at = at + "fn ".len();
        let length = code.as_bytes()[name_at..]
            .iter()
            .take_while(|&&b| is_name(b))
            .count();
        let Some(stop) = code[at..].find(['{', ';']).map(|stop| at + stop) else {
            continue;
        };
        if length == 0 || code.as_bytes()[stop] == b';' {
            continue;
        }
        let first = source.scan.line(at);
        let lines = source.scan.line(block_end(code, stop) - 1) - first + 1;
        if lines > FUNCTION_LINES_MAX {
            let name = &code[name_at..name_at + length];
            let message = format!("`{name}` has {lines} lines (over {FUNCTION_LINES_MAX})");
            found.push(Finding::at(&source.path, first, message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_and_functions_are_remarks() {
        let body = "    x();\n".repeat(FUNCTION_LINES_MAX - 1);
        let text = format!("fn fits() {{\n{}}}\nfn long() {{\n{body}}}\n", &body[9..]);
        let source = Source::new("crates/a/src/b.rs", &text);
        let findings: Vec<_> = all(&[source]).iter().map(Finding::to_string).collect();
        assert_eq!(
            findings,
            ["crates/a/src/b.rs:71: `long` has 71 lines (over 70)"]
        );
        let source = Source::new("crates/a/src/b.rs", &"\n".repeat(401));
        let findings: Vec<_> = all(&[source]).iter().map(Finding::to_string).collect();
        assert_eq!(findings, ["crates/a/src/b.rs: 401 lines (over 400)"]);
    }
}

//! What may be built in: licences from an allow-list, and crates that are refused with a reason.
//!
//! An SPDX expression passes when one way of choosing among its `OR`s leaves only allowed names.

use crate::finding::Finding;
use crate::metadata::Metadata;

const ALLOWED: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Unlicense",
    "Zlib",
    "Unicode-3.0",
    "0BSD",
    "CDLA-Permissive-2.0",
    "MIT-0",
    "BSL-1.0",
    "CC0-1.0",
];

/// Refused anywhere in the graph.
const REFUSED: &[(&str, &str)] = &[
    (
        "aws-lc-rs",
        "one crypto provider in the graph, and it is ring (docs/decisions/0020)",
    ),
    (
        "openssl-sys",
        "no system library that must be installed first",
    ),
    ("native-tls", "TLS, where it comes, is rustls"),
    ("serde_yaml", "deprecated; YAML is read with serde-saphyr"),
    (
        "serde_yml",
        "RUSTSEC-2025-0068, unsound; YAML is read with serde-saphyr",
    ),
    (
        "eventsource-stream",
        "panics on a byte order mark that any upstream can send",
    ),
];

/// Refused as a direct dependency of our own crates.
const REFUSED_HERE: &[(&str, &str)] = &[("chrono", "times are event::Timestamp, printed by jiff")];

/// Packages whose licence is not on the list.
pub fn not_allowed(metadata: &Metadata) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &metadata.packages {
        let place = format!("{} {}", package.name, package.version);
        match &package.license {
            None => findings.push(Finding::about(
                &place,
                "names no licence: read it, then decide",
            )),
            Some(text) if !passes(text) => {
                let message =
                    format!("licence `{text}` is not on the list of xtask/src/tidy/licence.rs");
                findings.push(Finding::about(&place, message));
            }
            Some(_) => {}
        }
    }
    findings
}

/// Packages that are refused by name.
pub fn refused(metadata: &Metadata) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &metadata.packages {
        let mut named = REFUSED.iter().filter(|(name, _)| *name == package.name);
        for (_, reason) in named.by_ref().filter(|_| metadata.is_built(package)) {
            let place = format!("{} {}", package.name, package.version);
            findings.push(Finding::about(&place, format!("refused: {reason}")));
        }
    }
    for package in metadata.members() {
        for dependency in &package.dependencies {
            let of = REFUSED_HERE
                .iter()
                .filter(|(name, _)| *name == dependency.name);
            for (name, reason) in of {
                let message = format!("depends on {name}, refused: {reason}");
                findings.push(Finding::about(&package.name, message));
            }
        }
    }
    findings
}

/// Whether an SPDX expression can be satisfied with allowed licences alone.
fn passes(expression: &str) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let mut words = spaced.split_whitespace().peekable();
    let value = any(&mut words);
    value.unwrap_or(false) && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any(words: &mut Words<'_>) -> Option<bool> {
    let mut value = all(words)?;
    while words.next_if_eq(&"OR").is_some() {
        value |= all(words)?;
    }
    Some(value)
}

fn all(words: &mut Words<'_>) -> Option<bool> {
    let mut value = one(words)?;
    while words.next_if_eq(&"AND").is_some() {
        value &= one(words)?;
    }
    Some(value)
}

fn one(words: &mut Words<'_>) -> Option<bool> {
    let word = words.next()?;
    if word == "(" {
        let value = any(words)?;
        return (words.next()? == ")").then_some(value);
    }
    let mut value = ALLOWED.contains(&word);
    if words.next_if_eq(&"WITH").is_some() {
        // An exception changes the licence; none has been read and allowed.
        words.next()?;
        value = false;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::examples::graph;

    #[test]
    fn expressions_are_read_with_their_precedence() {
        let pass = [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
            "GPL-3.0 AND MPL-2.0 OR MIT",
        ];
        let fail = [
            "GPL-3.0",
            "MIT AND MPL-2.0",
            "(GPL-3.0 OR MIT) AND MPL-2.0",
            "Apache-2.0 WITH LLVM-exception",
            "",
            "MIT OR",
            "(MIT",
            "MIT MIT",
        ];
        for text in pass {
            assert!(passes(text), "{text}");
        }
        for text in fail {
            assert!(!passes(text), "{text}");
        }
    }

    #[test]
    fn foreign_or_missing_licence_is_a_finding() {
        let metadata = graph(
            &[],
            &[("good", "MIT"), ("copyleft", "AGPL-3.0"), ("silent", "")],
        );
        let findings: Vec<_> = not_allowed(&metadata)
            .iter()
            .map(Finding::to_string)
            .collect();
        assert_eq!(
            findings,
            [
                "copyleft 1.0.0: licence `AGPL-3.0` is not on the list of xtask/src/tidy/licence.rs",
                "silent 1.0.0: names no licence: read it, then decide",
            ]
        );
    }

    #[test]
    fn refused_crate_is_a_finding_with_reason() {
        let edges = [("turnwire-log", None, "chrono")];
        let metadata = graph(&edges, &[("native-tls", "MIT"), ("chrono", "MIT")]);
        let findings: Vec<_> = refused(&metadata).iter().map(Finding::to_string).collect();
        assert_eq!(
            findings,
            [
                "native-tls 1.0.0: refused: TLS, where it comes, is rustls",
                "turnwire-log: depends on chrono, refused: times are event::Timestamp, printed by jiff",
            ]
        );
    }
}

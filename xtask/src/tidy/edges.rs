//! Which crate may know which: the arrows of ARCHITECTURE.md, as a table that is checked.
//!
//! The table lists the crates from left to right. Normal dependencies must be in a crate's row;
//! dev-dependencies may reach anything on its left, so that no test turns an arrow around. The
//! test kit stands right of all that ships but the command: `e2e`, `bench` and the tests of the
//! command may use it.

use crate::finding::Finding;
use crate::metadata::Metadata;

const PREFIX: &str = "turnwire-";

/// A row: a crate and what it may import.
type Row = (&'static str, &'static [&'static str]);

const LEFT_OF_SERVE: &[&str] = &[
    "event", "fair", "pack", "dial", "identity", "model", "tool", "plan", "relay", "agent",
    "render", "log", "hub", "otlp", "session", "wire",
];
const ANYTHING: &[&str] = &[
    "event", "fair", "pack", "dial", "identity", "model", "tool", "plan", "relay", "agent",
    "render", "log", "hub", "otlp", "session", "wire", "serve", "client", "testkit",
];

/// The crates from left to right, each with what it may import.
const ROWS: &[Row] = &[
    ("event", &[]),
    ("fair", &[]),
    ("pack", &["event"]),
    ("dial", &["event"]),
    ("identity", &["event", "dial"]),
    ("model", &["event", "pack", "dial"]),
    ("tool", &["event", "fair", "pack", "dial"]),
    ("plan", &["event"]),
    ("relay", &["event", "dial", "model"]),
    (
        "agent",
        &["event", "pack", "model", "tool", "plan", "relay"],
    ),
    ("render", &["event", "pack"]),
    ("log", &["event"]),
    ("hub", &["event", "log"]),
    ("otlp", &["event", "dial"]),
    ("session", &["event", "fair", "render", "log", "hub"]),
    ("wire", &["event"]),
    ("serve", LEFT_OF_SERVE),
    ("client", &["event", "wire"]),
    ("demo", &[]),
    ("testkit", ANYTHING),
    (
        "cli",
        &[
            "event", "pack", "identity", "tool", "log", "session", "wire", "serve", "client",
            "demo",
        ],
    ),
    ("schemagen", &["event", "pack", "relay", "wire"]),
    (
        "fuzz-targets",
        &[
            "event", "pack", "dial", "model", "tool", "relay", "log", "wire",
        ],
    ),
    ("xtask", &[]),
    ("e2e", ANYTHING),
    ("bench", ANYTHING),
];

/// Arrows that may not be.
pub fn forbidden(metadata: &Metadata) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in metadata.members() {
        let Some(name) = short(&package.name) else {
            continue;
        };
        let Some(index) = ROWS.iter().position(|(row, _)| *row == name) else {
            let message =
                "a crate that the table in xtask/src/tidy/edges.rs does not know: add its row";
            findings.push(Finding::about(&package.name, message));
            continue;
        };
        for dependency in &package.dependencies {
            let Some(target) = short(&dependency.name) else {
                continue;
            };
            if let Some(message) = judge(index, target, dependency.kind.as_deref()) {
                findings.push(Finding::about(&package.name, message));
            }
        }
    }
    findings
}

/// The folder-like name of one of our crates; `None` for others'.
fn short(name: &str) -> Option<&str> {
    match name {
        "turnwire" => Some("cli"),
        name => name.strip_prefix(PREFIX),
    }
}

fn judge(index: usize, target: &str, kind: Option<&str>) -> Option<String> {
    let (name, allowed) = ROWS[index];
    let may_test =
        ["testkit", "e2e", "bench"].contains(&name) || (name, kind) == ("cli", Some("dev"));
    if target == "testkit" && !may_test {
        let allowed = "only e2e, bench and the tests of cli may";
        return Some(format!("{name} uses testkit: {allowed}"));
    }
    if kind == Some("dev") {
        let is_earlier = ROWS[..index].iter().any(|(row, _)| *row == target);
        return (!is_earlier && target != name).then(|| {
            format!("{name} has a dev-dependency on {target}, which stands on its right")
        });
    }
    (!allowed.contains(&target)).then(|| {
        let allowed = if allowed.is_empty() {
            "nothing of ours".to_owned()
        } else {
            allowed.join(", ")
        };
        format!("{name} may not know {target}; it may know {allowed}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::examples::graph;

    fn found(edges: &[(&str, Option<&str>, &str)]) -> Vec<String> {
        let findings = forbidden(&graph(edges, &[]));
        findings.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn allowed_dependencies_pass() {
        let edges = [
            ("turnwire-hub", None, "turnwire-log"),
            ("turnwire-hub", None, "tokio"),
            ("turnwire-serve", None, "turnwire-session"),
            ("turnwire-session", Some("dev"), "turnwire-agent"),
            ("turnwire", None, "turnwire-serve"),
            ("turnwire-e2e", None, "turnwire-testkit"),
            ("turnwire-testkit", Some("dev"), "turnwire-session"),
        ];
        assert_eq!(found(&edges), [""; 0]);
    }

    #[test]
    fn backward_dependency_is_a_finding() {
        let cases = [
            (
                ("turnwire-wire", None, "turnwire-log"),
                "turnwire-wire: wire may not know log; it may know event",
            ),
            (
                ("turnwire-event", Some("build"), "turnwire-wire"),
                "turnwire-event: event may not know wire; it may know nothing of ours",
            ),
            (
                ("turnwire-log", Some("dev"), "turnwire-session"),
                "turnwire-log: log has a dev-dependency on session, which stands on its right",
            ),
            (
                ("turnwire-session", Some("dev"), "turnwire-testkit"),
                "turnwire-session: session uses testkit: only e2e, bench and the tests of cli may",
            ),
            (
                ("turnwire-mystery", None, "turnwire-event"),
                "turnwire-mystery: a crate that the table in xtask/src/tidy/edges.rs does not know: add its row",
            ),
        ];
        for (edge, message) in cases {
            assert_eq!(found(&[edge]), [message]);
        }
    }
}

//! The shipped alert rules: they read series that the server has, a mismatch of principals is
//! reported at once, and each alert has a firing case, a silent case and a section in
//! `docs/alerts.md`. `promtool` runs the cases in the end-to-end tests.

use std::collections::BTreeSet;

use turnwire_xtask::tidy;

const RULES: &str = "ops/prometheus/turnwire.rules.yml";
const CASES: &str = "ops/prometheus/turnwire.rules.test.yml";
const PAGE: &str = "docs/alerts.md";

fn read(path: &str) -> String {
    let file = tidy::root().join(path);
    std::fs::read_to_string(file).unwrap_or_else(|why| panic!("{path}: {why}"))
}

/// The alerts of a file of rules: name and text of each.
fn alerts(rules: &str) -> Vec<(&str, &str)> {
    let rules = rules.split("- alert: ").skip(1);
    let rules = rules.map(|rule| rule.split("\n  - name:").next().expect("its text"));
    rules
        .map(|rule| rule.split_once('\n').expect("a name and a text"))
        .collect()
}

/// The text of a rule.
fn rule<'a>(rules: &'a str, name: &str) -> &'a str {
    let found = alerts(rules).into_iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("no rule {name}")).1
}

/// The value of a field that has a line of its own.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let prefix = format!("{name}: ");
    let mut lines = text.lines();
    lines.find_map(|line| line.trim().strip_prefix(&prefix))
}

/// The names of counters, gauges and histograms that expressions read.
fn series(rules: &str) -> Vec<&str> {
    let names = rules.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let mut names: Vec<&str> = names.filter(|name| name.starts_with("turnwire_")).collect();
    names.sort_unstable();
    names.dedup();
    names
}

// S2-052
#[test]
fn mismatch_of_principals_alerts_at_once() {
    let rules = read(RULES);
    let rule = rule(&rules, "EnvelopePrincipalMismatch");
    let lines: Vec<&str> = rule.lines().map(str::trim).collect();
    assert!(lines.contains(&"severity: security"), "{rule}");
    assert!(!lines.iter().any(|line| line.starts_with("for:")), "{rule}");
    let name = "turnwire_ps6_envelope_principal_mismatch_total";
    let increase = format!("sum by (instance, consumer) (increase({name}[5m])) > 0");
    assert!(lines.contains(&increase.as_str()), "one is enough: {rule}");
}

// S1-117
#[test]
fn undelivered_chat_frame_alerts_at_once() {
    let rules = read(RULES);
    let rule = rule(&rules, "ChatFramesDropped");
    let lines: Vec<&str> = rule.lines().map(str::trim).collect();
    assert!(!lines.iter().any(|line| line.starts_with("for:")), "{rule}");
    let name = "turnwire_stream_sse_frame_dropped_total";
    let increase = format!("sum by (instance) (increase({name}[5m])) > 0");
    assert!(lines.contains(&increase.as_str()), "one is enough: {rule}");
}

// S2-052
#[test]
fn alert_rules_read_documented_metrics() {
    let rules = read(RULES);
    let operations = read("docs/operations.md");
    let names = series(&rules);
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        let base = ["_bucket", "_count", "_sum"]
            .iter()
            .find_map(|part| name.strip_suffix(part))
            .unwrap_or(name);
        let listed = [name, base]
            .iter()
            .any(|name| operations.contains(&format!("`{name}`")));
        assert!(listed, "docs/operations.md has no metric `{name}`");
    }
}

#[test]
fn alert_has_severity_texts_and_a_link_to_its_section() {
    let rules = read(RULES);
    for (name, rule) in alerts(&rules) {
        let severity = field(rule, "severity").unwrap_or_default();
        assert!(
            ["security", "critical", "warning"].contains(&severity),
            "{name}: {severity}"
        );
        for text in ["summary", "description"] {
            assert!(field(rule, text).is_some(), "{name} has no {text}");
        }
        let link = field(rule, "runbook_url").unwrap_or_default();
        let section = format!("/{PAGE}#{}", name.to_lowercase());
        assert!(link.ends_with(&section), "{name}: {link}");
    }
}

#[test]
fn alert_has_a_firing_case_and_a_silent_one() {
    let (rules, cases) = (read(RULES), read(CASES));
    let (mut firing, mut silent) = (BTreeSet::new(), BTreeSet::new());
    for case in cases.split("\n  - name: ").skip(1) {
        let name = field(case, "alertname").expect("the alert of a case");
        assert!(case.contains("- series: "), "a case without series: {case}");
        match case.contains("exp_alerts: []") {
            true => silent.insert(name),
            false => firing.insert(name),
        };
    }
    let alerts: BTreeSet<&str> = alerts(&rules).iter().map(|(name, _)| *name).collect();
    assert_eq!(firing, alerts, "alerts with a firing case");
    assert_eq!(silent, alerts, "alerts with a silent case");
}

/// The sections of the page by their headings, without the one that every alert shares.
fn sections(page: &str) -> Vec<(&str, &str)> {
    let sections = page.split("\n## ").skip(2);
    sections
        .map(|section| section.split_once('\n').expect("a heading and a text"))
        .collect()
}

#[test]
fn alert_has_a_section_with_cause_and_action() {
    let (rules, page) = (read(RULES), read(PAGE));
    let sections = sections(&page);
    let names = |list: &[(&str, &str)]| -> Vec<String> {
        list.iter().map(|(name, _)| (*name).to_owned()).collect()
    };
    assert_eq!(
        names(&sections),
        names(&alerts(&rules)),
        "in the same order"
    );
    for (name, text) in sections {
        for part in ["**Means.**", "look", "do", "**Over** "] {
            let has = text.to_lowercase().contains(&part.to_lowercase());
            assert!(has, "{name} has no part {part}");
        }
    }
}

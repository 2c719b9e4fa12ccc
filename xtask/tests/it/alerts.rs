//! The shipped alert rules: they read series that the server has, and a mismatch of principals is
//! reported at once.

use turnwire_xtask::tidy;

fn read(path: &str) -> String {
    let file = tidy::root().join(path);
    std::fs::read_to_string(file).unwrap_or_else(|why| panic!("{path}: {why}"))
}

/// The text of a rule, from its name to the next rule or group.
fn rule<'a>(rules: &'a str, name: &str) -> &'a str {
    let (_, rule) = rules
        .split_once(&format!("- alert: {name}\n"))
        .unwrap_or_else(|| panic!("no rule {name}"));
    let rule = rule.split("- alert:").next().expect("its text");
    rule.split("\n  - name:").next().expect("its text")
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
    let rules = read("docs/alerts/turnwire.rules.yml");
    let rule = rule(&rules, "EnvelopePrincipalMismatch");
    let lines: Vec<&str> = rule.lines().map(str::trim).collect();
    assert!(lines.contains(&"severity: security"), "{rule}");
    assert!(!lines.iter().any(|line| line.starts_with("for:")), "{rule}");
    let name = "turnwire_ps6_envelope_principal_mismatch_total";
    let increase = format!("increase({name}{{consumer=\"consumer-agent\"}}[5m])");
    let at = lines.iter().position(|line| *line == increase);
    let at = at.unwrap_or_else(|| panic!("no {increase}: {rule}"));
    assert_eq!(lines[at + 1], ") > 0", "one is enough");
}

// S2-052
#[test]
fn alert_rules_read_documented_metrics() {
    let rules = read("docs/alerts/turnwire.rules.yml");
    let operations = read("docs/operations.md");
    let names = series(&rules);
    assert!(names.len() > 3, "{names:?}");
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

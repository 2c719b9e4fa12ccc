//! The Grafana dashboard: its selectors, and its queries against the metrics of a real server.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use turnwire_testkit::environment;

use super::promtool::{is_metric, metric_names, metrics_of_a_busy_pack, promtool};

fn dashboard() -> Value {
    let path = environment::root().join("ops/grafana/turnwire.json");
    let text = std::fs::read_to_string(path).expect("the dashboard");
    serde_json::from_str(&text).expect("JSON")
}

/// The queries of all panels, each with the title of its panel.
fn queries(dashboard: &Value) -> Vec<(String, String)> {
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        let targets = panel["targets"].as_array().into_iter().flatten();
        for target in targets {
            let text = |value: &Value| value.as_str().expect("a text").to_owned();
            queries.push((text(&panel["title"]), text(&target["expr"])));
        }
    }
    queries
}

/// The labels of each series in the text of `/metrics`.
fn labels_by_series(metrics: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut labels: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        let Some((series, _)) = line.rsplit_once(' ') else {
            continue;
        };
        let (name, list) = series.split_once('{').unwrap_or((series, ""));
        let names = list
            .split("\",")
            .filter_map(|label| Some(label.split_once('=')?.0));
        labels.entry(name).or_default().extend(names);
    }
    labels
}

/// The series of a query with the labels that it selects by, and the labels that it groups by.
fn selected(query: &str) -> (Vec<(&str, Vec<&str>)>, Vec<&str>) {
    let mut series = Vec::new();
    for (at, _) in query.match_indices("turnwire_") {
        let (name, rest) = query[at..].split_once('{').expect("a selector");
        let selector = rest.split('}').next().expect("its end");
        let names = selector
            .split("\",")
            .filter_map(|label| label.split(['=', '!']).next());
        series.push((name, names.collect()));
    }
    let groups = query.split("by (").skip(1);
    let groups = groups.flat_map(|group| group.split(')').next().expect("its end").split(", "));
    (series, groups.collect())
}

/// Labels that the collector adds.
const OF_THE_COLLECTOR: [&str; 2] = ["instance", "le"];

//
#[tokio::test]
async fn dashboard_selects_by_labels_that_the_metrics_have() {
    let metrics = metrics_of_a_busy_pack().await;
    let labels = labels_by_series(&metrics);
    let queries = queries(&dashboard());
    assert!(queries.len() > 40, "{}", queries.len());
    let (mut by_vertical, mut checked) = (BTreeSet::new(), 0);
    for (panel, query) in &queries {
        for name in metric_names(query) {
            assert!(is_metric(name), "{panel}: there is no metric {name}");
        }
        let (series, groups) = selected(query);
        for (name, selectors) in series {
            assert!(selectors.contains(&"instance"), "{panel}: {query}");
            // Some metrics need an MCP server, an upstream or several sub-agents: no series here.
            let Some(labels) = labels.get(name) else {
                continue;
            };
            checked += 1;
            if selectors.contains(&"vertical") {
                by_vertical.insert(name);
            }
            for label in selectors.iter().chain(&groups) {
                let known = labels.contains(label) || OF_THE_COLLECTOR.contains(label);
                assert!(known, "{panel}: {name} has no label {label}: {labels:?}");
            }
        }
    }
    assert!(checked > 30, "only {checked} of the series are there");
    assert!(by_vertical.len() > 7, "{by_vertical:?}");
}

//
#[test]
fn dashboard_has_selectors_for_vertical_and_instance() {
    let dashboard = dashboard();
    let variables = dashboard["templating"]["list"].as_array().expect("a list");
    for name in ["instance", "vertical"] {
        let variable = variables.iter().find(|variable| variable["name"] == name);
        let variable = variable.unwrap_or_else(|| panic!("no selector {name}"));
        let values = variable["definition"].as_str().expect("a definition");
        assert!(values.starts_with("label_values(turnwire_"), "{values}");
        assert!(values.ends_with(&format!(", {name})")), "{values}");
        // All verticals include the empty one, of the orchestrator.
        assert_eq!(variable["allValue"], ".*", "{variable}");
        for name in metric_names(values) {
            assert!(is_metric(name), "there is no metric {name}");
        }
    }
    let ids = dashboard["panels"].as_array().expect("panels").iter();
    let ids: Vec<i64> = ids
        .map(|panel| panel["id"].as_i64().expect("an id"))
        .collect();
    let unique: BTreeSet<_> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len(), "{ids:?}");
}

//
#[test]
fn dashboard_queries_are_valid() {
    let mut rules = String::from("groups:\n- name: panels\n  rules:\n");
    for (at, (_, query)) in queries(&dashboard()).iter().enumerate() {
        let query = query
            .replace("$__rate_interval", "5m")
            .replace("$__range", "3h");
        let query = serde_json::to_string(&query).expect("a text");
        rules += &format!("  - record: panel:query_{at}\n    expr: {query}\n");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("panels.yml");
    std::fs::write(&path, rules).expect("written");
    let (code, text) = promtool(&["check", "rules", path.to_str().expect("a path")], "");
    assert_eq!(code, Some(0), "{text}");
}

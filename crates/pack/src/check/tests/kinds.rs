//! Mistakes in tools of every kind, in tool servers and in workers: the good pack with one of
//! each, and one thing changed.

mod http;
mod process;
mod server;
mod hand;
mod worker;
mod full;

use super::*;

/// Tools of every kind, beside those of the good pack.
const TOOLS: &str = r#"mcp_servers:
  files:
    command: [mcp-server-filesystem, "./data", "${SECRET}"]
    env: {TOKEN: "${SECRET}"}
    start_timeout_ms: 5000
    call_timeout_ms: 60000
  search:
    url: "https://search.example.com/mcp?tenant=corner"
    headers: {Authorization: "Bearer ${SECRET}"}
  facts: {url: "http://127.0.0.1:8500/mcp"}
tools:
  - name: search_offers
    connector: ccs_rest
    enricher_id: offer_search
    domain_type: offer_list
    description: Searches offers.
    input_schema: {type: object, properties: {query: {type: string}}}
    status: searching_offers
  - name: render_offer_list
    connector: render
    shape: list
    description: Shows offers.
  - {name: clock, connector: direct, function: clock}
  - {name: note, connector: direct, function: llm_feedback, approval: none}
  - name: weather
    connector: http
    description: The weather.
    method: POST
    url: "https://api.example.com/v1/{city}?lang={lang}&key=${SECRET}"
    query: {units: metric, day: "{day}"}
    headers: {X-Key: "${SECRET}", Accept: application/json, Content-Type: application/json}
    input_schema: {type: object, properties: {city: {}, day: {}, lang: {}}}
    timeout_ms: 60000
    max_bytes: 1048576
    redirects_max: 0
    approval: required
  - name: count_words
    connector: process
    description: Counts words.
    command: [wc, "-w", "--files={file}", "{print $1}", "${SECRET}"]
    env: {LANG: C, TOKEN: "${SECRET}"}
    stdin: none
    output: json
    output_bytes_max: 1048576
    limits: {cpu_s: 600, memory_mb: 16384, file_mb: 0, open_files: 1024, processes: 4096}
    input_schema: {type: object, properties: {file: {type: string}}}
    timeout_ms: 600000
  - name: plain_process
    connector: process
    description: Says it.
    command: [cat]
    input_schema: {type: object}
  - name: plain_http
    connector: http
    description: Asks.
    url: http://127.0.0.1:9000
    input_schema: {type: object}
  - name: read_notes
    connector: mcp
    server: files
    tool: read.file
    progress_status: searching_offers
  - {name: list_notes, connector: mcp, server: files, timeout_ms: 1000, description: Lists.}
  - name: research
    connector: delegate
    agent: researcher
    description: Looks into it.
  - name: think_again
    connector: delegate
    agent: orchestrator
    description: Thinks.
    timeout_ms: 600000
  - {name: to_shop, connector: delegate, agent: shop, description: The shop at length.}
  - name: lookup
    connector: ccs_mcp
    enricher_id: facts
    domain_type: fact_list
    description: Facts.
    input_schema: {type: object}
"#;

const WORKER: &str = r#"id: researcher
version: "1"
kind: worker
description: Finds out.
model: big
prompt_blocks: [shop]
tools: [clock, research, count_words, "mcp:search"]
timeout_ms: 600000
"#;

/// The good pack with a tool of every kind.
fn base<'a>() -> Vec<Change<'a>> {
    vec![
        Write("tools.yaml", TOOLS),
        Write("workers/researcher/agent.yaml", WORKER),
        Swap(
            "orchestrator.yaml",
            "tools: [note]",
            "tools: [note, weather, plain_process, plain_http, list_notes, research, think_again, to_shop, lookup]",
        ),
        Swap(
            "verticals/shop/agent.yaml",
            "tools: [search_offers,",
            "tools: [read_notes, search_offers,",
        ),
        Swap(
            "verticals/shop/agent.yaml",
            "timeout_ms: 15000",
            "timeout_ms: 60000",
        ),
        Swap(
            "connectors.yaml",
            "enrichers:\n",
            "  facts: {mcp: facts, timeout_ms: 5000}\nenrichers:\n  - {enricher_id: facts, domain_type: fact_list, service: facts, version: \"1\"}\n",
        ),
        Swap("pack.yaml", "limits: {", "limits: {workers_max: 64, "),
    ]
}

fn vars(name: &str) -> Option<String> {
    match name {
        "SECRET" => Some("hush-hush".to_owned()),
        "BRACES" => Some("{city}".to_owned()),
        "LINES" => Some("a\nb".to_owned()),
        "HOST" => Some("db.internal".to_owned()),
        "LONG" => Some("x".repeat(20_000)),
        _ => super::vars(name),
    }
}

fn examined(changes: Vec<Change<'_>>) -> PackReport {
    let mut all = base();
    all.extend(changes);
    check(&files(&all), &vars)
}

fn reported(changes: Vec<Change<'_>>) -> Vec<String> {
    let report = examined(changes);
    let reported: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    let errors = reported.iter().any(|line| line.contains(": error: "));
    assert_eq!(report.pack.is_none(), errors, "{reported:#?}");
    assert!(!reported.concat().contains("hush"), "{reported:#?}");
    reported
}

/// As the table of the good pack, of this one: each row swaps a text of a file.
fn table(file: &str, cases: &[(&str, &str, &[&str])]) {
    let mut mismatches = String::new();
    for (from, to, expected) in cases {
        let reported = reported(vec![Swap(file, from, to)]);
        let lines: Vec<String> = expected
            .iter()
            .map(|line| format!("{file}:{line}"))
            .collect();
        if reported != lines {
            mismatches +=
                &format!("{file} with {to:?}\n  expected {lines:#?}\n  told {reported:#?}\n");
        }
    }
    assert!(mismatches.is_empty(), "{mismatches}");
}

#[test]
fn pack_with_every_tool_kind_has_no_findings() {
    assert_eq!(reported(Vec::new()), [""; 0]);
}

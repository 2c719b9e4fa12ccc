//! Broken packs: each is a small good pack with one thing changed, and the exact words of the
//! answer. Read a table as the author of such a pack would: it must say where, what, and what
//! to write.

mod shape;
mod manifest;
mod agent;
mod status;
mod against;
mod connector;
mod credential;
mod tool;
mod kinds;
mod provider;
mod relay;
mod param;
mod route;
mod price;
mod text;
mod full;
mod good;

use super::*;

/// A pack with nothing to say about it.
const GOOD: [(&str, &str); 19] = [
    (
        "pack.yaml",
        r#"name: corner
version: "1.0.0"
default_locale: en
models: {default: "scripted:corner", big: "scripted:big"}
fan_out: {cap: 3}
limits: {sub_agent_timeout_ms: 20000, calls_max: 8}
flags:
  ai_assistant_batch: true
  ai_assistant_some: {share: 0.25}
  ai_assistant_few: {principals: [user-42]}
"#,
    ),
    (
        "orchestrator.yaml",
        r#"id: orchestrator
version: "1"
kind: orchestrator
description: Speaks with the person.
model: default
prompt_blocks: [persona, format]
sub_agents: [shop, {id: points, flag: ai_assistant_some}]
tools: [note]
history: {max_messages: 60, max_tokens: 24000}
"#,
    ),
    (
        "verticals/shop/agent.yaml",
        r#"id: shop
version: "1"
kind: sub_agent
vertical: shop
aliases: [shopping]
description: Finds offers.
model: big
prompt_blocks: [shop]
tools: [search_offers, render_offer_list]
emits: [searching_offers, looking_back]
on_cancel: discard
timeout_ms: 15000
default_status: searching_offers
"#,
    ),
    (
        "verticals/points/agent.yaml",
        r#"id: points
version: "1"
kind: sub_agent
description: Knows the balance.
prompt_blocks: [shop]
tools: [clock]
emits: [looking_back]
on_cancel: discard
"#,
    ),
    (
        "platform/status_events.yaml",
        r#"- id: looking_back
  description: Somebody reads the history.
  default_render_key: status.looking_back
  default_policy: transform
  emitter_subagents: [shop, points]
  lifecycle: active
"#,
    ),
    (
        "verticals/shop/status_events.yaml",
        r#"- id: searching_offers
  description: The shop searches.
  default_render_key: status.searching_offers
  default_policy: transform
  emitter_subagents: [shop]
  lifecycle: active
- id: old_search
  description: As it was once.
  default_render_key: status.searching_offers
  default_policy: suppress
  emitter_subagents: [shop]
  lifecycle: deprecated
  note: use searching_offers
"#,
    ),
    (
        "connectors.yaml",
        r#"services:
  market: {url: "${CCS}", timeout_ms: 10000, max_bytes: 1048576}
enrichers:
  - enricher_id: offer_search
    domain_type: offer_list
    service: market
    version: "1.2.0"
    payload_schema: schemas/offer_list.json
"#,
    ),
    (
        "tools.yaml",
        r#"tools:
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
  - {name: note, connector: direct, function: llm_feedback}
"#,
    ),
    (
        "overrides.yaml",
        r#"ai_assistant_batch:
  searching_offers: {policy: batch}
  tool_call: {policy: suppress}
ai_assistant_few:
  component: {policy: suppress}
"#,
    ),
    (
        "locales/en.yaml",
        r#"status.searching_offers: {message: "Searching for offers...", phrase: "searching for offers"}
status.looking_back: Looking back...
"#,
    ),
    (
        "locales/de.yaml",
        r#"status.searching_offers: {message: "Angebote werden gesucht...", phrase: "Angebote suchen"}
status.looking_back: Blick zurück...
"#,
    ),
    ("prompts/persona.md", "You are kind.\n"),
    ("prompts/format.md", "Be short.\n"),
    ("prompts/shop.md", "You know offers.\n"),
    (
        "schemas/offer_list.json",
        r#"{"type": "object", "properties": {"items": {"type": "array"}}}
"#,
    ),
    ("scripts/corner.yaml", "- steps: [{text: hi}]\n"),
    (
        "providers.yaml",
        r#"providers:
  local:
    dialect: openai_chat
    base_url: "${LLM}"
    key: ${LOCAL_KEY}
    headers: {X-Team: market}
    params: {max_tokens: 2048, temperature: 0.2, effort: low, extra: {top_p: 0.9}}
    models: {"big-1": {max_tokens: 8192}}
    timeouts: {connect_ms: 5000, first_byte_ms: 60000, idle_ms: 60000, total_ms: 300000}
    retries: {attempts: 3, base_ms: 500, max_ms: 8000}
  thinker:
    dialect: anthropic
    base_url: https://llm.example.com
    key_file: /run/secrets/thinker
    params: {max_tokens: 4096, thinking_tokens: 1024}
"#,
    ),
    (
        "routing.yaml",
        r#"version: "2026-11-16T10:00:00Z"
rules:
  - name: german_shop
    when: {tenant: [0192F1AA-0000-7000-8000-000000000001], agent: shop, locale: de, kind: chat, cost_above_usd: 0.5}
    use: local:small
    fallback: [big, "anthropic:claude"]
  - when: {agent: [orchestrator, points], kind: [scheduled, chat]}
    use: big
default: {use: default, fallback: local:small}
"#,
    ),
    (
        "prices.yaml",
        r#"prices:
  "local:*": {input: 0, output: 0}
  "anthropic:claude": {input: 3.0, output: 15, cached_input: 0.3, cache_write: 3.75}
"#,
    ),
];

/// What is done to the good pack.
enum Change<'a> {
    /// A text of a file is replaced by another.
    Swap(&'a str, &'a str, &'a str),
    /// A file is written.
    Write(&'a str, &'a str),
    /// A file is taken away.
    Drop(&'a str),
}

use Change::{Drop, Swap, Write};

/// The good pack with changes.
fn files(changes: &[Change<'_>]) -> PackFiles {
    let mut files: BTreeMap<String, String> = GOOD
        .iter()
        .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
        .collect();
    for change in changes {
        match change {
            Swap(path, from, to) => {
                let text = files.get_mut(*path).expect("a file of the good pack");
                assert!(text.contains(from), "{path} has no {from:?}");
                *text = text.replacen(from, to, 1);
            }
            Write(path, text) => {
                files.insert((*path).to_owned(), (*text).to_owned());
            }
            Drop(path) => {
                files.remove(*path).expect("a file of the good pack");
            }
        }
    }
    PackFiles::from_pairs(files)
}

fn vars(name: &str) -> Option<String> {
    let value = match name {
        "CCS" => "http://127.0.0.1:8422/",
        "LLM" => "http://127.0.0.1:8090/v1/",
        _ => return None,
    };
    Some(value.to_owned())
}

/// What is said about the good pack with changes.
fn reported(changes: &[Change<'_>]) -> Vec<String> {
    let report = check(&files(changes), &vars);
    let reported: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    let errors = reported.iter().any(|line| line.contains(": error: "));
    assert_eq!(report.pack.is_none(), errors, "{reported:#?}");
    reported
}

/// A change, and every line of the answer.
type Case<'a> = (Change<'a>, &'a [&'a str]);

/// Runs a table.
fn table(cases: &[Case<'_>]) {
    let mut mismatches = String::new();
    for (change, expected) in cases {
        let reported = reported(std::slice::from_ref(change));
        if reported != *expected {
            let (Swap(file, _, to) | Write(file, to)) = change else {
                panic!("a table drops no file");
            };
            mismatches +=
                &format!("{file} with {to:?}\n  expected {expected:#?}\n  told {reported:#?}\n");
        }
    }
    assert!(mismatches.is_empty(), "{mismatches}");
}

#[test]
fn good_pack_has_no_findings() {
    assert_eq!(reported(&[]), [""; 0]);
}

//! The payloads of stored events against their contracts: every field that a contract names is in
//! the events of the golden logs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::folder;

/// The payload fields of each event type, over all golden logs.
fn fields_by_type() -> BTreeMap<String, BTreeSet<String>> {
    let mut fields: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for folder in std::fs::read_dir(folder("")).expect("the golden folder") {
        let path = folder.expect("a folder").path().join("events.jsonl");
        for line in std::fs::read_to_string(path).expect("events").lines() {
            let event: Value = serde_json::from_str(line).expect("an event");
            let kind = event["type"].as_str().expect("a type").to_owned();
            let payload = event["payload"].as_object().expect("a payload");
            fields
                .entry(kind)
                .or_default()
                .extend(payload.keys().cloned());
        }
    }
    fields
}

/// Asserts that `contract` lists fields that the golden events have.
fn assert_fields(contract: &[(&str, &[&str])]) {
    let seen = fields_by_type();
    for (kind, fields) in contract {
        let seen = seen
            .get(*kind)
            .unwrap_or_else(|| panic!("no golden {kind}"));
        for field in *fields {
            assert!(seen.contains(*field), "{kind} has no `{field}`: {seen:?}");
        }
    }
}

//
#[test]
fn turn_events_have_the_fields_of_their_contract() {
    assert_fields(&[
        (
            "turn.started",
            &[
                "user_message_id",
                "input",
                "kind",
                "episode_id",
                "locale",
                "wire_version",
                "history_omitted",
                "versions",
            ],
        ),
        (
            "turn.completed",
            &["status", "usage", "error", "reason", "partial"],
        ),
        ("turn.cancel_requested", &["by", "reason"]),
        (
            "turn.cancelled",
            &["reason", "code", "phase", "partial", "receipt"],
        ),
    ]);
}

// R-04, S2-078
#[test]
fn decisions_have_the_fields_of_their_contract() {
    assert_fields(&[
        (
            "route.decided",
            &["model", "routing_policy_version", "reason"],
        ),
        (
            "dispatch.traced",
            &[
                "sub_agents_invoked",
                "intent_count",
                "cap",
                "cap_behavior",
                "dropped",
                "outcomes",
                "agent_definition_version",
                "prompt_version",
            ],
        ),
    ]);
}

// S2-063
#[test]
fn work_events_have_the_fields_of_their_contract() {
    let tool = ["tool_use_id", "tool_name", "tool_type"];
    let with = |fields: &[&'static str]| [&tool[..], fields].concat();
    let called = with(&["input_summary"]);
    let completed = with(&["duration_ms", "result_summary", "result_sha256"]);
    let failed = with(&["error_class"]);
    assert_fields(&[
        (
            "llm.call_started",
            &["call_id", "model", "purpose", "attempt"],
        ),
        (
            "llm.call_completed",
            &[
                "call_id",
                "message_id",
                "content_sha256",
                "stop_reason",
                "usage",
            ],
        ),
        (
            "llm.call_failed",
            &["call_id", "message_id", "content_sha256", "error_class"],
        ),
        ("tool.called", &called),
        ("tool.completed", &completed),
        ("tool.failed", &failed),
        (
            "subagent.started",
            &["invocation_id", "sub_agent_id", "tool_use_id"],
        ),
        (
            "subagent.completed",
            &["invocation_id", "sub_agent_id", "tool_use_id", "latency_ms"],
        ),
        (
            "subagent.failed",
            &["invocation_id", "sub_agent_id", "latency_ms", "error_class"],
        ),
        ("status.emitted", &["event_id", "message"]),
        (
            "error.reported",
            &["code", "sub_agent_id", "enricher_id", "reason", "failed"],
        ),
        ("data.loading", &["id", "type", "key"]),
        ("data.loaded", &["id", "type", "key", "items"]),
        ("component.rendered", &["component", "tool_call"]),
        ("agent.error_emit", &["sub_agent_id", "axis", "is_final"]),
    ]);
}

// S2-063, D-27
#[test]
fn counted_failure_names_no_data_service() {
    let seen = fields_by_type();
    let expected = ["axis", "is_final", "sub_agent_id"].map(str::to_owned);
    assert_eq!(seen["agent.error_emit"], BTreeSet::from(expected));
}

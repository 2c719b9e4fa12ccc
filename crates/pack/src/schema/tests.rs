//! The committed schemas: what they accept and what they refuse.

use serde_json::Value;
use std::path::Path;

use super::*;
use crate::files::PackFiles;

/// Which schema a file of a pack has.
fn kind(path: &str) -> Option<&str> {
    match path.rsplit('/').next().unwrap_or_default() {
        _ if path.starts_with("locales/") => Some("locale"),
        _ if path.starts_with("workers/") => Some("worker"),
        _ if path.starts_with("scripts/") || path.starts_with("evals/") => None,
        file => file.strip_suffix(".yaml"),
    }
}

// S2-084, R-18
#[test]
fn good_pack_files_match_their_schemas() {
    let mut seen = 0;
    let workshop = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packs/workshop");
    let workshop = PackFiles::read(&workshop).expect("the folder of the pack");
    for files in [PackFiles::skeleton("corner"), PackFiles::market(), workshop] {
        for (path, text) in files.iter() {
            let Some(kind) = kind(path).filter(|_| path.ends_with(".yaml")) else {
                continue;
            };
            let value: Value = crate::yaml::from_str(text).expect("a good pack is YAML");
            let validator = named(kind).validator();
            let mismatches: Vec<String> = validator
                .iter_errors(&value)
                .map(|error| format!("{path}: {error}"))
                .collect();
            assert_eq!(mismatches, [""; 0]);
            seen += 1;
        }
    }
    assert!(seen >= 6, "{seen}");
}

#[test]
fn schema_refuses_what_check_refuses() {
    let cases = [
        ("pack", r#"{"name": "a"}"#),
        ("pack", r#"{"name": "A B", "version": "1"}"#),
        ("pack", r#"{"name": "a", "version": "1", "colour": 1}"#),
        (
            "pack",
            r#"{"name": "a", "version": "1", "fan_out": {"cap": 11}}"#,
        ),
        (
            "pack",
            r#"{"name": "a", "version": "1", "flags": {"ai_assistant_a": 7}}"#,
        ),
        (
            "pack",
            r#"{"name": "a", "version": "1", "flags": {"fast": true}}"#,
        ),
        ("agent", r#"{"id": "a"}"#),
        ("status_events", r#"[{"id": "a"}]"#),
        (
            "tools",
            r#"{"tools": [{"name": "a", "connector": "soap"}]}"#,
        ),
        (
            "tools",
            r#"{"tools": [{"name": "a", "connector": "http", "method": "HEAD"}]}"#,
        ),
        (
            "tools",
            r#"{"tools": [{"name": "a", "connector": "process", "limits": {"cpu_s": 0}}]}"#,
        ),
        (
            "tools",
            r#"{"tools": [{"name": "a", "connector": "mcp", "approval": "maybe"}]}"#,
        ),
        ("tools", r#"{"mcp_servers": {"A B": {"command": ["a"]}}}"#),
        (
            "tools",
            r#"{"mcp_servers": {"a": {"url": "http://a", "call_timeout_ms": 0}}}"#,
        ),
        (
            "worker",
            r#"{"id": "a", "version": "1", "kind": "sub_agent", "description": "a", "prompt_blocks": ["a"]}"#,
        ),
        (
            "worker",
            r#"{"id": "a", "version": "1", "kind": "worker", "description": "a", "prompt_blocks": ["a"], "emits": ["a"]}"#,
        ),
        (
            "pack",
            r#"{"name": "a", "version": "1", "limits": {"workers_max": 65}}"#,
        ),
        (
            "overrides",
            r#"{"ai_assistant_a": {"x": {"policy": "show"}}}"#,
        ),
        ("locale", r#"{"a": 1}"#),
        (
            "pack",
            r#"{"name": "a", "version": "1", "limits": {"tool_calls_max": 0}}"#,
        ),
        (
            "providers",
            r#"{"providers": {"a": {"dialect": "openai_chat"}}}"#,
        ),
        (
            "providers",
            r#"{"providers": {"a": {"dialect": "soap", "base_url": "http://a/v1"}}}"#,
        ),
        (
            "providers",
            r#"{"providers": {"A B": {"dialect": "gemini", "base_url": "http://a"}}}"#,
        ),
        ("routing", r#"{"rules": [{"name": "a"}]}"#),
        (
            "routing",
            r#"{"rules": [{"use": "a:b", "when": {"kind": "chatt"}}]}"#,
        ),
        ("routing", r#"{"default": {"use": "a:b", "when": {}}}"#),
        ("prices", r#"{"prices": {"a:b": {"input": 1}}}"#),
        (
            "prices",
            r#"{"prices": {"a:b": {"input": -1, "output": 1}}}"#,
        ),
    ];
    for (name, text) in cases {
        let value: Value = serde_json::from_str(text).expect("JSON");
        assert!(
            !named(name).validator().is_valid(&value),
            "{name} takes {text}"
        );
    }
    let good = r#"{"name": "a", "version": "1", "flags": {"ai_assistant_a": {"share": 0.5}}}"#;
    let good: Value = serde_json::from_str(good).expect("JSON");
    assert!(named("pack").validator().is_valid(&good));
    let good = r#"{"rules": [{"use": "a:b", "when": {"kind": ["chat"], "agent": "shop"}, "fallback": "c:d"}]}"#;
    let good: Value = serde_json::from_str(good).expect("JSON");
    assert!(named("routing").validator().is_valid(&good));
}

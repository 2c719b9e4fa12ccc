//! Valid streams with one defect each: the matching invariant detects it.

use turnwire_wire::pc3::WireVersion;

use super::invariants::violations;
use super::{all_turns, stream};

/// A defect, and the invariant that it violates.
type Mutation = (&'static str, fn(&str) -> String, &'static str);

const MUTATIONS: [Mutation; 23] = [
    (
        "one_tool",
        |s| s.replace("data: [DONE]\n\n", ""),
        "sentinel is not last",
    ),
    (
        "one_tool",
        |s| s.replacen("id: ", "data: [DONE]\n\nid: ", 1),
        "second sentinel",
    ),
    (
        "one_tool",
        |s| s.replacen("\"version\":\"0.5\"", "\"version\":\"0.6\"", 1),
        "another version",
    ),
    (
        "one_tool",
        |s| s.replacen("\"timestamp\":", "\"time\":", 1),
        "lacks a field",
    ),
    (
        "one_tool",
        |s| s.replacen(":00.014Z", ":30.014Z", 1),
        "earlier than",
    ),
    ("one_tool", |s| s.replacen("2-1-", "2-0-", 1), "not greater"),
    (
        "one_tool",
        |s| s.replacen("event: text", "event: status", 1),
        "has two names",
    ),
    ("one_tool", |s| without(s, "episode"), "episode is not once"),
    (
        "one_tool",
        |s| without(s, "response_id"),
        "response_id is not first",
    ),
    (
        "one_tool",
        |s| without(s, "tool_completed"),
        "open at the terminal",
    ),
    ("one_tool", |s| without(s, "tool_call"), "is no pair"),
    ("one_tool", |s| without(s, "usage"), "usage is not once"),
    (
        "one_tool",
        |s| without(s, "completed"),
        "terminal is not last",
    ),
    (
        "one_tool",
        |s| without(s, "text"),
        "do not sum to the stored text",
    ),
    (
        "thinking_after_text",
        |s| {
            s.replace("\"event_type\":\"text\"", "\"event_type\":\"thinking\"")
                .replace("event: text", "event: thinking")
        },
        "thinking has",
    ),
    (
        "model_error_mid_message",
        |s| {
            s.replace(
                "\"code\":\"INTERNAL_ERROR\"",
                "\"code\":\"INTERNAL_ERROR\",\"message\":\"at /srv\"",
            )
        },
        "carries",
    ),
    ("reference_turn", |s| without(s, "data_loading"), "not open"),
    (
        "reference_turn",
        |s| {
            s.replacen(
                "\"items\":[{",
                "\"items\":[{\"cache_meta\":{\"key\":\"LEAK\"},",
                1,
            )
        },
        "\"cache_meta\" of a data service",
    ),
    (
        "reference_turn",
        |s| s.replace("\"message\":\"Searching", "\"text\":\"Searching"),
        "status carries",
    ),
    (
        "axis_2, ",
        |s| s.replace("\"is_final\":false", "\"is_final\":true"),
        "not one terminal",
    ),
    (
        "axis_1_alone",
        |s| s.replace("\"is_final\":true", "\"is_final\":false"),
        "terminal is not last",
    ),
    (
        "axis_3_mixed",
        |s| {
            s.replace(
                "[{\"code\":\"SUB_AGENT_FAILED\"",
                "[{\"code\":\"INTERNAL_ERROR\"",
            )
        },
        "has the record",
    ),
    (
        "axis_3_mixed",
        |s| s.replace("\"reason\":\"upstream_unavailable\"}]", "\"why\":\"x\"}]"),
        "carries",
    ),
];

/// The stream without its first block of a type.
fn without(stream: &str, event: &str) -> String {
    let line = format!("event: {event}\n");
    let removed_index = stream
        .split_inclusive("\n\n")
        .position(|block| block.contains(&line));
    let blocks = stream.split_inclusive("\n\n").enumerate();
    let remaining = blocks.filter(|(at, _)| Some(*at) != removed_index);
    remaining.map(|(_, block)| block).collect()
}

#[test]
fn each_mutated_stream_violates_an_invariant() {
    for (name, harm, expected) in MUTATIONS {
        let scenario_turn = all_turns().into_iter().find(|(n, _)| n.starts_with(name));
        let (_, turn) = scenario_turn.expect("a scenario");
        let good = String::from_utf8(stream(&turn, WireVersion::V05)).expect("text");
        let bad = harm(&good);
        assert_ne!(good, bad, "{expected:?} is about something that is there");
        let broken = violations(&turn, bad.as_bytes(), WireVersion::V05);
        assert!(
            broken.iter().any(|line| line.contains(expected)),
            "{expected:?} is not among {broken:?}"
        );
    }
}

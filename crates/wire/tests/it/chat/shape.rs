//! The fields and codes that a frame may have, by type, and none of a data service's envelope.

use std::collections::HashSet;

use serde_json::{Value, json};
use turnwire_wire::pc3::WireVersion;

use super::ParsedFrame;
use super::invariants::check_all_turns;

/// The keys of a frame of this type after the envelope, in order.
fn keys(event: &str, version: WireVersion) -> Option<&'static [&'static str]> {
    Some(match (event, version) {
        ("response_id" | "completed", _) => &[],
        ("episode", _) => &["episode_id"],
        ("thinking", _) => &["content", "role"],
        ("text" | "reasoning", _) => &["type", "chunk"],
        ("tool_call" | "tool_completed", _) => &["tool_call"],
        ("usage", _) => &[
            "input_tokens",
            "output_tokens",
            "total_tokens",
            "reasoning_tokens",
            "cached_tokens",
        ],
        ("data_loading" | "data_loaded", _) | ("status", WireVersion::V05) => &["data"],
        ("component", _) => &["chunk", "tool_call"],
        ("mcp_list_tools_start" | "mcp_session_start", _) => &["server"],
        ("mcp_list_tools_completed", _) => &["server", "tool_count"],
        ("mcp_session_progress", _) => &["server", "progress"],
        ("error", _) => &["error", "is_final"],
        ("cancelled", WireVersion::V05) => &["error"],
        _ => return None,
    })
}

/// S1-001, S1-014 to S1-028, S1-093: only the fields of the type, and only known codes.
pub(super) fn payloads(frames: &[ParsedFrame], version: WireVersion) -> Vec<String> {
    let mut out = Vec::new();
    for frame in frames {
        let (id, event) = (&frame.id, frame.event.as_str());
        let Some(wanted) = keys(event, version) else {
            out.push(format!("{id} {event} is no type of {version}"));
            continue;
        };
        // The first thinking frame has no content.
        let bare = event == "thinking" && !frame.data.contains_key("content");
        let wanted: HashSet<_> = wanted.iter().skip(usize::from(bare)).copied().collect();
        let envelope_fields = ["event_type", "version", "timestamp", "response_id"];
        let mine = frame.data.keys().map(String::as_str);
        let mine: HashSet<_> = mine.filter(|key| !envelope_fields.contains(key)).collect();
        let optional = event == "mcp_session_progress" && mine.contains("total");
        let wanted: HashSet<_> = wanted
            .into_iter()
            .chain(optional.then_some("total"))
            .collect();
        if mine != wanted {
            out.push(format!("{id} {event} has {mine:?}, not {wanted:?}"));
        }
        if let Some(error) = frame.data.get("error") {
            out.extend(detail(event, error, version).map(|what| format!("{id} {what}")));
        }
        if let Some(collect) = frame.data.get("data") {
            out.extend(data(event, collect).map(|what| format!("{id} {what}")));
        }
        out.extend(
            leaks(frame)
                .map(|key| format!("{id} {event} has {key:?} of a data service's envelope")),
        );
        let role = frame
            .data
            .get("role")
            .is_none_or(|role| role == "reasoning");
        let kind = frame.data.get("type").is_none_or(|kind| kind == "chunk");
        let empty = ["chunk", "content"]
            .iter()
            .any(|f| frame.data.get(*f) == Some(&json!("")));
        if !role || !kind || empty {
            out.push(format!("{id} {event} says nothing or something else"));
        }
    }
    out
}

/// The defect of an `error` object (S1-089, S1-090, D-22).
fn detail(event: &str, error: &Value, version: WireVersion) -> Option<String> {
    let code = error["code"].as_str().unwrap_or("");
    let cancel = ["IDLE_TIMEOUT", "REQUEST_CANCELLED"].contains(&code);
    let fields: &[&str] = match (code, version) {
        (_, WireVersion::V04) if cancel => &[],
        (_, WireVersion::V05) if cancel && event == "cancelled" => &[],
        ("INTERNAL_ERROR" | "RATE_LIMIT_ERROR", _) if event == "error" => &[],
        ("MODEL_UNAVAILABLE", WireVersion::V05) if event == "error" => &[],
        ("SUB_AGENT_FAILED", WireVersion::V05) if event == "error" => &["sub_agent_id"],
        ("CCS_ENVELOPE_ERROR", WireVersion::V05) if event == "error" => &["enricher_id", "reason"],
        ("PARTIAL_FAN_OUT", WireVersion::V05) if event == "error" => &["failed"],
        _ => return Some(format!("{event} has the code {code:?}")),
    };
    let additional: HashSet<_> = error.as_object()?.keys().map(String::as_str).collect();
    let wanted: HashSet<_> = fields.iter().copied().chain(["code"]).collect();
    if additional != wanted {
        return Some(format!("{event} {code} carries {additional:?}"));
    }
    let records = error["failed"].as_array().into_iter().flatten();
    let odd = |record: &&Value| {
        let code = record["code"].as_str().unwrap_or("");
        !["SUB_AGENT_FAILED", "CCS_ENVELOPE_ERROR"].contains(&code)
    };
    let mut odd_ones = records.clone().filter(odd);
    let odd = odd_ones
        .next()
        .map(|odd| format!("{event} has the record {odd}"));
    odd.or_else(|| {
        records
            .clone()
            .find_map(|record| detail(event, record, version))
    })
}

/// The defect of a `data` object (S1-019, S1-020, S1-025).
fn data(event: &str, data: &Value) -> Option<String> {
    let wanted: &[&str] = match event {
        "status" if data.get("event_ids").is_some() => &["event_id", "event_ids", "message"],
        "status" => &["event_id", "message"],
        "data_loaded" => &["id", "type", "key", "items"],
        _ => &["id", "type", "key"],
    };
    let mine: HashSet<_> = data.as_object()?.keys().map(String::as_str).collect();
    let wanted: HashSet<_> = wanted.iter().copied().collect();
    let ids = data["event_ids"].as_array();
    let first = ids.is_none_or(|ids| ids.len() > 1 && ids[0] == data["event_id"]);
    let has_message = data.get("message").is_none_or(|words| words != "");
    (mine != wanted || !first || !has_message).then(|| format!("{event} carries {data}"))
}

/// Keys that only the envelope of a data service has (S1-083). `enricher_id` is also a field of
/// errors, `version` a field of every frame.
const ENVELOPE: [&str; 8] = [
    "status",
    "partial",
    "cache_meta",
    "principal",
    "timing",
    "domain_type",
    "enricher_id",
    "version",
];

/// Keys of the envelope of a data service, at any depth of a frame.
fn leaks(frame: &ParsedFrame) -> impl Iterator<Item = String> {
    fn collect(value: &Value, leaked: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    if ENVELOPE.contains(&key.as_str()) {
                        leaked.push(key.clone());
                    }
                    collect(value, leaked);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, leaked)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut leaked = Vec::new();
    for (key, value) in &frame.data {
        if key != "error" {
            collect(value, &mut leaked);
        }
    }
    leaked.into_iter()
}

/// S1-082: a placeholder precedes its items, once each, with the same type, and the same key unless
/// it was empty.
pub(super) fn places(frames: &[ParsedFrame]) -> Vec<String> {
    let mut out = Vec::new();
    let mut open: Vec<&Value> = Vec::new();
    let same = |place: &Value, items: &Value| {
        let is_known = place["key"] != json!({"ids": []});
        let keys = ["id", "type", "key"]
            .iter()
            .filter(|key| is_known || **key != "key");
        keys.into_iter().all(|key| place[key] == items[key])
    };
    for frame in frames {
        let data = frame.data.get("data").unwrap_or(&Value::Null);
        match frame.event.as_str() {
            "data_loading"
                if open
                    .iter()
                    .any(|envelope_fields| envelope_fields["id"] == data["id"]) =>
            {
                out.push(format!("{} opens a place twice", frame.id));
            }
            "data_loading" => open.push(data),
            "data_loaded" => match open
                .iter()
                .position(|envelope_fields| same(envelope_fields, data))
            {
                Some(at) => drop(open.remove(at)),
                None => out.push(format!("{} fills a place that is not open", frame.id)),
            },
            _ => {}
        }
    }
    out
}

// S1-001, S1-026, S1-083, S1-093, S1-098
#[test]
fn frames_have_only_the_fields_of_their_type() {
    check_all_turns(|_, frames, version| payloads(frames, version));
}

// S1-138, S1-082
#[test]
fn collection_fills_its_placeholder() {
    check_all_turns(|_, frames, _| places(frames));
}

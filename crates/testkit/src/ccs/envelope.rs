//! Envelopes as data services write them: the usual ones, changed ones, and one with a marker of
//! its own in every field.

use serde_json::{Value, json};

/// An `ok` envelope of an enricher for `user-42`: `offer_search`, `points`, or else an answer of
/// support.
pub fn envelope(enricher: &str) -> Value {
    let (domain_type, version, payload) = match enricher {
        "offer_search" => ("offer_list", "1.2.0", offers()),
        "points" => ("points_balance", "1.0.0", json!({"points": 1240})),
        _ => ("support_answer", "1.0.0", json!({"answer": "Wait a day."})),
    };
    json!({
        "enricher_id": enricher,
        "domain_type": domain_type,
        "principal": "user-42",
        "version": version,
        "status": "ok",
        "partial": [],
        "cache_meta": {"cached": false, "cacheable": true, "ttl": 60, "key": "LEAK_CACHE"},
        "timing": {"total_ms": 12},
        "payload": payload,
    })
}

/// An envelope with some fields changed.
pub fn changed(enricher: &str, fields: &Value) -> Value {
    let mut envelope = envelope(enricher);
    for (name, value) in fields.as_object().into_iter().flatten() {
        envelope[name] = value.clone();
    }
    envelope
}

/// What `offer_search` finds.
pub fn offers() -> Value {
    json!({"items": [{"id": "OFF_1", "title": "Oat milk"}, {"id": "OFF_2", "title": "Granola"}]})
}

/// An envelope with what `mark` gives in every field that can hold a text and still be read:
/// `mark` is asked by the name of the field. None of it may come out anywhere.
pub fn marked(enricher: &str, mut mark: impl FnMut(&str) -> String) -> Value {
    let version = envelope(enricher)["version"].clone();
    let version = format!("{}-{}", version.as_str().unwrap_or("1"), mark("version"));
    changed(
        enricher,
        &json!({
            "version": version,
            "partial": [{
                "source": mark("partial.source"),
                "critical": true,
                "reason": mark("partial.reason"),
            }],
            "cache_meta": {
                "cached": true,
                "cacheable": true,
                "ttl": 60,
                "key": mark("cache_meta.key"),
            },
            "timing": {"total_ms": 12, "host": mark("timing.host")},
            "reason": mark("reason"),
            "trace_back": mark("unknown field"),
        }),
    )
}

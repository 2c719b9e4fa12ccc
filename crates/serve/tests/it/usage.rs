//! Model calls and what they come to, as REST tells them.

use crate::test_app::TestApp;
use axum::http::StatusCode;
use serde_json::{Value, json};
use turnwire_wire::rest::llm_call;
use turnwire_wire::rest::usage::UsageReport;

/// A session with turns that have ended.
async fn talked(app: &TestApp, texts: &[&str]) -> String {
    let session = app.session().await;
    for text in texts {
        app.ended(&app.turn(&session, text).await).await;
    }
    session
}

// D-04
#[tokio::test]
async fn calls_are_listed_with_cost_page_by_page() {
    let app = TestApp::open().await;
    let session = talked(&app, &["use a tool", "hi"]).await;
    let path = format!("/sessions/{session}/llm-calls");
    let all = app.get(&path).await;
    assert_eq!(all.status, StatusCode::OK);
    let list: llm_call::LlmCallList = serde_json::from_value(all.body.clone()).expect("a list");
    assert_eq!((list.llm_calls.len(), list.next), (3, None));
    let newest = &all.body["llm_calls"][0];
    let fields: Vec<&String> = newest.as_object().expect("a call").keys().collect();
    assert_eq!(
        fields,
        [
            "call_id",
            "turn_id",
            "actor",
            "model",
            "purpose",
            "attempt",
            "status",
            "error_class",
            "stop_reason",
            "usage",
            "provider_response_id",
            "started_at",
            "ended_at",
        ]
    );
    assert_eq!(newest["actor"], "orchestrator");
    assert_eq!(newest["status"], "completed");
    assert_eq!(newest["attempt"], 1);
    let events = format!("/sessions/{session}/events?types=llm.call_completed");
    let events = app.get(&events).await;
    let logged = events.body["events"].as_array().expect("events").clone();
    let told = list.llm_calls.iter().rev();
    let told: Vec<Value> = told
        .map(|call| json!({"call_id": call.call_id, "usage": call.usage}))
        .collect();
    let logged: Vec<Value> = logged
        .iter()
        .map(|e| json!({"call_id": e["payload"]["call_id"], "usage": e["payload"]["usage"]}))
        .collect();
    assert_eq!(told, logged, "S1-146: what the log says of them");
    let mut walked = Vec::new();
    let mut page = format!("{path}?limit=1");
    loop {
        let answer = app.get(&page).await;
        walked.extend(answer.body["llm_calls"].as_array().expect("a page").clone());
        match answer.body["next"].as_str() {
            Some(next) => page = format!("{path}?limit=1&before={next}"),
            None => break,
        }
    }
    assert_eq!(Value::Array(walked), all.body["llm_calls"]);
}

#[tokio::test]
async fn usage_sums_all_calls_and_outlives_sessions() {
    let app = TestApp::open().await;
    let session = talked(&app, &["use a tool", "hi"]).await;
    let calls = app.get(&format!("/sessions/{session}/llm-calls")).await;
    let calls: llm_call::LlmCallList = serde_json::from_value(calls.body).expect("a list");
    let sum = calls.llm_calls.iter().filter_map(|call| call.usage);
    let sum = sum.fold(turnwire_event::TokenUsage::default(), |sum, usage| {
        sum.plus(usage)
    });
    let answer = app.get("/usage").await;
    assert_eq!(answer.status, StatusCode::OK);
    let report: UsageReport = serde_json::from_value(answer.body.clone()).expect("a report");
    assert_eq!(report.to.since(report.from), 29);
    assert_eq!((report.totals.calls, report.totals.failed), (3, 0));
    assert_eq!(report.totals.usage, sum);
    let row = &answer.body["rows"][0];
    assert_eq!(row["tenant_id"], "00000000-0000-0000-0000-000000000000");
    assert_eq!(row["model"], calls.llm_calls[0].model.as_str());
    let path = format!("/sessions/{session}");
    let deleted = app.ask("DELETE", &path, &[], "").await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    let days = format!("/usage?from={}&to={}", report.from, report.to);
    assert_eq!(app.get(&days).await.body, answer.body);
    let other = [("x-tenant-id", "3c33212c-d119-4ef1-8db0-2ca93cd3b2dd")];
    let theirs = app.ask("GET", &days, &other, "").await;
    let nothing = UsageReport::new((report.from, report.to), Vec::new());
    let nothing = serde_json::to_value(nothing).expect("plain data");
    assert_eq!(theirs.body, nothing, "law 10: as if there were none");
}

#[tokio::test]
async fn invalid_or_too_many_days_are_problems() {
    let app = TestApp::open().await;
    for (query, code, about) in [
        ("from=yesterday", "invalid_request", "from must be a day"),
        ("to=2026-02-30", "invalid_request", "to must be a day"),
        ("to=", "invalid_request", "to must be a day"),
        (
            "from=2026-02-02&to=2026-02-01",
            "invalid_request",
            "from (2026-02-02) is after to (2026-02-01)",
        ),
        (
            "from=2025-01-01&to=2026-01-02",
            "invalid_request",
            "from must be less than 366 days before to",
        ),
        ("from=2026-01-01&from=2026-01-01", "invalid_request", "once"),
        ("since=2026-01-01", "unknown_field", "since"),
    ] {
        let answer = app.get(&format!("/usage?{query}")).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{query}");
        assert_eq!(answer.text("code"), code, "{query}");
        assert_eq!(answer.header("content-type"), "application/problem+json");
        let detail = answer.text("detail");
        assert!(detail.contains(about), "{query}: {detail}");
    }
    for query in [
        "from=2025-01-01&to=2026-01-01",
        "to=2024-02-29",
        "to=0001-01-01",
    ] {
        let answer = app.get(&format!("/usage?{query}")).await;
        assert_eq!(answer.status, StatusCode::OK, "{query}: {}", answer.raw);
        assert_eq!(answer.body["rows"], json!([]));
    }
}

#[tokio::test]
async fn usage_is_counted_by_model() {
    let app = TestApp::open().await;
    talked(&app, &["hi"]).await;
    let text = app.get("/metrics").await.raw;
    for start in [
        "turnwire_llm_calls_total{model=\"scripted:",
        "turnwire_llm_tokens_total{model=\"scripted:",
        "turnwire_llm_cost_usd_total{model=\"scripted:",
        "turnwire_llm_call_duration_seconds_count{model=\"scripted:",
        "# TYPE turnwire_llm_cost_usd_total counter",
    ] {
        assert!(
            text.lines().any(|line| line.starts_with(start)),
            "{start}\n{text}"
        );
    }
}

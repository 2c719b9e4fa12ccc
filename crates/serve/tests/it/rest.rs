//! The REST endpoints over the whole server, without sockets: shapes, pages, refusals, owners.

use crate::test_app::TestApp;
use axum::http::StatusCode;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

// S3-001
#[tokio::test]
async fn session_is_created_and_attached() {
    let app = TestApp::open().await;
    let made = app.post("/sessions", json!({"metadata": {"a": 1}})).await;
    assert_eq!(made.status, StatusCode::CREATED);
    let id = made.text("session_id");
    assert_eq!(made.body, json!({"session_id": id, "id": id}));
    assert_eq!(made.header("location"), format!("/sessions/{id}"));

    let attached = app.get(&format!("/sessions/{id}")).await;
    assert_eq!(attached.status, StatusCode::OK);
    let token = attached.text("attach_token");
    assert!(token.starts_with("atk_") && token.len() == 30, "{token}");
    let url = format!("ws://localhost:8421/sessions/{id}/stream?attach={token}");
    assert_eq!(attached.text("ws_url"), url);
    assert_eq!(attached.text("session_id"), id);
    assert_eq!(attached.body["metadata"], json!({"a": 1}));
    assert!(attached.body["active_model"].is_string());
    let again = app.get(&format!("/sessions/{id}")).await;
    assert_ne!(again.text("attach_token"), token);
}

#[tokio::test]
async fn lists_page_without_gap_or_repeat() {
    let app = TestApp::open().await;
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(app.session().await);
    }
    made.reverse();
    let mut walked: Vec<String> = Vec::new();
    let mut path = "/sessions?limit=2".to_owned();
    for _ in 0..10 {
        let page = app.get(&path).await;
        let sessions = page.body["sessions"].as_array().expect("a list").clone();
        assert!(sessions.len() <= 2);
        walked.extend(
            sessions
                .iter()
                .map(|s| crate::test_app::text(s, "session_id")),
        );
        let Some(next) = page.body["next"].as_str() else {
            break;
        };
        path = format!("/sessions?limit=2&before={next}");
    }
    assert_eq!(walked, made);
}

#[tokio::test]
async fn accepted_turn_is_readable_from_every_route() {
    let app = TestApp::open().await;
    let session = app.session().await;
    let path = format!("/sessions/{session}");
    let accepted = app
        .post(&format!("{path}/turns"), json!({"message": "use a tool"}))
        .await;
    assert_eq!(accepted.status, StatusCode::ACCEPTED);
    let turn = accepted.text("turn_id");
    assert_eq!(accepted.text("response_id"), format!("resp_{turn}"));
    let position = accepted.text("position");
    assert_eq!(accepted.body.as_object().map(|o| o.len()), Some(4));

    let done = app.ended(&turn).await;
    assert_eq!(done["state"], "completed");
    assert_eq!(done["position"], position.as_str());
    assert_eq!(done["terminal"]["type"], "turn.completed");
    assert_eq!(done["usage"], done["terminal"]["payload"]["usage"]);
    assert_eq!(done["receipt"], Value::Null);
    let by_response = app.get(&format!("/turns/resp_{turn}")).await;
    assert_eq!(by_response.body, done);
    let listed = app.get(&format!("{path}/turns")).await;
    assert_eq!(listed.body, json!({"turns": [done], "next": null}));

    let events = app.get(&format!("{path}/events?since={position}")).await;
    let events = events.body["events"].as_array().expect("a list").clone();
    assert_eq!(events[0]["type"], "turn.started");
    let last = events.last().expect("a terminal");
    assert_eq!(last["id"], done["terminal"]["id"]);
    assert_eq!(last["payload"], done["terminal"]["payload"]);

    let messages = app.get(&format!("{path}/messages")).await;
    let messages = messages.body["messages"]
        .as_array()
        .expect("a list")
        .clone();
    let roles: Vec<&Value> = messages.iter().map(|m| &m["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
    let calls = app.get(&format!("{path}/tool-calls")).await;
    assert_eq!(calls.body["tool_calls"][0]["tool_name"], "echo");
    assert_eq!(calls.body["tool_calls"][0]["status"], "completed");

    let about = json!({"turn_id": turn, "rating": 5});
    let feedback = app.post(&format!("{path}/feedback"), about).await;
    assert_eq!(feedback.status, StatusCode::ACCEPTED);
    let at = feedback.text("position");
    let found = format!("{path}/events?types=feedback.recorded");
    let found = app.get(&found).await;
    assert_eq!(found.body["events"][0]["id"], at.as_str());
    assert_eq!(found.body["events"][0]["turn_id"], Value::Null);
}

//
#[tokio::test]
async fn hashes_chain_over_the_sent_bytes() {
    let app = TestApp::open().await;
    let session = app.session().await;
    let turn = app.turn(&session, "hi").await;
    app.ended(&turn).await;
    let plain = app.get(&format!("/sessions/{session}/events")).await;
    assert_eq!(plain.body.get("hashes"), None);
    assert_eq!(plain.body.get("previous_hash"), None);
    let path = format!("/sessions/{session}/events?hashes=true&limit=1000");
    let answer = app.get(&path).await;
    let list: turnwire_wire::rest::event::EventList =
        serde_json::from_str(&answer.raw).expect("a page of events");
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|b| format!("{b:02x}")).collect() };
    let mut hash = list.previous_hash.expect("asked for");
    let hashes = list.hashes.expect("asked for");
    assert_eq!(hashes.len(), list.events.len());
    assert!(hashes.len() > 5);
    for (event, expected) in list.events.iter().zip(hashes) {
        let before: Vec<u8> = (0..32)
            .map(|at| u8::from_str_radix(&hash[2 * at..2 * at + 2], 16).expect("hex"))
            .collect();
        let chained = Sha256::new().chain_update(before);
        hash = hex(&chained.chain_update(event.get()).finalize());
        assert_eq!(hash, expected);
    }
}

// S3-011
#[tokio::test]
async fn busy_session_refuses_and_cancel_frees_it() {
    let app = TestApp::open().await;
    let session = app.session().await;
    let turn = app.turn(&session, "stall").await;
    let turns = format!("/sessions/{session}/turns");
    let busy = app.post(&turns, json!({"message": "more"})).await;
    assert_eq!(busy.status, StatusCode::CONFLICT);
    assert_eq!(busy.text("code"), "turn_in_flight");
    assert_eq!(busy.text("turn_id"), turn);

    let cancel = format!("/turns/{turn}/cancel");
    let stopped = app.post(&cancel, json!({"reason": "enough"})).await;
    assert_eq!(stopped.status, StatusCode::ACCEPTED);
    assert_eq!(stopped.text("turn_id"), turn);
    let done = app.ended(&turn).await;
    assert_eq!(done["state"], "cancelled");
    assert_eq!(done["terminal"]["payload"]["reason"], "enough");
    assert_eq!(done["receipt"], done["terminal"]["payload"]["receipt"]);
    assert_eq!(done["receipt"][0]["kind"], "llm");
    assert_eq!(done["usage"], Value::Null);
    let again = app.ask("POST", &cancel, &[], "").await;
    assert_eq!(again.status, StatusCode::ACCEPTED);
    assert_eq!(again.body, json!({"turn_id": turn, "state": "cancelled"}));
    app.ended(&app.turn(&session, "hi").await).await;
}

// I-20
#[tokio::test]
async fn foreign_resources_answer_as_missing() {
    let app = TestApp::open().await;
    let session = app.session().await;
    let turn = app.turn(&session, "hi").await;
    app.ended(&turn).await;
    let nobody = "sess_00000000000000000000000000";
    let no_turn = "00000000000000000000000000";
    let others = [
        ("x-turnwire-principal", "other"),
        ("x-tenant-id", "3c33212c-d119-4ef1-8db0-2ca93cd3b2dd"),
    ];
    let say = "{\"message\":\"hi\"}";
    let answer = "{\"approval_id\":\"appr_00000000000000000000000000\",\"decision\":\"approve\"}";
    let rate = "{\"turn_id\":\"00000000000000000000000000\",\"rating\":1}";
    for (method, path, body) in [
        ("GET", "/sessions/S", ""),
        ("DELETE", "/sessions/S", ""),
        ("POST", "/sessions/S/turns", say),
        ("GET", "/sessions/S/turns", ""),
        ("GET", "/sessions/S/messages", ""),
        ("GET", "/sessions/S/events", ""),
        ("GET", "/sessions/S/tool-calls", ""),
        ("GET", "/sessions/S/llm-calls", ""),
        ("GET", "/sessions/S/workers", ""),
        ("POST", "/sessions/S/feedback", rate),
        ("GET", "/turns/T", ""),
        ("POST", "/turns/T/cancel", ""),
        ("POST", "/sessions/S/cancel", ""),
        ("POST", "/sessions/S/cancel", "{\"idempotency_key\":\"k\"}"),
        ("GET", "/turns/T/approvals", ""),
        ("POST", "/turns/T/approvals", answer),
    ] {
        let at = |s: &str, t: &str| path.replace('S', s).replace('T', t);
        let missing = app.ask(method, &at(nobody, no_turn), &[], body).await;
        let malformed = app.ask(method, &at("x", "x"), &[], body).await;
        assert_eq!(missing.status, StatusCode::NOT_FOUND, "{method} {path}");
        assert_eq!(malformed.told(), missing.told(), "{method} {path}");
        for header in others {
            let foreign = app.ask(method, &at(&session, &turn), &[header], body).await;
            assert_eq!(foreign.told(), missing.told(), "{method} {path} {header:?}");
        }
    }
    let theirs = app.ask("GET", "/sessions", &others[..1], "").await;
    assert_eq!(theirs.body, json!({"sessions": [], "next": null}));
    let mine = app.get(&format!("/sessions/{session}")).await;
    assert_eq!(mine.status, StatusCode::OK);
}

#[tokio::test]
async fn deleted_session_is_gone_everywhere() {
    let app = TestApp::open().await;
    let session = app.session().await;
    let turn = app.turn(&session, "hi").await;
    app.ended(&turn).await;
    let path = format!("/sessions/{session}");
    let deleted = app.ask("DELETE", &path, &[], "").await;
    assert_eq!(
        (deleted.status, deleted.raw.as_str()),
        (StatusCode::NO_CONTENT, "")
    );
    for gone in [
        path.clone(),
        format!("{path}/events"),
        format!("/turns/{turn}"),
    ] {
        assert_eq!(app.get(&gone).await.status, StatusCode::NOT_FOUND, "{gone}");
    }
    let again = app.ask("DELETE", &path, &[], "").await;
    assert_eq!(again.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn bad_requests_are_specific_problems() {
    let app = TestApp::open().await;
    let session = app.session().await;
    let turns = format!("/sessions/{session}/turns");
    let events = format!("/sessions/{session}/events");
    for (method, path, body, status, code) in [
        ("POST", turns.as_str(), "{", 400, "malformed_json"),
        ("POST", &turns, "{}", 422, "invalid_request"),
        ("POST", &turns, "", 422, "invalid_request"),
        ("POST", &turns, "{\"message\":\"\"}", 422, "invalid_request"),
        ("POST", &turns, "{\"mesage\":\"a\"}", 422, "unknown_field"),
        (
            "POST",
            &turns,
            "{\"message\":[{\"type\":\"image\"}]}",
            422,
            "unsupported_content",
        ),
        (
            "GET",
            &format!("{events}?since=x"),
            "",
            400,
            "invalid_cursor",
        ),
        (
            "GET",
            &format!("{events}?since=evt_0001000000ZZZZ"),
            "",
            410,
            "cursor_expired",
        ),
        (
            "GET",
            &format!("{events}?types=made.up.thing"),
            "",
            422,
            "invalid_filter",
        ),
        (
            "GET",
            &format!("{events}?limit=1001"),
            "",
            422,
            "invalid_request",
        ),
        ("GET", &format!("{events}?sinc=x"), "", 422, "unknown_field"),
        ("PUT", &turns, "", 405, "method_not_allowed"),
        ("GET", "/nowhere", "", 404, "not_found"),
    ] {
        let answer = app.ask(method, path, &[], body).await;
        assert_eq!(answer.status.as_u16(), status, "{method} {path} {body}");
        assert_eq!(answer.text("code"), code, "{method} {path} {body}");
        assert_eq!(answer.body["status"], status);
        assert_eq!(answer.header("content-type"), "application/problem+json");
    }
    let plain = [("content-type", "text/plain")];
    let answer = app.ask("POST", &turns, &plain, "{\"message\":\"a\"}").await;
    assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let long = format!("{{\"message\":\"{}\"}}", "a".repeat(1 << 20));
    let answer = app.ask("POST", &turns, &[], &long).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(answer.body["limit_bytes"], 1 << 20);
}

#[tokio::test]
async fn operator_routes_answer() {
    let app = TestApp::open().await;
    assert_eq!(app.get("/healthz").await.body, json!({"status": "ok"}));
    assert_eq!(app.get("/readyz").await.body, json!({"status": "ready"}));
    let metrics = app.get("/metrics").await;
    assert!(
        metrics
            .header("content-type")
            .starts_with("text/plain; version=0.0.4")
    );
    assert!(
        metrics
            .raw
            .contains("# HELP turnwire_ws_connections ws.connections: ")
    );
    let page = app.get("/").await;
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"));
    assert!(!policy.contains("unsafe"), "{policy}");
}

//! The API against its own document, with some hundred requests of schemathesis for strangers and for
//! owners. `TURNWIRE_SEED` plays other requests; `cargo xtask campaign api N` makes as many as it is told.

use std::process::Command;

use serde_json::{Value, json};
use turnwire_e2e::api_cases::{Access, Caller, CasePlan, CheckedServer, run};
use turnwire_e2e::python::{programs, text};
use turnwire_wire::openapi::{DocumentLimits, document};

/// Requests for each operation and kind of generation: few, as every run of the tests makes the same.
const EXAMPLES: u32 = 4;
/// The requests that a run makes at least.
const CASES_MIN: u64 = 300;

fn plan(caller: Caller, access: Access) -> CasePlan {
    let seed = std::env::var("TURNWIRE_SEED").ok();
    let seed = seed.map_or(1, |text| text.parse().expect("TURNWIRE_SEED is a number"));
    CasePlan {
        caller,
        access,
        examples: EXAMPLES,
        seed,
    }
}

// W3
#[tokio::test]
async fn api_matches_its_document_for_strangers() {
    let (server, cases) = run(plan(Caller::Strangers, Access::Believed)).await;
    assert!(cases >= CASES_MIN, "{cases}");
    reached(&server, &STRANGERS).await;
}

// W3
#[tokio::test]
async fn api_matches_its_document_for_owners() {
    let (server, cases) = run(plan(Caller::Owner, Access::Believed)).await;
    assert!(cases >= CASES_MIN, "{cases}");
    reached(&server, &OWNERS).await;
}

// W3
#[tokio::test]
async fn api_with_tokens_matches_its_document_for_strangers() {
    let (server, cases) = run(plan(Caller::Strangers, Access::Token)).await;
    assert!(cases >= CASES_MIN, "{cases}");
    reached(&server, &STRANGERS).await;
    reached(&server, &WITHOUT_TOKEN).await;
}

// W3
#[tokio::test]
async fn api_with_tokens_matches_its_document_for_owners() {
    let (server, cases) = run(plan(Caller::Owner, Access::Token)).await;
    assert!(cases >= CASES_MIN, "{cases}");
    reached(&server, &OWNERS).await;
    reached(&server, &WITHOUT_TOKEN).await;
}

/// A method, a route and a status.
type AnswerKind = (&'static str, &'static str, &'static str);

const STRANGERS: [AnswerKind; 2] = [
    ("POST", "/sessions", "201"),
    ("GET", "/sessions/{id}/events", "404"),
];

const OWNERS: [AnswerKind; 15] = [
    ("POST", "/sessions/{id}/turns", "202"),
    ("POST", "/sessions/{id}/turns", "422"),
    ("POST", "/turns/{id}/cancel", "202"),
    ("POST", "/sessions/{id}/cancel", "200"),
    ("GET", "/turns/{id}/approvals", "200"),
    ("GET", "/turns/{id}", "200"),
    ("GET", "/sessions/{id}/events", "200"),
    ("GET", "/sessions/{id}/messages", "200"),
    ("GET", "/sessions/{id}/tool-calls", "200"),
    ("GET", "/sessions/{id}/llm-calls", "200"),
    ("GET", "/sessions/{id}/workers", "200"),
    ("GET", "/usage", "200"),
    ("DELETE", "/sessions/{id}", "204"),
    ("POST", "/chat/stream", "200"),
    ("GET", "/chat/{response_id}/stream", "200"),
];

/// The generator leaves the token out of some requests.
const WITHOUT_TOKEN: [AnswerKind; 3] = [
    ("GET", "/sessions", "401"),
    ("POST", "/chat/stream", "401"),
    ("GET", "/metrics", "401"),
];

/// Every kind of answer was given at least once.
async fn reached(server: &CheckedServer, kinds: &[AnswerKind]) {
    for (method, route, status) in kinds {
        let count = server.answered(method, route, status).await;
        assert!(count > 0, "{method} {route} never answered {status}");
    }
}

#[test]
fn document_is_valid_openapi_3_1() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("openapi.json");
    let validate = |document: &Value| {
        std::fs::write(&path, document.to_string()).expect("a file");
        Command::new(programs().join("openapi-spec-validator"))
            .args(["--schema", "3.1"])
            .arg(&path)
            .output()
            .expect("the validator starts")
    };
    let mut document = document(DocumentLimits::default());
    let judged = validate(&document);
    assert!(judged.status.success(), "{}", text(&judged));
    // The validator says no to what is none.
    document["paths"]["/sessions"]["post"]["responses"] = json!([]);
    assert!(!validate(&document).status.success());
}

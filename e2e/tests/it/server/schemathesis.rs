//! The API against its own document, with some hundred requests of schemathesis for strangers and for
//! owners. `TURNWIRE_SEED` plays other requests; `cargo xtask campaign api N` makes as many as it is told.

use std::process::Command;

use serde_json::{Value, json};
use turnwire_e2e::api_cases::{Caller, CasePlan, answered, run};
use turnwire_e2e::python::{programs, text};
use turnwire_wire::openapi::{DocumentLimits, document};

/// Requests for each operation and kind of generation: few, as every run of the tests makes the same.
const EXAMPLES: u32 = 4;
/// The requests that a run makes at least.
const CASES_MIN: u64 = 300;

fn plan() -> CasePlan {
    let seed = std::env::var("TURNWIRE_SEED").ok();
    let seed = seed.map_or(1, |text| text.parse().expect("TURNWIRE_SEED is a number"));
    CasePlan::new(EXAMPLES, seed)
}

// W3
#[tokio::test]
async fn api_matches_its_document_for_strangers() {
    let (server, cases) = run(Caller::Strangers, &plan()).await;
    assert!(cases >= CASES_MIN, "{cases}");
    assert!(answered(&server, "POST", "/sessions", "201").await > 0);
    assert!(answered(&server, "GET", "/sessions/{id}/events", "404").await > 0);
}

// W3
#[tokio::test]
async fn api_matches_its_document_for_owners() {
    let (server, cases) = run(Caller::Owner, &plan()).await;
    assert!(cases >= CASES_MIN, "{cases}");
    for (method, route, status) in [
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
    ] {
        let count = answered(&server, method, route, status).await;
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

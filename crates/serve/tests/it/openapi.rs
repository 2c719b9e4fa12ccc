//! The API as it is told and the API as it is: the table of operations against the routes of the
//! real server, in both directions, and the pages that describe errors.

use std::collections::{BTreeMap, BTreeSet};

use crate::test_app::TestApp;
use axum::http::StatusCode;
use serde_json::Value;
use turnwire_wire::openapi::{DocumentLimits, document, operations, without_security};
use turnwire_wire::problem::Code;

/// Every path of the table, with its methods.
fn told() -> BTreeMap<&'static str, BTreeSet<String>> {
    let mut told: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    for operation in operations() {
        let methods = told.entry(operation.path.as_str()).or_default();
        methods.insert(operation.method.clone());
    }
    told
}

/// Every path of a router, read from how it prints itself: that has all that was ever added,
/// whoever added it.
fn served(router: &axum::Router) -> BTreeSet<String> {
    let text = format!("{router:?}");
    let quoted = text.split('"').skip(1).step_by(2);
    quoted
        .filter(|part| part.starts_with('/') && !part.contains("__private__"))
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn routes_and_operations_match() {
    let app = TestApp::open().await;
    let told = told();
    let served = served(app.router());
    let paths: BTreeSet<String> = told.keys().map(|path| (*path).to_owned()).collect();
    assert_eq!(served, paths);
    // What the framework answers to a method that no path has: the methods that this one has.
    for (path, methods) in told {
        let names = [
            "{id}",
            "{code}",
            "{response_id}",
            "{message_id}",
            "{approval_id}",
        ];
        let path = names
            .iter()
            .fold(path.to_owned(), |path, name| path.replace(name, "x"));
        let refused = app.ask("PATCH", &path, &[], "").await;
        assert_eq!(refused.status, StatusCode::METHOD_NOT_ALLOWED, "{path}");
        let allowed = refused.header("allow").split(',').map(str::to_owned);
        // HEAD comes with GET and is not an operation of its own.
        let allowed: BTreeSet<String> = allowed.filter(|method| method != "HEAD").collect();
        assert_eq!(allowed, methods, "{path}");
    }
}

#[tokio::test]
async fn document_has_the_limits_of_the_server() {
    let app = TestApp::open().await;
    let answer = app.get("/openapi.json").await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.header("content-type"), "application/json");
    let expected = without_security(document(DocumentLimits::default()));
    assert!(answer.body == expected, "another document");
    assert!(
        expected["paths"]["/sessions"]["get"]
            .get("security")
            .is_none()
    );
}

#[tokio::test]
async fn every_problem_has_its_page_and_json() {
    let app = TestApp::open().await;
    let json = [("accept", "application/json")];
    let index = app.get("/problems").await;
    let list = app.ask("GET", "/problems", &json, "").await;
    let listed: Vec<&Value> = list.body["problems"]
        .as_array()
        .expect("a list")
        .iter()
        .collect();
    assert_eq!(listed.len(), Code::ALL.len());
    for (code, listed) in Code::ALL.iter().zip(listed) {
        let page = app.get(code.kind()).await;
        assert_eq!(page.status, StatusCode::OK);
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
        let policy = page.header("content-security-policy");
        assert!(policy.contains("default-src 'none'; script-src 'none'; style-src 'sha256-"));
        assert!(
            page.raw.contains(&format!("<h1>{}</h1>", code.title())),
            "{}",
            page.raw
        );
        assert!(
            page.raw
                .contains(code.help().what_to_do.split('`').next().unwrap_or_default())
        );
        assert!(index.raw.contains(&format!("href=\"{}\"", code.kind())));

        let answer = app.ask("GET", code.kind(), &json, "").await;
        assert_eq!(answer.header("content-type"), "application/json");
        assert_eq!(answer.header("vary"), "Accept");
        assert_eq!(&&answer.body, &listed);
        assert_eq!(answer.body["code"], code.name());
        assert_eq!(answer.body["status"], code.status());
        assert_eq!(answer.body["example"]["type"], code.kind());
    }
}

#[tokio::test]
async fn unknown_problem_is_not_found() {
    let app = TestApp::open().await;
    for path in [
        "/problems/made_up",
        "/problems/NOT_FOUND",
        "/problems/%00",
        "/problems/%ff",
        "/problems/",
        "/problems/not_found/more",
    ] {
        let answer = app.get(path).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(answer.header("content-type"), "application/problem+json");
        assert_eq!(answer.body["code"], "not_found");
    }
}

// D-19
#[tokio::test]
async fn turn_uses_the_accepted_language() {
    let app = TestApp::open().await;
    let session = app.session().await;
    let path = format!("/sessions/{session}/turns");
    for (header, body, locale) in [
        ("de-AT, en;q=0.5", r#"{"message":"hi"}"#, "de-AT"),
        ("de-AT", r#"{"message":"hi","locale":"es"}"#, "es"),
        ("*", r#"{"message":"hi"}"#, "en"),
    ] {
        let sent = [("accept-language", header)];
        let accepted = app.ask("POST", &path, &sent, body).await;
        assert_eq!(accepted.status, StatusCode::ACCEPTED, "{}", accepted.raw);
        app.ended(&accepted.text("turn_id")).await;
        let since = accepted.text("position");
        let events = format!("/sessions/{session}/events?types=turn.started&since={since}");
        let started = app.get(&events).await;
        assert_eq!(
            started.body["events"][0]["payload"]["locale"], locale,
            "{}",
            started.raw
        );
    }
}

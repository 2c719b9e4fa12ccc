//! Pages of other sites over the whole server: let in where listed, refused everywhere else, on
//! every path, the WebSocket's too.

use crate::test_app::TestApp;
use axum::http::StatusCode;
use turnwire_wire::openapi::operations;

const SITE: &str = "http://localhost:3000";
const LIST: [(&str, &str); 1] = [(
    "TURNWIRE_HTTP_CORS_ORIGINS",
    "https://a.test, http://localhost:3000",
)];

#[tokio::test]
async fn listed_site_creates_and_reads_sessions() {
    let app = TestApp::open_with(&LIST).await;
    let made = app
        .ask("POST", "/sessions", &[("origin", SITE)], "{}")
        .await;
    assert_eq!(made.status, StatusCode::CREATED);
    assert_eq!(made.header("access-control-allow-origin"), SITE);
    assert!(
        made.header("access-control-expose-headers")
            .contains("Location")
    );
    assert_eq!(made.header("vary"), "Origin");
    assert!(!made.has("access-control-allow-credentials"));
}

#[tokio::test]
async fn websocket_passes_the_same_origin_check() {
    let app = TestApp::open_with(&LIST).await;
    let path = "/sessions/x/stream?attach=x";
    let listed = app.ask("GET", path, &[("origin", SITE)], "").await;
    // Let in, and told what is wrong behind the guard.
    assert_eq!(listed.status, StatusCode::UNAUTHORIZED);
    assert_eq!(listed.body["code"], "unauthorized");
    assert_eq!(listed.header("access-control-allow-origin"), SITE);
    let foreign = app
        .ask("GET", path, &[("origin", "http://b.test")], "")
        .await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
    assert_eq!(foreign.body["code"], "origin_not_allowed");
    assert!(!foreign.has("access-control-allow-origin"));
}

#[tokio::test]
async fn preflight_is_answered_on_every_served_path() {
    let (open, closed) = (TestApp::open_with(&LIST).await, TestApp::open().await);
    let asks = [("origin", SITE), ("access-control-request-method", "POST")];
    for operation in operations() {
        let names = ["{id}", "{code}", "{response_id}"];
        let path = names
            .iter()
            .fold(operation.path.clone(), |path, name| path.replace(name, "x"));
        let answer = open.ask("OPTIONS", &path, &asks, "").await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT, "{path}");
        let methods = answer.header("access-control-allow-methods");
        let has = methods.split(", ").any(|method| method == operation.method);
        assert!(has, "{path}: {methods}");
        // Without the setting there is no preflight, and no other site.
        let refused = closed.ask("OPTIONS", &path, &asks, "").await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{path}");
        assert!(!refused.has("vary") && !refused.has("access-control-allow-methods"));
    }
}

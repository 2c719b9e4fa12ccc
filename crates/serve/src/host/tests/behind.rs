//! Data services behind a tool server.

use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router, routing};
use serde_json::{Value, json};

use super::*;

/// A tool server that knows one tool, and no data.
async fn answer(Json(asked): Json<Value>) -> Response {
    let result = match asked["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "small", "version": "1"},
        }),
        Some("tools/list") => {
            json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})
        }
        _ if asked["id"].is_null() => return StatusCode::ACCEPTED.into_response(),
        _ => json!({}),
    };
    Json(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})).into_response()
}

#[tokio::test]
async fn service_behind_server_without_data_is_reported() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let app = Router::new().route("/mcp", routing::post(answer));
    tokio::spawn(async move { axum::serve(listener, app).await });
    let folder = tempfile::tempdir().expect("a folder");
    write(&PackFiles::market(), folder.path());
    let change = |file: &str, change: &dyn Fn(&str) -> String| {
        let file = folder.path().join(file);
        let text = std::fs::read_to_string(&file).expect("a file");
        std::fs::write(&file, change(&text)).expect("a file");
    };
    change("tools.yaml", &|text| {
        let text = text.replace("connector: ccs_rest", "connector: ccs_mcp");
        format!("mcp_servers: {{small: {{url: \"http://127.0.0.1:{port}/mcp\"}}}}\n{text}")
    });
    change("connectors.yaml", &|text| {
        let url = "    url: \"${DEMO_CCS:-http://127.0.0.1:8422}\"\n";
        assert!(text.contains(url), "{text}");
        text.replace(url, "    mcp: small\n")
    });
    let Err(PackLoadError::Wrong(findings)) = open(folder.path()).await else {
        panic!("it cannot be used");
    };
    let told = findings[0].to_string();
    assert!(
        told.starts_with("connectors.yaml:4:3: error: service `market`: "),
        "{told}"
    );
    assert!(told.contains("has no tool `enrich`"), "{told}");
}

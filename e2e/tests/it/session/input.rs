//! Invalid input: every error has its problem+json response, and the server continues (R-37).

use hyper::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_testkit::api::ApiResponse;
use turnwire_testkit::script::ScriptStep;
use turnwire_testkit::watch::WatchClient;

fn problem(answer: &ApiResponse, status: u16, code: &str) {
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (status, code),
        "{}",
        answer.body
    );
    assert_eq!(answer.header("content-type"), "application/problem+json");
    let body = answer.json();
    assert_eq!(body["status"], status);
    assert_eq!(body["type"], format!("/problems/{code}"));
    for field in ["title", "detail", "trace_id"] {
        assert!(
            body[field].as_str().is_some_and(|text| !text.is_empty()),
            "{field}: {}",
            answer.body
        );
    }
}

/// Bodies of a submit, with status and code of the answer, and a word it must say.
const BODIES: [(&str, u16, &str, &str); 12] = [
    ("{\n  \"message\": oops}", 400, "malformed_json", "line 2"),
    ("", 422, "invalid_request", "message"),
    ("{\"message\":\"hi\"", 400, "malformed_json", "column"),
    (
        "{\"message\":\"hi\",\"colour\":\"red\"}",
        422,
        "unknown_field",
        "colour",
    ),
    ("{}", 422, "invalid_request", "message"),
    (
        "{\"message\":7}",
        422,
        "invalid_request",
        "a string or a list",
    ),
    ("{\"message\":\"\"}", 422, "invalid_request", "message"),
    ("[]", 422, "invalid_request", ""),
    (
        "{\"message\":\"hi\",\"disconnect_grace_ms\":30001}",
        422,
        "invalid_request",
        "disconnect_grace_ms",
    ),
    (
        "{\"message\":\"hi\",\"on_disconnect\":\"explode\"}",
        422,
        "invalid_request",
        "explode",
    ),
    (
        "{\"message\":[{\"type\":\"image\",\"url\":\"x\"}]}",
        422,
        "unsupported_content",
        "image",
    ),
    (
        "{\"message\":[{\"type\":\"tool_result\",\"tool_use_id\":\"tu_00000000000000000000000000\",\"content\":1,\"is_error\":false}]}",
        422,
        "unsupported_content",
        "tool_result",
    ),
];

// R-37
#[tokio::test]
async fn invalid_bodies_get_a_specific_problem() {
    let fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    let turns = format!("/sessions/{}/turns", fixture.session);
    for (body, status, code, mentions) in BODIES {
        let answer = fixture.api.send(Method::POST, &turns, Some(body)).await;
        let answer = answer.expect("an answer");
        problem(&answer, status, code);
        assert!(
            answer.body.contains(mentions),
            "{body} should mention {mentions}: {}",
            answer.body
        );
    }
    let answer = fixture
        .api
        .post("/sessions", json!({"colour": "red"}))
        .await
        .expect("an answer");
    problem(&answer, 422, "unknown_field");
    assert!(answer.body.contains("colour"));
    // None of it started a turn.
    let list = fixture.api.get(&turns).await.expect("an answer").json();
    assert_eq!(list["turns"], json!([]));
}

// R-37
#[tokio::test]
async fn body_over_the_limit_is_413() {
    let fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    let turns = format!("/sessions/{}/turns", fixture.session);
    let wrap = r#"{"message":""}"#.len();
    for (length, status) in [((1 << 20) + 1, 413), (1 << 20, 202)] {
        let body = format!("{{\"message\":\"{}\"}}", "x".repeat(length - wrap));
        assert_eq!(body.len(), length);
        let answer = fixture
            .api
            .send(Method::POST, &turns, Some(&body))
            .await
            .expect("an answer");
        assert_eq!(
            answer.status,
            status,
            "{}",
            answer.body.chars().take(300).collect::<String>()
        );
        if status == 413 {
            problem(&answer, 413, "body_too_large");
        }
    }
    fixture.check_history().await;
}

// R-37
#[tokio::test]
async fn invalid_paths_methods_and_types_are_refused() {
    let fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    let session = format!("/sessions/{}", fixture.session);
    let get = fixture.api.get("/nowhere").await.expect("an answer");
    problem(&get, 404, "not_found");
    let response = fixture
        .api
        .send(Method::PUT, "/sessions", None)
        .await
        .expect("an answer");
    problem(&response, 405, "method_not_allowed");
    assert!(
        response.header("allow").contains("POST"),
        "{:?}",
        response.headers
    );
    let delete = fixture
        .api
        .send(Method::DELETE, &format!("{session}/events"), None)
        .await
        .expect("an answer");
    problem(&delete, 405, "method_not_allowed");
    let text = fixture.api.clone().with("content-type", "text/plain");
    let answer = text
        .send(
            Method::POST,
            &format!("{session}/turns"),
            Some("{\"message\":\"hi\"}"),
        )
        .await
        .expect("an answer");
    problem(&answer, 415, "unsupported_media_type");
    // An empty POST needs no content type.
    let empty = fixture
        .api
        .send(Method::POST, "/sessions", None)
        .await
        .expect("an answer");
    assert_eq!(empty.status, 201, "{}", empty.body);
    let upgrade = fixture
        .api
        .get(&format!("{session}/stream"))
        .await
        .expect("an answer");
    assert!((400..500).contains(&upgrade.status), "{}", upgrade.body);
    assert_eq!(upgrade.header("content-type"), "application/problem+json");
}

// G4
#[tokio::test]
async fn foreign_host_or_origin_is_refused() {
    let fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    let foreign = fixture.api.clone().with("host", "evil.example:8421");
    problem(
        &foreign.get("/sessions").await.expect("an answer"),
        403,
        "host_not_allowed",
    );
    problem(
        &foreign
            .post("/sessions", json!({}))
            .await
            .expect("an answer"),
        403,
        "host_not_allowed",
    );
    for origin in ["http://evil.example", "null", "https://127.0.0.1"] {
        let foreign = fixture.api.clone().with("origin", origin);
        let answer = foreign
            .post("/sessions", json!({}))
            .await
            .expect("an answer");
        problem(&answer, 403, "origin_not_allowed");
    }
    let own = fixture
        .api
        .clone()
        .with("origin", &format!("http://{}", fixture.api.addr()));
    assert_eq!(
        own.post("/sessions", json!({}))
            .await
            .expect("an answer")
            .status,
        201
    );
    // Any loopback name and port may be the host.
    let named = fixture.api.clone().with("host", "localhost:9");
    assert_eq!(named.get("/sessions").await.expect("an answer").status, 200);
}

// G4
#[tokio::test]
async fn foreign_origin_opens_no_stream() {
    let fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    let attached = fixture
        .api
        .attach(fixture.session)
        .await
        .expect("an answer");
    let token = attached["attach_token"].as_str().expect("a token");
    let mut socket = tokio::net::TcpStream::connect(fixture.api.addr())
        .await
        .expect("a connection");
    let request = format!(
        "GET /sessions/{}/stream?attach={token} HTTP/1.1\r\nHost: {}\r\nOrigin: http://evil.example\r\n\
         Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        fixture.session,
        fixture.api.addr()
    );
    socket.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = vec![0; 1_024];
    let read = socket.read(&mut answer).await.expect("an answer");
    let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    // And the token was not used up by it.
    let url = attached["ws_url"].as_str().expect("a url");
    assert!(
        WatchClient::open(&fixture.api, "own", fixture.session, url, None)
            .await
            .is_ok()
    );
}

// W4
#[tokio::test]
async fn garbage_on_the_socket_is_harmless() {
    let fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    for garbage in [
        &b"\x00\x01\x02\x03\r\n\r\n"[..],
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /sessions HTTP/1.1\r\n\r\n",
        b"POST /sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST /sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n{",
    ] {
        let mut socket = tokio::net::TcpStream::connect(fixture.api.addr()).await.expect("a connection");
        socket.write_all(garbage).await.expect("sent");
        socket.shutdown().await.expect("closed");
        let mut answer = Vec::new();
        let read = tokio::time::timeout(std::time::Duration::from_secs(5), socket.read_to_end(&mut answer)).await;
        assert!(read.is_ok(), "the server keeps {garbage:?} waiting");
    }
    fixture.turn("still there?").await;
    fixture.check_history().await;
}

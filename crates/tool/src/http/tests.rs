//! HTTP tools against a real socket: the requests, and what the model gets.

mod keys;
mod definition;
mod fake_site;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use turnwire_dial::DialerOptions;
use turnwire_event::TracePropagation;
use turnwire_event::code::ToolErrorClass;
use turnwire_pack::ToolKind;

use super::*;
use crate::tests::support::{EventSink, call, context};
use crate::tool::Tool as _;

use fake_site::{FakeSite, request};

/// Far longer than any test takes.
const LONG: Duration = Duration::from_secs(30);

fn response(status: u16, kind: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

fn http(method: ToolMethod, url: impl Into<String>) -> HttpDef {
    HttpDef {
        method,
        url: url.into(),
        query: Vec::new(),
        headers: vec![("authorization".into(), "Bearer sk-pack-key".into())],
        max_bytes: 10_000,
        redirects_max: 3,
    }
}

fn build(http: &HttpDef, timeout_ms: Option<u64>) -> Result<PackTool, String> {
    let def = ToolDef {
        name: "weather".into(),
        description: "Tells the weather.".into(),
        kind: ToolKind::Http(http.clone()),
        input_schema: json!({"type": "object"}),
        status: Some("looking".into()),
        timeout_ms,
        remember: true,
        approval: true,
        progress_status: None,
    };
    let dialer = Dialer::new(DialerOptions::default()).expect("a dialer");
    HttpTool::build(&def, http, &Arc::new(dialer), &Secrets::default())
}

async fn run(http: &HttpDef, input: Value) -> Result<Value, ToolFailure> {
    let tool = build(http, Some(20_000)).expect("a tool");
    tool.run(call(input, &EventSink::with_room(0))).await
}

async fn failure_of(http: &HttpDef, input: Value) -> (ToolErrorClass, String) {
    let failure = run(http, input).await.expect_err("a failure");
    assert!(!failure.fatal && failure.fault.is_none());
    (failure.class, failure.message)
}

#[tokio::test]
async fn get_fills_the_url_and_sends_other_fields_as_query() {
    let site = FakeSite::with_response(response(
        200,
        "application/json; charset=utf-8",
        r#"{"t": 21}"#,
    ))
    .await;
    let mut def = http(ToolMethod::Get, format!("{}/v1/{{city}}/now", site.url));
    def.query = vec![("units".into(), "metric".into())];
    let result = run(&def, json!({"city": "St. Pölten/../x", "days": 3})).await;
    assert_eq!(result, Ok(json!({"status": 200, "body": {"t": 21}})));
    let request = site.requests().concat();
    let line = "GET /v1/St.%20P%C3%B6lten%2F..%2Fx/now?units=metric&days=3 HTTP/1.1\r\n";
    assert!(request.starts_with(line), "{request}");
    assert!(request.ends_with("\r\n\r\n"), "{request}");
    assert!(
        request.contains("authorization: Bearer sk-pack-key\r\n"),
        "{request}"
    );
}

#[tokio::test]
async fn post_put_and_patch_send_other_fields_as_body() {
    let site = FakeSite::with_response(response(201, "application/json", "[]")).await;
    for (method, line) in [
        (ToolMethod::Post, "POST /c/Wien HTTP/1.1\r\n"),
        (ToolMethod::Put, "PUT /c/Wien HTTP/1.1\r\n"),
        (ToolMethod::Patch, "PATCH /c/Wien HTTP/1.1\r\n"),
    ] {
        let mut def = http(method, format!("{}/c/{{city}}", site.url));
        def.headers
            .push(("Content-Type".into(), "application/merge-patch+json".into()));
        def.headers
            .push(("Accept".into(), "application/vnd.x+json".into()));
        let input = json!({"city": "Wien", "tags": ["a"], "n": {"m": null}});
        let result = run(&def, input).await;
        assert_eq!(result, Ok(json!({"status": 201, "body": []})));
        let request = site.requests().pop().expect("a request");
        assert!(request.starts_with(line), "{request}");
        assert!(
            request.contains("\r\ncontent-type: application/merge-patch+json\r\n"),
            "{request}"
        );
        assert!(
            request.contains("\r\naccept: application/vnd.x+json\r\n"),
            "{request}"
        );
        assert!(
            request.ends_with("\r\n\r\n{\"tags\":[\"a\"],\"n\":{\"m\":null}}"),
            "{request}"
        );
    }
    let def = http(ToolMethod::Delete, format!("{}/c/{{city}}", site.url));
    assert!(
        run(&def, json!({"city": "Wien", "hard": true}))
            .await
            .is_ok()
    );
    let request = site.requests().pop().expect("a request");
    assert!(
        request.starts_with("DELETE /c/Wien?hard=true HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(!request.contains("content-type"), "{request}");
}

// G8
#[tokio::test]
async fn request_has_the_headers_of_the_pack_only() {
    let site = FakeSite::with_response(response(200, "text/plain", "ok")).await;
    let input = json!({
        "authorization": "Bearer model", "headers": {"cookie": "a=b"}, "Cookie": "c", "principal": "p",
    });
    for method in [ToolMethod::Get, ToolMethod::Post] {
        assert!(run(&http(method, &site.url), input.clone()).await.is_ok());
        let request = site.requests().pop().expect("a request");
        let (head, _) = request.split_once("\r\n\r\n").expect("a head");
        let lines = head.lines().skip(1);
        let mut names: Vec<&str> = lines.filter_map(|line| line.split(':').next()).collect();
        names.sort_unstable();
        let mut expected = vec![
            "accept",
            "accept-encoding",
            "authorization",
            "host",
            "user-agent",
        ];
        if method == ToolMethod::Post {
            expected.extend(["content-length", "content-type"]);
        }
        expected.sort_unstable();
        assert_eq!(names, expected, "{head}");
        assert!(head.contains("authorization: Bearer sk-pack-key"), "{head}");
        // Neither the person nor the session is in the request.
        for own in ["user-42", "sess_", "turn_", "traceparent"] {
            assert!(!request.contains(own), "{own} in {request}");
        }
    }
}

#[tokio::test]
async fn trace_is_sent_while_traces_are_exported_and_the_pack_wins() {
    let site = FakeSite::with_response(response(200, "text/plain", "ok")).await;
    let mut def = http(ToolMethod::Get, &site.url);
    for (own, expected) in [
        (
            None,
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000007-01",
        ),
        (Some("of-the-pack"), "of-the-pack"),
    ] {
        def.headers
            .extend(own.map(|own| ("traceparent".to_owned(), own.to_owned())));
        let mut call = call(json!({}), &EventSink::with_room(0));
        let mut context = context();
        context.propagation = TracePropagation {
            sampled: true,
            state: Some("a=1".into()),
            is_exporting: true,
        };
        call.context = Arc::new(context);
        let tool = build(&def, Some(20_000)).expect("a tool");
        tool.run(call).await.expect("a response");
        let request = site.requests().pop().expect("a request");
        assert!(
            request.contains(&format!("traceparent: {expected}\r\n")),
            "{request}"
        );
        assert!(request.contains("tracestate: a=1\r\n"), "{request}");
    }
}

#[tokio::test]
async fn content_type_decides_between_json_and_text() {
    for (kind, body, expected) in [
        ("application/json", "{\"a\":[1]}", json!({"a": [1]})),
        ("application/problem+json", "1", json!(1)),
        ("APPLICATION/JSON;charset=utf-8", "null", json!(null)),
        ("application/json", "", json!(null)),
        ("text/html", "<p>hi", json!("<p>hi")),
        ("text/plain", "{\"a\":1}", json!("{\"a\":1}")),
        ("application/xml", "<a/>", json!("<a/>")),
        ("", "hi", json!("hi")),
        ("nonsense;;", "hi", json!("hi")),
    ] {
        let site = FakeSite::with_response(response(200, kind, body)).await;
        let result = run(&http(ToolMethod::Get, &site.url), json!({})).await;
        assert_eq!(
            result,
            Ok(json!({"status": 200, "body": expected})),
            "{kind}"
        );
    }
    let site = FakeSite::with_response(response(200, "text/plain", b"caf\xe9")).await;
    let result = run(&http(ToolMethod::Get, &site.url), json!({})).await;
    assert_eq!(result, Ok(json!({"status": 200, "body": "caf\u{fffd}"})));
    let site = FakeSite::with_response(response(200, "image/png", b"\x89PNG\xff")).await;
    let failure = failure_of(&http(ToolMethod::Get, &site.url), json!({})).await;
    let neither = "The response is neither JSON nor text.";
    assert_eq!(failure, (ToolErrorClass::Internal, neither.into()));
}

#[tokio::test]
async fn body_that_is_labelled_json_and_is_not_is_a_failure() {
    let deep = "[".repeat(5_000) + &"]".repeat(5_000);
    let label = "application/json; charset=utf-8";
    for (kind, body) in [
        (label, "{broken"),
        ("application/hal+json", "<html>"),
        (label, " "),
        (label, &deep),
    ] {
        let site = FakeSite::with_response(response(200, kind, body)).await;
        let failure = failure_of(&http(ToolMethod::Get, &site.url), json!({})).await;
        let unreadable = "The response is labelled as JSON and cannot be read as JSON.";
        assert_eq!(failure, (ToolErrorClass::Internal, unreadable.into()));
    }
}

#[tokio::test]
async fn error_response_is_quoted_up_to_a_limit() {
    let site = FakeSite::with_response(response(
        404,
        "application/json",
        "{\"error\":\"no such city\"}\n",
    ))
    .await;
    let (class, message) = failure_of(&http(ToolMethod::Get, &site.url), json!({})).await;
    assert_eq!(class, ToolErrorClass::Internal);
    assert_eq!(
        message,
        "The service answered with status 404: {\"error\":\"no such city\"}"
    );
    let site = FakeSite::with_response(response(500, "text/html", "ü".repeat(4_000))).await;
    let (_, message) = failure_of(&http(ToolMethod::Get, &site.url), json!({})).await;
    assert!((2_000..2_200).contains(&message.len()), "{}", message.len());
    for body in ["", " \n"] {
        let site = FakeSite::with_response(response(503, "text/plain", body)).await;
        let (_, message) = failure_of(&http(ToolMethod::Get, &site.url), json!({})).await;
        assert_eq!(message, "The service answered with status 503.");
    }
    let site = FakeSite::with_response(response(500, "image/png", b"\xff\xfe")).await;
    let (_, message) = failure_of(&http(ToolMethod::Get, &site.url), json!({})).await;
    assert_eq!(message, "The service answered with status 500.");
}

// G5
#[tokio::test]
async fn redirect_to_a_private_address_is_refused() {
    let inside = FakeSite::with_response(response(200, "text/plain", "secret")).await;
    let port = inside.url.rsplit(':').next().expect("a port").to_owned();
    for place in [
        inside.url.clone(),
        format!("http://localhost:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://x@127.0.0.1:{port}/"),
        "http://169.254.169.254/latest/meta-data/".into(),
        "http://10.0.0.1/".into(),
        "http://[::1]/".into(),
        "file:///etc/passwd".into(),
        "gopher://127.0.0.1/".into(),
    ] {
        let head = format!("HTTP/1.1 302 Go\r\nlocation: {place}\r\ncontent-length: 0\r\n\r\n");
        let site = FakeSite::with_response(head).await;
        let failure = failure_of(&http(ToolMethod::Get, &site.url), json!({})).await;
        let expected = (
            ToolErrorClass::Internal,
            "The address is not allowed.".to_owned(),
        );
        assert_eq!(failure, expected, "{place}");
    }
    assert_eq!(inside.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn each_dial_error_has_its_message() {
    let circle =
        FakeSite::with_response("HTTP/1.1 302 Go\r\nlocation: /\r\ncontent-length: 0\r\n\r\n")
            .await;
    let (class, message) = failure_of(&http(ToolMethod::Get, &circle.url), json!({})).await;
    assert_eq!(
        (class, message.as_str()),
        (
            ToolErrorClass::Internal,
            "The service redirected too often."
        )
    );
    assert_eq!(circle.requests().len(), 4);
    let large = FakeSite::with_response(response(200, "text/plain", "x".repeat(10_001))).await;
    let (class, message) = failure_of(&http(ToolMethod::Get, &large.url), json!({})).await;
    assert_eq!(
        (class, message.as_str()),
        (
            ToolErrorClass::Internal,
            "The response is larger than 10000 bytes."
        )
    );
    let packed = FakeSite::with_response(
        "HTTP/1.1 200 X\r\ncontent-encoding: gzip\r\ncontent-length: 0\r\n\r\n",
    )
    .await;
    let (_, message) = failure_of(&http(ToolMethod::Get, &packed.url), json!({})).await;
    assert_eq!(message, "The response is neither JSON nor text.");
    let gone = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", gone.local_addr().expect("bound"));
    drop(gone);
    let (class, message) = failure_of(&http(ToolMethod::Get, url), json!({})).await;
    assert_eq!(
        (class, message.as_str()),
        (
            ToolErrorClass::Internal,
            "The service could not be reached."
        )
    );
    let (class, message) = failure_of(
        &http(ToolMethod::Get, "https://no.invalid/{a}"),
        json!({"a": ".."}),
    )
    .await;
    assert_eq!(class, ToolErrorClass::InvalidInput);
    assert!(message.contains("`..`"), "{message}");
}

#[tokio::test]
async fn slow_response_is_a_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let drip = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("a client");
        request(&mut socket).await.expect("a request");
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n";
        socket.write_all(head).await.expect("written");
        // No single byte is late; the client has left before the last one.
        while socket.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let tool = build(&http(ToolMethod::Get, url), Some(300)).expect("a tool");
    assert_eq!(tool.timeout(), Some(Duration::from_millis(1_300)));
    let ran = tool.run(call(json!({}), &EventSink::with_room(0))).await;
    let failure = ran.expect_err("late");
    assert_eq!(failure.class, ToolErrorClass::Timeout);
    assert_eq!(failure.message, "The service did not answer in time.");
    let closed = tokio::time::timeout(LONG, drip).await;
    closed.expect("the server sees the end").expect("it ran");
}

#[tokio::test]
async fn dropped_future_closes_the_socket() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let tool = build(&http(ToolMethod::Get, url), None).expect("a tool");
    let running = tool.run(call(json!({}), &EventSink::with_room(0)));
    let running = tokio::spawn(running);
    let (mut socket, _) = listener.accept().await.expect("a client");
    request(&mut socket).await.expect("a request");
    running.abort();
    let mut buffer = [0; 16];
    let end = tokio::time::timeout(LONG, socket.read(&mut buffer)).await;
    assert!(matches!(end, Ok(Ok(0) | Err(_))), "{end:?}");
}

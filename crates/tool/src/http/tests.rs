//! HTTP tools against a real socket: what is sent, what the model gets to see, and what nobody.

mod keys;
mod made;
mod site;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use turnwire_dial::Options;
use turnwire_event::code::ToolErrorClass;
use turnwire_pack::ToolKind;

use super::*;
use crate::stage::{Sink, call};

use site::{Site, request};

/// Far longer than anything here takes: a wait that ends with it has failed.
const LONG: Duration = Duration::from_secs(30);

fn answer(status: u16, kind: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
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

fn made(http: &HttpDef, timeout_ms: Option<u64>) -> Result<Http, String> {
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
    let dialer = Dialer::new(Options::default()).expect("a dialer");
    Http::new(&def, http, &Arc::new(dialer))
}

async fn run(http: &HttpDef, input: Value) -> Result<Value, ToolFailure> {
    let tool = made(http, Some(20_000)).expect("a tool");
    tool.run(call(input, &Sink::with_room(0))).await
}

async fn told(http: &HttpDef, input: Value) -> (ToolErrorClass, String) {
    let failure = run(http, input).await.expect_err("a failure");
    assert!(!failure.fatal && failure.fault.is_none());
    (failure.class, failure.told)
}

#[tokio::test]
async fn a_get_fills_the_address_and_puts_the_rest_into_the_query() {
    let site = Site::saying(answer(
        200,
        "application/json; charset=utf-8",
        r#"{"t": 21}"#,
    ))
    .await;
    let mut def = http(ToolMethod::Get, format!("{}/v1/{{city}}/now", site.url));
    def.query = vec![("units".into(), "metric".into())];
    let result = run(&def, json!({"city": "St. Pölten/../x", "days": 3})).await;
    assert_eq!(result, Ok(json!({"status": 200, "body": {"t": 21}})));
    let heard = site.heard().concat();
    let line = "GET /v1/St.%20P%C3%B6lten%2F..%2Fx/now?units=metric&days=3 HTTP/1.1\r\n";
    assert!(heard.starts_with(line), "{heard}");
    assert!(heard.ends_with("\r\n\r\n"), "{heard}");
    assert!(
        heard.contains("authorization: Bearer sk-pack-key\r\n"),
        "{heard}"
    );
}

#[tokio::test]
async fn what_no_hole_takes_is_the_body_of_a_post_put_or_patch() {
    let site = Site::saying(answer(201, "application/json", "[]")).await;
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
        let heard = site.heard().pop().expect("a request");
        assert!(heard.starts_with(line), "{heard}");
        assert!(
            heard.contains("\r\ncontent-type: application/merge-patch+json\r\n"),
            "{heard}"
        );
        assert!(
            heard.contains("\r\naccept: application/vnd.x+json\r\n"),
            "{heard}"
        );
        assert!(
            heard.ends_with("\r\n\r\n{\"tags\":[\"a\"],\"n\":{\"m\":null}}"),
            "{heard}"
        );
    }
    let def = http(ToolMethod::Delete, format!("{}/c/{{city}}", site.url));
    assert!(
        run(&def, json!({"city": "Wien", "hard": true}))
            .await
            .is_ok()
    );
    let heard = site.heard().pop().expect("a request");
    assert!(
        heard.starts_with("DELETE /c/Wien?hard=true HTTP/1.1\r\n"),
        "{heard}"
    );
    assert!(!heard.contains("content-type"), "{heard}");
}

#[tokio::test]
async fn g8_headers_are_the_packs_and_nothing_else_goes_along() {
    let site = Site::saying(answer(200, "text/plain", "ok")).await;
    let input = json!({
        "authorization": "Bearer model", "headers": {"cookie": "a=b"}, "Cookie": "c", "principal": "p",
    });
    for method in [ToolMethod::Get, ToolMethod::Post] {
        assert!(run(&http(method, &site.url), input.clone()).await.is_ok());
        let heard = site.heard().pop().expect("a request");
        let (head, _) = heard.split_once("\r\n\r\n").expect("a head");
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
        // Who asks is nobody's business: neither the person nor their session is in it.
        for own in ["user-42", "sess_", "turn_", "traceparent"] {
            assert!(!heard.contains(own), "{own} in {heard}");
        }
    }
}

#[tokio::test]
async fn bodies_are_json_or_text_by_what_they_say() {
    for (kind, body, expected) in [
        ("application/json", "{\"a\":[1]}", json!({"a": [1]})),
        ("application/problem+json", "1", json!(1)),
        ("APPLICATION/JSON;charset=utf-8", "null", json!(null)),
        ("application/json", "{broken", json!("{broken")),
        ("application/json", "", json!(null)),
        ("text/html", "<p>hi", json!("<p>hi")),
        ("text/plain", "{\"a\":1}", json!("{\"a\":1}")),
        ("application/xml", "<a/>", json!("<a/>")),
        ("", "hi", json!("hi")),
        ("nonsense;;", "hi", json!("hi")),
    ] {
        let site = Site::saying(answer(200, kind, body)).await;
        let result = run(&http(ToolMethod::Get, &site.url), json!({})).await;
        assert_eq!(
            result,
            Ok(json!({"status": 200, "body": expected})),
            "{kind}"
        );
    }
    let site = Site::saying(answer(200, "text/plain", b"caf\xe9")).await;
    let result = run(&http(ToolMethod::Get, &site.url), json!({})).await;
    assert_eq!(result, Ok(json!({"status": 200, "body": "caf\u{fffd}"})));
    let site = Site::saying(answer(200, "image/png", b"\x89PNG\xff")).await;
    let failure = told(&http(ToolMethod::Get, &site.url), json!({})).await;
    let neither = "The answer is neither JSON nor text.";
    assert_eq!(failure, (ToolErrorClass::Internal, neither.into()));
    let deep = "[".repeat(5_000) + &"]".repeat(5_000);
    let site = Site::saying(answer(200, "application/json", &deep)).await;
    let result = run(&http(ToolMethod::Get, &site.url), json!({})).await;
    assert_eq!(result, Ok(json!({"status": 200, "body": deep})));
}

#[tokio::test]
async fn an_error_of_the_service_is_told_with_a_bounded_part_of_its_body() {
    let site = Site::saying(answer(
        404,
        "application/json",
        "{\"error\":\"no such city\"}\n",
    ))
    .await;
    let (class, words) = told(&http(ToolMethod::Get, &site.url), json!({})).await;
    assert_eq!(class, ToolErrorClass::Internal);
    assert_eq!(
        words,
        "The service answered with status 404: {\"error\":\"no such city\"}"
    );
    let site = Site::saying(answer(500, "text/html", "ü".repeat(4_000))).await;
    let (_, words) = told(&http(ToolMethod::Get, &site.url), json!({})).await;
    assert!((2_000..2_200).contains(&words.len()), "{}", words.len());
    for body in ["", " \n"] {
        let site = Site::saying(answer(503, "text/plain", body)).await;
        let (_, words) = told(&http(ToolMethod::Get, &site.url), json!({})).await;
        assert_eq!(words, "The service answered with status 503.");
    }
    let site = Site::saying(answer(500, "image/png", b"\xff\xfe")).await;
    let (_, words) = told(&http(ToolMethod::Get, &site.url), json!({})).await;
    assert_eq!(words, "The service answered with status 500.");
}

#[tokio::test]
async fn g5_a_redirect_inside_is_refused_and_told_in_plain_words() {
    let inside = Site::saying(answer(200, "text/plain", "secret")).await;
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
        let site = Site::saying(head).await;
        let failure = told(&http(ToolMethod::Get, &site.url), json!({})).await;
        let expected = (
            ToolErrorClass::Internal,
            "The address is not allowed.".to_owned(),
        );
        assert_eq!(failure, expected, "{place}");
    }
    assert_eq!(inside.heard(), Vec::<String>::new());
}

#[tokio::test]
async fn every_other_way_to_fail_has_its_words() {
    let circle = Site::saying("HTTP/1.1 302 Go\r\nlocation: /\r\ncontent-length: 0\r\n\r\n").await;
    let (class, words) = told(&http(ToolMethod::Get, &circle.url), json!({})).await;
    assert_eq!(
        (class, words.as_str()),
        (
            ToolErrorClass::Internal,
            "The service sent the request on too often."
        )
    );
    assert_eq!(circle.heard().len(), 4);
    let large = Site::saying(answer(200, "text/plain", "x".repeat(10_001))).await;
    let (class, words) = told(&http(ToolMethod::Get, &large.url), json!({})).await;
    assert_eq!(
        (class, words.as_str()),
        (
            ToolErrorClass::Internal,
            "The answer is larger than 10000 bytes."
        )
    );
    let packed =
        Site::saying("HTTP/1.1 200 X\r\ncontent-encoding: gzip\r\ncontent-length: 0\r\n\r\n").await;
    let (_, words) = told(&http(ToolMethod::Get, &packed.url), json!({})).await;
    assert_eq!(words, "The answer is neither JSON nor text.");
    let gone = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", gone.local_addr().expect("bound"));
    drop(gone);
    let (class, words) = told(&http(ToolMethod::Get, url), json!({})).await;
    assert_eq!(
        (class, words.as_str()),
        (
            ToolErrorClass::Internal,
            "The service could not be reached."
        )
    );
    let (class, words) = told(
        &http(ToolMethod::Get, "https://no.invalid/{a}"),
        json!({"a": ".."}),
    )
    .await;
    assert_eq!(class, ToolErrorClass::InvalidInput);
    assert!(words.contains("`..`"), "{words}");
}

#[tokio::test]
async fn a_service_that_is_slow_or_drips_is_a_timeout_of_its_own() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let drip = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("a client");
        request(&mut socket).await.expect("a request");
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n";
        socket.write_all(head).await.expect("written");
        // None of the bytes is late; the client is gone long before they end.
        while socket.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let tool = made(&http(ToolMethod::Get, url), Some(300)).expect("a tool");
    assert_eq!(tool.timeout(), Some(Duration::from_millis(1_300)));
    let ran = tool.run(call(json!({}), &Sink::with_room(0))).await;
    let failure = ran.expect_err("late");
    assert_eq!(failure.class, ToolErrorClass::Timeout);
    assert_eq!(failure.told, "The service did not answer in time.");
    let closed = tokio::time::timeout(LONG, drip).await;
    closed.expect("the server sees the end").expect("it ran");
}

#[tokio::test]
async fn dropping_the_future_closes_the_socket() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let tool = made(&http(ToolMethod::Get, url), None).expect("a tool");
    let running = tool.run(call(json!({}), &Sink::with_room(0)));
    let running = tokio::spawn(running);
    let (mut socket, _) = listener.accept().await.expect("a client");
    request(&mut socket).await.expect("a request");
    running.abort();
    let mut buffer = [0; 16];
    let end = tokio::time::timeout(LONG, socket.read(&mut buffer)).await;
    assert!(matches!(end, Ok(Ok(0) | Err(_))), "{end:?}");
}

//! Invalid input on the chat wire: every error has its problem response and no side effect, and the
//! server continues.

use std::net::SocketAddr;

use serde_json::{Value, json};
use turnwire_e2e::chat::{MetricsSnapshot, RawResponse, back, raw, say, streams, until};
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_testkit::chat::{ChatStream, ChatSubmit, CursorPlacement, open_streams};
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{ServerOptions, TestServer};

fn options() -> ServerOptions {
    let script = ModelScript::new()
        .on("^stall", [ScriptStep::text("wait"), ScriptStep::stall()])
        .on("", [ScriptStep::text("yes")]);
    ServerOptions::script(script)
}

async fn posted(addr: SocketAddr, lines: &[&str], body: &[u8]) -> RawResponse {
    raw(addr, "POST /chat/stream", lines, body).await
}

/// Nothing was made, and the server takes turns.
async fn unharmed(server: &TestServer) {
    let api = server.api();
    let list = api.get("/sessions").await.expect("an answer").json();
    assert_eq!(list["sessions"], json!([]));
    assert_eq!(
        MetricsSnapshot::read(&api)
            .await
            .sum("turnwire_turn_started_total"),
        0.0
    );
    let mut stream = say(&api, "after", &ChatSubmit::new("hi")).await;
    stream.read_to_end().await.expect("a whole stream");
}

//
#[tokio::test]
async fn invalid_chat_body_gets_a_problem_and_creates_nothing() {
    let server = TestServer::start(options()).await;
    let large = format!("{{\"message\":\"{}\"}}", "x".repeat(2 << 20));
    let long = format!(
        "{{\"message\":\"a\",\"location\":\"{}\"}}",
        "x".repeat(1_025)
    );
    let deep = format!(
        "{{\"message\":\"a\",\"metadata\":{}",
        "{\"a\":".repeat(5_000)
    );
    let bodies: [(&[u8], u16, &str); 30] = [
        (b"[]", 422, "invalid_request"),
        (b"[\"hi\"]", 422, "invalid_request"),
        (b"[null,\"hi\"]", 422, "invalid_request"),
        (b"\"hi\"", 422, "invalid_request"),
        (b"7", 422, "invalid_request"),
        (b"null", 422, "invalid_request"),
        (b"true", 422, "invalid_request"),
        (b"", 422, "invalid_request"),
        (b" ", 400, "malformed_json"),
        (b"{}", 422, "invalid_request"),
        (b"{", 400, "malformed_json"),
        (b"hi", 400, "malformed_json"),
        (b"{\"message\":\"hi\"} {}", 400, "malformed_json"),
        (b"{\"message\":\"\xff\xfe\"}", 400, "malformed_json"),
        (b"{\"message\":\"\\ud800\"}", 400, "malformed_json"),
        (b"{\"message\":null}", 422, "invalid_request"),
        (b"{\"message\":7}", 422, "invalid_request"),
        (b"{\"message\":{}}", 422, "invalid_request"),
        (b"{\"message\":[]}", 422, "invalid_request"),
        (b"{\"message\":\"\"}", 422, "invalid_request"),
        (
            b"{\"message\":[{\"type\":\"image\"}]}",
            422,
            "unsupported_content",
        ),
        (
            b"{\"message\":\"a\",\"on_disconect\":\"continue\"}",
            422,
            "unknown_field",
        ),
        (
            b"{\"message\":\"a\",\"session_id\":7}",
            422,
            "invalid_request",
        ),
        (
            b"{\"message\":\"a\",\"metadata\":[]}",
            422,
            "invalid_request",
        ),
        (
            b"{\"message\":\"a\",\"on_busy\":\"wait\"}",
            422,
            "invalid_request",
        ),
        (
            b"{\"message\":\"a\",\"disconnect_grace_ms\":-1}",
            422,
            "invalid_request",
        ),
        (
            b"{\"message\":\"a\",\"disconnect_grace_ms\":30001}",
            422,
            "invalid_request",
        ),
        (
            b"{\"message\":\"a\",\"locale\":\"d e\"}",
            422,
            "invalid_request",
        ),
        (long.as_bytes(), 422, "invalid_request"),
        (large.as_bytes(), 413, "body_too_large"),
    ];
    let json = "content-type: application/json";
    for (body, status, code) in bodies {
        let answer = posted(server.addr(), &[json], body).await;
        let body_start = String::from_utf8_lossy(&body[..body.len().min(80)]);
        let got = (answer.status, answer.code());
        assert_eq!(
            got,
            (status, code.to_owned()),
            "{body_start}: {}",
            answer.body
        );
        assert_eq!(answer.header("content-type"), "application/problem+json");
    }
    let answer = posted(server.addr(), &[json], deep.as_bytes()).await;
    assert_eq!(answer.status, 400, "{}", answer.body);
    for lines in [vec![], vec!["content-type: text/plain"], vec![json, json]] {
        let answer = posted(server.addr(), &lines, b"{\"message\":\"hi\"}").await;
        assert_eq!(answer.status, 415, "{lines:?}: {}", answer.body);
    }
    unharmed(&server).await;
}

//
#[tokio::test]
async fn invalid_headers_and_methods_are_refused() {
    let server = TestServer::start(options()).await;
    let json = "content-type: application/json";
    let long = format!("idempotency-key: {}", "k".repeat(256));
    for header in [
        "idempotency-key: ",
        "idempotency-key: a\tb",
        "idempotency-key: \u{e9}",
        long.as_str(),
        "x-wire-version: 1.0",
    ] {
        let answer = posted(server.addr(), &[json, header], b"{\"message\":\"hi\"}").await;
        let got = (answer.status, answer.code());
        assert_eq!(
            got,
            (422, "invalid_request".to_owned()),
            "{header}: {}",
            answer.body
        );
    }
    let twice = [json, "idempotency-key: a", "idempotency-key: a"];
    let answer = posted(server.addr(), &twice, b"{\"message\":\"hi\"}").await;
    assert_eq!(answer.status, 422, "{}", answer.body);
    let missing = "/chat/resp_00000000000000000000000001/stream";
    for (line, status) in [
        ("GET /chat/stream", 405),
        ("PUT /chat/stream", 405),
        (&format!("POST {missing}"), 405),
        (&format!("GET {missing}"), 404),
        ("GET /chat/nonsense/stream", 404),
        ("GET /chat//stream", 404),
        ("GET /chat/%00/stream", 404),
    ] {
        let answer = raw(server.addr(), line, &[], b"").await;
        assert_eq!(answer.status, status, "{line}: {}", answer.body);
        assert_eq!(
            answer.header("content-type"),
            "application/problem+json",
            "{line}"
        );
    }
    unharmed(&server).await;
}

//
#[tokio::test]
async fn excessive_headers_are_answered_or_closed() {
    let server = TestServer::start(options()).await;
    let one = format!("x-large: {}", "x".repeat(40_000));
    let many: Vec<String> = (0..10_000).map(|n| format!("x-{n}: {n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let some: Vec<&str> = vec!["accept-language: de"; 300];
    for lines in [vec![one.as_str()], many, some] {
        for line in [
            "POST /chat/stream",
            "GET /chat/resp_00000000000000000000000001/stream",
        ] {
            let answer = raw(server.addr(), line, &lines, b"").await;
            let refused = answer.status == 0 || (400..500).contains(&answer.status);
            assert!(refused, "{} headers: {}", lines.len(), answer.head);
        }
    }
    unharmed(&server).await;
}

/// A turn that runs and has no stream of its own.
async fn turn(fixture: &ServerFixture) -> turnwire_event::TurnId {
    fixture.submit("stall").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_up_to_the_limit_are_served() {
    let fixture = ServerFixture::new(options().set("stream", "chat_streams_max", 50)).await;
    let turn = turn(&fixture).await;
    let mut open = Vec::new();
    let mut refused = 0;
    for batch in 0..10 {
        for answer in open_streams(&fixture.api, &format!("crowd {batch}"), turn, 100).await {
            match answer {
                Ok(stream) => open.push(stream),
                Err(why) => {
                    assert_eq!(
                        (why.status(), why.code().as_str()),
                        (429, "too_many_requests")
                    );
                    assert_eq!(why.head.header("content-type"), "application/problem+json");
                    let wait: u32 = why.head.header("retry-after").parse().expect("seconds");
                    assert!(wait >= 1);
                    refused += 1;
                }
            }
        }
    }
    assert_eq!((open.len(), refused), (50, 950));
    // A submit is a stream too; it is refused before a turn is made of it.
    let question = ChatSubmit::new("hi");
    let submit = ChatStream::submit(&fixture.api, "submit", &question).await;
    assert_eq!(submit.expect_err("refused").status(), 429);
    let list = fixture
        .api
        .get("/sessions")
        .await
        .expect("an answer")
        .json();
    assert_eq!(list["sessions"].as_array().map(Vec::len), Some(1));
    // Places are counted by principal, and given back.
    let other = fixture.api.clone().with("x-turnwire-principal", "other");
    let mut other_stream = say(&other, "other", &question).await;
    other_stream.read_to_end().await.expect("a whole stream");
    drop(open);
    streams(&fixture.api, 0).await;
    until("all places are free again", || async {
        let again = open_streams(&fixture.api, "again", turn, 50).await;
        again.iter().all(Result::is_ok)
    })
    .await;
    let row: Value = fixture.api.turn(turn).await.expect("an answer");
    assert_eq!(row["state"], "running", "{row}");
}

#[tokio::test]
async fn connections_over_the_limit_get_retry_later() {
    let fixture = ServerFixture::new(options().set("http", "connections_max", 20)).await;
    let turn = turn(&fixture).await;
    let resume = |name: String| async {
        let name = name;
        ChatStream::resume(
            &fixture.api,
            &name,
            turn,
            None,
            CursorPlacement::Header,
            None,
        )
        .await
    };
    let mut open = Vec::new();
    let started = std::time::Instant::now();
    // The places of requests that were just answered are free in a moment.
    // One owner may have three quarters of the 20.
    while open.len() < 15 {
        open.extend(resume(format!("one of many {}", open.len())).await);
        assert!(started.elapsed().as_secs() < 30, "{} are open", open.len());
    }
    for number in 0..5 {
        let refused = resume(format!("too many {number}"))
            .await
            .expect_err("refused");
        assert_eq!(
            (refused.status(), refused.code().as_str()),
            (429, "too_many_requests")
        );
        assert_eq!(
            refused.head.header("content-type"),
            "application/problem+json"
        );
        assert_eq!(refused.head.header("retry-after"), "1");
    }
    drop(open);
    until("places are free again", || async {
        fixture
            .api
            .get("/readyz")
            .await
            .is_ok_and(|answer| answer.status == 200)
    })
    .await;
    let mut stream = back(&fixture.api, "after", turn, None).await;
    stream.until("text").await.expect("words");
}

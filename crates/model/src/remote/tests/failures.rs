//! Calls that fail: error responses, unreachable addresses, invalid configuration, and the log
//! lines of each.

use std::io::Write;
use std::sync::{Mutex, PoisonError};

use super::test_server::{chunk, end, head, raw};
use super::*;

async fn error_response(head: &str, body: &str) -> DeltaResults {
    let length = body.len();
    let answer = format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\n\r\n{body}");
    collect_steps(vec![raw(&answer)], NO_TIMEOUT).await
}

fn rate_limited(again: RetryHint) -> Result<Delta, ModelError> {
    let class = LlmErrorClass::RateLimited;
    Err(ModelError::new(class, again))
}

#[tokio::test]
async fn rate_limit_response_sets_the_retry_delay() {
    let after = |ms| [rate_limited(RetryHint::After(Duration::from_millis(ms)))];
    let rate_limit_response =
        async |headers: &str| error_response(&format!("429 No\r\n{headers}"), "{}").await;
    assert_eq!(
        rate_limit_response("x: y").await,
        [rate_limited(RetryHint::Never)]
    );
    assert_eq!(rate_limit_response("retry-after: 7").await, after(7_000));
    assert_eq!(
        rate_limit_response("retry-after-ms: 1250").await,
        after(1_250)
    );
    let date = "date: Fri, 13 Nov 2026 10:00:00 GMT\r\nretry-after: Fri, 13 Nov 2026 10:01:30 GMT";
    assert_eq!(rate_limit_response(date).await, after(90_000));
}

#[tokio::test]
async fn error_status_is_classified_by_the_dialect() {
    let provider_error = || [permanent(LlmErrorClass::Provider)];
    for status in ["400 No", "401 No", "404 No", "304 No"] {
        assert_eq!(
            error_response(status, "{}").await,
            provider_error(),
            "{status}"
        );
    }
    let transient_error = [transient(LlmErrorClass::Provider)];
    assert_eq!(error_response("503 No", "{}").await, transient_error);
    // A redirect is an error: the key goes only to the configured address.
    let mut elsewhere = TestServer::start(vec![head(), chunk("data: stop\n\n"), end()]).await;
    let redirect = format!("307 Go\r\nlocation: {}say", elsewhere.base);
    assert_eq!(error_response(&redirect, "").await, provider_error());
    let request = elsewhere.requests.try_recv();
    assert!(request.is_err(), "{request:?}");
}

#[tokio::test]
async fn success_without_event_stream_is_a_provider_error() {
    let provider_error = [permanent(LlmErrorClass::Provider)];
    for kind in [
        "application/json",
        "text/event-streams",
        "text/html;x=text/event-stream",
    ] {
        let head = format!("200 OK\r\ncontent-type: {kind}");
        assert_eq!(
            error_response(&head, "data: stop\n\n").await,
            provider_error,
            "{kind}"
        );
    }
    assert_eq!(
        error_response("200 OK\r\nx: y", "data: stop\n\n").await,
        provider_error
    );
    let compressed = "200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip";
    assert_eq!(
        error_response(compressed, "data: stop\n\n").await,
        provider_error
    );
    let mixed_case = "200 OK\r\ncontent-type: Text/Event-Stream ; charset=x";
    assert_eq!(
        error_response(mixed_case, "data: stop\n\n").await,
        [stop(0.0)]
    );
}

// G9
#[tokio::test]
async fn error_body_is_read_up_to_size_and_time_limits() {
    // The test dialect reports this class if it received exactly the limit.
    let large = [permanent(LlmErrorClass::Internal)];
    assert_eq!(error_response("413 No", &"x".repeat(65_537)).await, large);
    assert_eq!(
        error_response("413 No", &"x".repeat(9_000_000)).await,
        large
    );
    let small = [permanent(LlmErrorClass::Provider)];
    assert_eq!(error_response("413 No", &"x".repeat(65_535)).await, small);
    // A body that never ends, stalls or breaks off.
    let head = || raw("HTTP/1.1 413 No\r\ntransfer-encoding: chunked\r\n\r\n");
    let flood = ServerStep::Flood(vec![b'x'; 1_000]);
    assert_eq!(collect_steps(vec![head(), flood], NO_TIMEOUT).await, large);
    let short = CallTimeouts {
        first_byte: SHORT,
        ..NO_TIMEOUT
    };
    assert_eq!(
        collect_steps(vec![head(), chunk("x"), ServerStep::Hang], short).await,
        small
    );
    assert_eq!(
        collect_steps(vec![head(), chunk("x")], NO_TIMEOUT).await,
        small
    );
}

#[tokio::test]
async fn unreachable_host_is_transient_and_forbidden_host_permanent() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("bound"));
    drop(listener);
    let unreachable = collect(&remote(&base, NO_TIMEOUT)).await;
    assert_eq!(unreachable, [transient(LlmErrorClass::Transport)]);
    let forbidden = collect(&remote("http://169.254.169.254/v1", NO_TIMEOUT)).await;
    assert_eq!(forbidden, [permanent(LlmErrorClass::Internal)]);
    let no_http = collect_steps(vec![raw("hello\r\n\r\n")], NO_TIMEOUT).await;
    assert_eq!(no_http, [transient(LlmErrorClass::Transport)]);
}

#[test]
fn base_url_with_credentials_or_query_is_rejected() {
    let dialer = Arc::new(Dialer::new(DialerOptions::default()).expect("a dialer"));
    let make = |base: &str, header: &str| {
        let headers = BTreeMap::from([(header.to_owned(), "x".to_owned())]);
        ModelHttpTransport::new(
            Arc::clone(&dialer),
            base,
            &TestDialect,
            None,
            &headers,
            &NO_TIMEOUT,
        )
        .map(|_| ())
    };
    for base in [
        "http://localhost",
        "https://a.example/v1/",
        "http://[::1]:1/x",
    ] {
        assert_eq!(make(base, "x-a"), Ok(()), "{base}");
    }
    for base in [
        "",
        "localhost:8090",
        "/v1",
        "ftp://a.example",
        "http://",
        "http://user@a.example",
        "http://:secret@a.example",
        "http://a.example/?key=x",
        "http://a.example/#x",
    ] {
        assert_eq!(make(base, "x-a"), Err(ProviderConfigError::Url), "{base}");
    }
    let invalid = make("http://localhost", "content-length");
    assert_eq!(
        invalid.map_err(|error| error.to_string()),
        Err("the header `content-length` is set by the server itself".into())
    );
}

#[tokio::test]
async fn path_without_slash_is_rejected() {
    let http_transport = http_transport("http://localhost", &NO_TIMEOUT);
    let ask = TransportRequest {
        provider: "local".into(),
        model: "big".into(),
        agent: "shop".into(),
        call: 1,
        user_text_sha: String::new(),
        path: ".invalid/".into(),
        headers: Vec::new(),
        body: bytes::Bytes::new(),
    };
    let result = http_transport.open(ask).await.map(|_| ());
    assert_eq!(result, Err(LlmErrorClass::Internal.into()));
}

/// Collects the log output of a test.
#[derive(Clone, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut buffer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        buffer.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

// G6
#[test]
fn failure_log_names_the_provider_and_hides_content() {
    // The log subscriber is global, so the test runs in its own process.
    const CHILD_PROCESS: &str = "TURNWIRE_TEST_ALONE";
    if std::env::var_os(CHILD_PROCESS).is_none() {
        let mut other = std::process::Command::new(std::env::current_exe().expect("this test"));
        let name = module_path!().split_once("::").expect("a crate").1;
        let test = "failure_log_names_the_provider_and_hides_content";
        other.args(["--exact", &format!("{name}::{test}")]);
        let run = other.env(CHILD_PROCESS, "1").output().expect("it ran");
        let output = String::from_utf8_lossy(&run.stdout);
        assert!(output.contains("1 passed"), "{output}");
        return;
    }
    let buffer = LogBuffer::default();
    let writer = buffer.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .init();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(fail_everywhere());
    let log = buffer.0.lock().unwrap_or_else(PoisonError::into_inner);
    let log = String::from_utf8_lossy(&log);
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains("WARN")).collect();
    assert_eq!(warnings.len(), FAILURES.len(), "{warnings:#?}");
    for (line, (class, place)) in warnings.iter().zip(FAILURES) {
        for word in [
            "provider=local",
            "model=\"local:big:8b\"",
            &format!("class={class}"),
            &format!("place=\"{place}\""),
        ] {
            assert!(line.contains(word), "{word} in {line}");
        }
    }
    assert!(warnings[0].contains("status=429"), "{}", warnings[0]);
    assert!(warnings[0].contains("/v1/say\""), "{}", warnings[0]);
    for word in [KEY, "said-secret", "hello"] {
        let line = log.lines().find(|line| line.contains(word));
        assert_eq!(line, None, "{word}");
    }
}

/// Class and location of the failures of `fail_everywhere`, in order.
const FAILURES: [(&str, &str); 14] = [
    ("RateLimited", "status"),
    ("Provider", "not_a_stream"),
    ("Provider", "encoding"),
    ("Transport", "connection"),
    ("Internal", "not_allowed"),
    ("Timeout", "first_byte"),
    ("Timeout", "total"),
    ("Timeout", "idle"),
    ("Provider", "frame_too_large"),
    ("Provider", "call_too_large"),
    ("Provider", "not_utf8"),
    ("Provider", "in_stream_error"),
    ("Transport", "no_end"),
    ("Transport", "connection"),
];

/// Makes calls that fail at each location, and one that succeeds.
async fn fail_everywhere() {
    const SAY_SECRET: &str = "data: say said-secret\n\n";
    let _ = error_response("429 No\r\nx-request-id: said-secret", "said-secret").await;
    let _ = error_response("200 OK\r\ncontent-type: text/html", "said-secret").await;
    let compressed = "200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip";
    let _ = error_response(compressed, "said-secret").await;
    let _ = collect_steps(vec![raw("said-secret\r\n\r\n")], NO_TIMEOUT).await;
    let _ = collect(&remote("http://169.254.169.254/v1", NO_TIMEOUT)).await;
    let first = CallTimeouts {
        first_byte: SHORT,
        ..NO_TIMEOUT
    };
    let total = CallTimeouts {
        total: SHORT,
        ..NO_TIMEOUT
    };
    let idle = CallTimeouts {
        idle: SHORT,
        ..NO_TIMEOUT
    };
    let _ = collect_steps(vec![ServerStep::Hang], first).await;
    let _ = collect_steps(vec![ServerStep::Hang], total).await;
    let _ = collect_steps(vec![head(), chunk(SAY_SECRET), ServerStep::Hang], idle).await;
    let small = ModelResponseLimits {
        frame_bytes_max: 1_000,
        call_bytes_max: 10_000,
    };
    for flood in ["said-secret", "data: said-secret\n\n"] {
        let flood = ServerStep::Flood(flood.repeat(100).into_bytes());
        let test_server = TestServer::start(vec![head(), flood]).await;
        let _ = collect(&remote(&test_server.base, NO_TIMEOUT).with_limits(small)).await;
    }
    let bytes = b"data: said-secret \xff\n\n".to_vec();
    let _ = collect_steps(vec![head(), ServerStep::Chunk(bytes), end()], NO_TIMEOUT).await;
    let fail = chunk("data: fail said-secret\n\n");
    let _ = collect_steps(vec![head(), chunk(SAY_SECRET), fail, end()], NO_TIMEOUT).await;
    let _ = collect_steps(vec![head(), chunk(SAY_SECRET), end()], NO_TIMEOUT).await;
    let _ = collect_steps(vec![head(), chunk(SAY_SECRET)], NO_TIMEOUT).await;
    let success = chunk("data: stop\n\n");
    let _ = collect_steps(vec![head(), chunk(SAY_SECRET), success, end()], NO_TIMEOUT).await;
}

#[tokio::test]
async fn unsendable_request_error_has_its_location() {
    let http_transport = http_transport("http://localhost", &NO_TIMEOUT);
    let ask = |path: &str, header: &'static str| TransportRequest {
        provider: "local".into(),
        model: "big".into(),
        agent: "shop".into(),
        call: 1,
        user_text_sha: String::new(),
        path: path.into(),
        headers: vec![(header, "x".into())],
        body: bytes::Bytes::new(),
    };
    for (path, header, place) in [
        (".invalid/", "x-a", "address"),
        ("/say", "content-length", "header"),
    ] {
        let error = http_transport.open(ask(path, header)).await.map(|_| ());
        let error = error.expect_err("it is not sent");
        assert_eq!(
            (error.class, error.location),
            (LlmErrorClass::Internal, place)
        );
    }
}

#[tokio::test]
async fn connect_timeout_has_its_own_location() {
    // A port that accepts connections and does no TLS handshake.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port");
    let base = format!("https://{}", listener.local_addr().expect("bound"));
    let timeouts = CallTimeouts {
        connect: SHORT,
        ..NO_TIMEOUT
    };
    let error = collect(&remote(&base, timeouts)).await.remove(0);
    let error = error.expect_err("no connection");
    assert_eq!(
        (error.class, error.location),
        (LlmErrorClass::Timeout, "connect")
    );
}

#[tokio::test]
async fn error_has_what_the_provider_said_without_keys_and_quotations() {
    let body = json!({"error": {
        "type": "invalid_request_error",
        "code": "model_not_found",
        "message": format!("The model `gpt-9` does not exist for {KEY}: \"{}\"", "hello ".repeat(20)),
    }});
    let mut results = error_response("400 No", &body.to_string()).await;
    let error = results.remove(0).expect_err("it is refused");
    let fault = error.fault.expect("a fault");
    assert_eq!(
        (fault.provider.as_str(), fault.status),
        ("local", Some(400))
    );
    assert_eq!(fault.model, "local:big:8b");
    assert!(fault.url.starts_with("http://127.0.0.1:"), "{}", fault.url);
    assert!(fault.url.ends_with("/v1/say"), "{}", fault.url);
    assert_eq!(
        (fault.said.kind.as_str(), fault.said.code.as_str()),
        ("invalid_request_error", "model_not_found")
    );
    assert_eq!(
        fault.said.message,
        "The model `gpt-9` does not exist for ***: \"***\""
    );
}

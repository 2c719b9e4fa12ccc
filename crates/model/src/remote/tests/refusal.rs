//! Calls that are not answered: refusals, places that cannot be reached, and what is told of them.

use std::io::Write;
use std::sync::{Mutex, PoisonError};

use super::upstream::{chunk, end, head, raw};
use super::*;

async fn refused(head: &str, body: &str) -> Told {
    let length = body.len();
    let answer = format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\n\r\n{body}");
    says(vec![raw(&answer)], PATIENT).await
}

fn rate_limited(again: Again) -> Result<Delta, ModelError> {
    let class = LlmErrorClass::RateLimited;
    Err(ModelError::new(class, again))
}

#[tokio::test]
async fn a_provider_that_says_too_much_is_asked_again_when_it_says() {
    let after = |ms| [rate_limited(Again::After(Duration::from_millis(ms)))];
    let say = async |headers: &str| refused(&format!("429 No\r\n{headers}"), "{}").await;
    assert_eq!(say("x: y").await, [rate_limited(Again::Never)]);
    assert_eq!(say("retry-after: 7").await, after(7_000));
    assert_eq!(say("retry-after-ms: 1250").await, after(1_250));
    let date = "date: Fri, 13 Nov 2026 10:00:00 GMT\r\nretry-after: Fri, 13 Nov 2026 10:01:30 GMT";
    assert_eq!(say(date).await, after(90_000));
}

#[tokio::test]
async fn the_dialect_judges_every_status_but_success() {
    let wrong = || [never(LlmErrorClass::Provider)];
    for status in ["400 No", "401 No", "404 No", "304 No"] {
        assert_eq!(refused(status, "{}").await, wrong(), "{status}");
    }
    let broken = [passing(LlmErrorClass::Provider)];
    assert_eq!(refused("503 No", "{}").await, broken);
    // A redirect is a refusal: the key goes where the operator said and nowhere else.
    let mut elsewhere = Upstream::start(vec![head(), chunk("data: stop\n\n"), end()]).await;
    let redirect = format!("307 Go\r\nlocation: {}say", elsewhere.base);
    assert_eq!(refused(&redirect, "").await, wrong());
    let asked = elsewhere.asked.try_recv();
    assert!(asked.is_err(), "{asked:?}");
}

#[tokio::test]
async fn a_success_that_is_no_stream_of_events_is_none() {
    let wrong = [never(LlmErrorClass::Provider)];
    for kind in [
        "application/json",
        "text/event-streams",
        "text/html;x=text/event-stream",
    ] {
        let head = format!("200 OK\r\ncontent-type: {kind}");
        assert_eq!(refused(&head, "data: stop\n\n").await, wrong, "{kind}");
    }
    assert_eq!(refused("200 OK\r\nx: y", "data: stop\n\n").await, wrong);
    let packed = "200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip";
    assert_eq!(refused(packed, "data: stop\n\n").await, wrong);
    let shouted = "200 OK\r\ncontent-type: Text/Event-Stream ; charset=x";
    assert_eq!(refused(shouted, "data: stop\n\n").await, [stop(0.0)]);
}

#[tokio::test]
async fn g9_of_a_refusal_only_the_beginning_is_read_and_not_for_long() {
    // The dialect of the tests says so when it was shown exactly as much as may be.
    let large = [never(LlmErrorClass::Internal)];
    assert_eq!(refused("413 No", &"x".repeat(65_537)).await, large);
    assert_eq!(refused("413 No", &"x".repeat(9_000_000)).await, large);
    let small = [never(LlmErrorClass::Provider)];
    assert_eq!(refused("413 No", &"x".repeat(65_535)).await, small);
    // A body that does not end, in bytes or in time, or that breaks off.
    let head = || raw("HTTP/1.1 413 No\r\ntransfer-encoding: chunked\r\n\r\n");
    let flood = Part::Flood(vec![b'x'; 1_000]);
    assert_eq!(says(vec![head(), flood], PATIENT).await, large);
    let short = Timeouts {
        first_byte: SHORT,
        ..PATIENT
    };
    assert_eq!(
        says(vec![head(), chunk("x"), Part::Hang], short).await,
        small
    );
    assert_eq!(says(vec![head(), chunk("x")], PATIENT).await, small);
}

#[tokio::test]
async fn who_cannot_be_reached_may_be_another_time_and_who_may_not_never() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("bound"));
    drop(listener);
    let gone = told(&remote(&base, PATIENT)).await;
    assert_eq!(gone, [passing(LlmErrorClass::Transport)]);
    let inside = told(&remote("http://169.254.169.254/v1", PATIENT)).await;
    assert_eq!(inside, [never(LlmErrorClass::Internal)]);
    let no_http = says(vec![raw("hello\r\n\r\n")], PATIENT).await;
    assert_eq!(no_http, [passing(LlmErrorClass::Transport)]);
}

#[test]
fn a_base_url_is_an_address_and_nothing_else() {
    let dialer = Arc::new(Dialer::new(Options::default()).expect("a dialer"));
    let make = |base: &str, header: &str| {
        let headers = BTreeMap::from([(header.to_owned(), "x".to_owned())]);
        Live::new(Arc::clone(&dialer), base, &Tiny, None, &headers, &PATIENT).map(|_| ())
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
        assert_eq!(make(base, "x-a"), Err(BadProvider::Url), "{base}");
    }
    let bad = make("http://localhost", "content-length");
    assert_eq!(
        bad.map_err(|error| error.to_string()),
        Err("the header `content-length` is set by the server itself".into())
    );
}

#[tokio::test]
async fn a_path_cannot_lead_to_another_host() {
    let live = live("http://localhost", &PATIENT);
    let ask = Ask {
        provider: "local".into(),
        model: "big".into(),
        agent: "shop".into(),
        call: 1,
        user_text_sha: String::new(),
        path: ".invalid/".into(),
        headers: Vec::new(),
        body: bytes::Bytes::new(),
    };
    let opened = live.open(ask).await.map(|_| ());
    assert_eq!(opened, Err(LlmErrorClass::Internal.into()));
}

/// Where a test's log goes.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut page = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        page.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn g6_the_log_names_the_provider_and_shows_nothing_of_what_was_sent_or_said() {
    // Who listens is decided for the whole process, so the test runs in one of its own.
    const ALONE: &str = "TURNWIRE_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let mut other = std::process::Command::new(std::env::current_exe().expect("this test"));
        let name = module_path!().split_once("::").expect("a crate").1;
        let test = "g6_the_log_names_the_provider_and_shows_nothing_of_what_was_sent_or_said";
        other.args(["--exact", &format!("{name}::{test}")]);
        let run = other.env(ALONE, "1").output().expect("it ran");
        let said = String::from_utf8_lossy(&run.stdout);
        assert!(said.contains("1 passed"), "{said}");
        return;
    }
    let page = Page::default();
    let writer = page.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .init();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(fail_everywhere());
    let log = page.0.lock().unwrap_or_else(PoisonError::into_inner);
    let log = String::from_utf8_lossy(&log);
    let warned: Vec<&str> = log.lines().filter(|line| line.contains("WARN")).collect();
    assert_eq!(warned.len(), PLACES.len(), "{warned:#?}");
    for (line, (class, place)) in warned.iter().zip(PLACES) {
        for word in [
            "provider=local",
            "model=\"local:big:8b\"",
            &format!("class={class}"),
            &format!("place=\"{place}\""),
        ] {
            assert!(line.contains(word), "{word} in {line}");
        }
    }
    assert!(warned[0].contains("status=429"), "{}", warned[0]);
    for word in [KEY, "said-secret", "hello", "/v1/say"] {
        let line = log.lines().find(|line| line.contains(word));
        assert_eq!(line, None, "{word}");
    }
}

/// How the calls of `fail_everywhere` fail, in their order.
const PLACES: [(&str, &str); 14] = [
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

/// Calls that fail, each in another place, and one that goes well.
async fn fail_everywhere() {
    const SAID: &str = "data: say said-secret\n\n";
    let _ = refused("429 No\r\nx-request-id: said-secret", "said-secret").await;
    let _ = refused("200 OK\r\ncontent-type: text/html", "said-secret").await;
    let packed = "200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip";
    let _ = refused(packed, "said-secret").await;
    let _ = says(vec![raw("said-secret\r\n\r\n")], PATIENT).await;
    let _ = told(&remote("http://169.254.169.254/v1", PATIENT)).await;
    let first = Timeouts {
        first_byte: SHORT,
        ..PATIENT
    };
    let total = Timeouts {
        total: SHORT,
        ..PATIENT
    };
    let idle = Timeouts {
        idle: SHORT,
        ..PATIENT
    };
    let _ = says(vec![Part::Hang], first).await;
    let _ = says(vec![Part::Hang], total).await;
    let _ = says(vec![head(), chunk(SAID), Part::Hang], idle).await;
    let small = Limits {
        frame_bytes_max: 1_000,
        call_bytes_max: 10_000,
    };
    for flood in ["said-secret", "data: said-secret\n\n"] {
        let flood = Part::Flood(flood.repeat(100).into_bytes());
        let upstream = Upstream::start(vec![head(), flood]).await;
        let _ = told(&remote(&upstream.base, PATIENT).limits(small)).await;
    }
    let bytes = b"data: said-secret \xff\n\n".to_vec();
    let _ = says(vec![head(), Part::Chunk(bytes), end()], PATIENT).await;
    let fail = chunk("data: fail said-secret\n\n");
    let _ = says(vec![head(), chunk(SAID), fail, end()], PATIENT).await;
    let _ = says(vec![head(), chunk(SAID), end()], PATIENT).await;
    let _ = says(vec![head(), chunk(SAID)], PATIENT).await;
    let well = chunk("data: stop\n\n");
    let _ = says(vec![head(), chunk(SAID), well, end()], PATIENT).await;
}

#[tokio::test]
async fn what_cannot_be_sent_is_told_with_its_place() {
    let live = live("http://localhost", &PATIENT);
    let ask = |path: &str, header: &'static str| Ask {
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
        let unsent = live.open(ask(path, header)).await.map(|_| ());
        let unsent = unsent.expect_err("it is not sent");
        assert_eq!(
            (unsent.class, unsent.place),
            (LlmErrorClass::Internal, place)
        );
    }
}

#[tokio::test]
async fn a_connection_that_does_not_come_about_is_told_from_an_answer_that_does_not() {
    // A port that takes connections and shakes no hands.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port");
    let base = format!("https://{}", listener.local_addr().expect("bound"));
    let timeouts = Timeouts {
        connect: SHORT,
        ..PATIENT
    };
    let late = told(&remote(&base, timeouts)).await.remove(0);
    let late = late.expect_err("no connection");
    assert_eq!(
        (late.class, late.place),
        (LlmErrorClass::Timeout, "connect")
    );
}

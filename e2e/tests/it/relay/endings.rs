//! Exactly one terminal, whatever the upstream does (F13).

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use turnwire_e2e::chat::{code, events, until, whole, words};
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_event::Body;
use turnwire_testkit::chat::{Block, ChatSubmit};
use turnwire_testkit::server::ServerOptions;
use turnwire_testkit::upstream::{UpstreamStep as Step, stream};

use super::{completed, relay, relay_with, text};

/// What clients get for an answer, and the reason in the log.
struct Expected {
    terminal: &'static str,
    code: &'static str,
    reason: Option<&'static str>,
    words: &'static str,
}

const DONE: Expected = Expected {
    terminal: "completed",
    code: "",
    reason: None,
    words: "Hel",
};

const fn broken(code: &'static str, reason: &'static str, words: &'static str) -> Expected {
    Expected {
        terminal: "error",
        code,
        reason: Some(reason),
        words,
    }
}

const INTERNAL: &str = "INTERNAL_ERROR";
const UNAVAILABLE: &str = "MODEL_UNAVAILABLE";

fn large(bytes: usize) -> Step {
    Step::event(&text(&"x".repeat(bytes)))
}

/// Every answer, with what becomes of it.
fn cases() -> Vec<(&'static str, Vec<Step>, Expected)> {
    let head = Step::head;
    let hel = || Step::event(&text("Hel"));
    let end = || Step::event(&completed());
    let malformed = |bytes: &[u8]| vec![head(), hel(), Step::Bytes(bytes.to_vec()), end()];
    let failed = json!({"type": "error", "error": {"code": "RATE_LIMIT_ERROR"}});
    let incomplete = broken(INTERNAL, "upstream_incomplete", "Hel");
    let refused = |status| Step::response(status, "", "java.lang.null pointer at db-7.internal");
    vec![
        ("whole", stream(&[text("Hel"), completed()]), DONE),
        ("no sentinel", vec![head(), hel(), end()], DONE),
        (
            "two terminals",
            vec![head(), hel(), end(), end(), Step::event(&failed)],
            DONE,
        ),
        (
            "text after the terminal",
            vec![head(), hel(), end(), Step::event(&text("lo"))],
            DONE,
        ),
        (
            "garbage after the terminal",
            vec![head(), hel(), end(), Step::Bytes(b"data: {{{\n\n".to_vec())],
            DONE,
        ),
        (
            "unknown types",
            vec![
                head(),
                Step::event(&json!({"type": "weather"})),
                hel(),
                end(),
            ],
            DONE,
        ),
        (
            "end before its start",
            vec![
                head(),
                Step::event(&json!({"type": "tool_call_end", "id": "c9"})),
                hel(),
                end(),
            ],
            DONE,
        ),
        (
            "error",
            vec![head(), hel(), Step::event(&failed), end()],
            Expected {
                terminal: "error",
                code: "RATE_LIMIT_ERROR",
                reason: None,
                words: "Hel",
            },
        ),
        (
            "unknown error",
            vec![
                head(),
                hel(),
                Step::event(&json!({"type": "error", "error": "null pointer at db-7.internal"})),
            ],
            Expected {
                terminal: "error",
                code: INTERNAL,
                reason: None,
                words: "Hel",
            },
        ),
        ("no terminal", vec![head(), hel()], incomplete),
        (
            "sentinel without a terminal",
            stream(&[text("Hel")]),
            broken(INTERNAL, "upstream_incomplete", "Hel"),
        ),
        (
            "half a frame",
            vec![head(), hel(), Step::Bytes(b"data: {\"type\":\"te".to_vec())],
            broken(INTERNAL, "upstream_incomplete", "Hel"),
        ),
        (
            "reset",
            vec![head(), hel(), Step::wait(100), Step::Reset],
            broken(INTERNAL, "upstream_incomplete", "Hel"),
        ),
        (
            "not JSON",
            malformed(b"data: Hello\n\n"),
            broken(INTERNAL, "upstream_malformed", "Hel"),
        ),
        (
            "no object",
            malformed(b"data: [1]\n\n"),
            broken(INTERNAL, "upstream_malformed", "Hel"),
        ),
        (
            "text without content",
            malformed(b"data: {\"type\":\"text\"}\n\n"),
            broken(INTERNAL, "upstream_malformed", "Hel"),
        ),
        (
            "not UTF-8",
            malformed(b"data: {\"type\":\"text\",\"content\":\"\xff\"}\n\n"),
            broken(INTERNAL, "upstream_malformed", "Hel"),
        ),
        (
            "10 MB frame",
            vec![head(), hel(), large(10 << 20), end()],
            broken(INTERNAL, "upstream_malformed", "Hel"),
        ),
        (
            "500",
            vec![refused(500)],
            broken(UNAVAILABLE, "upstream_unavailable", ""),
        ),
        (
            "404",
            vec![refused(404)],
            broken(UNAVAILABLE, "upstream_unavailable", ""),
        ),
        (
            "429",
            vec![refused(429)],
            broken("RATE_LIMIT_ERROR", "upstream_unavailable", ""),
        ),
        (
            "redirect",
            vec![Step::response(307, "location: http://127.0.0.1:9/\r\n", "")],
            broken(UNAVAILABLE, "upstream_unavailable", ""),
        ),
        (
            "no stream",
            vec![Step::response(
                200,
                "content-type: application/json\r\n",
                "{}",
            )],
            broken(UNAVAILABLE, "upstream_unavailable", ""),
        ),
        (
            "no HTTP",
            vec![Step::Bytes(b"hello\r\n\r\n".to_vec())],
            broken(UNAVAILABLE, "upstream_unavailable", ""),
        ),
        (
            "nothing",
            vec![],
            broken(UNAVAILABLE, "upstream_unavailable", ""),
        ),
        (
            "reset before the head",
            vec![Step::Reset],
            broken(UNAVAILABLE, "upstream_unavailable", ""),
        ),
    ]
}

// F13, S1-103, S1-118, S1-119, S1-142
#[tokio::test]
async fn turn_ends_once_whatever_the_upstream_does() {
    let (upstream, fixture) = relay(Vec::new()).await;
    for (name, steps, expected) in cases() {
        let before = upstream.requests().len();
        upstream.answer_next(steps);
        let question = ChatSubmit::new(name).session(fixture.session);
        let (turn, frames) = whole(&fixture.api, name, &question).await;
        assert_eq!(
            upstream.requests().len(),
            before + 1,
            "{name}: nothing is asked twice"
        );
        let last = frames.last().map(Block::event);
        assert_eq!(
            last,
            Some(expected.terminal),
            "{name}: {:?}",
            events(&frames)
        );
        let terminals = frames.iter().filter(|frame| frame.is_terminal());
        assert_eq!(terminals.count(), 1, "{name}");
        assert_eq!(code(&frames), expected.code, "{name}");
        assert_eq!(words(&frames), expected.words, "{name}");
        let all = format!("{frames:?}");
        assert!(!all.contains("db-7"), "{name}: {all}");
        let row = fixture.api.turn(turn).await.expect("a turn");
        let reason = row["terminal"]["payload"]["reason"].as_str();
        assert_eq!(reason, expected.reason, "{name}");
    }
    until("no connection is left", || async {
        upstream.open_connections() == 0
    })
    .await;
    let metrics = fixture.api.get("/metrics").await.expect("an answer").body;
    let discarded = metrics
        .lines()
        .find_map(|line| line.strip_prefix("turnwire_relay_discarded_after_terminal_total "));
    // Two terminals, a text, garbage, and the `completed` behind an error.
    assert_eq!(discarded, Some("5"));
    fixture.check_history().await;
}

// F13
#[tokio::test]
async fn tls_error_and_absent_upstream_end_the_turn() {
    let (upstream, fixture) = relay(stream(&[completed()])).await;
    drop(upstream);
    let (_, frames) = whole(&fixture.api, "nobody", &ChatSubmit::new("hi")).await;
    assert_eq!(
        (frames.last().map(Block::event), code(&frames)),
        (Some("error"), UNAVAILABLE)
    );
    assert!(!format!("{frames:?}").contains("127.0.0.1"));
    // A TLS client meets a server that does not speak TLS.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let https = format!("https://{address}/turns");
    let options = ServerOptions::default().set("relay", "upstream", https);
    let fixture = ServerFixture::new(options).await;
    let (_, frames) = whole(&fixture.api, "tls", &ChatSubmit::new("hi")).await;
    assert_eq!(
        (frames.last().map(Block::event), code(&frames)),
        (Some("error"), UNAVAILABLE)
    );
    assert!(fixture.server.stderr().contains("cause=\"unreachable\""));
}

/// No client is closed for its lag: on a busy machine one that reads may be blocked for a moment.
fn any_lag(options: ServerOptions) -> ServerOptions {
    options.set("stream", "queue_max", 200_000)
}

// S1-116
#[tokio::test]
async fn order_is_kept_over_ten_thousand_events() {
    let pieces: Vec<String> = (0..10_000).map(|n| format!("{n} ")).collect();
    let blocks = pieces.chunks(100).flat_map(|pieces| {
        let events = pieces.iter().map(|piece| Step::event(&text(piece)));
        events.chain([Step::wait(10)])
    });
    let steps = [Step::head()].into_iter().chain(blocks);
    let steps = steps.chain([Step::event(&completed())]).collect();
    let (_upstream, fixture) = relay_with(steps, any_lag).await;
    let question = ChatSubmit::new("hi").session(fixture.session);
    let (_, frames) = whole(&fixture.api, "long", &question).await;
    assert_eq!(words(&frames), pieces.concat());
    fixture.check_history().await;
}

// S1-116, D-75
#[tokio::test]
async fn burst_that_overtakes_the_ring_reaches_a_client_that_reads() {
    let pieces: Vec<String> = (0..20_000).map(|n| format!("{n} ")).collect();
    let events = pieces.iter().map(|piece| text(piece));
    let burst: String = events.map(|event| format!("data: {event}\n\n")).collect();
    let steps = vec![
        Step::head(),
        Step::Bytes(burst.into_bytes()),
        Step::event(&completed()),
    ];
    for ring_events in [64, 4_096] {
        let small_ring =
            |options: ServerOptions| any_lag(options).set("stream", "ring_events", ring_events);
        let (_upstream, fixture) = relay_with(steps.clone(), small_ring).await;
        let question = ChatSubmit::new("hi").session(fixture.session);
        for at_once in 0..4 {
            let (_, frames) = whole(&fixture.api, &format!("burst {at_once}"), &question).await;
            assert!(
                words(&frames) == pieces.concat(),
                "{ring_events}: {at_once}"
            );
            assert_eq!(frames.last().map(Block::event), Some("completed"));
        }
        fixture.check_history().await;
    }
}

// reliability.md F13
#[tokio::test]
async fn answer_with_more_text_than_any_model_writes_fails() {
    let piece = text(&"x".repeat(500));
    let mut events = vec![piece; 5];
    events.push(completed());
    let bound = |options: ServerOptions| options.set("relay", "text_bytes_max", 2_000);
    let (_upstream, fixture) = relay_with(stream(&events), bound).await;
    let question = ChatSubmit::new("hi").session(fixture.session);
    let (turn, frames) = whole(&fixture.api, "long", &question).await;
    assert_eq!(words(&frames).len(), 2_000);
    assert_eq!(
        (frames.last().map(Block::event), code(&frames)),
        (Some("error"), INTERNAL)
    );
    let row = fixture.api.turn(turn).await.expect("a turn");
    assert_eq!(
        row["terminal"]["payload"]["reason"], "upstream_malformed",
        "{row}"
    );
    assert!(fixture.server.stderr().contains("cause=\"too_large\""));
    fixture.check_history().await;
}

// D-79
#[tokio::test]
async fn tools_left_open_are_closed_before_the_terminal() {
    let start = json!({"type": "tool_call_start", "tool_call": {"id": "c1", "name": "search", "type": "mcp"}});
    for (name, steps) in [
        ("completed", stream(&[start.clone(), completed()])),
        ("broken", vec![Step::head(), Step::event(&start)]),
    ] {
        let (_upstream, fixture) = relay(steps).await;
        let question = ChatSubmit::new("hi").session(fixture.session);
        let (_, frames) = whole(&fixture.api, name, &question).await;
        let names = events(&frames);
        let at = |event: &str| names.iter().position(|known| *known == event);
        assert!(at("tool_call") < at("tool_completed"), "{name}: {names:?}");
        assert!(
            at("tool_completed") < Some(names.len() - 1),
            "{name}: {names:?}"
        );
        let log = fixture.log().await;
        let failed = log
            .iter()
            .filter(|event| matches!(&event.body, Body::ToolFailed(_)));
        assert_eq!(failed.count(), 1, "{name}");
        fixture.check_history().await;
    }
}

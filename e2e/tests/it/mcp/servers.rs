//! Tools of MCP servers in turns of the real server: what clients see, a cancel during a call,
//! servers that exit or never start, a changed pack, and remaining processes after shutdown.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use turnwire_e2e::chat::{MetricsSnapshot, until};
use turnwire_e2e::data_service::FakeDataService;
use turnwire_e2e::engine::{EngineFixture, of, only};
use turnwire_e2e::fairness::memory::peak_mib;
use turnwire_e2e::mcp::{McpScript, engine, pack, processes, program, said, script, service};
use turnwire_testkit::journal::Journal;
use turnwire_testkit::mcp::{self, McpHttpServer, is_cancelled, journal};
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::server::{ServerOptions, TestServer};

/// A folder with the journal of an MCP server.
struct McpFixture(tempfile::TempDir);

impl McpFixture {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn journal(&self) -> PathBuf {
        self.0.path().join("journal")
    }

    /// The server as a program in `mode`.
    fn program(&self, mode: &str) -> Value {
        program(&mcp::command(mode, &self.journal()))
    }

    fn count(&self, method: &str) -> usize {
        let got = journal(&self.journal());
        got.iter().filter(|got| got["method"] == method).count()
    }

    /// Whether a program of this desk runs.
    fn runs(&self) -> bool {
        !processes(&self.journal().display().to_string()).is_empty()
    }
}

fn says() -> Vec<McpScript<'static>> {
    vec![
        ("echo", "small_echo", json!({"text": "a word of theirs"})),
        ("slow", "small_slow", json!({"seconds": 2.0, "steps": 8})),
        ("long", "small_slow", json!({"seconds": 600, "steps": 6000})),
        ("fail", "small_fail", json!({})),
        ("die", "small_die", json!({})),
        ("wrong", "small_echo", json!({"text": 5})),
        ("objects", "small_big", json!({"objects": 700_000})),
    ]
}

// S1-029
#[tokio::test]
async fn mcp_tool_turn_reports_session_and_progress() {
    let desk = McpFixture::new();
    let engine = engine("small", &desk.program("good"), &says()).await;
    let (session, reply, shown) = said(&engine, "slow").await;
    assert!(shown.contains("slowly done"), "{shown}");
    assert_eq!(reply.count("mcp_session_start"), 1);
    // Eight steps in two seconds, two of them in a second, and the last.
    let steps: Vec<_> = reply.of("mcp_session_progress").collect();
    assert!((2..=8).contains(&steps.len()), "{:?}", reply.labels());
    let last = steps[steps.len() - 1];
    assert_eq!(
        (
            last.field("server"),
            last.field("progress").as_f64(),
            last.field("total").as_f64()
        ),
        (&json!("small"), Some(8.0), Some(8.0))
    );
    reply.assert_order(&[
        "tool_call small_slow",
        "mcp_session_start",
        "mcp_session_progress",
        "tool_completed small_slow",
    ]);
    let events = engine.log(session).await;
    let called = &only(&events, "tool.called")["payload"];
    assert_eq!(called["tool_type"], "mcp", "{called}");
    assert_eq!(of(&events, "mcp.session_started").count(), 0, "live only");
    let metrics = MetricsSnapshot::read(&engine.api).await;
    assert_eq!(metrics.sum("turnwire_mcp_server_up"), 1.0);
    assert_eq!(
        metrics.by("turnwire_mcp_calls_total", "outcome").get("ok"),
        Some(&1)
    );
    assert_eq!(desk.count("tools/list"), 2, "s2_001: never in a turn");
}

#[tokio::test]
async fn mcp_failures_are_typed_and_texts_reach_only_the_model() {
    let desk = McpFixture::new();
    let engine = engine("small", &desk.program("good"), &says()).await;
    for (word, class, expected) in [
        ("fail", "internal", "it does not work"),
        ("wrong", "invalid_input", "The input does not fit"),
        ("die", "internal", "disconnected during the call"),
    ] {
        let (session, reply, shown) = said(&engine, word).await;
        assert!(shown.contains(expected), "{word}: {shown}");
        let events = engine.log(session).await;
        let failed = &only(&events, "tool.failed")["payload"];
        assert_eq!(failed["error_class"], class, "{failed}");
        assert_eq!(only(&events, "turn.completed")["payload"]["status"], "ok");
        // The model quotes what it was shown; nothing else says it.
        for event in events
            .iter()
            .filter(|event| event["type"] != "message.complete")
        {
            assert!(!event.to_string().contains("it does not work"), "{event}");
        }
        let tool = reply.of("tool_completed").chain(reply.of("tool_call"));
        for frame in tool {
            assert!(!format!("{frame:?}").contains("it does not work"));
        }
    }
    // The one that died is there again.
    until("it is back", || async {
        let (_, _, shown) = said(&engine, "echo").await;
        shown.matches("a word of theirs").count() > 1
    })
    .await;
}

/// Memory for a message of 6 MB: a few copies of its text. As values its objects take 800 MiB.
const MESSAGE_MIB_MAX: u64 = 150;

#[tokio::test]
async fn result_of_many_objects_is_refused_as_text() {
    for over_http in [false, true] {
        let desk = McpFixture::new();
        let http = over_http.then(|| McpHttpServer::start("good", &desk.journal()));
        let server = match &http {
            Some(http) => service(&http.url),
            None => desk.program("good"),
        };
        let engine = engine("small", &server, &says()).await;
        let (_, _, shown) = said(&engine, "echo").await;
        assert!(shown.contains("a word of theirs"), "{shown}");
        let peak = || peak_mib(engine.server.pid()).expect("a server");
        let before = peak();
        let (_, _, shown) = said(&engine, "objects").await;
        assert!(shown.contains("too large to be read"), "{shown}");
        let grown = peak() - before;
        println!("over_http={over_http}: {before} MiB, then {grown} MiB more");
        assert!(grown < MESSAGE_MIB_MAX, "{grown} MiB");
    }
}

#[tokio::test]
async fn cancel_reaches_mcp_server_over_pipes_and_http() {
    for over_http in [false, true] {
        let desk = McpFixture::new();
        let http = over_http.then(|| McpHttpServer::start("good", &desk.journal()));
        let server = match &http {
            Some(http) => service(&http.url),
            None => desk.program("good"),
        };
        let engine = engine("small", &server, &says()).await;
        let accepted = engine.api.submit(engine.session, "long").await;
        let turn = accepted.expect("an answer").turn_id;
        until("the server has the call", || async {
            desk.count("tools/call") == 1
        })
        .await;
        let started = Instant::now();
        engine.api.cancel(turn).await.expect("an answer");
        let ended = engine.api.ended(turn).await.expect("an end");
        assert_eq!(ended["terminal"]["type"], "turn.cancelled", "{ended}");
        println!("cancelled after {:?}", started.elapsed());
        until("the server is told", || async {
            is_cancelled(&desk.journal())
        })
        .await;
        let (_, _, shown) = said(&engine, "echo").await;
        assert!(shown.contains("a word of theirs"), "{shown}");
    }
}

/// What our server says when it does not come up with this MCP server.
async fn refused(server: &Value) -> String {
    let ccs = FakeDataService::start().await;
    let pack = pack(
        TestPack::market(&ccs.url()).script(&script(&says())),
        "small",
        server,
    );
    let failed = TestServer::try_start(ServerOptions::pack(pack), Journal::new()).await;
    failed.map(|_| ()).expect_err("it does not come up").stderr
}

#[tokio::test]
async fn unusable_mcp_server_is_named_at_start() {
    let desk = McpFixture::new();
    let mut never = desk.program("never");
    never["start_timeout_ms"] = json!(1_500);
    let nowhere = service("http://127.0.0.1:9/mcp");
    for (server, expected) in [
        (
            program(&["no-such-program-9".to_owned()]),
            "there is no such program",
        ),
        (
            desk.program("dies"),
            "its program ended before it answered with code 7",
        ),
        (never, "it did not answer within 1500 ms"),
        (desk.program("endless"), "without the end of a message"),
        (desk.program("cursor"), "more than 8 pages"),
        (nowhere, "no server answers at its `url`"),
    ] {
        let error = refused(&server).await;
        assert!(error.contains("tools.yaml"), "{error}");
        assert!(error.contains("the MCP server `small`"), "{error}");
        assert!(error.contains(expected), "{expected}: {error}");
        assert!(!error.contains("panicked"), "{error}");
    }
    until("nothing of them is left", || async { !desk.runs() }).await;
}

// S2-001
#[tokio::test]
async fn reload_keeps_mcp_server_and_rejects_bad_pack() {
    let desk = McpFixture::new();
    let server = desk.program("good");
    let mut engine = engine("small", &server, &says()).await;
    let changed = |engine: &EngineFixture, server: &Value, words: &str| {
        let base = TestPack::market(&engine.ccs.url()).script(&script(&says()));
        pack(base, "small", server).put("prompts/persona.md", words)
    };
    let good = changed(&engine, &server, "You are NEW.\n");
    engine.server.repack(good);
    until("the change is taken", || async {
        let (_, _, shown) = said(&engine, "echo").await;
        shown.contains("You are NEW.")
    })
    .await;
    assert_eq!(desk.count("initialize"), 1, "the connection was kept");

    let other = McpFixture::new();
    let bad = changed(&engine, &other.program("dies"), "You are WORSE.\n");
    engine.server.repack(bad);
    until("the change is refused", || async {
        engine
            .server
            .stderr()
            .contains("the MCP server `small` cannot be used")
    })
    .await;
    let (_, _, shown) = said(&engine, "echo").await;
    assert!(
        shown.contains("You are NEW.") && shown.contains("a word of theirs"),
        "{shown}"
    );

    // Another definition is another server, and the old one is left.
    let third = changed(&engine, &other.program("good"), "You are THIRD.\n");
    engine.server.repack(third);
    until("the change is taken", || async {
        let (_, _, shown) = said(&engine, "echo").await;
        shown.contains("You are THIRD.")
    })
    .await;
    until("the old one is left", || async { !desk.runs() }).await;
    assert!(other.runs());
}

// G7
#[tokio::test]
async fn no_mcp_process_outlives_the_server() {
    for hard in [false, true] {
        let desk = McpFixture::new();
        let mut engine = engine("small", &desk.program("good"), &says()).await;
        let accepted = engine.api.submit(engine.session, "long").await;
        accepted.expect("an answer");
        until("the server has the call", || async {
            desk.count("tools/call") == 1
        })
        .await;
        assert!(desk.runs());
        if hard {
            engine.server.kill().await;
        } else {
            engine.server.sigterm();
            engine.server.wait(Duration::from_secs(60)).await;
        }
        let started = Instant::now();
        until("nothing is left", || async { !desk.runs() }).await;
        println!(
            "nothing is left after {:?}, hard: {hard}",
            started.elapsed()
        );
        // The documentation says 6 s; a busy machine may take longer.
        assert!(
            started.elapsed() < Duration::from_secs(12),
            "{:?}",
            started.elapsed()
        );
    }
}

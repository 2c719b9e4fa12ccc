//! Limits that owners share: turns in flight, memory of rings, tokens, connections, descriptors. What
//! is above a limit gets 429 with `Retry-After`, and one owner at its limit delays no other.

use std::sync::Mutex;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use turnwire_e2e::chat::{MetricsSnapshot, raw, until};
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_event::SessionId;
use turnwire_testkit::api::{ApiClient, ApiResponse};
use turnwire_testkit::chat::{ChatStream, ChatSubmit};
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{ServerOptions, TestServer};
use turnwire_testkit::watch::{SubscribeOptions, WatchClient};

fn options() -> ServerOptions {
    let script = ModelScript::new()
        .on("^stall", [ScriptStep::text("wait"), ScriptStep::stall()])
        .on("", [ScriptStep::text("yes")]);
    ServerOptions::script(script)
}

fn as_principal(api: &ApiClient, name: &str) -> ApiClient {
    api.clone().with("x-turnwire-principal", name)
}

#[track_caller]
fn assert_limited(answer: &ApiResponse, limit: usize) {
    assert_eq!(answer.status, 429, "{}", answer.body);
    assert_eq!(answer.header("content-type"), "application/problem+json");
    assert_eq!(answer.header("retry-after"), "1");
    let problem = answer.json();
    assert_eq!(problem["code"], "too_many_requests", "{problem}");
    assert_eq!(problem["limit"], limit, "{problem}");
}

async fn submit_new(api: &ApiClient, message: &str) -> ApiResponse {
    let session = api.create().await.expect("a session");
    api.try_submit(session, message).await.expect("an answer")
}

// F8
#[tokio::test]
async fn running_turns_are_bounded_per_owner_and_in_all() {
    let options = options()
        .set("turn", "running_max", 5)
        .set("turn", "running_max_per_owner", 3)
        .set("turn", "queued_max_per_owner", 2);
    let server = TestServer::start(options).await;
    let (ann, bob) = (
        as_principal(&server.api(), "ann"),
        as_principal(&server.api(), "bob"),
    );
    let mut sessions = Vec::new();
    let mut turns = Vec::new();
    for _ in 0..3 {
        let session = ann.create().await.expect("a session");
        turns.push(ann.submit(session, "stall").await.expect("a turn").turn_id);
        sessions.push(session);
    }
    assert_limited(&submit_new(&ann, "stall").await, 3);
    let chat = ChatStream::submit(&ann, "above", &ChatSubmit::new("hi")).await;
    assert_eq!(chat.expect_err("refused").status(), 429);
    // Others are not affected, up to the limit of all.
    for _ in 0..2 {
        assert_eq!(submit_new(&bob, "stall").await.status, 202);
    }
    assert_limited(&submit_new(&bob, "stall").await, 5);
    // A queue takes turns up to its own bound; they start when a slot is free.
    let mut queued = Vec::new();
    for session in &sessions[..2] {
        let path = format!("/sessions/{session}/turns");
        let body = json!({"message": "next", "on_busy": "enqueue"});
        let answer = ann.post(&path, body).await.expect("an answer");
        assert_eq!(answer.status, 202, "{}", answer.body);
        let id = answer.json()["turn_id"].as_str().expect("an id").to_owned();
        queued.push(id.parse().expect("a turn id"));
    }
    let path = format!("/sessions/{}/turns", sessions[2]);
    let body = json!({"message": "next", "on_busy": "enqueue"});
    assert_limited(&ann.post(&path, body).await.expect("an answer"), 2);
    for turn in turns {
        ann.cancel(turn).await.expect("an answer");
    }
    for turn in queued {
        let row = ann.ended(turn).await.expect("a turn");
        assert_eq!(row["state"], "completed", "{row}");
    }
    until("a new turn is accepted", || async {
        submit_new(&ann, "hi").await.status == 202
    })
    .await;
    let metrics = MetricsSnapshot::read(&server.api()).await;
    assert!(metrics.sum("turnwire_limit_refused_total") >= 4.0);
}

fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    kib.expect("its memory")
}

// F8, LAW-3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rings_stay_within_their_budget_and_no_event_is_lost() {
    const TURNS: usize = 120;
    const BUDGET: u64 = 2 << 20;
    let words = "some words that fill the memory of a ring ".repeat(100);
    let story = [ScriptStep::slow(&words, 2, 0), ScriptStep::stall()];
    let script = ModelScript::new()
        .on("^story", story)
        .on("", [ScriptStep::text("yes")]);
    let options = ServerOptions::script(script).set("stream", "rings_bytes", BUDGET);
    let fixture = ServerFixture::new(options).await;
    let mut watcher = fixture.watch("watcher", SubscribeOptions::live()).await;
    let before = resident_kib(fixture.server.pid());
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        let session = fixture.api.create().await.expect("a session");
        let accepted = fixture.api.submit(session, "story").await.expect("a turn");
        turns.push((session, accepted.turn_id));
    }
    let watched = fixture.submit("story").await;
    // Each story has 2,100 deltas. Without a budget of rings these turns take 240 MB, with it 50.
    until("all stories are told", || async {
        let mut told = 0;
        for (session, _) in &turns {
            let answer = fixture
                .api
                .get(&format!("/sessions/{session}/messages"))
                .await;
            let body = answer.expect("an answer").body;
            told += usize::from(body.len() > words.len());
        }
        told == TURNS
    })
    .await;
    let after = resident_kib(fixture.server.pid());
    assert!(after < before + 120_000, "from {before} to {after} KiB");
    until("the gauge shows the rings", || async {
        let metrics = MetricsSnapshot::read(&fixture.api).await;
        let bytes = metrics.sum("turnwire_session_rings_bytes");
        bytes > 0.0
            && bytes <= BUDGET as f64
            && metrics.sum("turnwire_session_rings_evicted_total") > 0.0
    })
    .await;
    // A late client gets the whole story from the log, the watcher had it live.
    let (late_session, late_turn) = turns[0];
    let late = WatchClient::connect(&fixture.api, "late", late_session).await;
    let mut late = late.expect("a connection");
    let snapshot = SubscribeOptions::snapshot();
    late.subscribed(&snapshot)
        .await
        .expect("an acknowledgement");
    fixture.api.cancel(late_turn).await.expect("an answer");
    late.turn(late_turn).await.expect("the end of the turn");
    fixture.api.cancel(watched).await.expect("an answer");
    watcher.turn(watched).await.expect("the whole turn");
    fixture.check_history().await;
}

/// Submits a turn, and returns the input tokens of its model call when it has ended.
async fn input_tokens(api: &ApiClient, session: SessionId, message: &str) -> u64 {
    let accepted = api.submit(session, message).await.expect("a turn");
    let ended = api.ended(accepted.turn_id).await.expect("an end");
    let payload = &ended["terminal"]["payload"];
    assert_eq!(payload["status"], "ok", "{ended}");
    payload["usage"]["input_tokens"].as_u64().expect("a count")
}

// F8
// serial: compares the server's memory before and after
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_stay_within_their_budget_and_turns_have_theirs() {
    const SESSIONS: usize = 110;
    let options = options()
        .set("session", "history_cache_bytes", 4 << 20)
        .set("stream", "rings_bytes", 1 << 20);
    let server = TestServer::start(options).await;
    let api = server.api();
    let input = "x".repeat(1_000_000);
    let mut sessions = Vec::new();
    let mut before = 0;
    for number in 0..SESSIONS {
        // Caches of the process are filled before its memory is counted; that of the database takes 64 MB.
        if number == 60 {
            before = resident_kib(server.pid());
        }
        let session = api.create().await.expect("a session");
        input_tokens(&api, session, &input).await;
        sessions.push(session);
    }
    // 50 histories of 1 MB.
    let after = resident_kib(server.pid());
    assert!(after < before + 30_000, "from {before} to {after} KiB");
    // The first is cached, the last is read from the database. A token has four bytes.
    for session in [sessions[0], sessions[SESSIONS - 1]] {
        for turn in 0..2 {
            let tokens = input_tokens(&api, session, "and now?").await;
            assert!(tokens > 240_000, "turn {turn}: {tokens} tokens");
        }
    }
}

#[tokio::test]
async fn attach_tokens_are_shared_by_owners() {
    let options = options().set("stream", "tokens_max_per_owner", 5);
    let server = TestServer::start(options).await;
    let (ann, bob) = (
        as_principal(&server.api(), "ann"),
        as_principal(&server.api(), "bob"),
    );
    let session = ann.create().await.expect("a session");
    let path = format!("/sessions/{session}");
    for _ in 0..5 {
        assert_eq!(ann.get(&path).await.expect("an answer").status, 200);
    }
    assert_limited(&ann.get(&path).await.expect("an answer"), 5);
    let other = bob.create().await.expect("a session");
    bob.attach(other).await.expect("a token");
}

#[tokio::test]
async fn connections_are_shared_by_owners() {
    let options = options().set("http", "connections_max_per_owner", 3);
    let server = TestServer::start(options).await;
    let (ann, bob) = (
        as_principal(&server.api(), "ann"),
        as_principal(&server.api(), "bob"),
    );
    let session = ann.create().await.expect("a session");
    let attached = ann.attach(session).await.expect("a token");
    let url = attached["ws_url"].as_str().expect("an address");
    let open = Mutex::new(Vec::new());
    for number in 0..3 {
        // The place of the request for the token is free again just after its answer was read.
        until("a connection", || async {
            let client = WatchClient::connect(&ann, &format!("client {number}"), session).await;
            let is_open = client.is_ok();
            open.lock().expect("a lock").extend(client);
            is_open
        })
        .await;
    }
    let above = WatchClient::open(&ann, "above", session, url, None).await;
    assert_eq!(above.expect_err("refused").status, 429);
    assert_limited(&ann.get("/sessions").await.expect("an answer"), 3);
    let other = bob.create().await.expect("a session");
    let client = WatchClient::connect(&bob, "bob", other).await;
    client.expect("a connection");
    drop(open);
    // The token of the refused client is still valid.
    until("the connection is accepted", || async {
        let client = WatchClient::open(&ann, "again", session, url, None).await;
        client.is_ok()
    })
    .await;
}

/// A request whose body is not complete: its connection is busy.
async fn half_sent(server: &TestServer, owner: usize) -> TcpStream {
    let mut socket = TcpStream::connect(server.addr())
        .await
        .expect("a connection");
    let head = format!(
        "POST /sessions HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\
         x-turnwire-principal: owner-{owner}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{{",
        server.addr()
    );
    // The server may have refused it already.
    let _ = socket.write_all(head.as_bytes()).await;
    socket
}

async fn read_answer(socket: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let read = socket.read_to_end(&mut answer);
    let read = tokio::time::timeout(Duration::from_secs(60), read).await;
    assert!(read.is_ok(), "a connection hangs");
    String::from_utf8_lossy(&answer).into_owned()
}

// G9
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_above_the_descriptors_are_refused_at_once() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).expect("room for the clients");
    let options = ServerOptions {
        open_files_max: Some(1_024),
        ..options().set("http", "body_timeout_ms", 300_000)
    };
    let server = TestServer::start(options).await;
    let stderr = server.stderr();
    assert!(stderr.contains("limit of open files is low"), "{stderr}");
    let mut sockets = Vec::new();
    for n in 0..1_200 {
        sockets.push(half_sent(&server, n % 8).await);
    }
    let mut accepted = Vec::new();
    let mut refused = 0;
    for mut socket in sockets {
        // Refused connections are closed by the server, the others wait for their body.
        let mut first = [0; 12];
        let read = tokio::time::timeout(Duration::from_millis(20), socket.peek(&mut first)).await;
        match read {
            Err(_) => accepted.push(socket),
            Ok(_) => {
                let answer = read_answer(&mut socket).await;
                assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
                assert!(answer.contains("\r\nretry-after: 1\r\n"), "{answer}");
                assert!(answer.contains("application/problem+json"), "{answer}");
                refused += 1;
            }
        }
    }
    assert!(refused >= 200 && accepted.len() >= 100, "{refused} refused");
    // Those that are open still work, and make room for new ones.
    for mut socket in accepted {
        socket.write_all(b"}").await.expect("the rest of the body");
        let answer = read_answer(&mut socket).await;
        assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    }
    until("a new connection is served", || async {
        let answer = server.api().get("/healthz").await;
        answer.is_ok_and(|answer| answer.status == 200)
    })
    .await;
    let lines = server.stderr();
    let lines = lines.matches("all connections are taken").count();
    assert!(
        (1..20).contains(&lines),
        "{lines} lines for {refused} refusals"
    );
}

#[tokio::test]
async fn idle_connections_keep_nobody_out() {
    let options =
        options()
            .set("http", "connections_max", 20)
            .set("http", "header_timeout_ms", 600_000);
    let server = TestServer::start(options).await;
    let mut idle = Vec::new();
    for number in 0..20 {
        let mut socket = TcpStream::connect(server.addr())
            .await
            .expect("a connection");
        if number % 2 == 0 {
            socket
                .write_all(b"GET / HTTP/1.1\r\nhost: ")
                .await
                .expect("half a head");
        }
        idle.push(socket);
    }
    // Also while idle connections go on arriving.
    for _ in 0..50 {
        for _ in 0..5 {
            let socket = TcpStream::connect(server.addr()).await;
            idle.push(socket.expect("a connection"));
        }
        let answer = server.api().get("/sessions").await.expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
}

#[tokio::test]
async fn unreadable_requests_get_a_problem() {
    let server = TestServer::start(options()).await;
    let many: Vec<String> = (0..200).map(|number| format!("x-{number}: 1")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let long = format!("x-long: {}", "x".repeat(100_000));
    let long_path = format!("GET /{}", "x".repeat(100_000));
    for (line, lines, status) in [
        ("GET / HTTP/1.1 more", &[][..], 400),
        ("GET /", &["no colon here"][..], 400),
        ("GET /", &many[..], 431),
        ("GET /", &[long.as_str()][..], 431),
        (long_path.as_str(), &[][..], 431),
    ] {
        let answer = raw(server.addr(), line, lines, b"").await;
        let is_refused = answer.status == status || answer.status == 414;
        assert!(is_refused, "{}", answer.head);
        let head = answer.head.to_lowercase();
        assert!(head.contains("application/problem+json"), "{head}");
        let problem: serde_json::Value = serde_json::from_str(&answer.body).expect("a problem");
        assert_eq!(problem["status"], answer.status, "{problem}");
        assert_eq!(problem["trace_id"].as_str().map(str::len), Some(32));
    }
    // A refusal of a route for HEAD has no body, and is not taken for one of the library.
    let answer = raw(server.addr(), "HEAD /nowhere", &[], b"").await;
    assert_eq!(answer.status, 404);
}

// G4
#[tokio::test]
async fn requests_of_other_sites_without_origin_are_refused() {
    let server = TestServer::start(options()).await;
    let foreign = server.api().with("sec-fetch-site", "cross-site");
    for answer in [
        foreign.post("/sessions", json!({})).await,
        foreign.get("/sessions").await,
        foreign.get("/").await,
    ] {
        let answer = answer.expect("an answer");
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (403, "origin_not_allowed")
        );
    }
    let link = foreign
        .with("sec-fetch-mode", "navigate")
        .with("sec-fetch-dest", "document");
    assert_eq!(link.get("/").await.expect("the page").status, 200);
    assert_eq!(link.get("/sessions").await.expect("an answer").status, 403);
}

#[tokio::test]
async fn filter_with_too_many_actors_is_refused() {
    let fixture = ServerFixture::new(options()).await;
    let mut client = fixture.connect("many actors").await;
    let actors = vec!["user"; 65];
    let filter = json!({"actors": actors});
    let ask = SubscribeOptions::live().filter(filter);
    client.subscribe(&ask).await.expect("sent");
    let answer = client.next().await.expect("an answer");
    let answer = format!("{answer:?}");
    assert!(answer.contains("subscribe_error"), "{answer}");
}

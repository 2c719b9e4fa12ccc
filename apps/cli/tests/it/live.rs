//! The real binary, served and asked: `tail` and `verify` against a running server, also one that
//! is killed, and what the session wire promises that only a whole server can show.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use turnwire_client::{Client, WatchItem, WatchStart};
use turnwire_event::{Body, Epoch, EventType, Position, Seq, SessionId, StopReason};
use turnwire_wire::rest::session::SessionCreate;
use turnwire_wire::rest::turn::TurnSubmit;

use crate::server::{BINARY, PATIENCE, Server};

const SCRIPT: &str = r#"
- {when: {user: '^slow'}, steps: [{text: "word word word word word word word word ", delay_ms: 50}, {stall: true}]}
- {when: {user: '^end_turn'}, steps: [{text: "a"}, {stop: end_turn}]}
- {when: {user: '^max_tokens'}, steps: [{text: "a"}, {stop: max_tokens}]}
- {when: {user: '^stop_sequence'}, steps: [{text: "a"}, {stop: stop_sequence}]}
- {when: {user: '^tool_use'}, steps: [{tool: {name: echo, input: {text: x}}}, {text: "b"}]}
- {when: {user: '^error'}, steps: [{text: "a"}, {error: transport}]}
- {steps: [{text: "an answer"}]}
"#;

/// A `turnwire tail --json` whose lines are collected by a thread.
struct Tail {
    child: Child,
    lines: std::sync::mpsc::Receiver<Value>,
}

impl Tail {
    fn of(server: &Server, session: SessionId) -> Self {
        let mut child = Command::new(BINARY)
            .args([
                "tail",
                &session.to_string(),
                "--json",
                "--server",
                &server.url(),
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let stdout = child.stdout.take().expect("a pipe");
        let (send, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = send.send(serde_json::from_str(&line).expect("a line of JSON"));
            }
        });
        Self { child, lines }
    }

    /// Every line up to the first event of a type.
    fn until(&self, kind: &str) -> Vec<Value> {
        let begun = Instant::now();
        let mut seen = Vec::new();
        while begun.elapsed() < PATIENCE {
            let left = PATIENCE.saturating_sub(begun.elapsed());
            let Ok(line) = self.lines.recv_timeout(left) else {
                break;
            };
            let found = line["type"] == kind;
            seen.push(line);
            if found {
                return seen;
            }
        }
        panic!("no {kind} in {seen:#?}");
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn new_session(client: &Client) -> SessionId {
    client
        .create_session(&SessionCreate::default())
        .await
        .expect("a session")
        .session_id
}

/// Says something and waits for the end of the turn; gives its events.
async fn turn(client: &Client, session: SessionId, words: &str) -> Vec<Body> {
    let accepted = client
        .submit(session, &TurnSubmit::text(words))
        .await
        .expect("accepted");
    let start = WatchStart::After(accepted.position);
    let mut watch = client.watch(session, json!("preset:full"), start);
    let mut seen = Vec::new();
    loop {
        let item = tokio::time::timeout(PATIENCE, watch.next())
            .await
            .expect("in time");
        if let Some(WatchItem::Event(event)) = item.expect("no error") {
            let body = event.parse().expect("an event").body;
            let ends = body.kind().is_terminal();
            seen.push(body);
            if ends {
                return seen;
            }
        }
    }
}

fn verify(session: SessionId, place: [&str; 2]) -> (Option<i32>, String) {
    let done = Command::new(BINARY)
        .args(["verify", &session.to_string()])
        .args(place)
        .output()
        .expect("the binary runs");
    (
        done.status.code(),
        String::from_utf8_lossy(&done.stdout).into_owned(),
    )
}

#[tokio::test]
async fn tail_and_verify_work_on_a_running_server() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(dir.path(), SCRIPT);
    let client = server.client();
    let session = new_session(&client).await;
    let tail = Tail::of(&server, session);
    turn(&client, session, "tool_use").await;
    let seen = tail.until("turn.completed");
    let said: Vec<_> = seen
        .iter()
        .filter_map(|line| line["type"].as_str())
        .collect();
    assert_eq!(said[0], "session.created");
    assert!(said.contains(&"tool.completed"), "{said:?}");
    let folder = dir.path().display().to_string();
    for place in [["--server", &server.url()], ["--data", &folder]] {
        let (code, text) = verify(session, place);
        assert_eq!(code, Some(0), "{text}");
        assert!(
            text.contains("✓ 1 turn with one terminal each\n✓ 1 tool called"),
            "{text}"
        );
    }
    let nobody = "00000000000000000000000000"
        .parse()
        .map(SessionId)
        .expect("an id");
    assert_eq!(
        verify(nobody, ["--server", &server.url()]),
        (Some(2), String::new())
    );
}

// S3-110
#[tokio::test]
async fn tail_resumes_after_a_kill_without_a_gap() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut server = Server::start(dir.path(), SCRIPT);
    let client = server.client();
    let session = new_session(&client).await;
    let tail = Tail::of(&server, session);
    client
        .submit(session, &TurnSubmit::text("slow"))
        .await
        .expect("accepted");
    let mut seen = tail.until("text.delta");
    server.kill();
    let server = server.again(dir.path());
    seen.extend(tail.until("turn.completed"));
    let ids: Vec<_> = seen.iter().filter_map(|line| line["id"].as_str()).collect();
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    let persisted = seen.iter().filter(|line| line["persisted"] == true).count();
    let last = ids
        .last()
        .expect("an id")
        .parse::<Position>()
        .expect("an id");
    assert_eq!(persisted as u64, last.seq.0, "each number once: {ids:?}");
    assert_eq!(
        seen.last().expect("a line")["payload"]["reason"],
        "server_restart"
    );
    let (code, text) = verify(session, ["--server", &server.url()]);
    assert_eq!(code, Some(0), "{text}");
}

// S3-029
#[tokio::test]
async fn snapshot_has_the_newest_50_of_60_messages() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(dir.path(), SCRIPT);
    let client = server.client();
    let session = new_session(&client).await;
    for number in 0..30 {
        turn(&client, session, &format!("question {number}")).await;
    }
    let mut watch = client.watch(session, json!("preset:chat"), WatchStart::Snapshot);
    let snapshot = loop {
        if let Some(WatchItem::Snapshot(snapshot)) = watch.next().await.expect("no error") {
            break snapshot;
        }
    };
    let texts: Vec<_> = snapshot
        .messages
        .iter()
        .map(|message| message.text())
        .collect();
    let pair = |number| [format!("question {number}"), "an answer".to_owned()];
    let newest: Vec<_> = (5..30).flat_map(pair).collect();
    assert_eq!(texts, newest);
    let older = client
        .records(session)
        .messages(Some(snapshot.messages[0].id), None)
        .await;
    assert_eq!(older.expect("a page").messages.len(), 10);
}

// S3-059, C-31
#[tokio::test]
async fn every_stop_reason_reaches_a_client() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(dir.path(), SCRIPT);
    let client = server.client();
    let session = new_session(&client).await;
    let first_end = |bodies: Vec<Body>| {
        let end = |body| match body {
            Body::MessageComplete(end) => Some(end.stop_reason),
            _ => None,
        };
        bodies.into_iter().find_map(end)
    };
    let reasons = [
        ("end_turn", StopReason::EndTurn),
        ("max_tokens", StopReason::MaxTokens),
        ("stop_sequence", StopReason::StopSequence),
        ("tool_use", StopReason::ToolUse),
        ("error", StopReason::Error),
    ];
    for (words, reason) in reasons {
        assert_eq!(
            first_end(turn(&client, session, words).await),
            Some(reason),
            "{words}"
        );
    }
    let slow = client
        .submit(session, &TurnSubmit::text("slow"))
        .await
        .expect("accepted");
    let mut watch = client.watch(
        session,
        json!("preset:full"),
        WatchStart::After(slow.position),
    );
    let reason = loop {
        let Some(WatchItem::Event(event)) = watch.next().await.expect("no error") else {
            continue;
        };
        match event.parse().expect("an event").body {
            Body::TextDelta(_) => {
                client.cancel(slow.turn_id, None).await.expect("accepted");
            }
            Body::MessageComplete(end) => break end.stop_reason,
            _ => {}
        }
    };
    assert_eq!(reason, StopReason::Cancelled);
}

// S3-103, D-74
#[tokio::test]
async fn compression_is_never_negotiated() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(dir.path(), SCRIPT);
    let client = server.client();
    let session = new_session(&client).await;
    let token = client.attach(session).await.expect("a token").attach_token;
    let mut stream = tokio::net::TcpStream::connect(&server.address)
        .await
        .expect("connected");
    let request = format!(
        "GET /sessions/{session}/stream?attach={token} HTTP/1.1\r\nhost: {}\r\n\
         connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         sec-websocket-extensions: permessage-deflate; client_max_window_bits\r\n\r\n",
        server.address
    );
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = vec![0; 4096];
    let length = stream.read(&mut answer).await.expect("an answer");
    let head = String::from_utf8_lossy(&answer[..length]).to_lowercase();
    assert!(head.starts_with("http/1.1 101"), "{head}");
    assert!(!head.contains("sec-websocket-extensions"), "{head}");
}

// S3-041
#[tokio::test]
async fn time_from_subscribe_to_live_is_measured() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(dir.path(), SCRIPT);
    let client = server.client();
    let session = new_session(&client).await;
    let start = WatchStart::After(Position::persisted(Epoch::FIRST, Seq(0)));
    let mut watch = client.watch(session, json!("preset:full"), start);
    loop {
        let item = watch.next().await.expect("no error").expect("an item");
        if matches!(&item, WatchItem::Event(e) if e.kind == EventType::BusSubscriberRegistered) {
            break;
        }
    }
    let metrics = client.metrics().await.expect("metrics");
    let value = |name: &str| {
        let line = metrics.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().last()?.parse::<f64>().ok()
    };
    assert_eq!(
        value("turnwire_ws_seam_seconds_count"),
        Some(1.0),
        "{metrics}"
    );
    assert!(
        value("turnwire_ws_seam_seconds_sum") < Some(1.0),
        "{metrics}"
    );
}

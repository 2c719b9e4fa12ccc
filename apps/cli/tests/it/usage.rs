//! The real binary: what was used, asked of a server and read from its folder; and what a provider
//! wants back with a message, which nobody else is ever told.

use std::process::{Command, Output};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use turnwire_client::{WatchItem, WatchStart};
use turnwire_event::SessionId;
use turnwire_log::sqlite::DATABASE_FILE;
use turnwire_wire::rest::session::SessionCreate;
use turnwire_wire::rest::turn::TurnSubmit;

use crate::server::{BINARY, PATIENCE, Server};

const SCRIPT: &str = r#"
- when: {user: '.*'}
  steps:
    - {text: "an answer"}
    - {stop: end_turn, usage: {input_tokens: 20, output_tokens: 4, total_tokens: 24, cached_tokens: 8, cost_usd: 0.25}}
"#;

fn turnwire(words: &[&str]) -> Output {
    let done = Command::new(BINARY).args(words).output();
    done.expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// Says something and waits for the end of the turn.
async fn turn(server: &Server, session: SessionId) {
    let client = server.client();
    let accepted = client.submit(session, &TurnSubmit::text("hi")).await;
    let start = WatchStart::After(accepted.expect("accepted").position);
    let mut watch = client.watch(session, json!("preset:full"), start);
    loop {
        let item = tokio::time::timeout(PATIENCE, watch.next()).await;
        if let Some(WatchItem::Event(event)) = item.expect("in time").expect("no error")
            && event.parse().expect("an event").body.kind().is_terminal()
        {
            return;
        }
    }
}

async fn new_session(server: &Server) -> SessionId {
    let made = server
        .client()
        .create_session(&SessionCreate::default())
        .await;
    made.expect("a session").session_id
}

#[tokio::test]
async fn usage_is_read_from_a_server_and_from_its_folder() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(dir.path(), SCRIPT);
    let session = new_session(&server).await;
    turn(&server, session).await;
    turn(&server, session).await;
    let url = server.url();
    let asked = turnwire(&["usage", "--json", "--server", &url]);
    assert_eq!(asked.status.code(), Some(0), "{}", text(&asked.stderr));
    let report: Value = serde_json::from_slice(&asked.stdout).expect("JSON");
    assert_eq!(report["totals"]["calls"], 2);
    assert_eq!(report["totals"]["usage"]["cost_usd"], 0.5);
    assert_eq!(report["totals"]["usage"]["total_tokens"], 48);
    let calls = server.client().records(session).llm_calls(None, None).await;
    let calls = calls.expect("calls").llm_calls;
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0].usage.map(|usage| usage.cost_usd), Some(0.25));

    let home = dir.path().to_str().expect("a path");
    let read = turnwire(&["usage", "--json", "--data", home]);
    let folder: Value = serde_json::from_slice(&read.stdout).expect("JSON");
    assert_eq!(folder["rows"], report["rows"], "the same rows");
    let table = text(&turnwire(&["usage", "--data", home]).stdout);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 6, "{table}");
    assert!(lines[0].starts_with("day"), "{table}");
    let tenant = "  00000000-0000-0000-0000-000000000000  scripted:";
    assert!(lines[2].contains(tenant), "{table}");
    assert!(lines[5].ends_with("$0.5000"), "{table}");
    assert!(lines.iter().all(|line| line.len() <= 80), "{table}");

    let empty = turnwire(&["usage", "--server", &url, "--to", "2001-01-31"]);
    let said = "no model call ended from 2001-01-02 to 2001-01-31\n";
    assert_eq!(text(&empty.stdout), said);
}

#[test]
fn invalid_days_are_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let home = dir.path().to_str().expect("a path");
    let odd = turnwire(&["usage", "--from", "yesterday"]);
    assert_eq!(odd.status.code(), Some(2));
    assert!(text(&odd.stderr).contains("--from <DAY>"));
    let none = turnwire(&["usage", "--data", home]);
    assert_eq!(none.status.code(), Some(2));
    let said = text(&none.stderr);
    assert!(said.contains("opening the data folder"), "{said}");
}

/// An answer as it comes from the socket.
async fn raw(server: &Server, path: &str) -> String {
    let address = &server.address;
    let stream = tokio::net::TcpStream::connect(address.as_str()).await;
    let mut stream = stream.expect("a connection");
    let ask = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(ask.as_bytes()).await.expect("asked");
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    read.await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
    answer
}

#[tokio::test]
async fn provider_data_is_on_no_wire_and_in_no_hash() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut server = Server::start(dir.path(), SCRIPT);
    let session = new_session(&server).await;
    turn(&server, session).await;
    server.kill();
    let database =
        rusqlite::Connection::open(dir.path().join(DATABASE_FILE)).expect("the database");
    let kept = r#"{"by":"scripted","blocks":{"0":{"sealed":"the marker"}}}"#;
    let changed = database.execute("UPDATE message SET kept = ?1", [kept]);
    assert_eq!(changed.expect("an update"), 2);
    drop(database);
    let server = server.again(dir.path());
    turn(&server, session).await;

    let mut seen = raw(&server, "/sessions").await;
    for list in [
        "",
        "/messages",
        "/turns",
        "/events",
        "/tool-calls",
        "/llm-calls",
    ] {
        seen.push_str(&raw(&server, &format!("/sessions/{session}{list}")).await);
    }
    seen.push_str(&raw(&server, "/usage").await);
    seen.push_str(&raw(&server, "/metrics").await);
    let mut watch = server
        .client()
        .watch(session, json!("preset:full"), WatchStart::Snapshot);
    loop {
        let item = tokio::time::timeout(PATIENCE, watch.next()).await;
        let item = item.expect("in time").expect("no error");
        if let Some(WatchItem::Snapshot(snapshot)) = item {
            seen.push_str(&format!("{snapshot:?}"));
            break;
        }
    }
    let (url, home) = (server.url(), dir.path().to_str().expect("a path"));
    let id = session.to_string();
    for place in [["--server", url.as_str()], ["--data", home]] {
        let verified = turnwire(&["verify", &id, place[0], place[1]]);
        assert_eq!(
            verified.status.code(),
            Some(0),
            "{}",
            text(&verified.stdout)
        );
        seen.push_str(&text(&verified.stdout));
    }
    seen.push_str(&text(
        &turnwire(&["tail", &id, "--json", "--data", home]).stdout,
    ));
    assert!(seen.contains("an answer"), "{seen}");
    assert!(!seen.contains("the marker"), "{seen}");
    assert!(!seen.contains("\"kept\""), "{seen}");
}

//! Durable before visible, observed with `strace`: every persisted event is synced to disk before
//! its first byte goes to any socket, and many events share one sync.

use std::iter;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use turnwire_e2e::load;
use turnwire_e2e::trace::{StraceLog, arguments};
use turnwire_event::{Event, SessionId};
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::history::History;
use turnwire_testkit::script::{ModelScript, ScriptStep, tool};
use turnwire_testkit::server::{ServerOptions, TestServer};
use turnwire_testkit::watch::{SubscribeOptions, WatchClient};

const SESSIONS: usize = 64;
const TURNS: usize = 3;
/// Calls of one turn, at the same time.
const CALLS: usize = 12;

/// Runs turns in sessions of a server under `strace`, and gives what everybody saw.
async fn run(file: &Path, sessions: usize, durability: &str) -> History {
    // Sessions that are all busy at once: with nothing to wait for, and much to say at a time.
    let calls = (0..CALLS).map(|_| ScriptStep::tool(tool::ECHO, json!({"text": "x"})));
    let steps = iter::once(ScriptStep::text("a few words "))
        .chain(calls)
        .chain([ScriptStep::text("and a few more")]);
    let script = ModelScript::new().on("", steps);
    let options = ServerOptions {
        strace: Some(arguments(file)),
        ..ServerOptions::script(script)
    };
    let mut server = TestServer::start(options.set("store", "durability", durability)).await;
    let api = server.api();
    let sessions = load::sessions(&api, sessions).await;
    let tasks: Vec<_> = sessions
        .iter()
        .map(|&session| tokio::spawn(talk(api.clone(), session)))
        .collect();
    for task in tasks {
        task.await.expect("a session");
    }
    let history = load::check_history(&api, &sessions).await;
    server.sigterm();
    let status = server.wait(Duration::from_secs(30)).await;
    assert!(status.success(), "{status}");
    history
}

async fn talk(api: ApiClient, session: SessionId) {
    let client = WatchClient::connect(&api, "watching", session).await;
    let mut client = client.expect("a connection");
    client
        .subscribed(&SubscribeOptions::live())
        .await
        .expect("an acknowledgement");
    for _ in 0..TURNS {
        let turn = api.submit(session, "go").await.expect("an answer");
        client.turn(turn.turn_id).await.expect("the turn");
    }
}

// D-73, I-02
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_event_reaches_a_socket_before_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace");
    let history = run(&file, SESSIONS, "full").await;
    let trace = StraceLog::read(&file);
    let early = trace.early();
    assert!(
        early.is_empty(),
        "{} of {} were sent too early: {:?}",
        early.len(),
        trace.sent.len(),
        early.first()
    );
    // Where in the trace the events of turns were written.
    let mut lines: Vec<usize> = Vec::new();
    for log in &history.sessions {
        for logged in &log.events {
            let event = Event::read(logged.text.as_bytes()).expect("judged above");
            let id = event.id.to_string();
            let key = (log.id.to_string(), id.trim_start_matches("evt_").to_owned());
            if event.turn_id.is_some() {
                assert!(trace.sent.contains_key(&key), "{key:?} was never sent");
                lines.extend(trace.written.get(&key));
            }
        }
    }
    let events = lines.len();
    assert!(
        events > SESSIONS * TURNS * 2 * CALLS,
        "{events} events of turns"
    );
    let (first, last) = (
        lines.iter().min().expect("some"),
        lines.iter().max().expect("some"),
    );
    let syncs = trace
        .syncs
        .iter()
        .filter(|line| (*first..=*last).contains(*line))
        .count();
    println!("{events} events of turns in {syncs} syncs");
    assert!(syncs * 10 < events, "{syncs} syncs for {events} events");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trace_detects_events_sent_before_sync() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace");
    run(&file, 2, "relaxed").await;
    assert!(!StraceLog::read(&file).early().is_empty());
}

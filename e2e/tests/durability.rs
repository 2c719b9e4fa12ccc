//! Durable before visible, seen from outside: under `strace`, every persisted event is synced to
//! the disk before its first byte goes to any socket, and many share one sync.

use serde_json::json;
use turnwire_e2e::load;
use turnwire_e2e::trace::{Trace, arguments};
use turnwire_event::Event;
use turnwire_testkit::script::{Script, Step, tool};
use turnwire_testkit::server::{Options, Server};
use turnwire_testkit::watch::{Ask, Client};

const SESSIONS: usize = 64;
const TURNS: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d_73_no_event_reaches_a_socket_before_it_is_on_the_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace");
    let script = Script::new().on(
        "",
        [
            Step::slow("a few words ", 4, 5),
            Step::tool(tool::ECHO, json!({"text": "x"})),
            Step::tool(tool::CLOCK, json!({})),
            Step::slow("and a few more", 4, 5),
        ],
    );
    let options = Options {
        strace: Some(arguments(&file)),
        ..Options::script(script)
    };
    let mut server = Server::start(options).await;
    let rest = server.rest();
    let sessions = load::sessions(&rest, SESSIONS).await;
    let tasks: Vec<_> = sessions
        .iter()
        .map(|&session| {
            let rest = rest.clone();
            tokio::spawn(async move {
                let mut client = Client::connect(&rest, "watching", session)
                    .await
                    .expect("a connection");
                client
                    .subscribed(&Ask::live())
                    .await
                    .expect("an acknowledgement");
                for _ in 0..TURNS {
                    let turn = rest.submit(session, "go").await.expect("an answer").turn_id;
                    client.turn(turn).await.expect("the turn");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a session");
    }
    let history = load::judge(&rest, &sessions).await;
    server.sigterm();
    assert!(
        server
            .wait(std::time::Duration::from_secs(30))
            .await
            .success()
    );

    let trace = Trace::read(&file);
    let early = trace.early();
    assert!(
        early.is_empty(),
        "{} of {} were sent too early: {:?}",
        early.len(),
        trace.sent.len(),
        early.first()
    );
    let mut turns: Vec<usize> = Vec::new();
    for log in &history.sessions {
        for logged in &log.events {
            let event = Event::read(logged.text.as_bytes()).expect("judged above");
            let id = event.id.to_string();
            let key = (log.id.to_string(), id.trim_start_matches("evt_").to_owned());
            if event.turn_id.is_some() {
                assert!(trace.sent.contains_key(&key), "{key:?} was never sent");
                turns.extend(trace.written.get(&key));
            }
        }
    }
    assert!(
        turns.len() > SESSIONS * TURNS * 8,
        "{} events of turns",
        turns.len()
    );
    let (first, last) = (
        turns.iter().min().expect("some"),
        turns.iter().max().expect("some"),
    );
    let syncs = trace
        .syncs
        .iter()
        .filter(|line| (*first..=*last).contains(*line))
        .count();
    println!("{} events of turns in {syncs} syncs", turns.len());
    assert!(
        syncs * 10 < turns.len(),
        "{syncs} syncs for {} events",
        turns.len()
    );
}

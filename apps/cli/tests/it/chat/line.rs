//! `turnwire chat` in a session where others put turns in line and take them out again.

use rustix::process::Signal;
use serde_json::json;
use turnwire_client::{Client, WatchItem, WatchStart};
use turnwire_event::code::{OnBusy, TurnState};
use turnwire_event::{Epoch, EventType, Position, Seq, SessionId};
use turnwire_wire::rest::session::SessionCreate;
use turnwire_wire::rest::turn::TurnSubmit;

use crate::person::{Person, start};
use crate::server::PATIENCE;

const WITHDRAWN: &str = "a turn that waited was withdrawn\n";

async fn new_session(client: &Client) -> SessionId {
    let created = client.create_session(&SessionCreate::default()).await;
    created.expect("a session").session_id
}

/// Puts a turn in line and takes it out again.
async fn come_and_go(client: &Client, session: SessionId) {
    let submit = TurnSubmit {
        on_busy: Some(OnBusy::Enqueue),
        ..TurnSubmit::text("theirs")
    };
    let theirs = client.submit(session, &submit).await.expect("accepted");
    assert_eq!(theirs.state, TurnState::Queued);
    let gone = client.cancel(theirs.turn_id, None).await;
    gone.expect("taken out of the line");
}

#[tokio::test]
async fn withdrawn_turn_does_not_end_the_running_one() {
    let (_dir, server) = start();
    let client = server.client();
    let id = new_session(&client).await;
    let mut person = Person::at(&server, &["--session", &id.to_string(), "slow"]);
    person.out("word word word word ");
    come_and_go(&client, id).await;
    person.err(WITHDRAWN);
    // Ours still runs: Ctrl-C stops it and does not just leave.
    person.signal(Signal::INT);
    let done = person.done();
    assert_eq!(
        (done.code, done.out.as_str()),
        (Some(130), "word word word word \n")
    );
    let told = format!("{WITHDRAWN}stopping…\ncancelled while the model was at work\n");
    assert!(done.err.starts_with(&told), "{}", done.err);
    let turns = client.turns(id, None, None).await.expect("turns").turns;
    let states: Vec<_> = turns.iter().map(|turn| turn.state).collect();
    assert_eq!(states, [TurnState::Cancelled, TurnState::Cancelled]);
}

#[tokio::test]
async fn withdrawn_turn_keeps_names_of_the_running_one() {
    let (_dir, server) = start();
    let client = server.client();
    let id = new_session(&client).await;
    let mut person = Person::at(&server, &["--session", &id.to_string()]);
    let from = WatchStart::After(Position::persisted(Epoch::FIRST, Seq(0)));
    let mut watch = client.watch(id, json!("preset:full"), from);
    person.says("sleep\n");
    loop {
        let item = tokio::time::timeout(PATIENCE, watch.next()).await;
        let item = item.expect("in time").expect("followed");
        if matches!(item, Some(WatchItem::Event(event)) if event.kind == EventType::ToolCalled) {
            break;
        }
    }
    come_and_go(&client, id).await;
    person.err(WITHDRAWN);
    person.signal(Signal::INT);
    let done = person.done();
    assert_eq!(done.code, Some(130), "{}", done.err);
    let receipt = "\n  tool sleep: stopped after ";
    assert!(done.err.contains(receipt), "{}", done.err);
    assert!(!done.err.contains("theirs"), "{}", done.err);
}

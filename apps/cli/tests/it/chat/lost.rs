//! `turnwire chat` over a way that loses answers.

use rustix::process::Signal;
use turnwire_client::Client;
use turnwire_event::SessionId;
use turnwire_event::code::TurnState;
use turnwire_wire::rest::session::SessionCreate;

use crate::gate::{Fate, Gate};
use crate::person::{Person, SCRIPT, start};
use crate::server::{PATIENCE, Server};

const SUBMIT: &str = "/turns HTTP/1.1";
const STREAM: &str = "/stream";
const CANCEL: &str = "/cancel HTTP/1.1";
const READ_TURN: &str = "GET /turns/";

/// A server whose kill begins a new epoch: cursors from before are of no use, and whoever comes
/// back gets a snapshot.
fn forgetful() -> (tempfile::TempDir, Server) {
    let dir = tempfile::tempdir().expect("a folder");
    let relaxed = "store: {durability: relaxed}\n";
    std::fs::write(dir.path().join("turnwire.yaml"), relaxed).expect("written");
    let server = Server::start(dir.path(), SCRIPT);
    (dir, server)
}

async fn new_session(client: &Client) -> SessionId {
    let created = client.create_session(&SessionCreate::default()).await;
    created.expect("a session").session_id
}

/// Waits until all of `count` turns have ended.
async fn all_over(client: &Client, session: SessionId, count: usize) {
    let over = async {
        loop {
            let turns = client
                .turns(session, None, None)
                .await
                .expect("turns")
                .turns;
            let is_over = |state| matches!(state, TurnState::Completed | TurnState::Cancelled);
            if turns.len() == count && turns.iter().all(|turn| is_over(turn.state)) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, over).await.expect("in time");
}

#[tokio::test]
async fn unreadable_ending_is_read_again() {
    let (dir, mut server) = forgetful();
    let gate = Gate::to(&server.address);
    let mut person = Person::at(&server, &["--server", gate.url()]);
    person.says("slow\nand now\n");
    person.out("word word ");
    gate.rule(&[(READ_TURN, Fate::Cut)]);
    server.kill();
    let _server = server.again(dir.path());
    person.err("cannot read how the turn ended (");
    gate.met();
    gate.met();
    gate.rule(&[]);
    person.err("the turn failed: the server was restarted in the middle of it\n");
    let done = person.done();
    assert_eq!(done.code, Some(1), "{}", done.err);
    assert!(done.out.ends_with("\nyou said and now\n"), "{}", done.out);
}

/// A question is taken and answered while its asker is cut off; then the server is restarted, and
/// before the asker asks again a snapshot passes over all of it.
#[tokio::test]
async fn turn_that_ended_before_its_acceptance_is_shown() {
    let (dir, mut server) = forgetful();
    let gate = Gate::to(&server.address);
    let id = new_session(&server.client()).await;
    let mut person = Person::at(
        &server,
        &["--server", gate.url(), "--session", &id.to_string()],
    );
    person.says("one\n");
    person.out("you said one\n");
    gate.rule(&[(STREAM, Fate::Cut), (SUBMIT, Fate::Unanswered)]);
    gate.break_all();
    person.err("lost the server (");
    person.says("two\n");
    all_over(&server.client(), id, 2).await;
    server.kill();
    let server = server.again(dir.path());
    gate.rule(&[(SUBMIT, Fate::Cut)]);
    gate.lose();
    person.err("connected again\n");
    // The question is asked again now and then; meanwhile the snapshot is seen.
    gate.rule(&[(SUBMIT, Fate::Cut)]);
    gate.met();
    gate.met();
    gate.rule(&[]);
    person.out("you said two\n");
    let done = person.done();
    assert_eq!(
        (done.code, done.out.as_str()),
        (Some(0), "you said one\nyou said two\n"),
        "{}",
        done.err
    );
    let turns = server.client().turns(id, None, None).await.expect("turns");
    assert_eq!(turns.turns.len(), 2);
}

#[tokio::test]
async fn ctrl_c_stops_a_turn_whose_acceptance_was_lost() {
    let (_dir, server) = start();
    let gate = Gate::to(&server.address);
    let id = new_session(&server.client()).await;
    let args = ["--server", gate.url(), "--session", &id.to_string(), "slow"];
    gate.rule(&[(SUBMIT, Fate::Unanswered)]);
    let mut person = Person::at(&server, &args);
    gate.met();
    person.signal(Signal::INT);
    person.err("stopping…\n");
    gate.rule(&[]);
    gate.lose();
    person.err("cancelled ");
    let done = person.done();
    assert_eq!(done.code, Some(130), "{}", done.err);
    assert!(!done.err.contains("may be running"), "{}", done.err);
    let turns = server.client().turns(id, None, None).await.expect("turns");
    let states: Vec<_> = turns.turns.iter().map(|turn| turn.state).collect();
    assert_eq!(states, [TurnState::Cancelled]);
}

#[tokio::test]
async fn failed_cancel_is_sent_again() {
    let (_dir, server) = start();
    let gate = Gate::to(&server.address);
    let mut person = Person::at(&server, &["--server", gate.url(), "slow"]);
    person.out("word word ");
    gate.rule(&[(CANCEL, Fate::Cut)]);
    person.signal(Signal::INT);
    person.err("the cancel did not get through: ");
    gate.met();
    gate.met();
    gate.rule(&[]);
    person.err("cancelled ");
    let done = person.done();
    assert_eq!(done.code, Some(130), "{}", done.err);
}

#[tokio::test]
async fn leaving_without_an_answer_warns_of_a_running_turn() {
    for second in [false, true] {
        let (_dir, server) = start();
        let gate = Gate::to(&server.address);
        let id = new_session(&server.client()).await;
        let args = ["--server", gate.url(), "--session", &id.to_string(), "slow"];
        gate.rule(&[(SUBMIT, Fate::Unanswered)]);
        let mut person = Person::at(&server, &args);
        gate.met();
        person.signal(Signal::INT);
        person.err("stopping…\n");
        match second {
            true => person.signal(Signal::INT),
            false => {
                gate.rule(&[("", Fate::Cut)]);
                gate.lose();
            }
        }
        person.err("the server did not answer; the turn may be running\n");
        assert_eq!(person.done().code, Some(130));
    }
}

//! `turnwire chat` cut short: by Ctrl-C, by a server that is killed, stopped or away.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use turnwire_client::{WatchItem, WatchStart};
use turnwire_event::code::TurnState;
use turnwire_event::{Epoch, EventType, Position, Seq};
use turnwire_wire::rest::session::SessionCreate;

use crate::person::{Person, SCRIPT, Terminal, session, signal, start};
use crate::server::{PATIENCE, Server};

#[tokio::test]
async fn ctrl_c_cancels_and_prints_the_receipt() {
    let (_dir, server) = start();
    let mut person = Person::at(&server, &["slow"]);
    person.out("word");
    person.signal(Signal::INT);
    let done = person.done();
    assert_eq!(done.code, Some(130), "{}", done.err);
    let lines: Vec<_> = done.err.lines().collect();
    assert_eq!(lines[0], "stopping…");
    assert_eq!(lines[1], "cancelled while the model was at work");
    assert!(
        lines[2].starts_with("  model call: stopped after "),
        "{lines:?}"
    );
    assert!(lines[3].starts_with("stopped in "), "{lines:?}");
    assert!(lines[3].ends_with(", nothing left running"), "{lines:?}");
    let turns = server.client().turns(session(&done.err), None, None).await;
    assert_eq!(turns.expect("turns").turns[0].state, TurnState::Cancelled);
}

#[tokio::test]
async fn receipt_names_the_stopped_tool() {
    let (_dir, server) = start();
    let client = server.client();
    let id = client
        .create_session(&SessionCreate::default())
        .await
        .expect("a session")
        .session_id;
    let mut person = Person::at(&server, &["--session", &id.to_string()]);
    person.says("sleep\nnever asked\n");
    let start = WatchStart::After(Position::persisted(Epoch::FIRST, Seq(0)));
    let mut watch = client.watch(id, json!("preset:full"), start);
    loop {
        let item = tokio::time::timeout(PATIENCE, watch.next())
            .await
            .expect("in time");
        if matches!(item, Ok(Some(WatchItem::Event(event))) if event.kind == EventType::ToolCalled)
        {
            break;
        }
    }
    person.signal(Signal::INT);
    let done = person.done();
    assert_eq!(
        (done.code, done.out.as_str()),
        (Some(130), ""),
        "the rest is not asked"
    );
    assert!(
        done.err.contains("\n  tool sleep: stopped after "),
        "{}",
        done.err
    );
}

#[test]
fn second_ctrl_c_leaves_a_silent_server() {
    let (_dir, server) = start();
    let mut person = Person::at(&server, &["slow"]);
    person.out("word");
    signal(&server.child, Signal::STOP);
    person.signal(Signal::INT);
    person.err("stopping…");
    person.signal(Signal::INT);
    assert_eq!(person.done().code, Some(130));
}

#[test]
fn ctrl_c_between_turns_leaves() {
    let (_dir, server) = start();
    let mut person = Person::at(&server, &[]);
    person.says("hello\n");
    person.out("you said hello\n");
    person.signal(Signal::INT);
    let done = person.done_without_end_of_input();
    assert_eq!(done.code, Some(130));
    assert!(done.err.contains("to come back: "), "{}", done.err);
}

// S3-110, S3-106
#[test]
fn conversation_continues_after_a_server_kill() {
    let (dir, mut server) = start();
    let mut person = Person::at(&server, &[]);
    person.says("slow\nand now\n");
    person.out("word word ");
    server.kill();
    person.err("lost the server (");
    let _server = server.again(dir.path());
    person.err("connected again\n");
    let failed = "the turn failed: the server was restarted in the middle of it\n";
    person.err(failed);
    let done = person.done();
    assert_eq!(done.code, Some(1));
    assert!(done.out.ends_with("\nyou said and now\n"), "{}", done.out);
}

#[test]
fn snapshot_replaces_trimmed_history_and_the_turn_ends() {
    let dir = tempfile::tempdir().expect("a folder");
    // Then a kill begins a new epoch: the cursor from before is of no use.
    let relaxed = "store: {durability: relaxed}\n";
    std::fs::write(dir.path().join("turnwire.yaml"), relaxed).expect("written");
    let mut server = Server::start(dir.path(), SCRIPT);
    let mut person = Person::at(&server, &[]);
    person.says("slow\nand now\n");
    person.out("word word ");
    server.kill();
    let _server = server.again(dir.path());
    person.err("the turn failed: the server was restarted in the middle of it\n");
    let done = person.done();
    assert_eq!(done.code, Some(1));
    let (before, after) = done.out.split_once('\n').expect("two answers");
    assert!("word word word word ".starts_with(before), "{}", done.out);
    assert_eq!(after, "you said and now\n");
}

#[test]
fn submit_waits_for_a_stopped_server() {
    let (dir, mut server) = start();
    let mut person = Person::at(&server, &[]);
    person.says("one\n");
    person.out("you said one\n");
    // The end of the turn comes behind its words, and nothing is shown of it.
    std::thread::sleep(Duration::from_secs(1));
    server.kill();
    person.err("lost the server (");
    person.says("two\n");
    person.err("not asked yet (");
    let _server = server.again(dir.path());
    let done = person.done();
    assert_eq!(
        (done.code, done.out.as_str()),
        (Some(0), "you said one\nyou said two\n")
    );
}

#[test]
fn terminal_has_a_prompt_and_only_leaving_counts() {
    let (_dir, server) = start();
    let mut terminal = Terminal::at(&server, &[]);
    terminal.sees("> ");
    terminal.types("error\n");
    terminal.sees("the turn failed: something went wrong inside the server\u{1b}[0m\r\n");
    terminal.sees("> ");
    terminal.types("think\n");
    terminal.sees("\r\u{1b}[K");
    terminal.sees("thinking… (5 words)");
    terminal.sees("four");
    terminal.sees("> ");
    terminal.types("slow\n");
    terminal.sees("word");
    terminal.signal(Signal::INT);
    terminal.sees("cancelled while the model was at work");
    terminal.sees("> ");
    terminal.types("\u{4}");
    terminal.sees("to come back:");
    assert_eq!(terminal.done(), Some(0));
    let mut terminal = Terminal::at(&server, &[]);
    terminal.sees("> ");
    terminal.signal(Signal::INT);
    assert_eq!(terminal.done(), Some(130));
}

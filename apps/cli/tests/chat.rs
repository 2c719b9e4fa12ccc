//! `turnwire chat` against a running server: what is on its two outputs and what its exit status
//! says, also when it is interrupted, when the server is killed and when others talk too.

mod person;
mod server;

use rustix::process::Signal;
use serde_json::{Value, json};
use turnwire_client::{Item, Start};
use turnwire_event::code::TurnState;
use turnwire_event::{Epoch, EventType, Position, Seq, SessionId};
use turnwire_wire::rest::session::Create;
use turnwire_wire::rest::turn::Submit;

use person::{Person, ask};
use server::{PATIENCE, Server};

const SCRIPT: &str = r#"
- {when: {user: '^slow'}, steps: [{text: "word word word word ", delay_ms: 20}, {stall: true}]}
- {when: {user: '^think'}, steps: [{thinking: "two and\ntwo is four", signature: seal}, {text: "four"}]}
- {when: {user: '^tool'}, steps: [{tool: {name: echo, input: {text: x}}}, {text: "done"}]}
- {when: {user: '^sleep'}, steps: [{tool: {name: sleep, input: {ms: 60000}}}, {text: "done"}]}
- {when: {user: '^error'}, steps: [{text: "a"}, {error: transport}]}
- {when: {user: '^paint'}, steps: [{text: "\e[31mred\e]0;title\a dot"}]}
- {steps: [{text: "you said {{user}}"}]}
"#;

fn start() -> (tempfile::TempDir, Server) {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(dir.path(), SCRIPT);
    (dir, server)
}

/// The session that `chat` says how to come back to.
fn session(stderr: &str) -> SessionId {
    let id = stderr.split("--session ").nth(1).expect("a way back");
    id.split_whitespace()
        .next()
        .expect("an id")
        .parse()
        .expect("an id")
}

#[test]
fn a_question_is_asked_once_and_the_answer_alone_is_on_the_output() {
    let (_dir, server) = start();
    let done = ask(&server, &["good", "day"], "");
    assert_eq!(
        (done.code, done.out.as_str()),
        (Some(0), "you said good day\n")
    );
    let back = format!(
        "to come back: turnwire chat --session {} --server {}\n",
        session(&done.err),
        server.url()
    );
    assert_eq!(done.err, back);
}

#[tokio::test]
async fn lines_are_turns_and_the_end_of_the_input_is_the_end() {
    let (_dir, server) = start();
    let done = ask(&server, &[], "one\n\n two \nthree");
    let answers = "you said one\nyou said two\nyou said three\n";
    assert_eq!((done.code, done.out.as_str()), (Some(0), answers));
    let turns = server.client().turns(session(&done.err), None, None).await;
    assert_eq!(turns.expect("turns").turns.len(), 3);
    let done = ask(&server, &[], "one\nerror\ntwo\n");
    assert_eq!(done.code, Some(1), "one of them failed");
    assert_eq!(done.out, "you said one\na\nyou said two\n");
}

#[test]
fn tools_are_a_line_each_and_thinking_is_folded() {
    let (_dir, server) = start();
    let done = ask(&server, &["tool"], "");
    assert_eq!(done.out, "done\n");
    assert!(done.err.starts_with("echo ok, "), "{}", done.err);
    let done = ask(&server, &["think"], "");
    assert_eq!(done.out, "four\n");
    assert!(
        done.err.starts_with("thinking… (5 words)\n"),
        "{}",
        done.err
    );
    let done = ask(&server, &["--thinking", "think"], "");
    assert_eq!(done.out, "four\n");
    assert!(
        done.err.starts_with("two and\ntwo is four\n"),
        "{}",
        done.err
    );
}

#[test]
fn g_10_control_sequences_of_a_model_are_stripped() {
    let (_dir, server) = start();
    let done = ask(&server, &["paint"], "");
    assert_eq!(done.out, "red dot\n");
}

#[test]
fn a_failed_turn_is_a_sentence_with_its_code() {
    let (_dir, server) = start();
    let done = ask(&server, &["error"], "");
    assert_eq!((done.code, done.out.as_str()), (Some(1), "a\n"));
    let told = "the turn failed: something went wrong inside the server (INTERNAL_ERROR)\n";
    assert!(done.err.starts_with(told), "{}", done.err);
}

#[test]
fn json_is_the_events_one_a_line() {
    let (_dir, server) = start();
    let done = ask(&server, &["--json", "hello"], "");
    assert_eq!(done.code, Some(0));
    let events: Vec<Value> = done
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let types: Vec<_> = events.iter().filter_map(|e| e["type"].as_str()).collect();
    let first = types.iter().position(|kind| *kind == "turn.started");
    assert!(
        first.is_some() && types.contains(&"text.delta"),
        "{types:?}"
    );
    assert_eq!(types.last(), Some(&"turn.completed"));
    assert_eq!(ask(&server, &["--json", "error"], "").code, Some(1));
}

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
    assert_eq!(
        lines[1],
        "cancelled while the model was at work (user_cancel)"
    );
    assert!(
        lines[2].starts_with("  llm call_") && lines[2].ends_with(" ms"),
        "{lines:?}"
    );
    assert!(lines[2].contains(": stopped after "), "{lines:?}");
    let turns = server.client().turns(session(&done.err), None, None).await;
    assert_eq!(turns.expect("turns").turns[0].state, TurnState::Cancelled);
}

#[tokio::test]
async fn a_receipt_names_the_tool_that_was_stopped() {
    let (_dir, server) = start();
    let client = server.client();
    let id = client
        .create(&Create::default())
        .await
        .expect("a session")
        .session_id;
    let mut person = Person::at(&server, &["--session", &id.to_string()]);
    person.says("sleep\nnever asked\n");
    let start = Start::After(Position::persisted(Epoch::FIRST, Seq(0)));
    let mut watch = client.watch(id, json!("preset:full"), start);
    loop {
        let item = tokio::time::timeout(PATIENCE, watch.next())
            .await
            .expect("in time");
        if matches!(item, Ok(Some(Item::Event(event))) if event.kind == EventType::ToolCalled) {
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
fn a_second_ctrl_c_leaves_a_server_that_does_not_answer() {
    let (_dir, server) = start();
    let mut person = Person::at(&server, &["slow"]);
    person.out("word");
    person::signal(&server.child, Signal::STOP);
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

#[test]
fn an_old_session_is_picked_up_with_its_last_words() {
    let (_dir, server) = start();
    let first = ask(&server, &["the first"], "");
    let id = session(&first.err).to_string();
    for which in [id.as_str(), "last"] {
        let done = ask(&server, &["--session", which], "again\n");
        assert_eq!(
            (done.code, done.out.as_str()),
            (Some(0), "you said again\n")
        );
        assert!(
            done.err.starts_with("> the first\nyou said the first\n"),
            "{}",
            done.err
        );
        assert!(!done.err.contains("to come back"), "{}", done.err);
    }
    let done = ask(&server, &["--session", &id, "once"], "");
    assert_eq!(
        (done.out.as_str(), done.err.as_str()),
        ("you said once\n", "")
    );
}

#[tokio::test]
async fn a_turn_that_runs_is_joined_and_can_be_stopped_from_elsewhere() {
    let (_dir, server) = start();
    let client = server.client();
    let id = client
        .create(&Create::default())
        .await
        .expect("a session")
        .session_id;
    let turn = client
        .submit(id, &Submit::text("slow"))
        .await
        .expect("accepted");
    let mut person = Person::at(&server, &["--session", &id.to_string()]);
    person.out("word word word word ");
    client
        .cancel(turn.turn_id, Some("enough"))
        .await
        .expect("accepted");
    person.err("cancelled while the model was at work (enough)\n");
    person.says("and now\n");
    let done = person.done();
    assert_eq!(done.code, Some(0), "the turn was not ours");
    assert_eq!(done.out, "word word word word \nyou said and now\n");
    assert!(
        done.err.starts_with("> slow\na turn is running here; "),
        "{}",
        done.err
    );
}

#[tokio::test]
async fn a_busy_session_is_waited_for_and_asked_again() {
    let (_dir, server) = start();
    let client = server.client();
    let mut person = Person::at(&server, &["--json"]);
    person.says("hello\n");
    person.out("turn.completed");
    let sessions = client
        .sessions(None, None)
        .await
        .expect("sessions")
        .sessions;
    let id = sessions[0].session_id;
    let turn = client
        .submit(id, &Submit::text("slow"))
        .await
        .expect("accepted");
    person.out("\"text\":\"word\"");
    person.says("and I?\n");
    person.err("the session is busy with another turn; waiting for its end (Ctrl-C stops it)\n");
    client.cancel(turn.turn_id, None).await.expect("accepted");
    let done = person.done();
    assert_eq!(done.code, Some(0), "{}", done.err);
    let events = done
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let ends: Vec<_> = events
        .filter(|event| event["type"] == "turn.completed" || event["type"] == "turn.cancelled")
        .map(|event| event["type"].clone())
        .collect();
    assert_eq!(ends, ["turn.completed", "turn.cancelled", "turn.completed"]);
}

#[tokio::test]
async fn what_others_ask_is_shown_as_theirs() {
    let (_dir, server) = start();
    let client = server.client();
    let id = client
        .create(&Create::default())
        .await
        .expect("a session")
        .session_id;
    let mut person = Person::at(&server, &["--session", &id.to_string()]);
    person.says("mine\n");
    person.out("you said mine\n");
    client
        .submit(id, &Submit::text("theirs"))
        .await
        .expect("accepted");
    person.out("you said theirs\n");
    let done = person.done();
    assert_eq!(
        (done.code, done.err.as_str()),
        (Some(0), "from elsewhere: theirs\n")
    );
}

#[test]
fn s3_110_a_kill_in_mid_turn_is_told_and_the_conversation_goes_on() {
    let (dir, mut server) = start();
    let mut person = Person::at(&server, &[]);
    person.says("slow\nand now\n");
    person.out("word word ");
    server.kill();
    person.err("lost the server (");
    let _server = server.again(dir.path());
    person.err("connected again\n");
    let failed = "the turn failed: the server was restarted in the middle of it \
                  (INTERNAL_ERROR, server_restart)\n";
    person.err(failed);
    let done = person.done();
    assert_eq!(done.code, Some(1));
    assert!(done.out.ends_with("\nyou said and now\n"), "{}", done.out);
}

#[test]
fn a_question_waits_for_a_server_that_is_away() {
    let (dir, mut server) = start();
    let mut person = Person::at(&server, &[]);
    person.says("one\n");
    person.out("you said one\n");
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
fn at_a_terminal_there_is_a_prompt_and_only_leaving_counts() {
    let (_dir, server) = start();
    let mut terminal = person::Terminal::at(&server, &[]);
    terminal.sees("> ");
    terminal.types("error\n");
    terminal.sees("(INTERNAL_ERROR)");
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
    terminal.sees("to come back: ");
    assert_eq!(terminal.done(), Some(0));
    let mut terminal = person::Terminal::at(&server, &[]);
    terminal.sees("> ");
    terminal.signal(Signal::INT);
    assert_eq!(terminal.done(), Some(130));
}

#[test]
fn what_cannot_be_asked_is_said_in_one_sentence() {
    let (_dir, mut server) = start();
    let none = SessionId(turnwire_event::Ulid(7)).to_string();
    let cases: [(&[&str], &str); 4] = [
        (&["--session", "last"], "there is no session yet"),
        (&["--session", &none], "session_not_found"),
        (
            &["--session", "yesterday"],
            "expected a session id (sess_…) or `last`",
        ),
        (
            &["--server", "localhost:1", "hi"],
            "it must begin with http://",
        ),
    ];
    for (args, said) in cases {
        let done = ask(&server, args, "");
        assert_eq!(done.code, Some(2), "{args:?} {}", done.err);
        assert!(done.err.contains(said), "{args:?} {}", done.err);
    }
    let done = Person::says_bytes(&server, b"one\n\xff\n");
    assert_eq!((done.code, done.out.as_str()), (Some(2), "you said one\n"));
    assert!(
        done.err
            .ends_with("line 2 of the input is not UTF-8 text\n"),
        "{}",
        done.err
    );
    let long = "x".repeat(12 << 20);
    let done = ask(&server, &[], &long);
    assert_eq!(done.code, Some(2), "{}", done.err);
    assert!(done.err.starts_with("not asked: "), "{}", done.err);
    server.kill();
    let done = ask(&server, &["hi"], "");
    assert_eq!((done.code, done.out.as_str()), (Some(2), ""));
    let said = format!(
        "turnwire: nothing answers at {}; start a server with",
        server.url()
    );
    assert!(done.err.starts_with(&said), "{}", done.err);
}

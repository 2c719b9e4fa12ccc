//! `turnwire chat` against a running server: what is on its two outputs, what its exit status says,
//! and what becomes of it when others talk too.

use std::fs::File;

use serde_json::Value;
use turnwire_event::SessionId;
use turnwire_wire::rest::session::SessionCreate;
use turnwire_wire::rest::turn::TurnSubmit;

use crate::person::{Person, ask, session, start};

#[test]
fn standard_output_has_only_the_answer() {
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
async fn each_line_is_a_turn_until_the_input_ends() {
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
fn tools_are_one_line_each_and_thinking_is_folded() {
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

// G10
#[test]
fn control_sequences_of_a_model_are_stripped() {
    let (_dir, server) = start();
    let done = ask(&server, &["paint"], "");
    assert_eq!(done.out, "red dot\n");
}

// FR-8
// S3-097
#[test]
fn failed_turn_is_a_sentence_without_codes() {
    let (_dir, server) = start();
    let done = ask(&server, &["error"], "");
    assert_eq!((done.code, done.out.as_str()), (Some(1), "a\n"));
    let told = "the turn failed: something went wrong inside the server\n";
    assert!(done.err.starts_with(told), "{}", done.err);
}

#[test]
fn json_output_is_one_event_per_line() {
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

#[test]
fn continued_session_shows_its_last_messages() {
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
async fn running_turn_is_joined_and_cancelled_from_elsewhere() {
    let (_dir, server) = start();
    let client = server.client();
    let id = client
        .create_session(&SessionCreate::default())
        .await
        .expect("a session")
        .session_id;
    let turn = client
        .submit(id, &TurnSubmit::text("slow"))
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
async fn submit_waits_for_a_busy_session_and_repeats() {
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
        .submit(id, &TurnSubmit::text("slow"))
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
async fn turns_of_other_clients_are_marked() {
    let (_dir, server) = start();
    let client = server.client();
    let id = client
        .create_session(&SessionCreate::default())
        .await
        .expect("a session")
        .session_id;
    let mut person = Person::at(&server, &["--session", &id.to_string()]);
    person.says("mine\n");
    person.out("you said mine\n");
    client
        .submit(id, &TurnSubmit::text("theirs"))
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
fn rejected_submit_is_one_sentence() {
    let (_dir, mut server) = start();
    let none = SessionId(turnwire_event::Ulid(7)).to_string();
    let cases: [(&[&str], &str); 4] = [
        (&["--session", "last"], "there is no session yet"),
        (
            &["--session", &none],
            "No such session: There is no session",
        ),
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
    assert!(done.err.contains("not asked: The body"), "{}", done.err);
    server.kill();
    let done = ask(&server, &["hi"], "");
    assert_eq!((done.code, done.out.as_str()), (Some(2), ""));
    let said = format!(
        "turnwire: nothing answers at {}; start a server with",
        server.url()
    );
    assert!(done.err.starts_with(&said), "{}", done.err);
}

#[test]
fn write_error_fails_and_a_closed_pipe_does_not() {
    let (_dir, server) = start();
    for args in [&["hello"][..], &["--json", "hello"]] {
        let full = File::options().write(true).open("/dev/full");
        let full = Person::writing_to(&server, args, full.expect("a full disk"));
        assert_eq!(full.code, Some(1), "{}", full.err);
        let said = "turnwire: the answer cannot be written: No space left on device";
        assert!(full.err.contains(said), "{}", full.err);
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let unread = Person::writing_to(&server, args, writer);
        assert_eq!(unread.code, Some(0), "{}", unread.err);
        assert!(!unread.err.contains("written"), "{}", unread.err);
    }
}

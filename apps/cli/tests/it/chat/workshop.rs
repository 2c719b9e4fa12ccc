//! `turnwire chat` with tools that act: a program that does not want to end, a tool that waits for
//! a person's word, and a worker with a session of its own.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use turnwire_client::Client;
use turnwire_event::code::{ApprovalState, Decision};
use turnwire_event::{SessionId, TurnId};
use turnwire_wire::rest::approval::ApprovalAnswer;

use crate::person::{Person, Terminal, ask, session};
use crate::server::{BINARY, PATIENCE, Server};

/// A nap that ignores TERM, and says when it does.
const DEAF: &str =
    r#"command: [sh, -c, "trap '' TERM; : > $1; exec sleep $0", "{seconds}", READY]"#;

/// Long enough that the wait for it is told, on a machine that does much else.
const SETTINGS: &str = "tool:\n  grace_ms: 4000\n";

struct Workshop {
    dir: tempfile::TempDir,
    server: Server,
}

impl Workshop {
    fn open() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let pack = dir.path().join("pack");
        copy(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packs/workshop"),
            &pack,
        );
        let ready = dir.path().join("ready");
        let ready = ready.to_str().expect("text");
        let tools = fs::read_to_string(pack.join("tools.yaml")).expect("tools");
        let nap = r#"command: [sleep, "{seconds}"]"#;
        assert!(tools.contains(nap), "{tools}");
        let tools = tools.replace(nap, &DEAF.replace("READY", ready));
        fs::write(pack.join("tools.yaml"), tools).expect("tools");
        let home = dir.path().join("home");
        fs::create_dir(&home).expect("a folder");
        fs::write(home.join("turnwire.yaml"), SETTINGS).expect("settings");
        let more = [OsStr::new("--pack"), pack.as_os_str()];
        let server = Server::serve(&home, "127.0.0.1:0", &more);
        Self { dir, server }
    }

    fn until_napping(&self) {
        let ready: PathBuf = self.dir.path().join("ready");
        let begun = Instant::now();
        while !ready.exists() {
            assert!(begun.elapsed() < PATIENCE, "it never naps");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a pack") {
        let entry = entry.expect("a file");
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).expect("copied")),
        }
    }
}

/// The newest turn of the newest session.
async fn newest(client: &Client) -> (SessionId, TurnId) {
    let sessions = client.sessions(None, Some(1)).await.expect("sessions");
    let session = sessions.sessions[0].session_id;
    let turns = client.turns(session, None, Some(1)).await.expect("turns");
    (session, turns.turns[0].turn_id)
}

// S3-074
#[test]
fn cancel_shows_pending_work_and_killed_processes() {
    let workshop = Workshop::open();
    let mut person = Person::at(&workshop.server, &["nap"]);
    person.out("I wait for two minutes.");
    workshop.until_napping();
    person.signal(Signal::INT);
    let done = person.done();
    assert_eq!(done.code, Some(130), "{}", done.err);
    let lines: Vec<_> = done.err.lines().collect();
    assert_eq!(lines[0], "stopping…");
    assert_eq!(lines[1], "stopping… 1 s; waiting for nap to end");
    assert_eq!(lines[2], "cancelled while tools were at work");
    assert!(
        lines[3].starts_with("  tool nap: killed after "),
        "{lines:?}"
    );
    assert!(
        lines[4].starts_with("  process of nap: killed after "),
        "{lines:?}"
    );
    assert!(lines[5].starts_with("stopped in "), "{lines:?}");
    assert!(lines[5].ends_with(" s, nothing left running"), "{lines:?}");
}

#[test]
fn program_counts_the_words_of_the_text_and_not_of_its_json() {
    let workshop = Workshop::open();
    let person = Person::at(&workshop.server, &["count these\nfive words\nplease"]);
    let done = person.done();
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(
        done.out.contains("Your message has 5 words."),
        "{}",
        done.out
    );
}

#[test]
fn notes_are_stored_as_lines_of_text() {
    let workshop = Workshop::open();
    let mut terminal = Terminal::at(&workshop.server, &[]);
    for note in ["take a note: buy milk", "take a note: sell \"milk\""] {
        terminal.sees("> ");
        terminal.types(&format!("{note}\n"));
        terminal.sees("allow take_note to run with this input? [y/n] ");
        terminal.types("y\n");
        terminal.sees("a comment for the model? [Enter for none] ");
        terminal.types("\n");
        terminal.sees("Noted.");
    }
    terminal.sees("> ");
    terminal.types("show my notes\n");
    terminal.sees("Your notes:\r\ntake a note: buy milk\r\ntake a note: sell \"milk\"");
}

#[tokio::test]
async fn paused_turn_prompts_and_resumes_with_the_answer() {
    let workshop = Workshop::open();
    let mut terminal = Terminal::at(&workshop.server, &[]);
    terminal.sees("> ");
    terminal.types("take a note: buy milk\n");
    terminal.sees("take_note would run with this input:\r\n  | {\r\n");
    terminal.sees("  |   \"note\": \"take a note: buy milk\"\r\n  | }\r\n");
    terminal.sees("ends here: 32 bytes, 3 lines, sha256");
    terminal.sees("allow take_note to run with this input? [y/n] ");
    terminal.types("y\n");
    terminal.sees("a comment for the model? [Enter for none] ");
    terminal.types("\n");
    terminal.sees("Noted.");
    terminal.sees("> ");
    terminal.types("take a note: sell milk\n");
    terminal.sees("? [y/n] ");
    terminal.types("n\n");
    terminal.sees("? [Enter for none] ");
    terminal.types("not today\n");
    terminal.sees("I did not write it down.");
    terminal.sees("> ");
    let client = workshop.server.client();
    let (session, _) = newest(&client).await;
    let turns = client
        .turns(session, None, None)
        .await
        .expect("turns")
        .turns;
    let mut answers = Vec::new();
    for turn in turns {
        let list = client.approvals(turn.turn_id).await.expect("questions");
        answers.extend(list.approvals.into_iter().map(|it| (it.state, it.comment)));
    }
    answers.sort_by_key(|(_, comment)| comment.is_some());
    assert_eq!(
        answers,
        [
            (ApprovalState::Approved, None),
            (ApprovalState::Rejected, Some("not today".to_owned()))
        ]
    );
    terminal.types("show my notes\n");
    terminal.sees("buy milk");
    terminal.types("\u{4}");
    assert_eq!(terminal.done(), Some(0));
}

#[tokio::test]
async fn answer_from_elsewhere_ends_the_prompt() {
    let workshop = Workshop::open();
    let mut terminal = Terminal::at(&workshop.server, &[]);
    terminal.sees("> ");
    terminal.types("take a note: buy milk\n");
    terminal.sees("? [y/n] ");
    let client = workshop.server.client();
    let (_, turn) = newest(&client).await;
    let questions = client.approvals(turn).await.expect("questions").approvals;
    let answer = ApprovalAnswer {
        approval_id: questions[0].approval_id.to_string(),
        decision: Decision::Approve,
        input_sha256: None,
        comment: Some("go on".into()),
    };
    client
        .decide_approvals(turn, vec![answer])
        .await
        .expect("taken");
    terminal.sees("allowed elsewhere: take_note {\"note\":\"take a note: buy milk\"}: go on");
    terminal.sees("Noted.");
    terminal.sees("> ");
}

#[test]
fn input_before_the_prompt_is_no_answer() {
    let workshop = Workshop::open();
    let mut terminal = Terminal::at(&workshop.server, &[]);
    terminal.sees("> ");
    terminal.types("take a note: buy milk\nyes\n");
    terminal.sees("? [y/n] ");
    terminal.types("n\n");
    terminal.sees("? [Enter for none] ");
    terminal.types("\n");
    terminal.sees("I did not write it down.");
    terminal.sees("This is a workshop.");
    terminal.sees("> ");
    terminal.types("take a note: sell milk\n");
    terminal.sees("? [y/n] ");
    terminal.signal(Signal::INT);
    terminal.sees("to answer:");
    terminal.sees("turnwire approve ");
    terminal.sees("to come back:");
    assert_eq!(terminal.done(), Some(130));
}

#[tokio::test]
async fn pipe_shows_how_to_approve_and_a_terminal_prompts() {
    let workshop = Workshop::open();
    let server = &workshop.server;
    let done = ask(server, &["take a note: buy milk"], "");
    assert_eq!((done.code, done.out.as_str()), (Some(0), ""));
    let (id, turn) = newest(&server.client()).await;
    assert_eq!(session(&done.err), id);
    let told = format!(
        "the turn waits for a person to allow: take_note {{\"note\":\"take a note: buy milk\"}}\n\
         to answer: turnwire approve {turn} --server {}\n",
        server.url()
    );
    assert!(done.err.starts_with(&told), "{}", done.err);
    let mut terminal = Terminal::at(server, &["--session", "last"]);
    terminal.sees("? [y/n] ");
    terminal.types("y\n");
    terminal.sees("? [Enter for none] ");
    terminal.types("\n");
    terminal.sees("Noted.");
    drop(terminal);
    let again = Command::new(BINARY)
        .args(["approve", &turn.to_string(), "--server", &server.url()])
        .output()
        .expect("the binary runs");
    let err = String::from_utf8_lossy(&again.stderr);
    assert!(err.contains("has no open approval request"), "{err}");
}

// S3-091
#[tokio::test]
async fn worker_is_a_line_at_its_start_and_at_its_end() {
    let workshop = Workshop::open();
    let server = &workshop.server;
    let done = ask(server, &["look into tea"], "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    let lines: Vec<_> = done.err.lines().collect();
    let (worker, task) = lines[0]
        .strip_prefix("worker ")
        .and_then(|rest| rest.split_once(" works on: "))
        .unwrap_or_else(|| panic!("{lines:?}"));
    assert!(task.ends_with("look into tea"), "{task}");
    let look = format!(
        "follow it with: turnwire tail {worker} --server {}",
        server.url()
    );
    let ended = format!("worker on \"{task}\" is done; {look}");
    assert!(lines.contains(&ended.as_str()), "{lines:?}");
    let worker: SessionId = worker.parse().expect("a session");
    let turns = server.client().turns(worker, None, None).await;
    assert_eq!(turns.expect("the worker's turns").turns.len(), 1);
}

#[test]
fn stopped_worker_is_named_by_its_task() {
    let workshop = Workshop::open();
    let mut person = Person::at(&workshop.server, &["look into tea"]);
    person.err(" works on: ");
    person.signal(Signal::INT);
    let done = person.done();
    assert_eq!(done.code, Some(130), "{}", done.err);
    for told in [
        "look into tea\": stopped after ",
        "\n  worker on \"",
        "\n  tool research: stopped after ",
        ", nothing left running\n",
    ] {
        assert!(done.err.contains(told), "{told:?} {}", done.err);
    }
    assert!(
        !done.err.contains("follow it with: "),
        "the receipt says it: {}",
        done.err
    );
}

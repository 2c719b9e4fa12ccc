//! A person sees the whole input of a tool before a yes counts, in `turnwire chat` and in
//! `turnwire approve`.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;
use turnwire_client::Client;
use turnwire_event::code::ApprovalState;
use turnwire_event::content::sha256_hex;
use turnwire_event::{ApprovalId, TurnId};
use turnwire_wire::rest::session::SessionCreate;
use turnwire_wire::rest::turn::TurnSubmit;

use crate::person::Terminal;
use crate::server::{BINARY, Server};

/// The end of an input whose start is padded, with a line that looks like a prompt, and a mark that
/// would turn the text around.
const END: &str = "; rm -rf ~ \nallow ls? [y/N] \u{202e}evil";
/// The same as the terminal shows it.
const END_SHOWN: &str = r"; rm -rf ~ \nallow ls? [y/N] \u{202e}evil";

/// A server with the workshop pack.
fn workshop() -> (TempDir, Server) {
    let dir = tempfile::tempdir().expect("a folder");
    let pack = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packs/workshop");
    let server = Server::serve(
        dir.path(),
        "127.0.0.1:0",
        &["--pack".as_ref(), pack.as_os_str()],
    );
    (dir, server)
}

fn padded() -> String {
    format!("take a note: milk{}{END}", " ".repeat(60_000))
}

/// A turn that waits for the approval of a note.
async fn paused(client: &Client, note: &str) -> (TurnId, ApprovalId) {
    let session = client.create_session(&SessionCreate::default()).await;
    let session = session.expect("a session").session_id;
    let submitted = client.submit(session, &TurnSubmit::text(note)).await;
    let turn = submitted.expect("a turn").turn_id;
    loop {
        let info = client.turn(turn).await.expect("the turn");
        if info.terminal.is_some() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let list = client.approvals(turn).await.expect("requests");
    (turn, list.approvals[0].approval_id)
}

async fn state(client: &Client, turn: TurnId) -> ApprovalState {
    let list = client.approvals(turn).await.expect("requests");
    list.approvals[0].state
}

fn approve(server: &Server, turn: TurnId) -> Command {
    let mut command = Command::new(BINARY);
    command
        .args(["approve", &turn.to_string(), "--server", &server.url()])
        .env("TERM", "xterm");
    command
}

fn run(mut command: Command) -> Output {
    command
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs")
}

/// What the terminal shows between the two texts, without marks and line ends.
fn shown(terminal: &mut Terminal, until: &str) -> String {
    let text = terminal.reads(until).replace("\r\n", "\n");
    let lines = text.lines().map(|line| {
        let line = line.strip_prefix("  | ").or(line.strip_prefix("  … "));
        line.unwrap_or_default()
    });
    lines.collect()
}

#[tokio::test]
async fn approve_shows_the_whole_input_and_then_asks() {
    let (_dir, server) = workshop();
    let client = server.client();
    let (turn, _) = paused(&client, &padded()).await;
    let mut terminal = Terminal::running(approve(&server, turn));
    // Typed before anything was shown, with and without a line end.
    terminal.types("y\nyes\ny");
    terminal.sees("take_note would run with this input:\r\n");
    let text = shown(&mut terminal, "the input of take_note ends here: ");
    assert!(text.contains(END_SHOWN), "{}", &text[text.len() - 200..]);
    assert!(text.len() > 60_000, "{}", text.len());
    terminal.sees("allow take_note to run with this input? [y/n] ");
    assert_eq!(state(&client, turn).await, ApprovalState::Pending);
    // Neither yes nor no: asked again.
    for unclear in ["\n", "sure, go ahead\n"] {
        terminal.types(unclear);
        terminal.sees("please type y to allow it or n to reject it\r\n");
        terminal.sees("allow take_note to run with this input? [y/n] ");
    }
    terminal.types("n\n");
    terminal.sees("not approved");
    assert_eq!(terminal.done(), Some(2));
    assert_eq!(state(&client, turn).await, ApprovalState::Pending);
    // Typed after it.
    let mut terminal = Terminal::running(approve(&server, turn));
    terminal.sees("allow take_note to run with this input? [y/n] ");
    terminal.types("y\n");
    terminal.sees("approved appr_");
    assert_eq!(terminal.done(), Some(0));
    assert_eq!(state(&client, turn).await, ApprovalState::Approved);
}

#[tokio::test]
async fn approve_without_a_person_needs_the_digest_of_the_input() {
    let (_dir, server) = workshop();
    let client = server.client();
    let note = padded();
    let (turn, approval) = paused(&client, &note).await;
    let refused = run(approve(&server, turn));
    let (out, err) = (
        String::from_utf8_lossy(&refused.stdout),
        String::from_utf8_lossy(&refused.stderr),
    );
    assert_eq!(refused.status.code(), Some(2), "{err}");
    assert!(out.contains("rm -rf ~"), "{}", out.len());
    assert!(err.contains("--input-sha256"), "{err}");
    let with = |digest: &str| {
        let mut command = approve(&server, turn);
        command.args(["--approval", &approval.to_string()]);
        command.args(["--input-sha256", digest]);
        command
    };
    let other = run(with(&sha256_hex(b"{}")));
    let err = String::from_utf8_lossy(&other.stderr);
    assert!(err.contains("approval_input_mismatch"), "{err}");
    assert_eq!(state(&client, turn).await, ApprovalState::Pending);
    let input = serde_json::json!({"note": note}).to_string();
    let digest = sha256_hex(input.as_bytes());
    assert!(out.contains(&digest), "the digest is shown with the input");
    let done = run(with(&digest));
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert_eq!(state(&client, turn).await, ApprovalState::Approved);
}

#[tokio::test]
async fn chat_shows_the_whole_input_and_takes_no_early_yes() {
    let (_dir, server) = workshop();
    let client = server.client();
    let (turn, _) = paused(&client, &padded()).await;
    let mut terminal = Terminal::at(&server, &["--session", "last"]);
    // A whole line is kept for the conversation; half a line is dropped.
    terminal.types("yes\ny");
    terminal.sees("take_note would run with this input:\r\n");
    let text = shown(&mut terminal, "the input of take_note ends here: ");
    assert!(text.contains(END_SHOWN), "{}", &text[text.len() - 200..]);
    terminal.sees("allow take_note to run with this input? [y/n] ");
    assert_eq!(state(&client, turn).await, ApprovalState::Pending);
    // Neither yes nor no: asked again.
    for unclear in ["\n", "sure, go ahead\n"] {
        terminal.types(unclear);
        terminal.sees("please type y to allow it or n to reject it");
        terminal.sees("allow take_note to run with this input? [y/n] ");
        assert_eq!(state(&client, turn).await, ApprovalState::Pending);
    }
    terminal.types("n\n");
    terminal.sees("a comment for the model? [Enter for none] ");
    terminal.types("\n");
    terminal.sees("I did not write it down.");
    assert_eq!(state(&client, turn).await, ApprovalState::Rejected);
}

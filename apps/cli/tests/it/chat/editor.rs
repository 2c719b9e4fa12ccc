//! `turnwire chat` at a terminal: lines are edited, kept and found again, commands are obeyed, and
//! words are wrapped.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use turnwire_wire::rest::turn::TurnSubmit;

use crate::person::{Terminal, command, start};
use crate::server::Server;

const LEFT: &str = "\u{1b}[D";
const UP: &str = "\u{1b}[A";

/// A chat whose history is below `state`.
fn chat(server: &Server, state: &Path) -> Terminal {
    let mut command = command(server, &[]);
    command.env("XDG_STATE_HOME", state);
    let mut terminal = Terminal::running(command);
    terminal.sees("/help lists the commands");
    terminal.sees("> ");
    terminal
}

#[test]
fn lines_are_edited_and_kept_for_the_next_chat() {
    let (dir, server) = start();
    let mut terminal = chat(&server, dir.path());
    terminal.types(&format!("helo{LEFT}l\r"));
    terminal.sees("you said hello");
    terminal.sees("> ");
    terminal.types(&format!("{UP}{UP}\r"));
    terminal.sees("you said hello");
    terminal.sees("> ");
    terminal.types("/quit\r");
    terminal.sees("to come back:");
    assert_eq!(terminal.done(), Some(0));
    let history = dir.path().join("turnwire/chat_history");
    let mode = std::fs::metadata(&history)
        .expect("a history")
        .permissions();
    assert_eq!(mode.mode() & 0o077, 0, "only for its owner");
    let mut terminal = chat(&server, dir.path());
    terminal.types(&format!("{UP}{UP}\r"));
    terminal.sees("you said hello");
}

#[test]
fn banner_names_pack_and_model() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::serve(dir.path(), "127.0.0.1:0", &[]);
    let mut terminal = Terminal::at(&server, &[]);
    terminal.sees("market ");
    terminal.sees(", model scripted:market; /help lists the commands");
}

#[test]
fn commands_are_obeyed_also_while_a_turn_runs() {
    let (_dir, server) = start();
    let mut terminal = Terminal::at(&server, &[]);
    terminal.sees("> ");
    terminal.types("/help\r");
    terminal.sees("/stop     stop the running turn");
    terminal.sees("> ");
    terminal.types("/stop\r");
    terminal.sees("nothing is running");
    terminal.types("/nope\r");
    terminal.sees("there is no command /nope");
    terminal.types("slow\r");
    terminal.sees("word word");
    // The terminal is not in raw mode here: a line ends with a newline.
    terminal.types("/stop\n");
    terminal.sees("cancelled while the model was at work");
    terminal.types("error\r");
    terminal.sees("the turn failed: something went wrong inside the server");
    terminal.types("/details\r");
    terminal.sees("INTERNAL_ERROR");
    terminal.types("//etc\r");
    terminal.sees("you said /etc");
    terminal.types("slow\r");
    terminal.sees("word word");
    terminal.types("/quit\n");
    terminal.sees("to come back:");
    assert_eq!(terminal.done(), Some(0));
}

#[tokio::test]
async fn line_survives_a_turn_of_another_client() {
    let (_dir, server) = start();
    let client = server.client();
    let mut terminal = Terminal::at(&server, &[]);
    terminal.sees("> ");
    terminal.types("mi");
    terminal.sees("mi");
    let sessions = client.sessions(None, None).await.expect("sessions");
    let session = sessions.sessions[0].session_id;
    let theirs = client.submit(session, &TurnSubmit::text("theirs")).await;
    theirs.expect("accepted");
    terminal.sees("from elsewhere: theirs");
    terminal.sees("you said theirs");
    terminal.types("ne\r");
    terminal.sees("you said mine");
}

#[test]
fn answer_is_wrapped_between_words() {
    let (_dir, server) = start();
    let mut terminal = Terminal::at(&server, &[]);
    terminal.sees("> ");
    terminal.types("wide\r");
    terminal.sees("wide");
    let output = terminal.reads("THE END.");
    let lines = shown(&output);
    let lines: Vec<_> = lines
        .iter()
        .filter(|line| line.contains("wonderful"))
        .collect();
    assert!(lines.len() > 3, "{lines:?}");
    for line in &lines {
        assert!(line.len() < 80, "{line:?}");
        assert!(
            line.split_whitespace().all(|word| word == "wonderful"),
            "{line:?}"
        );
    }
}

#[test]
fn narrow_terminal_breaks_notes_between_words() {
    let dir = tempfile::tempdir().expect("a folder");
    let workshop = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packs/workshop");
    let more = [OsStr::new("--pack"), OsStr::new(workshop)];
    let server = Server::serve(dir.path(), "127.0.0.1:0", &more);
    let mut terminal = Terminal::narrow(command(&server, &[]), 50);
    let banner = terminal.reads("Ctrl-D leaves");
    terminal.sees("> ");
    terminal.types("/help\r");
    let help = terminal.reads("searches them.");
    terminal.types("look into the history of oat milk and of tea with lemon\r");
    terminal.sees("worker sess_");
    let started = terminal.reads("lemon");
    let wrapped = " works on:\r\n\
                   Task of the researcher: look into the history of\r\n\
                   oat milk and of tea with ";
    assert!(started.ends_with(wrapped), "{started:?}");
    terminal.sees("worker on ");
    let ended = terminal.reads("turnwire tail ");
    // The command to copy has a line of its own.
    assert!(
        ended.ends_with("follow it with:\u{1b}[0m\r\n\u{1b}[2m"),
        "{ended:?}"
    );
    let mut words = 0;
    for text in [banner, help, ended] {
        let lines = shown(&text);
        // The line that is being typed is the editor's.
        for line in lines.iter().filter(|line| !line.starts_with('>')) {
            assert!(line.chars().count() < 50, "{line:?} in {text:?}");
            words += line.split_whitespace().count();
        }
    }
    assert!(words > 50, "{words}");
}

/// The lines of a terminal after `output`, of which it knows cursor back and erase to the line end,
/// and a kept place with erase behind it.
fn shown(output: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut place = (0, 0);
    let mut rest = output;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        let row = lines.len() - 1;
        let line = lines.last_mut().expect("a line");
        match c {
            '\n' => lines.push(String::new()),
            '\u{1b}' if rest.starts_with('7') => {
                place = (row, line.len());
                rest = &rest[1..];
            }
            '\u{1b}' if rest.starts_with('8') => {
                lines.truncate(place.0 + 1);
                lines[place.0].truncate(place.1);
                rest = &rest[1..];
            }
            '\u{1b}' => {
                let end = rest
                    .find(|c: char| c.is_ascii_alphabetic())
                    .expect("a sequence");
                if rest.as_bytes()[end] == b'D' {
                    let columns: usize = rest[1..end].parse().expect("a number");
                    line.truncate(line.len().saturating_sub(columns));
                }
                rest = &rest[end + 1..];
            }
            '\r' => {}
            _ => line.push(c),
        }
    }
    lines
}

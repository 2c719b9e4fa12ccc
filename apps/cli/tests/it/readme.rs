//! The commands of the README, as a person pastes them into a shell: block by block, in one shell and
//! in a new one.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use turnwire_event::code::TurnState;

use crate::server::{BINARY, PATIENCE, Server};

const README: &str = include_str!("../../../../README.md");

/// The `sh` blocks of the README.
fn blocks() -> Vec<&'static str> {
    let parts = README.split("```sh\n").skip(1);
    let blocks = parts.map(|part| part.split("```").next().expect("a part"));
    let blocks: Vec<_> = blocks.collect();
    assert!(blocks.len() >= 4, "{blocks:?}");
    blocks
}

/// Runs blocks in a shell of their own against a server; gives what they print.
fn run(server: &Server, folder: &Path, blocks: &[&str]) -> String {
    let text = blocks
        .concat()
        .replace("http://127.0.0.1:8421", &server.url())
        // `tail` follows until it is ended.
        .replace(
            "target/release/turnwire tail",
            "timeout 3 \"$TURNWIRE\" tail",
        )
        .replace("target/release/turnwire", "\"$TURNWIRE\"");
    let done = Command::new("bash")
        .args(["-u", "-c", &text])
        .current_dir(folder)
        .env("TURNWIRE", BINARY)
        .env("TURNWIRE_SERVER", server.url())
        .stdin(Stdio::null())
        .output()
        .expect("bash runs");
    let output = [done.stdout, done.stderr].concat();
    String::from_utf8(output).expect("text")
}

#[tokio::test]
async fn readme_blocks_do_what_the_readme_says() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::serve(&dir.path().join("home"), "127.0.0.1:0", &[]);
    let client = server.client();
    let blocks = blocks();
    let [first, resume, session, read, verify, tail] = blocks.as_slice() else {
        panic!("{blocks:?}");
    };
    let output = run(&server, dir.path(), &[first]);
    assert!(output.contains("event: completed"), "{output}");
    let output = run(&server, dir.path(), &[resume]);
    assert!(output.contains("event: completed"), "{output}");
    // The turn that is cancelled is the story, and not another.
    let output = run(&server, dir.path(), &[session, read]);
    assert!(output.contains("\"state\":\"cancelled\""), "{output}");
    assert!(!output.contains("turn_in_flight"), "{output}");
    let sessions = client.sessions(None, Some(1)).await.expect("sessions");
    let session = sessions.sessions[0].session_id;
    let begun = Instant::now();
    let states = loop {
        let turns = client.turns(session, None, None).await.expect("turns");
        let states: Vec<_> = turns.turns.iter().map(|turn| turn.state).collect();
        if states[0] == TurnState::Completed || begun.elapsed() > PATIENCE * 3 {
            break states;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(states, [TurnState::Completed, TurnState::Cancelled]);
    // A shell that knows nothing of the first.
    let output = run(&server, dir.path(), &[verify, tail]);
    assert!(output.contains("turn.cancelled"), "{output}");
    assert!(
        output.contains("2 turns with one terminal each"),
        "{output}"
    );
}

// A block that is pasted whole: what stands behind an endless command would never run.
#[test]
fn endless_command_is_the_last_line_of_its_block() {
    let is_endless = |line: &str| line.contains("turnwire tail") || line.contains("turnwire serve");
    let endless: Vec<_> = blocks()
        .into_iter()
        .filter(|block| block.lines().any(is_endless))
        .collect();
    assert_eq!(endless.len(), 1, "{endless:?}");
    for block in endless {
        let at = block.lines().position(is_endless);
        assert_eq!(at, Some(block.lines().count() - 1), "{block}");
    }
    let before = README.split("target/release/turnwire tail").next();
    let before = before.and_then(|text| text.rsplit("\n\n").nth(1));
    assert!(before.is_some_and(|text| text.contains("Ctrl-C ends")));
}

#[test]
fn readme_resumes_after_the_last_complete_block() {
    let recipe = README.split("Last-Event-ID: $(").nth(1).expect("a recipe");
    let recipe = recipe.split(")\"\n").next().expect("its end");
    assert!(recipe.starts_with("awk "), "{recipe}");
    let dir = tempfile::tempdir().expect("a folder");
    let whole = "retry: 1889\nid: one\nevent: text\ndata: {}\n\nid: two\nevent: text\ndata: {}\n\n";
    let cuts = [
        "",
        "id: three",
        "id: three\n",
        "id: three\nevent: text\ndata: {\"event_ty",
        "id: three\nevent: text\ndata: {}\n",
    ];
    for cut in cuts {
        std::fs::write(dir.path().join("story"), format!("{whole}{cut}")).expect("a story");
        let done = Command::new("sh")
            .args(["-c", recipe])
            .current_dir(dir.path())
            .output()
            .expect("sh runs");
        assert_eq!(String::from_utf8_lossy(&done.stdout), "two\n", "{cut:?}");
    }
}

#[test]
fn readme_blocks_can_be_pasted_into_any_shell() {
    for block in blocks() {
        for line in block.lines() {
            assert!(
                !line.contains("# "),
                "a comment fails in an interactive zsh: {line}"
            );
            // A question mark or a variable outside of quotes is a pattern there.
            let mut quote = None;
            for (at, c) in line.char_indices() {
                match (quote, c) {
                    (None, '\'' | '"') => quote = Some(c),
                    (Some(open), c) if open == c => quote = None,
                    (None, '?' | '*') => panic!("unquoted {c} at {at}: {line}"),
                    _ => {}
                }
            }
            assert_eq!(quote, None, "{line}");
        }
    }
}

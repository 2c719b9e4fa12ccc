//! `turnwire export` from a server and from a data folder, and `turnwire verify` of its file: a whole
//! file passes, and every way of changing it is found, also if the digest is computed again.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use turnwire_event::SessionId;
use turnwire_event::content::sha256_hex;
use turnwire_wire::rest::session::SessionCreate;
use turnwire_wire::rest::turn::TurnSubmit;

use crate::server::{BINARY, PATIENCE, Server};

const SCRIPT: &str = r#"
- {when: {user: '^tool'}, steps: [{tool: {name: echo, input: {text: x}}}, {text: "b"}]}
- {steps: [{text: "an answer"}]}
"#;

fn turnwire(args: &[&str]) -> Output {
    let run = Command::new(BINARY).args(args).output();
    run.expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A session with a plain turn, one with a tool, and metadata.
async fn session(server: &Server) -> SessionId {
    let client = server.client();
    let new: SessionCreate =
        serde_json::from_value(json!({"metadata": {"case": "42"}})).expect("a body");
    let session = client.create_session(&new).await.expect("a session");
    let session = session.session_id;
    for words in ["hello", "tool", "hello again"] {
        let turn = client.submit(session, &TurnSubmit::text(words)).await;
        let turn = turn.expect("accepted").turn_id;
        let started = std::time::Instant::now();
        while client.turn(turn).await.expect("a turn").ended_at.is_none() {
            assert!(started.elapsed() < PATIENCE);
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
    session
}

fn export(session: SessionId, place: [&str; 2], file: &Path, more: &[&str]) -> Output {
    let (session, file) = (session.to_string(), file.display().to_string());
    let args = ["export", &session, "-o", &file, place[0], place[1]];
    turnwire(&[&args, more].concat())
}

/// The exit code of a check, and what it printed.
fn verify(file: &Path) -> (Option<i32>, String) {
    let done = turnwire(&["verify", &file.display().to_string()]);
    (done.status.code(), text(&done.stdout) + &text(&done.stderr))
}

/// Gives the lines of a file a right end record again, as somebody who edits it would.
fn seal(lines: &mut [String]) {
    let (end, body) = lines.split_last_mut().expect("lines");
    let mut fields: Value = serde_json::from_str(end).expect("JSON");
    fields["sha256"] = sha256_hex(body.concat().as_bytes()).into();
    *end = format!("{fields}\n");
}

fn kinds(lines: &[String]) -> Vec<String> {
    let kind = |line: &String| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        line["record"].as_str().expect("a kind").to_owned()
    };
    let mut kinds: Vec<_> = lines.iter().map(kind).collect();
    kinds.dedup();
    kinds
}

#[tokio::test]
async fn exported_session_is_verified_without_its_server() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(dir.path(), SCRIPT);
    let session = session(&server).await;
    let home = dir.path().display().to_string();
    let out = tempfile::tempdir().expect("a folder");
    for (name, place) in [
        ("server", ["--server", &server.url()]),
        ("folder", ["--data", &home]),
    ] {
        let file = out.path().join(name);
        let done = export(session, place, &file, &[]);
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
        let mode = file.metadata().expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let written = std::fs::read_to_string(&file).expect("text");
        let lines: Vec<_> = written.split_inclusive('\n').map(str::to_owned).collect();
        let expected = [
            "export",
            "session",
            "turn",
            "tool_call",
            "llm_call",
            "message",
            "log",
            "event",
            "end",
        ];
        assert_eq!(kinds(&lines), expected);
        let row: Value = serde_json::from_str(&lines[1]).expect("JSON");
        assert_eq!(row["session"]["metadata"], json!({"case": "42"}));
        assert!(!written.contains("attach"), "no token: {}", lines[1]);
        // A second export needs a word.
        let again = export(session, place, &file, &[]);
        assert_eq!(again.status.code(), Some(2));
        assert!(text(&again.stderr).contains("--force"));
        let again = export(session, place, &file, &["--force"]);
        assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    }
    let stdout = export(session, ["--data", &home], Path::new("-"), &[]);
    assert_eq!(stdout.status.code(), Some(0));
    std::fs::write(out.path().join("stdout"), &stdout.stdout).expect("written");
    drop(server);
    drop(dir);
    for name in ["server", "folder", "stdout"] {
        let (code, output) = verify(&out.path().join(name));
        assert_eq!(code, Some(0), "{name}: {output}");
        assert!(
            output.contains("✓ 3 turns with one terminal each"),
            "{output}"
        );
        assert!(output.contains("✓ 1 tool called and closed"), "{output}");
        assert!(!output.contains("not stored"), "{output}");
    }
    let nothing_else = std::fs::read_dir(out.path()).expect("a folder").count();
    assert_eq!(nothing_else, 3, "no drafts are left");
    let file = out.path().join("folder").display().to_string();
    let done = turnwire(&["verify", &file, "--json"]);
    let report: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!(
        (&report["ok"], &report["turns_ended"]),
        (&json!(true), &json!(3))
    );
    assert_eq!(report["session_id"], session.to_string());
}

#[tokio::test]
async fn changed_export_is_refused_also_with_a_new_digest() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(dir.path(), SCRIPT);
    let session = session(&server).await;
    let file = dir.path().join("export");
    let home = dir.path().display().to_string();
    let done = export(session, ["--data", &home], &file, &[]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let whole = std::fs::read_to_string(&file).expect("text");
    let lines: Vec<String> = whole.split_inclusive('\n').map(str::to_owned).collect();
    let find = |part: &str| {
        let found = lines.iter().position(|line| line.contains(part));
        found.unwrap_or_else(|| panic!("no {part}"))
    };
    let check = |lines: &[String], part: &str| {
        std::fs::write(&file, lines.concat()).expect("written");
        let (code, output) = verify(&file);
        assert_eq!(code, Some(1), "{part}: {output}");
        assert!(output.contains(part), "{part}: {output}");
    };
    let replaced = |at: usize, from: &str, to: &str| {
        let mut changed = lines.clone();
        assert!(changed[at].contains(from), "{from} in {}", changed[at]);
        changed[at] = changed[at].replace(from, to);
        changed
    };

    // As it is: cut, edited, reordered.
    check(&lines[..lines.len() - 1], "without its end record");
    check(&lines[..3], "without its end record");
    let event = find("\"record\":\"event\"");
    check(
        &replaced(event + 1, "hello", "hullo"),
        "the file was changed",
    );
    let mut swapped = lines.clone();
    swapped.swap(event + 1, event + 2);
    check(&swapped, "expected number 2");
    check(&replaced(1, "\"42\"", "\"43\""), "the file was changed");

    // With a new digest: the chain, the content hashes and the rows show it.
    let sealed = |mut lines: Vec<String>| {
        seal(&mut lines);
        lines
    };
    let event_2 = "evt_00010000000002: does not match its hash";
    check(&sealed(replaced(event + 1, "hello", "hullo")), event_2);
    let mut fewer = lines.clone();
    fewer.remove(event + 3);
    check(&sealed(fewer), "expected number 4");
    let answer = find("\"content\":[{\"type\":\"text\",\"text\":\"an answer\"");
    check(
        &sealed(replaced(answer, "an answer", "no answer")),
        "whose content does not match its hash",
    );
    let mut forged = replaced(answer, "an answer", "no answer");
    let record: Value = serde_json::from_str(&forged[answer]).expect("JSON");
    let hash = sha256_hex(record["message"]["content"].to_string().as_bytes());
    let old: Value = serde_json::from_str(&lines[answer]).expect("JSON");
    let old = old["content_sha256"].as_str().expect("a hash");
    forged[answer] = forged[answer].replace(old, &hash);
    check(
        &sealed(forged),
        "its stored message does not match its hash",
    );
    let turn = find("\"record\":\"turn\"");
    let other_end = replaced(turn, "\"status\":\"ok\"", "\"status\":\"failed\"");
    check(&sealed(other_end), "has another end");
    let mut cut: Vec<String> = lines.clone();
    let last = cut.len() - 2;
    cut.remove(last);
    let end: Value = serde_json::from_str(&cut[last]).expect("JSON");
    let events = end["events"].as_u64().expect("a count");
    cut[last] = cut[last].replace(
        &format!("\"events\":{events}"),
        &format!("\"events\":{}", events - 1),
    );
    let records = end["records"].as_u64().expect("a count");
    cut[last] = cut[last].replace(
        &format!("\"records\":{records}"),
        &format!("\"records\":{}", records - 1),
    );
    check(&sealed(cut), "names another last event");
    let other = "sess_00000000000000000000000001";
    let mut foreign = lines.clone();
    for line in foreign.iter_mut().take(turn + 1) {
        *line = line.replace(&session.to_string(), other);
    }
    check(&sealed(foreign), "of another session");

    // No file, and no export.
    assert_eq!(verify(&dir.path().join("nothing")).0, Some(2));
    std::fs::write(&file, "hello\n").expect("written");
    let (code, output) = verify(&file);
    assert_eq!(code, Some(2), "{output}");
    assert!(
        output.contains("not the begin of a file of `turnwire export`"),
        "{output}"
    );
}

#[tokio::test]
async fn damaged_session_is_not_exported() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut server = Server::start(dir.path(), SCRIPT);
    let session = session(&server).await;
    server.kill();
    let database = dir.path().join("turnwire.sqlite3");
    let database = rusqlite::Connection::open(database).expect("the database");
    let sql =
        "UPDATE event SET bytes = CAST(replace(CAST(bytes AS TEXT), 'again', 'aggin') AS BLOB)";
    assert!(database.execute(sql, []).expect("an update") > 0);
    drop(database);
    let file = dir.path().join("export");
    let home = dir.path().display().to_string();
    let done = export(session, ["--data", &home], &file, &[]);
    assert_eq!(done.status.code(), Some(2), "{}", text(&done.stderr));
    assert!(text(&done.stderr).contains("does not match its hash"));
    let left = std::fs::read_dir(dir.path()).expect("a folder").flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert!(
        !left
            .iter()
            .any(|name| name.to_string_lossy().contains("export")),
        "{left:?}"
    );
}

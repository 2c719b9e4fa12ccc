//! `turnwire replay`: a file and a stored session become the bytes that clients of the wires got.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::json;
use turnwire_client::{Client, ReceivedEvent, SessionWatch, WatchItem, WatchStart};
use turnwire_event::{Epoch, EventLane, EventType, Position, Seq, SessionId, TurnId};
use turnwire_log::sqlite::DATABASE_FILE;
use turnwire_wire::pc3::decode::FramePayload;
use turnwire_wire::pc3::{DecodedBlock, decode};
use turnwire_wire::rest::session::SessionCreate;
use turnwire_wire::rest::turn::TurnSubmit;
use turnwire_wire::session::write_event;

use crate::server::{BINARY, PATIENCE, Server};

const SCRIPT: &str = r#"
- {when: {user: '^slow'}, steps: [{text: "word word word word ", delay_ms: 20}, {stall: true}]}
- {when: {user: '^tool'}, steps: [{thinking: "an echo will do", signature: s}, {tool: {name: echo, input: {text: x}}}, {text: "done\r\n\"so\" "}, {text: "to say"}]}
- {steps: [{text: "you said {{user}}"}]}
"#;

const BEGINNING: WatchStart = WatchStart::After(Position::persisted(Epoch::FIRST, Seq(0)));

/// What the command says, and how it ends.
struct Done {
    code: Option<i32>,
    out: String,
    err: String,
}

fn replay(args: &[&str], input: &[u8]) -> Done {
    let mut child = Command::new(BINARY)
        .arg("replay")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    let typed = std::thread::spawn(move || stdin.write_all(&input));
    let done = child.wait_with_output().expect("it ends");
    // One that does not read its input closes it early.
    let _ = typed.join().expect("no panic");
    Done {
        code: done.status.code(),
        out: String::from_utf8(done.stdout).expect("text"),
        err: String::from_utf8(done.stderr).expect("text"),
    }
}

/// The events up to the end of `turns` turns.
async fn watched(watch: &mut SessionWatch, turns: usize) -> Vec<ReceivedEvent> {
    let (mut seen, mut ended) = (Vec::new(), 0);
    while ended < turns {
        let item = tokio::time::timeout(PATIENCE, watch.next()).await;
        if let Some(WatchItem::Event(event)) = item.expect("in time").expect("no error") {
            ended += usize::from(event.kind.is_terminal());
            seen.push(event);
        }
    }
    seen
}

fn frames<'a>(events: impl IntoIterator<Item = &'a ReceivedEvent>) -> String {
    let mut out = Vec::new();
    for event in events {
        write_event(&event.raw, &mut out);
        out.push(b'\n');
    }
    String::from_utf8(out).expect("text")
}

/// The events as lines of a file.
fn lines(events: &[ReceivedEvent]) -> Vec<u8> {
    let line = |event: &ReceivedEvent| [&event.raw, b"\n".as_slice()].concat();
    events.iter().flat_map(line).collect()
}

/// A session with three turns, the last one cancelled, and what a client saw of it live.
async fn told(client: &Client) -> (SessionId, Vec<ReceivedEvent>, [TurnId; 3]) {
    let made = client
        .create_session(&SessionCreate::default())
        .await
        .expect("a session");
    let id = made.session_id;
    let mut watch = client.watch(id, json!("preset:full"), BEGINNING);
    let mut live = Vec::new();
    // Words are only live for one who is there before them.
    let first = watch.next().await.expect("no error");
    assert!(
        matches!(first, Some(WatchItem::Connected { .. })),
        "{first:?}"
    );
    let mut turns = Vec::new();
    for words in ["hello", "tool", "slow"] {
        let turn = client
            .submit(id, &TurnSubmit::text(words))
            .await
            .expect("accepted");
        turns.push(turn.turn_id);
        if words == "slow" {
            while live
                .last()
                .is_none_or(|e: &ReceivedEvent| e.kind != EventType::TextDelta)
            {
                if let Some(WatchItem::Event(event)) = watch.next().await.expect("no error") {
                    live.push(event);
                }
            }
            client.cancel(turn.turn_id, None).await.expect("accepted");
        }
        live.extend(watched(&mut watch, 1).await);
    }
    (id, live, turns.try_into().expect("three"))
}

/// The frames of a pc3 stream, each turn's ending with its sentinel.
fn streams(bytes: &str) -> Vec<Vec<FramePayload>> {
    let mut all = vec![Vec::new()];
    for block in bytes.split_terminator("\n\n") {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
        let event = field("event: ").unwrap_or_default();
        match decode(event, field("data: ").expect("data")).expect("a frame") {
            DecodedBlock::Frame(frame) => all.last_mut().expect("one").push(frame.payload),
            DecodedBlock::Done => all.push(Vec::new()),
            DecodedBlock::Unknown(kind) => panic!("{kind}"),
        }
    }
    assert_eq!(all.pop(), Some(Vec::new()), "nothing after the last [DONE]");
    all
}

fn text(stream: &[FramePayload]) -> String {
    let chunk = |payload: &FramePayload| match payload {
        FramePayload::Text { chunk } => Some(chunk.clone()),
        _ => None,
    };
    stream.iter().filter_map(chunk).collect()
}

// LAW-3
#[test]
fn golden_logs_replay_to_the_golden_bytes() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/wire/tests/golden");
    let mut scenarios = 0;
    for scenario in std::fs::read_dir(golden).expect("scenarios") {
        let dir = scenario.expect("a scenario").path();
        let file = |name: &str| std::fs::read_to_string(dir.join(name)).expect(name);
        let events = dir.join("events.jsonl").display().to_string();
        let wires: [(&[&str], &str); 3] = [
            (&["session"], "session.jsonl"),
            (&["pc3", "--version", "0.5"], "pc3-0.5.txt"),
            (&["pc3", "--version", "0.4"], "pc3-0.4.txt"),
        ];
        for (wire, expected) in wires {
            let done = replay(&[&[events.as_str(), "--wire"], wire].concat(), b"");
            assert_eq!(done.code, Some(0), "{}", done.err);
            assert_eq!(done.out, file(expected), "{events} {expected}");
        }
        let piped = replay(&["-", "--wire", "session"], file("events.jsonl").as_bytes());
        assert_eq!(piped.out, file("session.jsonl"));
        scenarios += 1;
    }
    assert!(scenarios > 10, "{scenarios}");
}

// LAW-3
#[tokio::test]
async fn replay_equals_what_clients_received() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(dir.path(), SCRIPT);
    let client = server.client();
    let (id, live, turns) = told(&client).await;
    let (id, home) = (id.to_string(), dir.path().display().to_string());
    let of_session =
        |more: &[&str]| replay(&[&[&id, "--home", &home, "--wire"], more].concat(), b"");

    // A file of what came live is what came live.
    let file = dir.path().join("live.jsonl");
    std::fs::write(&file, lines(&live)).expect("written");
    let done = replay(&[&file.display().to_string(), "--wire", "session"], b"");
    assert_eq!((done.code, done.out), (Some(0), frames(&live)));

    // The session is what a client that comes late gets, beside the running server.
    let session = id.parse().expect("an id");
    let mut late = client.watch(session, json!("preset:full"), BEGINNING);
    let late = frames(&watched(&mut late, 3).await);
    let done = of_session(&["session"]);
    assert!(done.out.starts_with(&late), "{}\n{late}", done.out);
    let is_delta = |event: &&ReceivedEvent| {
        let ends = [EventType::MessageStart, EventType::MessageComplete];
        event.kind.lane() == EventLane::Streaming && !ends.contains(&event.kind)
    };
    let whole = live.iter().filter(|event| !is_delta(event));
    assert!(done.out.starts_with(&frames(whole)), "{}", done.out);
    let session_alone = of_session(&["session", "--turn", &turns[1].to_string()]);
    let of_turn = live.iter().filter(|e| e.turn_id == Some(turns[1]));
    assert_eq!(session_alone.out, frames(of_turn.filter(|e| !is_delta(e))));
}

// LAW-5
#[tokio::test]
async fn text_of_pc3_is_the_stored_text() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(dir.path(), SCRIPT);
    let client = server.client();
    let (session, live, turns) = told(&client).await;
    let (id, home) = (session.to_string(), dir.path().display().to_string());
    let of_session =
        |more: &[&str]| replay(&[&[&id, "--home", &home, "--wire"], more].concat(), b"");
    let messages = client
        .records(session)
        .messages(None, None)
        .await
        .expect("messages");
    let stored = |turn: TurnId| -> String {
        let messages = messages.messages.iter();
        let said = messages.filter(|m| m.turn_id == turn && m.model.is_some());
        said.map(|message| message.text()).collect()
    };
    for version in ["0.4", "0.5"] {
        let whole = of_session(&["pc3", "--version", version]);
        assert_eq!((whole.code, whole.err.as_str()), (Some(0), ""));
        let one = |turn: &TurnId| {
            let turn = turn.to_string();
            of_session(&["pc3", "--version", version, "--turn", &turn]).out
        };
        assert_eq!(turns.iter().map(one).collect::<String>(), whole.out);
        let recorded = replay(&["-", "--wire", "pc3", "--version", version], &lines(&live));
        assert_eq!((recorded.code, recorded.err.as_str()), (Some(0), ""));
        for bytes in [&whole.out, &recorded.out] {
            assert!(bytes.ends_with("data: [DONE]\n\n"), "{bytes}");
            let streams = streams(bytes);
            assert_eq!(streams.len(), 3);
            for (stream, turn) in streams.iter().zip(turns) {
                assert_eq!(text(stream), stored(turn));
                let ends = stream
                    .iter()
                    .filter(|payload| payload.is_terminal())
                    .count();
                assert!(ends == 1 && stream.last().is_some_and(FramePayload::is_terminal));
            }
        }
    }
}

#[tokio::test]
async fn pc3_replay_of_a_page_warns_of_missing_text() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(dir.path(), SCRIPT);
    let client = server.client();
    let (id, _, turns) = told(&client).await;
    let page = client
        .records(id)
        .events(Default::default())
        .await
        .expect("a page");
    let page = serde_json::to_vec(&page).expect("plain data");
    let turn = turns[0].to_string();
    let done = replay(&["-", "--wire", "pc3", "--turn", &turn], &page);
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(text(&streams(&done.out)[0]), "");
    assert!(
        done.err.starts_with("a message has no text deltas"),
        "{}",
        done.err
    );
}

#[tokio::test]
async fn turn_in_flight_is_replayed_as_far_as_stored() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(dir.path(), SCRIPT);
    let client = server.client();
    let made = client
        .create_session(&SessionCreate::default())
        .await
        .expect("a session");
    let id = made.session_id;
    client
        .submit(id, &TurnSubmit::text("slow"))
        .await
        .expect("accepted");
    let home = dir.path().display().to_string();
    let begun = Instant::now();
    // Checkpoints come by themselves; which of them has all the words is not known beforehand.
    loop {
        let done = replay(&[&id.to_string(), "--home", &home, "--wire", "pc3"], b"");
        assert_eq!(done.code, Some(0), "{}", done.err);
        assert!(!done.out.contains("[DONE]"), "{}", done.out);
        let stream = streams(&format!("{}data: [DONE]\n\n", done.out));
        if text(&stream[0]) == "word word word word " {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{}", done.out);
    }
}

#[tokio::test]
async fn damaged_session_replays_up_to_the_damage() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut server = Server::start(dir.path(), SCRIPT);
    let (id, live, _) = told(&server.client()).await;
    server.kill();
    let database =
        rusqlite::Connection::open(dir.path().join(DATABASE_FILE)).expect("the database");
    let sql = "UPDATE event SET bytes = CAST(replace(CAST(bytes AS TEXT), 'sess_', 'sesS_') AS BLOB) WHERE seq = 3";
    assert_eq!(database.execute(sql, []).expect("an update"), 1);
    drop(database);
    let home = dir.path().display().to_string();
    let done = replay(
        &[&id.to_string(), "--home", &home, "--wire", "session"],
        b"",
    );
    assert_eq!((done.code, done.out), (Some(2), frames(&live[..2])));
    let said = ": record 3 does not match its hash; see `turnwire verify`\n";
    assert!(done.err.ends_with(said), "{}", done.err);
}

#[test]
fn unreadable_input_is_reported_with_its_position() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../crates/wire/tests/golden/plain_text/events.jsonl");
    let events = std::fs::read_to_string(&golden).expect("events");
    let lines: Vec<_> = events.lines().collect();
    let golden = golden.display().to_string();
    let none = SessionId(turnwire_event::Ulid(7)).to_string();
    let turn = TurnId(turnwire_event::Ulid(7)).to_string();
    let empty = tempfile::tempdir().expect("a folder");
    let home = empty.path().display().to_string();
    let cases: [(&[&str], String, String); 8] = [
        (
            &["-"],
            format!("{}\nnope\n", lines[0]),
            "<stdin>:2: not a JSON object".into(),
        ),
        (
            &["-"],
            "{\"type\":\"text.delta\"}".into(),
            "<stdin>:1: not an event: ".into(),
        ),
        (
            &["-"],
            "{\"events\":[7]}".into(),
            "<stdin>:1: not an event: ".into(),
        ),
        (
            &["-"],
            lines[0].replace("session.created", "session.dreamt"),
            "<stdin>:1: ".into(),
        ),
        (
            &["-"],
            format!("{0}\n{0}\n", lines[0]),
            "<stdin>:2: evt_".into(),
        ),
        (
            &["missing.jsonl"],
            String::new(),
            "missing.jsonl is neither a session id".into(),
        ),
        (
            &[&none, "--home", &home],
            String::new(),
            "opening the data folder".into(),
        ),
        (
            &[&golden, "--turn", &turn],
            String::new(),
            format!("there is no turn {turn} in"),
        ),
    ];
    for (args, input, said) in cases {
        let done = replay(&[args, &["--wire", "session"]].concat(), input.as_bytes());
        assert_eq!(done.code, Some(2), "{args:?} {}", done.err);
        assert!(done.err.contains(&said), "{args:?} {}", done.err);
    }
    let usage: [&[&str]; 4] = [
        &["--wire", "session", "--version", "0.5"],
        &["--wire", "pc3", "--version", "0.6"],
        &["--wire", "smoke"],
        &["--wire", "session", "--turn", "seven"],
    ];
    for args in usage {
        let done = replay(&[&["-"], args].concat(), b"");
        assert_eq!((done.code, done.out.as_str()), (Some(2), ""), "{args:?}");
    }
}

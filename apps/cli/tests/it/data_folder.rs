//! The real binary on a real data folder: a sound log, one with a changed byte, none at all.

use std::path::Path;
use std::process::{Command, Output};

use bytes::Bytes;
use serde_json::Value;
use turnwire_event::body::session::SessionCreated;
use turnwire_event::body::turn::{BoundVersions, TurnCompleted, TurnStarted};
use turnwire_event::code::{OnDisconnect, TurnKind, TurnStatus};
use turnwire_event::row::{NewMessage, PlacedChange, RowChange, SessionRow, TurnSettings};
use turnwire_event::{
    Actor, Body, ContentBlock, EpisodeId, Epoch, Event, MessageId, Owner, Position, Role, Seq,
    SessionId, TenantId, Timestamp, TokenUsage, TurnId, Ulid,
};
use turnwire_log::chain::ChainHash;
use turnwire_log::sqlite::{CommitDurability, DATABASE_FILE, SqliteOptions, SqliteStore};
use turnwire_log::{EventRecord, LeaseTerm, Log as _, SessionAppend};

const SESSION: SessionId = SessionId(Ulid(1));
const TURN: TurnId = TurnId(Ulid(2));
const EPISODE: EpisodeId = EpisodeId(Ulid(3));
const MESSAGE: MessageId = MessageId(Ulid(4));

fn events() -> Vec<Event> {
    let created = SessionCreated {
        workspace_path: None,
        episode_id: EPISODE,
    };
    let started = TurnStarted {
        relayed_to: None,
        answers: Vec::new(),
        resumes: None,
        user_message_id: MESSAGE,
        input: vec![ContentBlock::text("hello \u{1b}[31mthere")],
        kind: TurnKind::Chat,
        origin: None,
        dm_type: None,
        episode_id: EPISODE,
        locale: "en".into(),
        wire_version: None,
        history_omitted: 0,
        versions: BoundVersions::default(),
    };
    let completed = TurnCompleted {
        status: TurnStatus::Ok,
        usage: TokenUsage::default(),
        error: None,
        reason: None,
        partial: None,
        paused: None,
    };
    let bodies = [
        (None, Body::SessionCreated(created)),
        (Some(TURN), Body::TurnStarted(started)),
        (Some(TURN), Body::TurnCompleted(completed)),
    ];
    let event = |(seq, (turn_id, body)): (u64, (Option<TurnId>, Body))| Event {
        response_id: None,
        id: Position::persisted(Epoch::FIRST, Seq(seq)),
        session_id: SESSION,
        turn_id,
        actor: Actor::USER,
        timestamp: Timestamp::from_millis(1_000),
        trace: None,
        render: None,
        sub_agent_id: None,
        body,
    };
    (1..).zip(bodies).map(event).collect()
}

/// The row changes, each with the number of its event.
fn rows() -> Vec<(u64, RowChange)> {
    let session = SessionRow {
        agent: None,
        id: SESSION,
        owner: Owner {
            tenant: TenantId(0),
            principal: "local".parse().expect("a principal"),
        },
        parent: None,
        workspace_path: None,
        metadata: turnwire_event::JsonObject::default(),
        episode_id: EPISODE,
        active_model: "m".into(),
        routing_policy_version: "1".into(),
        cost_usd: 0.0,
        turn_count: 0,
        created_at: Timestamp::from_millis(1_000),
        updated_at: Timestamp::from_millis(1_000),
    };
    let message = NewMessage {
        provider_state: turnwire_event::ProviderState::default(),
        id: MESSAGE,
        role: Role::User,
        content: vec![ContentBlock::text("hello \u{1b}[31mthere")],
        metadata: turnwire_event::JsonObject::default(),
        scope: turnwire_event::row::MessageScope::default(),
    };
    let started = vec![
        RowChange::TurnStarted {
            settings: TurnSettings {
                turn_id: TURN,
                kind: TurnKind::Chat,
                on_disconnect: OnDisconnect::Continue,
                disconnect_grace_ms: 0,
                trace: None,
                wire_version: None,
            },
            agent_definition: String::new(),
            resumes: None,
        },
        RowChange::MessagePut(TURN, message),
    ];
    let end = &events()[2];
    let ended = turnwire_event::fold::rows(end.turn_id, &end.actor, &end.body);
    let created = [(1, RowChange::SessionPut(Box::new(session)))];
    let started = started.into_iter().map(|change| (2, change));
    let ended = ended.into_iter().map(|change| (3, change));
    created.into_iter().chain(started).chain(ended).collect()
}

/// Writes a session of three events into a new folder.
fn write(dir: &Path) {
    let options = SqliteOptions {
        dir: dir.to_owned(),
        durability: CommitDurability::Full,
    };
    let store = SqliteStore::open(&options).expect("a new store");
    let mut hash = ChainHash::seed(SESSION);
    let record = |event: Event| {
        let bytes = Bytes::from(event.to_bytes());
        hash = hash.next(&bytes);
        EventRecord {
            seq: event.id.seq,
            kind: event.body.kind(),
            turn: event.turn_id,
            actor: event.actor,
            time: event.timestamp,
            hidden: false,
            hash,
            bytes,
        }
    };
    let append = SessionAppend {
        session: SESSION,
        term: LeaseTerm::default(),
        prev: Seq(0),
        records: events().into_iter().map(record).collect(),
        rows: rows()
            .into_iter()
            .map(|(seq, change)| PlacedChange {
                at: Position::persisted(Epoch::FIRST, Seq(seq)),
                time: Timestamp::from_millis(1_000),
                change,
            })
            .collect(),
    };
    store.append(&[append]).expect("room on the disk");
}

fn turnwire(command: &str, dir: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_turnwire"))
        .args([command, &SESSION.to_string(), "--data"])
        .arg(dir)
        .args(more)
        .output()
        .expect("the binary runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

#[test]
fn valid_log_is_verified_and_printed() {
    let dir = tempfile::tempdir().expect("a folder");
    write(dir.path());
    let done = turnwire("verify", dir.path(), &[]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let lines: Vec<_> = text(&done.stdout).lines().take(2).collect();
    assert_eq!(
        lines,
        ["✓ 1…3 contiguous", "✓ 1 turn with one terminal each"]
    );

    let done = turnwire("tail", dir.path(), &["--json"]);
    let written: Vec<_> = events().iter().map(Event::to_bytes).collect();
    let lines: Vec<_> = text(&done.stdout).lines().map(str::as_bytes).collect();
    assert_eq!(lines, written, "byte for byte");

    let from = Position::persisted(Epoch::FIRST, Seq(1)).to_string();
    let done = turnwire("tail", dir.path(), &["--from", &from]);
    assert_eq!(
        text(&done.stdout),
        "evt_00010000000002 00:00:01.000 turn.started user hello there\n\
         evt_00010000000003 00:00:01.000 turn.completed user ok 0 tokens\n"
    );
}

#[test]
fn changed_byte_is_reported_with_its_event() {
    let dir = tempfile::tempdir().expect("a folder");
    write(dir.path());
    let database =
        rusqlite::Connection::open(dir.path().join(DATABASE_FILE)).expect("the database");
    let sql = "UPDATE event SET bytes = CAST(replace(CAST(bytes AS TEXT), 'hello', 'hellu') AS BLOB) WHERE seq = 2";
    assert_eq!(database.execute(sql, []).expect("an update"), 1);
    drop(database);
    let done = turnwire("verify", dir.path(), &[]);
    assert_eq!(done.status.code(), Some(1));
    assert_eq!(
        text(&done.stdout),
        "✗ evt_00010000000002: is missing or does not match its hash; nothing after it was read\n"
    );
    let done = turnwire("verify", dir.path(), &["--json"]);
    let verdict: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!(verdict["ok"], false);
    assert_eq!(verdict["violations"][0]["event"], "evt_00010000000002");
}

/// Changes the database of a new folder, and returns the exit code and the output of `verify`.
fn verify_changed(sql: &str) -> (Option<i32>, String) {
    let dir = tempfile::tempdir().expect("a folder");
    write(dir.path());
    let database =
        rusqlite::Connection::open(dir.path().join(DATABASE_FILE)).expect("the database");
    database.execute_batch(sql).expect(sql);
    drop(database);
    let done = turnwire("verify", dir.path(), &[]);
    (done.status.code(), text(&done.stdout).to_owned())
}

#[test]
fn changed_column_is_reported_by_verify() {
    for (column, value) in [
        ("type", "'tool.called'"),
        ("turn", "NULL"),
        ("actor", "'orchestrator'"),
        ("time", "time + 1"),
        ("hidden", "1"),
    ] {
        let (code, output) = verify_changed(&format!(
            "UPDATE event SET {column} = {value} WHERE seq = 2"
        ));
        assert_eq!(code, Some(1), "{column}");
        let line = format!("✗ evt_00010000000002: its column `{column}` differs from its bytes\n");
        assert_eq!(output, line);
    }
}

#[test]
fn changed_row_is_reported_by_verify() {
    for (sql, event) in [
        (
            "UPDATE message SET content = replace(content, 'hello', 'hellu')",
            2,
        ),
        ("UPDATE message SET role = 'assistant'", 2),
        ("DELETE FROM message", 2),
        ("UPDATE turn SET started = 'evt_00010000000001'", 2),
        ("UPDATE turn SET ended = NULL", 3),
        ("UPDATE turn SET ended_at = ended_at + 1", 3),
        ("UPDATE turn SET terminal_type = 'turn.cancelled'", 3),
        (
            "UPDATE turn SET terminal = replace(terminal, '\"ok\"', '\"failed\"')",
            3,
        ),
    ] {
        let (code, output) = verify_changed(sql);
        assert_eq!(code, Some(1), "{sql}: {output}");
        let id = format!("✗ evt_0001000000000{event}: ");
        assert!(output.contains(&id), "{sql}: {output}");
    }
}

#[test]
fn cut_tail_is_reported_by_verify() {
    for first in [1, 2, 3] {
        let (code, output) = verify_changed(&format!("DELETE FROM event WHERE seq >= {first}"));
        assert_eq!(code, Some(1), "{first}: {output}");
        assert!(
            output.contains("✗ evt_00010000000003: is missing: "),
            "{first}: {output}"
        );
    }
}

#[test]
fn missing_event_is_reported_by_verify() {
    let dir = tempfile::tempdir().expect("a folder");
    write(dir.path());
    let database =
        rusqlite::Connection::open(dir.path().join(DATABASE_FILE)).expect("the database");
    let sql = "DELETE FROM event WHERE seq = 2";
    assert_eq!(database.execute(sql, []).expect("a delete"), 1);
    drop(database);
    let verified = turnwire("verify", dir.path(), &[]);
    assert_eq!(verified.status.code(), Some(1));
    assert_eq!(
        text(&verified.stdout),
        "✗ evt_00010000000002: is missing or does not match its hash; nothing after it was read\n"
    );
}

#[test]
fn missing_content_is_counted_and_no_violation() {
    let dir = tempfile::tempdir().expect("a folder");
    let done = turnwire("verify", dir.path(), &[]);
    assert_eq!(done.status.code(), Some(2));
    assert!(
        text(&done.stderr).contains("opening the data folder"),
        "{}",
        text(&done.stderr)
    );
    write(dir.path());
    let other = SessionId(Ulid(9)).to_string();
    let done = Command::new(env!("CARGO_BIN_EXE_turnwire"))
        .args(["verify", &other, "--data"])
        .arg(dir.path())
        .output()
        .expect("the binary runs");
    assert_eq!(done.status.code(), Some(2));
    let said = text(&done.stderr);
    assert!(
        said.ends_with(": there is no such session in this folder\n"),
        "{said}"
    );
}

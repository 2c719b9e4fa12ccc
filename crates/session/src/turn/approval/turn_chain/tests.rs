//! Chains of turns in a real store: whole ones, and those cut by bytes and by turns.

use turnwire_event::code::OnDisconnect;
use turnwire_event::port::HistoryBudget;
use turnwire_event::row::{NewMessage, PlacedChange, RowChange, SessionRow, TurnSettings};
use turnwire_event::{
    ContentBlock, EpisodeId, Epoch, EventType, JsonObject, MessageId, Owner, Sub, TenantId,
    Timestamp, Ulid,
};
use turnwire_log::sqlite::{CommitDurability, SqliteOptions, SqliteStore};
use turnwire_log::{LeaseTerm, SessionAppend, TurnRecords as _};

use super::*;
use crate::history::select::newest_complete_turns;

const SESSION: SessionId = SessionId(Ulid(1));
const REPLY: &str = "a reply that asks for approval";

fn session_row() -> SessionRow {
    SessionRow {
        agent: None,
        id: SESSION,
        owner: Owner {
            tenant: TenantId(0),
            principal: "local".parse().expect("a principal"),
        },
        parent: None,
        workspace_path: None,
        metadata: JsonObject::default(),
        episode_id: EpisodeId(Ulid(1)),
        active_model: "m".into(),
        routing_policy_version: "1".into(),
        cost_usd: 0.0,
        turn_count: 0,
        created_at: Timestamp::from_millis(0),
        updated_at: Timestamp::from_millis(0),
    }
}

fn turn_id(turn: u32) -> TurnId {
    TurnId(Ulid(turn.into()))
}

/// The rows of one turn of a chain: its opening message and a reply. The first turn opens with text.
fn turn_rows(turn: u32) -> [(u32, RowChange); 4] {
    let (id, number) = (turn_id(turn), u128::from(turn) * 10);
    let resumes = (turn > 1).then(|| turn_id(turn - 1));
    let mut opening = NewMessage::new(MessageId(Ulid(number)), Role::User, Vec::new());
    match resumes {
        Some(paused) => opening.metadata.set(RESUMES, &paused.to_string().into()),
        None => opening.content.push(ContentBlock::text("pay all bills")),
    }
    let reply = vec![ContentBlock::text(REPLY)];
    let reply = NewMessage::new(MessageId(Ulid(number + 1)), Role::Assistant, reply);
    let started = RowChange::TurnStarted {
        settings: TurnSettings {
            turn_id: id,
            kind: TurnKind::Chat,
            on_disconnect: OnDisconnect::Continue,
            disconnect_grace_ms: 0,
            trace: None,
            wire_version: None,
        },
        agent_definition: "1".into(),
        resumes,
    };
    let ended = RowChange::TurnEnded {
        turn_id: id,
        terminal: EventType::TurnCompleted,
        payload: "{}".into(),
    };
    let at = turn * 3;
    [
        (at, started),
        (at, RowChange::MessagePut(id, opening)),
        (at + 1, RowChange::MessagePut(id, reply)),
        (at + 2, ended),
    ]
}

/// A store with a chain of turns, each of which resumes the one before.
fn store_with_chain(dir: &std::path::Path, turns: u32) -> SqliteStore {
    let options = SqliteOptions {
        dir: dir.to_owned(),
        durability: CommitDurability::Relaxed,
    };
    let store = SqliteStore::open(&options).expect("a store");
    let session = (0, RowChange::SessionPut(Box::new(session_row())));
    let rows = std::iter::once(session).chain((1..=turns).flat_map(turn_rows));
    let placed = rows.map(|(at, change)| PlacedChange {
        at: Position {
            epoch: Epoch::FIRST,
            seq: Seq(1),
            sub: Sub(at),
        },
        time: Timestamp::from_millis(0),
        change,
    });
    let append = SessionAppend {
        session: SESSION,
        term: LeaseTerm::default(),
        prev: Seq(0),
        records: Vec::new(),
        rows: placed.collect(),
    };
    store.append(&[append]).expect("an append");
    store
}

/// The turn and the role of each message.
fn labels(messages: &[SizedMessage]) -> Vec<String> {
    let label = |(message, _): &SizedMessage| {
        let role = match message.role {
            Role::User => "user",
            _ => "reply",
        };
        format!("{} {role}", message.turn_id.0.0)
    };
    messages.iter().map(label).collect()
}

/// The messages that the chain of turn `paused` has within the bounds.
fn read_labels(store: &SqliteStore, paused: u32, bounds: ChainBounds) -> Vec<String> {
    let (_, row) = store
        .turn(turn_id(paused))
        .expect("a read")
        .expect("a turn");
    let chain = TurnChain::read_within(store, &row, Position::LAST, bounds).expect("a chain");
    assert!(chain.turns.contains(&turn_id(1)), "{:?}", chain.turns);
    // However small the budget of the history is: the chain stays together.
    let budget = HistoryBudget {
        messages_max: 0,
        bytes_max: 0,
    };
    let selected = newest_complete_turns(chain.messages.clone(), budget);
    assert_eq!(labels(&selected), labels(&chain.messages));
    labels(&chain.messages)
}

#[test]
fn chain_within_its_bounds_is_read_whole() {
    let dir = tempfile::tempdir().expect("a folder");
    let store = store_with_chain(dir.path(), 3);
    let expected = [
        "1 user", "1 reply", "2 user", "2 reply", "3 user", "3 reply",
    ];
    assert_eq!(read_labels(&store, 3, CHAIN_BOUNDS), expected);
}

#[test]
fn cut_chain_keeps_the_opening_message_of_its_first_turn() {
    let dir = tempfile::tempdir().expect("a folder");
    let store = store_with_chain(dir.path(), 4);
    let reply_bytes = serde_json::to_vec(&[ContentBlock::text(REPLY)]).expect("JSON");
    let turn_bytes = reply_bytes.len() + "[]".len();
    let within = |bytes| {
        let bounds = ChainBounds {
            bytes,
            ..CHAIN_BOUNDS
        };
        read_labels(&store, 4, bounds)
    };
    let two_turns = ["1 user", "3 user", "3 reply", "4 user", "4 reply"];
    assert_eq!(within(2 * turn_bytes), two_turns);
    let one_turn = ["1 user", "4 user", "4 reply"];
    assert_eq!(within(2 * turn_bytes - 1), one_turn);
    assert_eq!(within(turn_bytes), one_turn);
    assert_eq!(
        within(0),
        ["1 user", "4 user"],
        "the paused turn is cut too"
    );
    let bounds = ChainBounds {
        turns: 2,
        ..CHAIN_BOUNDS
    };
    assert_eq!(read_labels(&store, 4, bounds), two_turns);
}

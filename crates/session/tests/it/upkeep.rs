//! Periodic work beside the turns.

use std::time::Duration;

use turnwire_event::row::{KeyScope, PlacedChange, RowChange, SessionRow};
use turnwire_event::{EpisodeId, Epoch, Position, Seq, SessionId, Timestamp, TurnId, Ulid};
use turnwire_log::sqlite::{CommitDurability, SqliteOptions, SqliteStore};
use turnwire_log::{Log as _, SessionAppend, TurnRecords as _};
use turnwire_session::Options;

use crate::stage::*;

fn scope(key: usize) -> KeyScope {
    KeyScope {
        owner: owner("local"),
        route: "turns".into(),
        session: None,
        key: key.to_string(),
    }
}

/// Stores a session with `keys` expired keys.
fn with_keys(dir: &std::path::Path, keys: usize) {
    let then = Timestamp::from_millis(1);
    let row = SessionRow {
        agent: None,
        id: SessionId(Ulid(1)),
        owner: owner("local"),
        parent: None,
        workspace_path: None,
        metadata: turnwire_event::JsonObject::default(),
        episode_id: EpisodeId(Ulid(1)),
        active_model: "m".into(),
        routing_policy_version: "1".into(),
        cost_usd: 0.0,
        turn_count: 0,
        created_at: then,
        updated_at: then,
    };
    let session = row.id;
    let key_row = |key| RowChange::KeyPut {
        scope: Box::new(scope(key)),
        turn_id: TurnId(Ulid(2)),
        body_sha256: [0; 32],
    };
    let changes = [RowChange::SessionPut(Box::new(row))];
    let changes = changes.into_iter().chain((0..keys).map(key_row));
    let placed = changes.map(|change| PlacedChange {
        at: Position::persisted(Epoch(1), Seq(0)),
        time: then,
        change,
    });
    let options = SqliteOptions {
        dir: dir.to_owned(),
        durability: CommitDurability::Full,
    };
    let store = SqliteStore::open(&options).expect("a store");
    let append = SessionAppend {
        session,
        term: Default::default(),
        prev: Seq(0),
        records: Vec::new(),
        rows: placed.collect(),
    };
    store.append(&[append]).expect("an append");
}

#[tokio::test]
async fn all_expired_keys_are_removed_in_one_pass() {
    let dir = tempfile::tempdir().expect("a folder");
    const KEYS: usize = 3_500; // several pieces, and looks are ten seconds apart
    with_keys(dir.path(), KEYS);
    let (_, act) = Turnstile::new();
    let _sessions = start_service(dir.path(), Options::default(), act).await;
    let store = SqliteStore::open_read_only(dir.path()).expect("a reader");
    let remaining = || {
        (0..KEYS).any(|key| {
            store
                .idempotency_key(&scope(key))
                .expect("a read")
                .is_some()
        })
    };
    for _ in 0..500 {
        if !remaining() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("some wait for the next look");
}

//! Turns that wait and keys of submits.

use std::sync::Arc;

use turnwire_event::code::{OnDisconnect, TurnKind, TurnState};
use turnwire_event::row::{KeyScope, QueuedRow, RowChange};
use turnwire_event::{Epoch, Position, Seq, SessionId, Timestamp, TurnId, Ulid};

use super::{Maker, owner};
use crate::record::{Append, Term};
use crate::store::Store;

pub(super) fn run(make: &dyn Fn() -> Arc<dyn Store>) {
    a_turn_waits_then_starts_then_ends(make().as_ref());
    the_lowest_place_is_next(make().as_ref());
    a_session_with_a_line_is_not_trimmed_and_takes_it_along(make().as_ref());
    a_key_stands_for_its_turn_in_its_scope(make().as_ref());
    old_keys_go_a_bounded_number_at_a_time(make().as_ref());
}

/// Rows alone, at the tail.
pub(crate) fn rows(maker: &Maker, rows: Vec<RowChange>) -> Append {
    Append {
        session: maker.session,
        term: Term(0),
        prev: maker.seq,
        records: Vec::new(),
        rows: rows.into_iter().map(|row| maker.placed(row)).collect(),
    }
}

pub(crate) fn queued(turn: TurnId, place: i64) -> RowChange {
    RowChange::TurnQueued {
        turn_id: turn,
        kind: TurnKind::Chat,
        on_disconnect: OnDisconnect::Cancel,
        disconnect_grace_ms: 7,
        trace: None,
        wire_version: Some("0.4".into()),
        place,
        input: format!("input of {place}"),
    }
}

pub(crate) fn key(scope: &KeyScope, turn: TurnId, body: u8) -> RowChange {
    RowChange::KeyPut {
        scope: Box::new(scope.clone()),
        turn_id: turn,
        body_sha256: [body; 32],
    }
}

pub(crate) fn scope(session: Option<SessionId>, key: &str) -> KeyScope {
    KeyScope {
        owner: owner("local"),
        route: "turns".into(),
        session,
        key: key.into(),
    }
}

fn a_turn_waits_then_starts_then_ends(store: &dyn Store) {
    let mut a = Maker::new(1);
    let turn = TurnId(Ulid(5));
    store.append(&[a.notes(3)]).expect("an append");
    store
        .append(&[rows(&a, vec![queued(turn, 0)])])
        .expect("rows without an event");
    assert!(store.open_turns().expect("turns").is_empty(), "it waits");
    assert_eq!(store.queues().expect("sessions"), [a.session]);
    let waits = QueuedRow {
        turn_id: turn,
        place: 0,
        input: "input of 0".into(),
    };
    assert_eq!(store.queued(a.session).expect("turns"), [waits]);
    let (_, row) = store.turn(turn).expect("a read").expect("the turn");
    assert_eq!(row.state, TurnState::Queued);
    assert_eq!(row.started, Position::persisted(Epoch(1), Seq(4)));
    assert_eq!(row.wire_version.as_deref(), Some("0.4"));
    assert_eq!(row.agent_definition, "");
    store.append(&[a.notes(2)]).expect("an append");
    store.append(&[a.turn_started(turn)]).expect("its start");
    assert!(store.queued(a.session).expect("turns").is_empty());
    assert!(store.queues().expect("sessions").is_empty());
    let (_, row) = store.turn(turn).expect("a read").expect("the turn");
    assert_eq!((row.state, row.started.seq), (TurnState::Running, Seq(6)));
    assert_eq!(
        row.on_disconnect,
        OnDisconnect::Cancel,
        "as it was accepted"
    );
    assert_eq!(row.wire_version.as_deref(), Some("0.4"));
    assert_eq!(row.agent_definition, "1");
    let open = store.open_turns().expect("turns");
    assert_eq!(open.iter().map(|t| t.id).collect::<Vec<_>>(), [turn]);
    assert!(
        store.append(&[a.turn_started(turn)]).is_err(),
        "a turn starts once"
    );
}

fn the_lowest_place_is_next(store: &dyn Store) {
    let mut a = Maker::new(1);
    store.append(&[a.notes(1)]).expect("an append");
    for (id, place) in [(9, 0), (8, 1), (7, -1)] {
        let row = queued(TurnId(Ulid(id)), place);
        store.append(&[rows(&a, vec![row])]).expect("an append");
    }
    let line = store.queued(a.session).expect("turns");
    let ids: Vec<u128> = line.iter().map(|row| row.turn_id.0.0).collect();
    assert_eq!(ids, [7, 9, 8]);
    assert!(
        store
            .append(&[rows(&a, vec![queued(TurnId(Ulid(9)), 5)])])
            .is_err(),
        "a turn waits once"
    );
}

fn a_session_with_a_line_is_not_trimmed_and_takes_it_along(store: &dyn Store) {
    let mut a = Maker::new(1);
    let turn = TurnId(Ulid(5));
    let (mine, made) = (scope(Some(a.session), "k"), scope(None, "k"));
    store.append(&[a.notes(3)]).expect("an append");
    let accepted = vec![queued(turn, 0), key(&mine, turn, 1), key(&made, turn, 1)];
    store.append(&[rows(&a, accepted)]).expect("an append");
    let late = Timestamp::from_millis(10_000);
    assert!(store.trim(late, 10).expect("a trim").is_empty());
    store.delete(a.session).expect("a delete");
    assert!(store.queues().expect("sessions").is_empty());
    assert!(store.turn(turn).expect("a read").is_none());
    for scope in [mine, made] {
        assert!(store.key(&scope).expect("a read").is_none(), "{scope:?}");
    }
}

fn a_key_stands_for_its_turn_in_its_scope(store: &dyn Store) {
    let mut a = Maker::new(1);
    let (first, second) = (TurnId(Ulid(5)), TurnId(Ulid(6)));
    let mine = scope(Some(a.session), "k");
    store.append(&[a.notes(2)]).expect("an append");
    store
        .append(&[rows(&a, vec![key(&mine, first, 1)])])
        .expect("an append");
    let found = store.key(&mine).expect("a read").expect("the key");
    assert_eq!((found.turn_id, found.body_sha256), (first, [1; 32]));
    assert_eq!(found.created_at, Timestamp::from_millis(20));
    let others = [
        scope(None, "k"),
        scope(Some(SessionId(Ulid(2))), "k"),
        scope(Some(a.session), "l"),
        KeyScope {
            route: "chat".into(),
            ..mine.clone()
        },
        KeyScope {
            owner: owner("eve"),
            ..mine.clone()
        },
    ];
    for other in others {
        assert!(store.key(&other).expect("a read").is_none(), "{other:?}");
    }
    store
        .append(&[rows(&a, vec![key(&mine, second, 2)])])
        .expect("it takes the place of an old one");
    let found = store.key(&mine).expect("a read").expect("the key");
    assert_eq!((found.turn_id, found.body_sha256), (second, [2; 32]));
}

fn old_keys_go_a_bounded_number_at_a_time(store: &dyn Store) {
    let mut a = Maker::new(1);
    let turn = TurnId(Ulid(5));
    for n in 0..5 {
        store.append(&[a.notes(1)]).expect("an append"); // at 10, 20, 30, 40, 50 ms
        let row = key(&scope(None, &n.to_string()), turn, 1);
        store.append(&[rows(&a, vec![row])]).expect("an append");
    }
    let forget = |before, max| {
        store
            .forget_keys(Timestamp::from_millis(before), max)
            .expect("a delete")
    };
    assert_eq!(forget(10, 10), 0);
    assert_eq!(forget(40, 2), 2, "the oldest first");
    let there = |n: u8| store.key(&scope(None, &n.to_string())).expect("a read");
    assert!(there(1).is_none() && there(2).is_some());
    assert_eq!(forget(40, 10), 1);
    assert_eq!(forget(40, 10), 0);
    assert!(there(3).is_some() && there(4).is_some());
}

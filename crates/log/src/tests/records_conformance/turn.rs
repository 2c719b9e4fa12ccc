//! Turns from the queue to their end, and idempotency keys.

use std::sync::Arc;

use turnwire_event::code::{OnDisconnect, TurnKind, TurnState};
use turnwire_event::row::{KeyScope, NewMessage, QueuedRow, RowChange, TurnSettings};
use turnwire_event::{
    ContentBlock, Epoch, MessageId, Owner, Position, Role, Seq, SessionId, TenantId, Timestamp,
    TurnId, Ulid, UpstreamId,
};

use crate::records::MessageView;
use crate::store::Store;
use crate::tests::fixture::{BatchBuilder, owner, sweep};

pub(super) fn run(create: &dyn Fn() -> Arc<dyn Store>) {
    turn_record_follows_start_and_end(create().as_ref());
    turn_is_found_by_the_response_id_of_its_upstream(create().as_ref());
    last_ended_turn_is_that_of_the_last_terminal(create().as_ref());
    queued_turn_starts_with_its_submitted_settings(create().as_ref());
    queued_turns_are_ordered_by_place(create().as_ref());
    queued_turn_survives_a_trim_and_goes_with_its_session(create().as_ref());
    key_returns_its_turn_within_its_scope(create().as_ref());
    oldest_keys_expire_first_up_to_the_maximum(create().as_ref());
}

pub(crate) fn queued(turn: TurnId, place: i64) -> RowChange {
    RowChange::TurnQueued {
        settings: TurnSettings {
            turn_id: turn,
            kind: TurnKind::Chat,
            on_disconnect: OnDisconnect::Cancel,
            disconnect_grace_ms: 7,
            trace: None,
            wire_version: Some("0.4".into()),
        },
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

fn turn_record_follows_start_and_end(store: &dyn Store) {
    let mut a = BatchBuilder::new(1);
    let turn = TurnId(Ulid(5));
    store.append(&[a.events(1)]).expect("an append");
    store.append(&[a.turn_started(turn)]).expect("the start");
    let open = store.open_turns().expect("turns");
    let states: Vec<_> = open.iter().map(|turn| (turn.id, turn.state)).collect();
    assert_eq!(states, [(turn, TurnState::Running)]);
    let cancel = |a: &BatchBuilder| a.rows(vec![RowChange::TurnCancelling(turn)]);
    store.append(&[cancel(&a)]).expect("the cancel");
    let (_, row) = store.turn(turn).expect("a read").expect("the turn");
    assert_eq!(row.state, TurnState::Cancelling);
    store.append(&[a.turn_ended(turn)]).expect("the end");
    store.append(&[cancel(&a)]).expect("a late cancel");
    assert!(store.open_turns().expect("turns").is_empty());
    let (turn_owner, row) = store.turn(turn).expect("a read").expect("the turn");
    let ended = row.ended.map(|position| position.seq);
    assert_eq!(
        (turn_owner, row.state, ended),
        (owner("local"), TurnState::Completed, Some(Seq(3)))
    );
}

fn turn_is_found_by_the_response_id_of_its_upstream(store: &dyn Store) {
    let given: UpstreamId = "resp_abc".parse().expect("an id");
    let mut a = BatchBuilder::new(1);
    let [plain, relayed] = [TurnId(Ulid(5)), TurnId(Ulid(6))];
    let found = |owner: &Owner| store.turn_of_response(owner, &given).expect("a read");
    for turn in [plain, relayed] {
        store.append(&[a.turn_started(turn)]).expect("the start");
    }
    assert_eq!(found(&owner("local")), None);
    for (turn_id, response_id) in [(plain, None), (relayed, Some(given.clone()))] {
        let routed = RowChange::Routed {
            turn_id,
            model: "relay:desk".into(),
            policy_version: None,
            response_id,
        };
        let append = a.event_with(routed);
        store.append(&[append]).expect("an append");
    }
    assert_eq!(found(&owner("local")), Some(relayed));
    assert_eq!(found(&owner("eve")), None, "a turn of another owner");
    let other_tenant = Owner {
        tenant: TenantId(7),
        ..owner("local")
    };
    assert_eq!(found(&other_tenant), None, "a turn of another tenant");
    let response_id = |turn| {
        let (_, row) = store.turn(turn).expect("a read").expect("the turn");
        row.response_id
    };
    assert_eq!(response_id(plain), None);
    assert_eq!(response_id(relayed), Some(given.clone()));
    let messages = [plain, relayed].map(|turn| {
        let id = MessageId(Ulid(turn.0.0 + 10));
        let text = vec![ContentBlock::text("hi")];
        let message = NewMessage::new(id, Role::Assistant, text);
        RowChange::MessagePut(turn, message)
    });
    for message in messages {
        let append = a.event_with(message);
        store.append(&[append]).expect("an append");
    }
    let end = Position::persisted(Epoch(1), Seq(9));
    let start = Position::persisted(Epoch(1), Seq(0));
    let stored = store.messages_since(a.session, MessageView::Orchestrator, start, end);
    let ids: Vec<_> = stored
        .expect("messages")
        .into_iter()
        .map(|m| m.response_id)
        .collect();
    assert_eq!(ids, [None, Some(given.clone())]);
    store.delete(&[a.session], &[]).expect("a delete");
    assert_eq!(found(&owner("local")), None);
}

fn last_ended_turn_is_that_of_the_last_terminal(store: &dyn Store) {
    let mut a = BatchBuilder::new(1);
    let [one, two, three] = [5, 7, 6].map(|id| TurnId(Ulid(id)));
    let ended_at = |upto: u64| {
        let upto = Position::persisted(Epoch(1), Seq(upto));
        let row = store.last_ended_turn(a_session(), upto).expect("a read");
        row.map(|row| row.id)
    };
    store.append(&[a.events(1)]).expect("an append");
    // The third turn has an older id than the second: it waited in the queue.
    for turn in [one, two, three] {
        store.append(&[a.turn_started(turn)]).expect("the start");
        store.append(&[a.turn_ended(turn)]).expect("the end");
    }
    let ended: Vec<_> = (1..=7).map(ended_at).collect();
    let expected = [
        None,
        None,
        Some(one),
        Some(one),
        Some(two),
        Some(two),
        Some(three),
    ];
    assert_eq!(ended, expected);
    assert_eq!(ended_at(100), Some(three));
    store.append(&[a.events(1)]).expect("an append");
    sweep(store, 75, 100);
    assert_eq!(ended_at(8), Some(two), "the newest by id, once trimmed");
    let other = store.last_ended_turn(SessionId(Ulid(2)), Position::persisted(Epoch(1), Seq(8)));
    assert_eq!(other.expect("a read"), None);
}

/// The session of `BatchBuilder::new(1)`.
fn a_session() -> SessionId {
    SessionId(Ulid(1))
}

fn queued_turn_starts_with_its_submitted_settings(store: &dyn Store) {
    let mut a = BatchBuilder::new(1);
    let turn = TurnId(Ulid(5));
    store.append(&[a.events(3)]).expect("an append");
    store
        .append(&[a.rows(vec![queued(turn, 0)])])
        .expect("row changes without an event");
    assert!(
        store.open_turns().expect("turns").is_empty(),
        "the turn is queued"
    );
    assert_eq!(store.queued_sessions().expect("sessions"), [a.session]);
    let expected = QueuedRow {
        turn_id: turn,
        place: 0,
        input: "input of 0".into(),
    };
    assert_eq!(store.queued_turns(a.session).expect("turns"), [expected]);
    let (_, row) = store.turn(turn).expect("a read").expect("the turn");
    assert_eq!(row.state, TurnState::Queued);
    assert_eq!(row.started, Position::persisted(Epoch(1), Seq(4)));
    assert_eq!(row.wire_version.as_deref(), Some("0.4"));
    assert_eq!(row.agent_definition, "");
    store.append(&[a.events(2)]).expect("an append");
    store.append(&[a.turn_started(turn)]).expect("its start");
    assert!(store.queued_turns(a.session).expect("turns").is_empty());
    assert!(store.queued_sessions().expect("sessions").is_empty());
    let (_, row) = store.turn(turn).expect("a read").expect("the turn");
    assert_eq!((row.state, row.started.seq), (TurnState::Running, Seq(6)));
    assert_eq!(row.on_disconnect, OnDisconnect::Cancel, "as submitted");
    assert_eq!(row.wire_version.as_deref(), Some("0.4"));
    assert_eq!(row.agent_definition, "1");
    let open = store.open_turns().expect("turns");
    assert_eq!(open.iter().map(|t| t.id).collect::<Vec<_>>(), [turn]);
    assert!(
        store.append(&[a.turn_started(turn)]).is_err(),
        "a turn starts once"
    );
}

fn queued_turns_are_ordered_by_place(store: &dyn Store) {
    let mut a = BatchBuilder::new(1);
    store.append(&[a.events(1)]).expect("an append");
    for (id, place) in [(9, 0), (8, 1), (7, -1)] {
        let row = queued(TurnId(Ulid(id)), place);
        store.append(&[a.rows(vec![row])]).expect("an append");
    }
    let queued_turns = store.queued_turns(a.session).expect("turns");
    let ids: Vec<u128> = queued_turns.iter().map(|row| row.turn_id.0.0).collect();
    assert_eq!(ids, [7, 9, 8]);
    assert!(
        store
            .append(&[a.rows(vec![queued(TurnId(Ulid(9)), 5)])])
            .is_err(),
        "a turn is queued once"
    );
}

fn queued_turn_survives_a_trim_and_goes_with_its_session(store: &dyn Store) {
    let mut a = BatchBuilder::new(1);
    let turn = TurnId(Ulid(5));
    let (in_session, new_session) = (scope(Some(a.session), "k"), scope(None, "k"));
    store.append(&[a.events(3)]).expect("an append");
    let accepted = vec![
        queued(turn, 0),
        key(&in_session, turn, 1),
        key(&new_session, turn, 1),
    ];
    store.append(&[a.rows(accepted)]).expect("an append");
    assert_eq!(sweep(store, 10_000, 10), [(a.session, Seq(3))]);
    assert_eq!(store.queued_turns(a.session).expect("turns").len(), 1);
    store.delete(&[a.session], &[]).expect("a delete");
    assert!(store.queued_sessions().expect("sessions").is_empty());
    assert!(store.turn(turn).expect("a read").is_none());
    for scope in [in_session, new_session] {
        assert!(
            store.idempotency_key(&scope).expect("a read").is_none(),
            "{scope:?}"
        );
    }
}

fn key_returns_its_turn_within_its_scope(store: &dyn Store) {
    let mut a = BatchBuilder::new(1);
    let (first, second) = (TurnId(Ulid(5)), TurnId(Ulid(6)));
    let used = scope(Some(a.session), "k");
    store.append(&[a.events(2)]).expect("an append");
    store
        .append(&[a.rows(vec![key(&used, first, 1)])])
        .expect("an append");
    let row = store
        .idempotency_key(&used)
        .expect("a read")
        .expect("the key");
    assert_eq!((row.turn_id, row.body_sha256), (first, [1; 32]));
    assert_eq!(row.created_at, Timestamp::from_millis(20));
    let others = [
        scope(None, "k"),
        scope(Some(SessionId(Ulid(2))), "k"),
        scope(Some(a.session), "l"),
        KeyScope {
            route: "chat".into(),
            ..used.clone()
        },
        KeyScope {
            owner: owner("eve"),
            ..used.clone()
        },
    ];
    for other in others {
        assert!(
            store.idempotency_key(&other).expect("a read").is_none(),
            "{other:?}"
        );
    }
    store
        .append(&[a.rows(vec![key(&used, second, 2)])])
        .expect("a key that replaces the expired one");
    let row = store
        .idempotency_key(&used)
        .expect("a read")
        .expect("the key");
    assert_eq!((row.turn_id, row.body_sha256), (second, [2; 32]));
}

fn oldest_keys_expire_first_up_to_the_maximum(store: &dyn Store) {
    let mut a = BatchBuilder::new(1);
    let turn = TurnId(Ulid(5));
    for n in 0..5 {
        store.append(&[a.events(1)]).expect("an append"); // at 10, 20, 30, 40, 50 ms
        let row = key(&scope(None, &n.to_string()), turn, 1);
        store.append(&[a.rows(vec![row])]).expect("an append");
    }
    let expire = |before, max| {
        store
            .expire_keys(Timestamp::from_millis(before), max)
            .expect("a delete")
    };
    assert_eq!(expire(10, 10), 0);
    assert_eq!(expire(40, 2), 2, "the oldest first");
    let row = |n: u8| {
        store
            .idempotency_key(&scope(None, &n.to_string()))
            .expect("a read")
    };
    assert!(row(1).is_none() && row(2).is_some());
    assert_eq!(expire(40, 10), 1);
    assert_eq!(expire(40, 10), 0);
    assert!(row(3).is_some() && row(4).is_some());
}

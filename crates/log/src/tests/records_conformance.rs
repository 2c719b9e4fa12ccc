//! The conformance suite of [`Records`](crate::Records): every store calls [`run`] with empty ones.
//! Rows are written by appends, so that the suite needs both halves of a store.

mod approval;
mod audit;
mod call;
mod message;
mod status;
pub(crate) mod turn;

use std::sync::Arc;

use turnwire_event::row::RowChange;
use turnwire_event::{EventType, SessionId, Ulid};

use crate::records::{LISTED_PATH_BYTES_MAX, PageBounds, SessionsOf};
use crate::store::Store;
use crate::tests::fixture::{BatchBuilder, owner, session_row};

/// Runs the suite; `create` makes an empty store for each test.
pub(crate) fn run(create: &dyn Fn() -> Arc<dyn Store>) {
    sessions_are_listed_by_owner(create().as_ref());
    pages_end_where_their_bytes_are_used_up(create().as_ref());
    workers_are_listed_by_parent(create().as_ref());
    deleted_session_has_no_row(create().as_ref());
    closed_sessions_end_with_their_closing(create().as_ref());
    turn::run(create);
    approval::run(create);
    message::run(create);
    call::run(create);
    status::run(create);
    audit::run(create);
}

fn sessions_are_listed_by_owner(store: &dyn Store) {
    for (id, principal) in [(1, "ann"), (2, "bob"), (3, "ann")] {
        let mut builder = BatchBuilder::new(id);
        let mut append = builder.events(1);
        let row = RowChange::SessionPut(Box::new(session_row(id, principal)));
        append.rows = vec![builder.placed(row)];
        store.append(&[append]).expect("an append");
    }
    let ids = |principal: &str, before, limit| -> Vec<u128> {
        let page = store.sessions(
            &SessionsOf::Owner(owner(principal)),
            before,
            PageBounds::from(limit),
        );
        let rows = page.expect("sessions").rows;
        rows.iter().map(|row| row.id.0.0).collect()
    };
    assert_eq!(ids("ann", None, 10), [3, 1]);
    assert_eq!(ids("ann", None, 1), [3]);
    assert_eq!(ids("ann", Some(SessionId(Ulid(3))), 10), [1]);
    assert_eq!(ids("bob", None, 10), [2]);
    assert!(ids("eve", None, 10).is_empty());
}

/// The metadata of a session is not in a list and has no weight there.
fn pages_end_where_their_bytes_are_used_up(store: &dyn Store) {
    for id in 1..=5 {
        let mut builder = BatchBuilder::new(id);
        let mut append = builder.events(1);
        let mut row = session_row(id, "ann");
        let path_bytes = if id == 1 {
            LISTED_PATH_BYTES_MAX + 1
        } else {
            1_000
        };
        row.workspace_path = Some("p".repeat(path_bytes));
        row.metadata.set("m", &"x".repeat(100_000).into());
        append.rows = vec![builder.placed(RowChange::SessionPut(Box::new(row)))];
        store.append(&[append]).expect("an append");
    }
    let page = |before: Option<u128>, rows, bytes| {
        let before = before.map(|id| SessionId(Ulid(id)));
        let page = store.sessions(
            &SessionsOf::Owner(owner("ann")),
            before,
            PageBounds { rows, bytes },
        );
        let page = page.expect("sessions");
        assert!(page.rows.iter().all(|row| row.metadata.is_empty()));
        let ids: Vec<u128> = page.rows.iter().map(|row| row.id.0.0).collect();
        (ids, page.has_more)
    };
    assert_eq!(page(None, 9, 3_000), (vec![5, 4], true));
    assert_eq!(page(Some(4), 9, 3_000), (vec![3, 2, 1], false));
    assert_eq!(page(None, 9, 1), (vec![5], true), "a page has a row");
    assert_eq!(page(None, 5, 100_000), (vec![5, 4, 3, 2, 1], false));
    let all = store
        .sessions(&SessionsOf::Owner(owner("ann")), None, 9.into())
        .expect("sessions");
    assert_eq!(
        all.rows[4].workspace_path, None,
        "a path of an older release"
    );
    let whole = store
        .session(SessionId(Ulid(1)))
        .expect("a read")
        .expect("a session");
    assert_eq!(whole.metadata.to_map().len(), 1);
    assert_eq!(
        whole.workspace_path.map(|path| path.len()),
        Some(LISTED_PATH_BYTES_MAX + 1)
    );
}

fn workers_are_listed_by_parent(store: &dyn Store) {
    let parent = SessionId(Ulid(1));
    store
        .append(&[BatchBuilder::new(1).events(1)])
        .expect("the parent");
    for id in [2, 3] {
        let mut builder = BatchBuilder::new(id);
        let mut append = builder.events(1);
        let mut row = session_row(id, "local");
        row.parent = Some(parent);
        append.rows = vec![builder.placed(RowChange::SessionPut(Box::new(row)))];
        store.append(&[append]).expect("a worker");
    }
    let workers = |before, limit| -> Vec<u128> {
        let page = store.workers(parent, before, PageBounds::from(limit));
        let rows = page.expect("workers").rows;
        rows.iter().map(|row| row.id.0.0).collect()
    };
    assert_eq!(workers(None, 10), [3, 2]);
    assert_eq!(workers(Some(SessionId(Ulid(3))), 10), [2]);
    let own = store.sessions(&SessionsOf::Owner(owner("local")), None, 10.into());
    assert_eq!(own.expect("sessions").rows.len(), 1, "workers are left out");
}

fn deleted_session_has_no_row(store: &dyn Store) {
    let mut builder = BatchBuilder::new(1);
    store.append(&[builder.events(3)]).expect("an append");
    assert!(store.session(builder.session).expect("a read").is_some());
    store.delete(&[builder.session], &[]).expect("a delete");
    assert!(store.session(builder.session).expect("a read").is_none());
}

fn closed_sessions_end_with_their_closing(store: &dyn Store) {
    let close = |id| {
        let mut builder = BatchBuilder::new(id);
        let mut append = builder.events(2);
        append.records[1].kind = EventType::SessionClosed;
        store.append(&[append]).expect("an append");
        builder
    };
    let [_, mut continued, deleted] = [1, 2, 3].map(close);
    store
        .append(&[continued.events(1)])
        .expect("an event behind it");
    store.delete(&[deleted.session], &[]).expect("a delete");
    store
        .append(&[BatchBuilder::new(4).events(2)])
        .expect("an open session");
    let closed = store.closed_sessions().expect("a read");
    assert_eq!(closed, [SessionId(Ulid(1))]);
}

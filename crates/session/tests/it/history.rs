//! The history budget of a session: displayed content takes none of it, notes have their own, and a
//! budget that grows again is filled again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use turnwire_event::port::{BoundTurn, HistoryBudget, TurnContext, TurnInput, TurnProducer};
use turnwire_event::row::{MessageScope, PlacedChange, RowChange};
use turnwire_event::{
    Body, ContentBlock, Event, IdGenerator, Position, Role, SessionId, Timestamp, TurnId,
};
use turnwire_log::reserve::DiskReserve;
use turnwire_log::{LeaseTerm, SessionAppend, Store};
use turnwire_session::{Options, SessionService, SystemIdGenerator};

use crate::stage::*;

async fn turn(sessions: &SessionService, id: SessionId, text: &str, count: usize) -> Vec<Event> {
    let accepted = submit(sessions, &owner("local"), id, text_request(text)).await;
    accepted.expect("accepted");
    wait_for_terminals(sessions, id, count).await
}

/// The number of omitted messages in each `turn.started`.
fn omitted(events: &[Event]) -> Vec<u64> {
    let starts = events.iter().filter_map(|event| match &event.body {
        Body::TurnStarted(start) => Some(start.history_omitted),
        _ => None,
    });
    starts.collect()
}

/// A producer that records the texts of the history that its last turn read, and then runs `act`.
fn history_recorder(
    act: impl Fn(&TurnContext) + Send + Sync + 'static,
) -> (Arc<Mutex<Vec<String>>>, WorkFn) {
    let texts_read: Arc<Mutex<Vec<String>>> = Arc::default();
    let (shared, act) = (texts_read.clone(), Arc::new(act));
    let producer = producer_fn(move |turn| {
        let (texts_read, act) = (shared.clone(), act.clone());
        async move {
            let recent = turn.history.recent(LARGE_BUDGET).await.expect("a history");
            *texts_read.lock() = message_texts(&recent);
            act(&turn);
            OK
        }
    });
    (texts_read, producer)
}

#[tokio::test]
async fn displayed_list_takes_no_orchestrator_history() {
    let dir = tempfile::tempdir().expect("a folder");
    let (texts_read, act) = history_recorder(|turn| {
        let (.., tool_use_id) = ids();
        let list = ContentBlock::Data {
            data_id: "data_1".into(),
            data_type: "offer_list".into(),
            key: serde_json::json!({}),
            items: serde_json::json!(["x".repeat(100_000)]),
        };
        let card = ContentBlock::Component {
            tool_use_id,
            component: serde_json::json!({"type": "card"}),
        };
        for block in [list, card.clone(), card.clone(), card] {
            let mut displayed = new_message(Role::Tool, "", MessageScope::Shared);
            displayed.content = vec![block];
            run_tool(turn, displayed);
        }
    });
    let first = start_service(dir.path(), Options::default(), act.clone()).await;
    let id = new_session(&first).await;
    turn(&first, id, "one", 1).await;
    turn(&first, id, "two", 2).await;
    assert_eq!(*texts_read.lock(), ["one", "two"]);
    let (listed, _) = first
        .reader()
        .messages(&owner("local"), id, None, 20)
        .await
        .expect("a page");
    assert_eq!(listed.len(), 10, "clients are shown all of it");
    let image = copy_store(dir.path());
    let again = start_service(image.path(), Options::default(), act).await;
    // From the cache, and from the store.
    for sessions in [first, again] {
        let events = turn(&sessions, id, "three", 3).await;
        assert_eq!(*texts_read.lock(), ["one", "two", "three"]);
        assert_eq!(omitted(&events), [0, 0, 0]);
    }
}

// S1-144
#[tokio::test]
async fn long_exchange_does_not_displace_notes() {
    let dir = tempfile::tempdir().expect("a folder");
    let texts_read: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
    let shared = texts_read.clone();
    let act = producer_fn(move |turn| {
        let texts_read = shared.clone();
        async move {
            let now = turn.input.content[0].as_text().expect("text").to_owned();
            let budget = HistoryBudget {
                messages_max: 2,
                bytes_max: 1_000,
            };
            let past = turn.history.of_agent("shop", budget).await;
            texts_read
                .lock()
                .push(message_texts(&past.expect("a history")));
            match now.as_str() {
                "long" => {
                    emit_note(&turn, "likes oats");
                    for _ in 0..3 {
                        let text = "x".repeat(2_000);
                        run_tool(
                            &turn,
                            new_message(Role::Tool, &text, MessageScope::Agent("shop".into())),
                        );
                    }
                }
                "short" => {
                    let message =
                        new_message(Role::User, "request", MessageScope::Agent("shop".into()));
                    run_tool(&turn, message);
                }
                "many" => (0..20).for_each(|n| emit_note(&turn, &format!("note {n}"))),
                _ => (0..3).for_each(|_| emit_note(&turn, &"y".repeat(6_000))),
            }
            OK
        }
    });
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let id = new_session(&sessions).await;
    for (count, text) in (1..).zip(["long", "short", "many", "large", "large"]) {
        turn(&sessions, id, text, count).await;
    }
    let texts_read = texts_read.lock();
    assert!(texts_read[0].is_empty());
    assert_eq!(texts_read[1], ["likes oats"]);
    assert_eq!(texts_read[2], ["likes oats", "request"]);
    let mut newest: Vec<_> = (4..20).map(|n| format!("note {n}")).collect();
    newest.push("request".into());
    assert_eq!(texts_read[3], newest, "the newest sixteen");
    let lengths: Vec<_> = texts_read[4].iter().map(String::len).collect();
    assert_eq!(lengths, [6_000, 6_000, 7], "16 KiB of them");
}

/// A producer whose budget the test changes, as a pack reload does.
struct Reloaded(TestProducer, Arc<AtomicUsize>);

impl TurnProducer for Reloaded {
    fn history(&self) -> HistoryBudget {
        HistoryBudget {
            messages_max: self.1.load(Ordering::SeqCst),
            bytes_max: 10_000,
        }
    }
    fn bind(&self, input: &TurnInput) -> BoundTurn {
        BoundTurn {
            experiment_arm: String::new(),
            verticals: Default::default(),
            history: self.history(),
            ..self.0.bind(input)
        }
    }
}

#[tokio::test]
async fn budget_that_grows_again_is_filled_from_the_store() {
    let dir = tempfile::tempdir().expect("a folder");
    let (texts_read, act) = history_recorder(|_| ());
    let budget = Arc::new(AtomicUsize::new(10));
    let producer = Arc::new(Reloaded(
        TestProducer(act, pass_through_gates()),
        budget.clone(),
    ));
    let parts = (
        Arc::new(SystemIdGenerator) as Arc<dyn IdGenerator>,
        DiskReserve::new(dir.path().join("reserve"), 0),
    );
    let sessions = service_with_producer(dir.path(), Options::default(), parts, producer).await;
    let id = new_session(&sessions).await;
    let cases = [
        ("1", 10, &["1"][..], 0),
        ("2", 10, &["1", "2"], 0),
        ("3", 10, &["1", "2", "3"], 0),
        ("4", 2, &["3", "4"], 2),
        ("5", 2, &["4", "5"], 3),
        ("6", 10, &["1", "2", "3", "4", "5", "6"], 0),
    ];
    for (count, (text, messages_max, expected, left_out)) in (1..).zip(cases) {
        budget.store(messages_max, Ordering::SeqCst);
        let events = turn(&sessions, id, text, count).await;
        assert_eq!(*texts_read.lock(), expected);
        assert_eq!(omitted(&events).last(), Some(&left_out));
    }
}

#[tokio::test]
async fn page_that_begins_with_a_turn_has_the_whole_turn() {
    let dir = tempfile::tempdir().expect("a folder");
    let texts_read: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
    let shared = texts_read.clone();
    let act = producer_fn(move |turn| {
        let texts_read = shared.clone();
        async move {
            let budget = HistoryBudget {
                messages_max: 2,
                bytes_max: 1_000,
            };
            let past = turn.history.of_agent("shop", budget).await;
            let past = message_texts(&past.expect("a history"));
            texts_read.lock().push(past);
            let name = turn.input.content[0].as_text().expect("text").to_owned();
            for (role, part) in [(Role::User, "task"), (Role::Tool, "result")] {
                let text = format!("{name} {part}");
                let scope = MessageScope::Agent("shop".into());
                run_tool(&turn, new_message(role, &text, scope));
            }
            OK
        }
    });
    let sessions = start_service(dir.path(), Options::default(), act).await;
    let id = new_session(&sessions).await;
    for (count, text) in (1..).zip(["one", "two", "three"]) {
        turn(&sessions, id, text, count).await;
    }
    let texts_read = texts_read.lock();
    assert_eq!(texts_read[1], ["one task", "one result"]);
    assert_eq!(texts_read[2], ["two task", "two result"]);
}

/// Stores a message of `turn` behind the back of the service: a cache does not know it.
fn store_message(store: &dyn Store, id: SessionId, turn: TurnId, text: &str) {
    let tail = store.tail(id).expect("a tail").expect("a session");
    let message = new_message(Role::Assistant, text, MessageScope::Shared);
    let append = SessionAppend {
        session: id,
        term: LeaseTerm::default(),
        prev: tail.seq,
        records: Vec::new(),
        rows: vec![PlacedChange {
            at: Position::persisted(tail.epoch, tail.seq),
            time: Timestamp::from_millis(0),
            change: RowChange::MessagePut(turn, message),
        }],
    };
    store.append(&[append]).expect("an append");
}

#[tokio::test]
async fn history_that_is_not_cached_is_read_from_the_store() {
    let all = &["one", "stored", "two", "three"][..];
    let cases = [(64 << 20, &["one", "two", "three"][..]), (0, all)];
    for (history_cache_bytes, expected) in cases {
        let dir = tempfile::tempdir().expect("a folder");
        let (texts_read, act) = history_recorder(|_| ());
        let options = Options {
            history_cache_bytes,
            ..Options::default()
        };
        let (store, writer) = writer(dir.path(), DiskReserve::new(dir.path().join("reserve"), 0));
        let producer = Arc::new(TestProducer(act, pass_through_gates()));
        let parts = (store.clone(), writer);
        let sessions = service_over(parts, options, Arc::new(SystemIdGenerator), producer).await;
        let id = new_session(&sessions).await;
        let events = turn(&sessions, id, "one", 1).await;
        let first = events.iter().find_map(|event| event.turn_id);
        store_message(store.as_ref(), id, first.expect("a turn"), "stored");
        for (count, text) in [(2, "two"), (3, "three")] {
            let events = turn(&sessions, id, text, count).await;
            assert_eq!(*texts_read.lock(), expected[..expected.len() + count - 3]);
            assert_eq!(omitted(&events).last(), Some(&0));
        }
    }
}

//! A routing policy that is replaced while the server runs.

use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

use tokio::sync::Semaphore;
use turnwire_event::body::route::RouteDecided;
use turnwire_event::port::{BoundTurn, HistoryBudget, TurnInput, TurnProducer};
use turnwire_event::{Actor, Body, ContentBlock, Event, SessionId};
use turnwire_log::reserve::DiskReserve;
use turnwire_session::{NewSession, Options, SessionService, SystemIdGenerator, WatchGuard};

use crate::stage::*;

// S3-104
#[tokio::test]
async fn new_policy_is_announced_once_where_it_is_followed() {
    let dir = tempfile::tempdir().expect("a folder");
    let (gate, act) = Turnstile::new();
    let service = start_service(dir.path(), Options::default(), act.clone()).await;
    let me = owner("local");
    let [running, watched, idle] = [
        new_session(&service).await,
        new_session(&service).await,
        new_session(&service).await,
    ];
    submit(&service, &me, running, text_request("hi"))
        .await
        .expect("accepted");
    let live = service
        .live_sessions()
        .open(&me, watched)
        .await
        .expect("a session");
    let watcher = WatchGuard::new(&live);
    assert_eq!(service.reload_routing_policy("2026-11-16"), 2);
    assert_eq!(
        service.reload_routing_policy("2026-11-16"),
        0,
        "it is no change"
    );
    let announcements = |events: &[Event]| -> Vec<(Option<String>, String)> {
        let reloads = events.iter().filter_map(|event| match &event.body {
            Body::RoutingPolicyReloaded(body) => {
                assert_eq!((event.turn_id, &event.actor), (None, &Actor::SYSTEM));
                Some((
                    body.previous_version.clone(),
                    body.routing_policy_version.clone(),
                ))
            }
            _ => None,
        });
        reloads.collect()
    };
    let version = |row: turnwire_event::row::SessionRow| row.routing_policy_version;
    for id in [running, watched] {
        let live = service
            .live_sessions()
            .open(&me, id)
            .await
            .expect("a session");
        let last = live.sequencer.last().seq;
        live.sequencer.committed(last).await.expect("committed");
        let expected = [(Some("builtin-1".to_owned()), "2026-11-16".to_owned())];
        assert_eq!(announcements(&read_log(&service, id).await), expected);
        let snapshot = live.snapshot(1).await.expect("a snapshot");
        assert_eq!(version(snapshot.row), "2026-11-16");
    }
    assert_eq!(announcements(&read_log(&service, idle).await), []);
    drop(watcher);
    gate.open(1);
    wait_for_terminals(&service, running, 1).await;
    assert_eq!(
        service.reload_routing_policy("2026-11-17"),
        0,
        "nobody is there"
    );
    let fresh = service.writer().create(&me, NewSession::default()).await;
    assert_eq!(version(fresh.expect("a session")), "2026-11-17");
    let image = copy_store(dir.path());
    let again = start_service(image.path(), Options::default(), act).await;
    let live = again
        .live_sessions()
        .open(&me, watched)
        .await
        .expect("a session");
    let snapshot = live.snapshot(1).await.expect("a snapshot");
    assert_eq!(version(snapshot.row), "2026-11-16", "it is stored");
}

/// A producer whose turns route twice by the policy they were bound to, when the test permits it.
fn routed() -> (Arc<Semaphore>, WorkFn) {
    let permits = Arc::new(Semaphore::new(0));
    let own = permits.clone();
    let act = producer_fn(move |turn| {
        let own = own.clone();
        async move {
            let content = turn.input.content.first().and_then(ContentBlock::as_text);
            let version = content.unwrap_or_default().to_owned();
            for model in ["first:m", "second:m"] {
                own.acquire().await.expect("open").forget();
                let route = RouteDecided {
                    relayed: None,
                    model: model.into(),
                    routing_policy_version: version.clone(),
                    reason: "a rule".into(),
                    candidates: Vec::new(),
                };
                emit(&turn, Body::RouteDecided(route));
            }
            OK
        }
    });
    (permits, act)
}

/// The model and the policy of a session, in memory and in the store.
async fn in_force(sessions: &SessionService, id: SessionId) -> (String, String) {
    let me = owner("local");
    let live = sessions
        .live_sessions()
        .open(&me, id)
        .await
        .expect("a session");
    let row = live.snapshot(1).await.expect("a snapshot").row;
    let (list, _) = sessions
        .reader()
        .sessions(&me, None, 10)
        .await
        .expect("a list");
    let stored = list.into_iter().find(|row| row.id == id);
    let both = [row, stored.expect("a row")];
    let [row, stored] = both.map(|row| (row.active_model, row.routing_policy_version));
    assert_eq!(row, stored, "in memory and stored");
    row
}

async fn has(sessions: &SessionService, id: SessionId, wanted: &str, count: usize) -> Vec<Event> {
    for _ in 0..2_000 {
        let events = read_log(sessions, id).await;
        let event = events
            .iter()
            .filter(|event| event.body.kind().name() == wanted);
        if event.count() >= count {
            return events;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("no {count} {wanted}");
}

// S3-104
#[tokio::test]
async fn turn_of_the_old_policy_does_not_restore_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let (permits, act) = routed();
    let service = start_service(dir.path(), Options::default(), act.clone()).await;
    let me = owner("local");
    let mut ids = Vec::new();
    // The policy is reloaded before the first routing of a turn, and between two of them.
    for (number, before) in [(1, 0), (2, 1)] {
        let id = new_session(&service).await;
        let accepted = submit(&service, &me, id, text_request(&format!("v{number}"))).await;
        accepted.expect("accepted");
        permits.add_permits(before);
        has(&service, id, "route.decided", before).await;
        let next = format!("v{}", number + 1);
        assert_eq!(service.reload_routing_policy(&next), 1);
        permits.add_permits(2 - before);
        wait_for_terminals(&service, id, 1).await;
        let expected = ("second:m".to_owned(), next);
        assert_eq!(in_force(&service, id).await, expected);
        ids.push((id, expected));
    }
    let image = copy_store(dir.path());
    let again = start_service(image.path(), Options::default(), act).await;
    for (id, expected) in ids {
        assert_eq!(in_force(&again, id).await, expected);
        // A later turn uses the policy in force, whether or not it was announced.
        let accepted = submit(&again, &me, id, text_request("v9")).await;
        accepted.expect("accepted");
        permits.add_permits(2);
        wait_for_terminals(&again, id, 2).await;
        let expected = ("second:m".to_owned(), "v9".to_owned());
        assert_eq!(in_force(&again, id).await, expected);
    }
}

/// A producer that reloads the policy during its first binding.
struct Replaced {
    inner: TestProducer,
    service: OnceLock<SessionService>,
}

impl TurnProducer for Replaced {
    fn history(&self) -> HistoryBudget {
        self.inner.history()
    }

    fn bind(&self, input: &TurnInput) -> BoundTurn {
        let bound = self.inner.bind(input);
        let service = self.service.get().expect("set").clone();
        let (done, announced) = mpsc::channel();
        std::thread::spawn(move || {
            let count = service.reload_routing_policy("v2");
            let _ = done.send(count);
        });
        // The announcement is emitted now, or waits until the turn has started.
        let _ = announced.recv_timeout(Duration::from_millis(300));
        bound
    }
}

// S3-104
#[tokio::test(flavor = "multi_thread")]
async fn policy_reloaded_while_binding_follows_the_start() {
    let dir = tempfile::tempdir().expect("a folder");
    let (permits, act) = routed();
    let producer = Arc::new(Replaced {
        inner: TestProducer(act, pass_through_gates()),
        service: OnceLock::new(),
    });
    let reserve = DiskReserve::new(dir.path().join("reserve"), 0);
    let parts = (Arc::new(SystemIdGenerator) as _, reserve);
    let service =
        service_with_producer(dir.path(), Options::default(), parts, producer.clone()).await;
    assert!(producer.service.set(service.clone()).is_ok());
    let id = new_session(&service).await;
    let me = owner("local");
    let live = service
        .live_sessions()
        .open(&me, id)
        .await
        .expect("a session");
    let _watcher = WatchGuard::new(&live);
    let accepted = submit(&service, &me, id, text_request("v1")).await;
    accepted.expect("accepted");
    has(&service, id, "routing.policy_reloaded", 1).await;
    permits.add_permits(2);
    wait_for_terminals(&service, id, 1).await;
    let expected = ("second:m".to_owned(), "v2".to_owned());
    assert_eq!(in_force(&service, id).await, expected);
}

// S3-104
#[tokio::test]
async fn policy_reloaded_on_a_full_disk_is_announced_later() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_gate, act) = Turnstile::new();
    let first = start_service(dir.path(), Options::default(), act.clone()).await;
    let id = new_session(&first).await;
    let image = copy_store(dir.path());
    // The reserve file has no folder, so the writer treats the disk as full.
    let room = image.path().join("room");
    let parts = (
        Arc::new(SystemIdGenerator) as _,
        DiskReserve::new(room.join("reserve"), 0),
    );
    let options = Options {
        idle_unload: Duration::from_millis(50), // looked at as often
        ..Options::default()
    };
    let service = start_service_with(image.path(), options, act, parts).await;
    let live = service
        .live_sessions()
        .open(&owner("local"), id)
        .await
        .expect("a session");
    let _watcher = WatchGuard::new(&live);
    assert!(service.status().is_storage_full());
    assert_eq!(service.reload_routing_policy("v2"), 0);
    assert_eq!(service.reload_routing_policy("v3"), 0);
    assert_eq!(
        service.status().routing_policy_version(),
        "v3",
        "what is new has it already"
    );
    std::fs::create_dir(&room).expect("room");
    let events = has(&service, id, "routing.policy_reloaded", 1).await;
    let announced = events.iter().filter_map(|event| match &event.body {
        Body::RoutingPolicyReloaded(announced) => Some((
            announced.previous_version.as_deref(),
            announced.routing_policy_version.as_str(),
        )),
        _ => None,
    });
    let announced: Vec<_> = announced.collect();
    assert_eq!(
        announced,
        [(Some("builtin-1"), "v3")],
        "once, from what was told"
    );
}

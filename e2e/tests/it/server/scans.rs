//! Filters that match little in a large session: one request looks at a bounded number of events, and
//! the requests of one owner do not delay those of another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::{join, join_all};
use serde_json::{Value, json};
use turnwire_e2e::large_session::{append_events, comment};
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_event::{Actor, Epoch, Position, Seq};
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::ServerOptions;
use turnwire_testkit::watch::{SubscribeOptions, WatchEnd};

const START: Position = Position::persisted(Epoch::FIRST, Seq(0));

/// Events of the large session: a scan of all of them takes a large part of a second.
const EVENTS: u64 = 150_000;
/// Requests of the greedy owner at once.
const GREEDY: usize = 64;

fn script() -> ModelScript {
    ModelScript::new().on("", [ScriptStep::text("hi")])
}

/// The slowest of `count` requests, one after the other.
async fn slowest(api: &ApiClient, path: &str, count: usize) -> Duration {
    let mut slowest = Duration::ZERO;
    for _ in 0..count {
        let begun = Instant::now();
        let answer = api.get(path).await.expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.body);
        slowest = slowest.max(begun.elapsed());
    }
    slowest
}

// serial: measures the time of requests
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scans_of_one_owner_do_not_delay_another() {
    let options = ServerOptions::script(script());
    let mut fixture = ServerFixture::new(options).await;
    let session = fixture.session;
    let small = |_| (Actor::USER, comment(600));
    append_events(&mut fixture.server, session, EVENTS, small).await;
    let quiet = fixture.api.clone().with("x-turnwire-principal", "quiet");
    let own = quiet.create().await.expect("a session");
    let list = format!("/sessions/{own}/turns");
    let alone = slowest(&quiet, &list, 20).await;

    let (is_over, answered) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let mut greedy = Vec::new();
    for _ in 0..GREEDY {
        let (api, is_over, answered) = (fixture.api.clone(), is_over.clone(), answered.clone());
        let path = format!("/sessions/{session}/events?types=approval.requested&limit=1");
        greedy.push(tokio::spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                let answer = api.get(&path).await.expect("an answer");
                let page = answer.json();
                assert_eq!(
                    (answer.status, &page["next"]),
                    (200, &Value::Null),
                    "{page}"
                );
                assert_eq!(page["events"], json!([]));
                answered.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    // Every greedy client has been answered, so all are at it.
    while answered.load(Ordering::Relaxed) < GREEDY {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let beside = slowest(&quiet, &list, 20).await;
    let begun = Instant::now();
    let turn = quiet.submit(own, "hello").await.expect("an answer");
    quiet.ended(turn.turn_id).await.expect("an end");
    let turn_took = begun.elapsed();
    is_over.store(true, Ordering::Relaxed);
    for task in greedy {
        task.await.expect("a greedy client");
    }
    // Without an index by type and shares of the readers: a scan of 150,000 events for each of 64
    // requests comes before each of these, tens of seconds in all.
    let max = Duration::from_secs(2).max(alone * 20);
    assert!(beside < max, "{beside:?} beside the scans, {alone:?} alone");
    assert!(turn_took < max * 2, "a turn took {turn_took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn narrow_filter_is_replayed_over_many_scans() {
    let options = ServerOptions::script(script()).set("store", "scan_max", 100);
    let mut fixture = ServerFixture::new(options).await;
    let session = fixture.session;
    let rare = [0, 1, 450, 2_999];
    let event = |index| match rare.contains(&index) {
        true => (Actor::tool("rare"), comment(10)),
        false => (Actor::USER, comment(10)),
    };
    append_events(&mut fixture.server, session, 3_000, event).await;
    for filter in [
        json!({"actors": ["tool:rare"]}),
        json!({"actors": ["tool"], "event_types": ["feedback.recorded"]}),
    ] {
        let since = SubscribeOptions::since(START).filter(filter);
        let mut client = fixture.connect("narrow").await;
        let acknowledged = client.subscribed(&since).await.expect("an acknowledgement");
        assert_eq!(acknowledged["replay_event_count"], 4, "{acknowledged}");
        for _ in rare {
            let event = client.event().await.expect("an event");
            assert_eq!(event.actor, Actor::tool("rare"));
        }
    }
}

/// Connections of one owner that subscribe at the same time.
const SUBSCRIBERS: usize = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscribe_beyond_the_waiting_reads_is_closed_as_busy() {
    let options = ServerOptions::script(script())
        .set("store", "read_slots_per_owner", 1)
        .set("store", "reads_waiting_per_owner", 1);
    let mut fixture = ServerFixture::new(options).await;
    let session = fixture.session;
    let event = |_| (Actor::USER, comment(600));
    append_events(&mut fixture.server, session, 20_000, event).await;
    let until = Instant::now() + Duration::from_secs(60);
    let mut busy = 0;
    while busy == 0 {
        assert!(Instant::now() < until, "no subscribe was refused");
        let mut clients = Vec::new();
        for _ in 0..SUBSCRIBERS {
            clients.push(fixture.connect("many").await);
        }
        let snapshot = SubscribeOptions::snapshot();
        let subscribes = clients
            .iter_mut()
            .map(|client| client.subscribed(&snapshot));
        // The reads that the subscribes wait for.
        let page = format!("/sessions/{session}/events?limit=1000");
        let pages = (0..SUBSCRIBERS).map(|_| fixture.api.get(&page));
        let (_, answers) = join(join_all(pages), join_all(subscribes)).await;
        for answer in answers {
            if let Err(end) = answer {
                assert_eq!((end.code().as_str(), code(&end)), ("busy", Some(1013)));
                busy += 1;
            }
        }
    }
}

fn code(end: &WatchEnd) -> Option<u16> {
    match end {
        WatchEnd::Closed(code, _) => Some(*code),
        WatchEnd::Cut(_) | WatchEnd::TimedOut => None,
    }
}

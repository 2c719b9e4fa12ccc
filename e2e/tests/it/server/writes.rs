//! Writes of one owner do not delay those of another: each owner has a share of the writer's queue,
//! and what is above it waits or gets 429.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hyper::Method;
use serde_json::json;
use turnwire_e2e::chat::MetricsSnapshot;
use turnwire_event::SessionId;
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{ServerOptions, TestServer};

/// Connections of the greedy owner, each with a deletion at all times.
const DELETERS: usize = 300;
/// Sessions that each of them deletes.
const SESSIONS_EACH: usize = 5;

fn options() -> ServerOptions {
    ServerOptions::script(ModelScript::new().on("", [ScriptStep::text("hi")]))
}

fn as_principal(server: &TestServer, name: &str) -> ApiClient {
    server.api().with("x-turnwire-principal", name)
}

/// Creates `count` sessions, some at once.
async fn create_many(api: &ApiClient, count: usize) -> Vec<SessionId> {
    let mut sessions = Vec::with_capacity(count);
    while sessions.len() < count {
        let some = (sessions.len()..count).take(50).map(|_| api.create());
        for created in join_all(some).await {
            sessions.push(created.expect("a session"));
        }
    }
    sessions
}

/// The time of one creation of a session.
async fn time_create(api: &ApiClient) -> Duration {
    let begun = Instant::now();
    api.create().await.expect("a session");
    begun.elapsed()
}

fn median(mut values: Vec<Duration>) -> Duration {
    values.sort_unstable();
    values[values.len() / 2]
}

// F8
// serial: counts what is served during a request
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deletions_of_one_owner_do_not_delay_another() {
    // Few slots, so that what a creation waits for is far below what waits for the slots.
    let options = options().set("store", "write_slots_per_owner", 2);
    let server = TestServer::start(options).await;
    let (greedy, quiet) = (
        as_principal(&server, "greedy"),
        as_principal(&server, "quiet"),
    );
    let sessions = create_many(&greedy, DELETERS * SESSIONS_EACH).await;
    let mut alone = Vec::new();
    for _ in 0..10 {
        alone.push(time_create(&quiet).await);
    }
    let answered = Arc::new(AtomicUsize::new(0));
    let mut deleters = Vec::new();
    for part in sessions.chunks(SESSIONS_EACH) {
        let (api, answered, part) = (greedy.clone(), answered.clone(), part.to_vec());
        deleters.push(tokio::spawn(async move {
            for session in part {
                let path = format!("/sessions/{session}");
                let answer = api.send(Method::DELETE, &path, None).await;
                assert_eq!(answer.expect("an answer").status, 204);
                answered.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    // By then each has connected and been answered once, more or less.
    while answered.load(Ordering::Relaxed) < DELETERS {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (mut beside, mut served) = (Vec::new(), Vec::new());
    // The last deleters are few.
    while answered.load(Ordering::Relaxed) < DELETERS * (SESSIONS_EACH - 1) {
        let before = answered.load(Ordering::Relaxed);
        beside.push(time_create(&quiet).await);
        served.push(answered.load(Ordering::Relaxed) - before);
    }
    for deleter in deleters {
        deleter.await.expect("a deleter");
    }
    assert!(!served.is_empty(), "the deletions were over at once");
    let served = served.iter().sum::<usize>() / served.len();
    let (alone, beside) = (median(alone), median(beside));
    // With shares some. Without them the whole queue comes first, which is half of the deleters in
    // the mean: each deletion queues twice.
    assert!(
        served < DELETERS / 4,
        "{served} deletions were answered during a creation, which took {beside:?}; {alone:?} alone"
    );
    let max = Duration::from_secs(2).max(alone * 20);
    assert!(
        beside < max,
        "{beside:?} beside the deletions, {alone:?} alone"
    );
}

// F8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_above_the_waiting_ones_of_an_owner_get_429() {
    let one_slot = options().set("store", "write_slots_per_owner", 1);
    let options = one_slot.set("store", "writes_waiting_per_owner", 1);
    let server = TestServer::start(options).await;
    let (greedy, quiet) = (
        as_principal(&server, "greedy"),
        as_principal(&server, "quiet"),
    );
    let until = Instant::now() + Duration::from_secs(60);
    let mut refused = 0;
    while refused == 0 {
        assert!(Instant::now() < until, "no write was refused");
        let writes = (0..32).map(|_| greedy.post("/sessions", json!({})));
        let (answers, other) = tokio::join!(join_all(writes), quiet.create());
        other.expect("a session of another owner");
        for answer in answers {
            let answer = answer.expect("an answer");
            if answer.status == 201 {
                continue;
            }
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (429, "too_many_requests"),
                "{}",
                answer.body
            );
            assert_eq!(answer.header("retry-after"), "1");
            refused += 1;
        }
    }
    let metrics = MetricsSnapshot::read(&server.api()).await;
    assert!(metrics.sum("turnwire_limit_refused_total") >= f64::from(refused));
}

//! Worker events on their parent's stream, with the real binary (S3-085, S3-087).

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::json;
use turnwire_e2e::worker_cuts;
use turnwire_event::{Body, Epoch, Event, Position, Seq, SessionId};
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::rng::SeededRng;
use turnwire_testkit::server::{ServerOptions, TestServer};
use turnwire_testkit::watch::{StalledClient, SubscribeOptions, WatchClient, WatchFrame};

/// `cargo xtask campaign workers N` makes more of them.
const CUTS: usize = 100;

const START: Position = Position::persisted(Epoch::FIRST, Seq(0));

fn with_workers(ask: SubscribeOptions) -> SubscribeOptions {
    ask.filter(json!({"include_worker_sessions": true}))
}

fn sessions(events: &[Event]) -> BTreeSet<SessionId> {
    events.iter().map(|event| event.session_id).collect()
}

async fn watch(
    server: &TestServer,
    name: &str,
    session: SessionId,
    ask: SubscribeOptions,
) -> WatchClient {
    let client = WatchClient::connect(&server.api(), name, session).await;
    let mut client = client.expect("a connection");
    client.subscribed(&ask).await.expect("accepted");
    client
}

/// All events up to the end of the parent's first turn.
async fn stays_to_end(client: &mut WatchClient, session: SessionId) -> Vec<Event> {
    let ends = |e: &Event| e.session_id == session && e.body.kind().is_terminal();
    client.until(ends).await.expect("the end of the turn")
}

// S3-085, S3-087
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn worker_events_are_included_on_request() {
    let server = TestServer::start(ServerOptions::pack(worker_cuts::pack())).await;
    let api = server.api();
    let session = api.create().await.expect("a session");
    let mut plain = watch(&server, "plain", session, SubscribeOptions::since(START)).await;
    let mut watcher = watch(
        &server,
        "whole",
        session,
        with_workers(SubscribeOptions::since(START)),
    )
    .await;
    let turn = api.submit(session, "calm").await.expect("accepted").turn_id;

    // Others come when a worker is in the midst of its work: live, with a snapshot, on the worker.
    let began = |e: &Event| matches!(e.body, Body::TextDelta(_)) && e.session_id != session;
    let mut events = watcher.until(began).await.expect("a worker's word");
    let worker = events.last().expect("an event").session_id;
    let mut joined = watch(
        &server,
        "joined",
        session,
        with_workers(SubscribeOptions::live()),
    )
    .await;
    let mut snapshot_client = watch(
        &server,
        "shown",
        session,
        with_workers(SubscribeOptions::snapshot()),
    )
    .await;
    let mut direct = watch(&server, "direct", worker, SubscribeOptions::since(START)).await;

    events.extend(stays_to_end(&mut watcher, session).await);
    let alone = stays_to_end(&mut plain, session).await;
    assert_eq!(sessions(&alone), BTreeSet::from([session]), "S3-085");
    let of_parent = |events: &[Event]| -> Vec<Position> {
        let mine = events.iter().filter(|event| event.session_id == session);
        mine.map(|event| event.id).collect()
    };
    assert_eq!(of_parent(&alone), of_parent(&events));
    assert_eq!(sessions(&events).len(), 4, "two workers, and one below");
    for client in [&mut joined, &mut snapshot_client] {
        let events = stays_to_end(client, session).await;
        assert!(sessions(&events).contains(&worker), "joined in the midst");
    }
    let alone = direct
        .until(|e| e.body.kind().is_terminal())
        .await
        .expect("its end");
    let worker_positions = |events: &[Event]| -> Vec<Position> {
        let of = events.iter().filter(|e| e.session_id == worker);
        let of = of.filter(|e| e.body.kind().is_persisted());
        of.map(|event| event.id).collect()
    };
    let (alone, mut carried) = (worker_positions(&alone), worker_positions(&events));
    // Those who watch a worker itself are noted in its log when they come and go.
    carried.retain(|id| alone.contains(id));
    assert_eq!(alone, carried, "the same order");

    // And all of it again when everything is over.
    api.ended(turn).await.expect("ended");
    let mut late = watch(
        &server,
        "late",
        session,
        with_workers(SubscribeOptions::since(START)),
    )
    .await;
    let late_events = stays_to_end(&mut late, session).await;
    assert_eq!(sessions(&late_events), sessions(&events));
    let workers = worker_cuts::check_history(&api, &[session]).await;
    assert_eq!(workers.len(), 3);
}

// S3-085
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn included_worker_is_stopped_from_the_same_stream() {
    let server = TestServer::start(ServerOptions::pack(worker_cuts::pack())).await;
    let api = server.api();
    let session = api.create().await.expect("a session");
    let mut client = watch(&server, "client", session, SubscribeOptions::live()).await;
    let turn = api.submit(session, "calm").await.expect("accepted");
    let delegated = |e: &Event| matches!(e.body, Body::DelegateStarted(_));
    client.until(delegated).await.expect("a worker");
    // Asked for while the parent has nothing to say, they come all the same.
    let ask = with_workers(SubscribeOptions::live());
    client.subscribed(&ask).await.expect("accepted");
    let speaks = |e: &Event| matches!(e.body, Body::TextDelta(_)) && e.session_id != session;
    let events = client.until(speaks).await.expect("a worker's word");
    let word = events.last().expect("a word");
    let cancel = json!({"type": "cancel", "turn_id": word.turn_id});
    client.send(&cancel).await.expect("sent");
    let worker = word.session_id;
    let ends = |e: &Event| e.session_id == worker && e.body.kind().is_terminal();
    let events = client.until(ends).await.expect("its end");
    let end = &events.last().expect("an end").body;
    assert!(matches!(end, Body::TurnCancelled(_)), "{end:?}");
    // Its parent goes on, and a worker's turn has a stream of its own.
    assert_eq!(
        api.turn(turn.turn_id).await.expect("a turn")["state"],
        "running"
    );
    let stream = format!("/chat/{}/stream", word.turn_id.expect("a turn"));
    let response = api.get(&stream).await.expect("an answer");
    assert_eq!(response.status, 200, "{}", response.body);
    assert!(
        response.body.contains("event: cancelled"),
        "{}",
        response.body
    );
    api.ended(turn.turn_id).await.expect("ended");
    worker_cuts::check_history(&api, &[session]).await;
}

// S3-087
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ping_reports_the_position_of_every_session() {
    // A busy machine may answer pings late.
    let options = ServerOptions::pack(worker_cuts::pack())
        .set("stream", "ping_ms", 20)
        .set("stream", "ping_misses", 100);
    let server = TestServer::start(options).await;
    let api = server.api();
    let session = api.create().await.expect("a session");
    let ask = SubscribeOptions::since(START).filter(json!({
        "event_types": ["turn.completed"], "include_worker_sessions": true
    }));
    let mut client = watch(&server, "quiet", session, ask.clone()).await;
    client.answers = false;
    api.submit(session, "both").await.expect("accepted");
    // Nothing passes the filter for a while, so that pings come; one of them tells of a worker.
    let positions = loop {
        let WatchFrame::Frame(frame) = client.next().await.expect("a frame") else {
            continue;
        };
        assert_eq!(frame["type"], "ping", "{frame}");
        let pong = json!({"type": "pong", "nonce": frame["nonce"]});
        client.send(&pong).await.expect("sent");
        let positions = frame["positions"].as_object().cloned().expect("positions");
        assert_eq!(positions[&session.to_string()], frame["position"]);
        if positions.len() > 1 {
            break positions;
        }
    };
    let parse = |id: &str, at: &serde_json::Value| {
        let at = at.as_str().and_then(|at| at.parse().ok());
        (
            id.parse::<SessionId>().expect("a session"),
            at.expect("an id"),
        )
    };
    let mut at: BTreeMap<SessionId, Position> =
        positions.iter().map(|(id, at)| parse(id, at)).collect();
    drop(client);
    let since = at.remove(&session).expect("its own");
    let again = SubscribeOptions {
        since: Some(since),
        ..ask
    }
    .workers(at.clone());
    let mut client = watch(&server, "again", session, again).await;
    let events = stays_to_end(&mut client, session).await;
    assert!(at.keys().all(|worker| sessions(&events).contains(worker)));
    worker_cuts::check_history(&api, &[session]).await;
}

/// Waits until the log says that a client was too slow.
async fn closed(api: &ApiClient, session: SessionId) {
    let started = Instant::now();
    loop {
        let events = api.events(session).await.expect("a log");
        if events.iter().any(|e| e.text.contains("client_too_slow")) {
            return;
        }
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "nobody is too slow"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

// S3-087, S3-093
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_too_slow_for_a_worker_is_closed_and_resumes() {
    let options = ServerOptions::pack(worker_cuts::pack())
        .set("stream", "queue_max", 50)
        .set("stream", "send_buffer_bytes", 4_096);
    let server = TestServer::start(options).await;
    let api = server.api();
    let session = api.create().await.expect("a session");
    let ask = with_workers(SubscribeOptions::since(START));
    let frozen = StalledClient::connect(&api, "frozen", session, &ask).await;
    let frozen = frozen.expect("a connection");
    // All that comes in numbers is the worker's.
    api.submit(session, "much").await.expect("accepted");
    closed(&api, session).await;
    let (events, _, end) = frozen.resume_reading().await;
    assert_eq!(end.code(), "client_too_slow", "{end}");
    let mut at = BTreeMap::new();
    for event in &events {
        if let Body::DelegateStarted(start) = &event.body {
            at.entry(start.worker_session_id).or_insert(START);
        }
        at.insert(event.session_id, event.id);
    }
    let since = at.remove(&session).expect("the start of the turn");
    assert_eq!(at.len(), 1, "the worker had begun");
    let mut back = watch(
        &server,
        "frozen",
        session,
        with_workers(SubscribeOptions::since(since)).workers(at),
    )
    .await;
    stays_to_end(&mut back, session).await;
    worker_cuts::check_history(&api, &[session]).await;
}

// F5, S3-087
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_streams_deliver_worker_events_once() {
    let (report, workers) = worker_cuts::run(CUTS, SeededRng::from_env()).await;
    println!("{report:?}, {workers} workers");
    assert!(report.cuts >= CUTS, "{report:?}");
    assert!(report.restarted * 2 >= report.cuts, "{report:?}");
    assert!(workers > 20, "{workers} workers");
}

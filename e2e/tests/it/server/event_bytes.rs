//! Large events: a page of the log and what a client that stops reading holds are bounded in bytes.

use std::time::Duration;

use serde_json::Value;
use turnwire_e2e::large_session::{append_events, comment};
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_event::{Actor, Epoch, Position, Seq, SessionId};
use turnwire_testkit::chat::{ChatStream, CursorPlacement};
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{ServerOptions, TestServer};
use turnwire_testkit::watch::{StalledClient, SubscribeOptions, WatchClient};

const START: Position = Position::persisted(Epoch::FIRST, Seq(0));

/// `session.events_page_bytes`, and the brackets, commas and names around the events of a page.
const PAGE_BYTES_MAX: usize = (512 << 10) + 4_096;

/// All ids of a session's log, page by page, and the size of the largest page.
async fn pages(fixture: &ServerFixture, query: &str) -> (Vec<Value>, usize) {
    let (mut ids, mut largest, mut since) = (Vec::new(), 0, START.to_string());
    loop {
        let path = format!("/sessions/{}/events?since={since}{query}", fixture.session);
        let page = fixture.api.get(&path).await.expect("an answer");
        assert_eq!(page.status, 200, "{}", page.body);
        largest = largest.max(page.body.len());
        let page = page.json();
        let events = page["events"].as_array().expect("a list");
        ids.extend(events.iter().map(|event| event["id"].clone()));
        match page["next"].as_str() {
            None => return (ids, largest),
            Some(next) => next.clone_into(&mut since),
        }
    }
}

#[tokio::test]
async fn page_of_large_events_is_bounded_in_bytes() {
    let mut fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    let session = fixture.session;
    // Fifty events of 200 KB, and one that is larger than a page.
    let body = |index| {
        (
            Actor::USER,
            comment(if index == 25 { 2 << 20 } else { 200_000 }),
        )
    };
    append_events(&mut fixture.server, session, 51, body).await;
    for query in ["&limit=1000", "&limit=1000&types=feedback.recorded"] {
        let (ids, largest) = pages(&fixture, query).await;
        let large = ids.len();
        assert!((51..=60).contains(&large), "{large} events");
        assert!(ids.is_sorted_by_key(|id| id.as_str().map(str::to_owned)));
        assert!(largest < (2 << 20) + 4_096, "a page of {largest} bytes");
    }
    let path = format!("/sessions/{session}/events?limit=1000");
    let first = fixture.api.get(&path).await.expect("an answer");
    assert!(first.body.len() <= PAGE_BYTES_MAX, "{}", first.body.len());
    let first = first.json();
    assert!(first["events"].as_array().is_some_and(|it| it.len() > 1));
    assert!(first["next"].is_string());
}

/// A value of `/proc/PID/status` in KiB.
fn memory_kib(server: &TestServer, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid()));
    let status = status.expect("the process");
    let line = status.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.split_whitespace().nth(1));
    value.and_then(|kib| kib.parse().ok()).expect("a number")
}

/// The resident memory once it has not grown for a while: all clients are blocked.
async fn settled_kib(server: &TestServer) -> u64 {
    let mut largest = memory_kib(server, "VmRSS:");
    let mut same = 0;
    while same < 10 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = memory_kib(server, "VmRSS:");
        same = if now > largest + 256 { 0 } else { same + 1 };
        largest = largest.max(now);
    }
    largest
}

/// Clients that stop reading, of each wire.
const STALLED: usize = 24;
/// The memory that each of them may hold: 256 KiB of frames, one frame of 250 KB, and its connection.
const EACH_KIB_MAX: u64 = 1_024;
/// What the readers of the database and the allocator may add.
const SHARED_KIB_MAX: u64 = 24 << 10;

/// The same for chat streams, whose frames have 64 KiB at most here: the answer is 2 MB.
const CHAT_EACH_KIB_MAX: u64 = 640;
const CHAT_SHARED_KIB_MAX: u64 = 12 << 10;

fn options(script: ModelScript) -> ServerOptions {
    ServerOptions::script(script)
        .set("stream", "write_deadline_ms", 600_000)
        .set("stream", "send_buffer_bytes", 4_096)
}

async fn stall(fixture: &ServerFixture, session: SessionId) -> Vec<StalledClient> {
    let mut stalled = Vec::new();
    for number in 0..STALLED {
        let (name, since) = (format!("stalled {number}"), SubscribeOptions::since(START));
        let client = StalledClient::connect(&fixture.api, &name, session, &since).await;
        stalled.push(client.expect("a connection"));
    }
    stalled
}

// serial: measures the memory of a process
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stalled_replay_holds_a_bounded_number_of_bytes() {
    let script = ModelScript::new().on("", [ScriptStep::text("hi")]);
    let mut fixture = ServerFixture::new(options(script)).await;
    let session = fixture.session;
    let large = |_| (Actor::USER, comment(250_000));
    append_events(&mut fixture.server, session, 80, large).await;
    // One client that reads everything: buffers and caches have their size.
    let mut reader = WatchClient::connect(&fixture.api, "reader", session)
        .await
        .expect("a socket");
    let since = SubscribeOptions::since(START);
    reader.subscribed(&since).await.expect("an acknowledgement");
    let mut large = 0;
    while large < 80 {
        let event = reader.event().await.expect("an event");
        large += usize::from(event.actor == Actor::USER);
    }
    let before = settled_kib(&fixture.server).await;
    let stalled = stall(&fixture, session).await;
    let grown = settled_kib(&fixture.server).await.saturating_sub(before);
    let max = STALLED as u64 * EACH_KIB_MAX + SHARED_KIB_MAX;
    assert!(
        grown < max,
        "{STALLED} clients hold {grown} KiB, above {max}"
    );
    drop(stalled);
}

// serial: measures the memory of a process
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stalled_chat_replay_holds_a_bounded_number_of_bytes() {
    // One answer of 2 MB, in deltas that a replay joins.
    let words = "0123456789".repeat(200);
    let answer = ScriptStep::slow(&words, 2_000, 0).repeat(1_000);
    let fixture = ServerFixture::new(options(ModelScript::new().on("", [answer]))).await;
    let turn = fixture.submit("go").await;
    fixture.api.ended(turn).await.expect("an end");
    let resume = |name: String| {
        let (api, cursor) = (fixture.api.clone(), (None, CursorPlacement::Header));
        async move {
            let opened =
                ChatStream::resume_with_buffer(&api, &name, turn, cursor, None, Some(2_048)).await;
            opened.expect("a stream")
        }
    };
    let mut reader = resume("reader".into()).await;
    let frames = reader.read_to_end().await.expect("the whole turn");
    let text: usize = frames.iter().map(|frame| frame.text.len()).sum();
    assert!(text > 2_000_000, "{text} bytes");
    let before = settled_kib(&fixture.server).await;
    let mut stalled = Vec::new();
    for number in 0..STALLED {
        stalled.push(resume(format!("stalled {number}")).await);
    }
    let grown = settled_kib(&fixture.server).await.saturating_sub(before);
    let max = STALLED as u64 * CHAT_EACH_KIB_MAX + CHAT_SHARED_KIB_MAX;
    assert!(
        grown < max,
        "{STALLED} clients hold {grown} KiB, above {max}"
    );
}

//! Law 4: a snapshot at any time plus the events after it is the final state, also with a thousand
//! deltas a second and forced commits in between.

use std::time::Duration;

use serde_json::json;
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_event::{Body, ContentBlock, EventType, SessionId, TurnId};
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::history::{ConnectionEntry, History};
use turnwire_testkit::rng::SeededRng;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::ServerOptions;
use turnwire_testkit::watch::{StalledClient, SubscribeOptions, WatchClient, WatchEnd};

const SNAPSHOTS: usize = 60;
/// Commits in the middle of the stream.
const COMMITS: usize = 60;
/// More than the test waits for: the turn is cancelled when all snapshots and commits are done.
const DELTAS: u64 = 120_000;

/// Takes a snapshot and stays: a few for long, the others for a little while.
async fn look(client: WatchClient, stay: usize) -> Result<(), WatchEnd> {
    let mut client = client;
    client.subscribed(&SubscribeOptions::snapshot()).await?;
    for _ in 0..stay {
        if client.event().await?.body.kind().is_terminal() {
            break;
        }
    }
    Ok(())
}

/// Posts feedback: each is a commit in the middle of the stream.
async fn post(api: ApiClient, session: SessionId, turn: TurnId) {
    let path = format!("/sessions/{session}/feedback");
    for number in 0..COMMITS {
        let feedback = json!({"turn_id": turn, "rating": number});
        let answer = api.post(&path, feedback).await.expect("an answer");
        assert_eq!(answer.status, 202);
        tokio::time::sleep(Duration::from_millis(8)).await;
    }
}

/// How many snapshots caught a message in flight.
fn inside(history: &History) -> usize {
    let lines = history
        .connections
        .iter()
        .flat_map(|connection| &connection.lines);
    let open = lines.filter(|line| match line {
        ConnectionEntry::Received(frame) => {
            frame.text.starts_with("{\"type\":\"snapshot\"")
                && frame.text.contains("\"status\":\"in_progress\"")
        }
        ConnectionEntry::Subscribed(_) => false,
    });
    open.count()
}

// S3-030, S3-032, S3-051, LAW-4, S3-100
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshot_plus_later_events_is_the_final_state() {
    let mut rng = SeededRng::from_env();
    let words = "eight ch";
    let script = ModelScript::new()
        .on("^fast", [ScriptStep::slow(words, 8, 1).repeat(DELTAS)])
        .on("", [ScriptStep::text("hello")]);
    // A client of this test may lag on a busy machine, and must not be closed for it.
    let options = ServerOptions::script(script)
        .set("stream", "queue_max", 200_000)
        .set("stream", "ring_events", 200_000)
        .set("stream", "ring_bytes", 256 << 20);
    let fixture = ServerFixture::new(options).await;
    let before = fixture.turn("hi").await[0].turn_id.expect("a turn");
    let mut live = fixture.watch("live", SubscribeOptions::live()).await;
    let turn = fixture.submit("fast").await;
    live.until(|e| e.body.kind() == EventType::TextDelta)
        .await
        .expect("words");
    let watching = tokio::spawn(async move { live.turn(turn).await });

    let posting = tokio::spawn(post(fixture.api.clone(), fixture.session, before));
    let [mut short, mut long] = [const { Vec::new() }; 2];
    for number in 0..SNAPSHOTS {
        tokio::time::sleep(rng.millis(20, 80)).await;
        let client = fixture.connect(&format!("snapshot {number}")).await;
        if number % 15 == 0 {
            long.push(tokio::spawn(look(client, usize::MAX)));
        } else {
            let stay = rng.between(5, 60) as usize;
            short.push(tokio::spawn(look(client, stay)));
        }
    }
    posting.await.expect("commits");
    for task in short {
        task.await
            .expect("a task")
            .expect("events after a snapshot");
    }
    fixture.api.cancel(turn).await.expect("an answer");
    for task in long {
        task.await.expect("a task").expect("events until the end");
    }
    watching.await.expect("a task").expect("the whole turn");
    let ended = fixture.api.ended(turn).await.expect("an answer");
    assert_eq!(ended["state"], "cancelled", "the turn ended by itself");
    let history = fixture.check_history().await;
    assert_eq!(inside(&history), SNAPSHOTS, "snapshots in a message");
}

// S3-039
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn message_that_left_memory_after_a_snapshot_has_no_deltas() {
    // Far more than the buffers between the server and a stalled client hold.
    let long = "0123456789".repeat(40_000);
    let words = "and so on ";
    let script = ModelScript::new()
        .on("^long", [ScriptStep::text(&long)])
        .on("", [ScriptStep::slow(words, 10, 1).repeat(100)]);
    let options = ServerOptions::script(script)
        .set("stream", "ring_events", 16)
        .set("stream", "send_buffer_bytes", 4_096);
    let fixture = ServerFixture::new(options).await;
    let before = fixture.submit("long").await;
    fixture.api.ended(before).await.expect("an end");
    // It stalls in the snapshot, which has the long message.
    let ask = SubscribeOptions::snapshot();
    let stalled = StalledClient::connect(&fixture.api, "stalled", fixture.session, &ask);
    let stalled = stalled.await.expect("a connection");
    let turn = fixture.submit("go").await;
    fixture.api.ended(turn).await.expect("an end");
    let events = stalled.into_reader().turn(turn).await;
    let events = events.expect("the whole turn");
    let message = events.iter().filter(|event| {
        matches!(
            event.body.kind(),
            EventType::MessageStart | EventType::TextDelta | EventType::MessageComplete
        )
    });
    let message: Vec<_> = message.collect();
    let kinds: Vec<_> = message.iter().map(|event| event.body.kind()).collect();
    assert_eq!(kinds, [EventType::MessageStart, EventType::MessageComplete]);
    let Body::MessageComplete(complete) = &message[1].body else {
        panic!("just compared")
    };
    // The history checker expects the deltas of a message that starts after a snapshot, which only a
    // ring of a usual size keeps.
    let text = ContentBlock::text(words.repeat(100));
    assert_eq!(complete.final_content, [text]);
}

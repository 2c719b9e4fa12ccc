//! A viewer that stops reading is disconnected and delays no other; an oversized frame is sent whole
//! (D-75, D-15, law 7).

use turnwire_e2e::chat::{
    MetricsSnapshot, assert_no_errors_logged, back, events, say, until, whole, words,
};
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_event::TurnId;
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::chat::{Block, ChatStream, ChatStreamEnd, ChatSubmit, CursorPlacement};
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::ServerOptions;

const DROPPED: &str = "turnwire_stream_sse_frame_dropped_total";
const OVERSIZE: &str = "turnwire_stream_frame_oversize_total";

/// What the kernel holds for a viewer that does not read.
const BUFFER: u32 = 4_096;
const CHUNKS: u64 = 3_000;

/// Much more than the buffers between a server and a frozen viewer hold.
fn options(queue_max: usize) -> ServerOptions {
    let words = "0123456789".repeat(40);
    let script = ModelScript::new()
        .on(
            "^large",
            [ScriptStep::slow(&"x".repeat(300_000), 300_000, 0)],
        )
        .on("", [ScriptStep::slow(&words, 400, 1).repeat(CHUNKS)]);
    ServerOptions::script(script)
        .set("stream", "queue_max", queue_max)
        .set("stream", "send_buffer_bytes", BUFFER)
}

/// A viewer that will not read.
async fn frozen(api: &ApiClient, turn: TurnId) -> ChatStream {
    let ask = (None, CursorPlacement::Header);
    let stream = ChatStream::resume_with_buffer(api, "frozen", turn, ask, None, Some(BUFFER)).await;
    stream.expect("a stream")
}

/// Waits until a frozen viewer was cut.
async fn cut(api: &ApiClient) {
    until("the frozen viewer is cut", || async {
        MetricsSnapshot::read(api).await.sum(DROPPED) > 0.0
    })
    .await;
}

/// Reads what a viewer that was cut still gets.
async fn resume_reading(stream: &mut ChatStream) -> Vec<Block> {
    let mut frames = Vec::new();
    loop {
        match stream.next().await {
            Ok(frame) => frames.push(frame),
            Err(ChatStreamEnd::Lost(_)) => return frames,
            Err(end) => panic!("a viewer that was cut: {end}"),
        }
    }
}

// D-75, LAW-7, S1-116, S1-117, C-15, I-10
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frozen_viewer_is_closed_and_neighbour_gets_everything() {
    // Room enough for one that reads, on a busy machine too.
    let fixture = ServerFixture::new(options(1_000)).await;
    let question = ChatSubmit::new("go").session(fixture.session);
    let mut fast = say(&fixture.api, "fast", &question).await;
    let turn = fast.turn();
    let mut frozen = frozen(&fixture.api, turn).await;
    let reading = tokio::spawn(async move { fast.read_to_end().await });
    cut(&fixture.api).await;
    let early = resume_reading(&mut frozen).await;
    assert!(!early.is_empty() && !early.iter().any(Block::is_terminal));
    // It counts as leaving, and the other is still there: the turn goes on to its end.
    let frames = reading.await.expect("a task").expect("a whole stream");
    assert_eq!(events(&frames).last(), Some(&"completed"));
    assert_eq!(words(&frames).len() as u64, 400 * CHUNKS);
    // What was cut was contiguous: it comes back and has everything, each frame once.
    let mut again = back(&fixture.api, "frozen", turn, frozen.last()).await;
    let late = again.read_to_end().await.expect("the rest");
    assert_eq!(words(&early) + &words(&late), words(&frames));
    assert_no_errors_logged(&fixture.server);
    fixture.check_history().await;
}

// D-75
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_a_slow_viewer_counts_as_disconnect() {
    let fixture = ServerFixture::new(options(50)).await;
    let question = ChatSubmit::new("go").session(fixture.session);
    let first = say(&fixture.api, "first", &question).await;
    let turn = first.turn();
    let mut alone = frozen(&fixture.api, turn).await;
    drop(first);
    let row = fixture.api.ended(turn).await.expect("an end");
    assert_eq!(row["state"], "cancelled", "{row}");
    let reason = &row["terminal"]["payload"]["reason"];
    assert_eq!(reason, "client_disconnected", "{row}");
    assert!(MetricsSnapshot::read(&fixture.api).await.sum(DROPPED) > 0.0);
    resume_reading(&mut alone).await;
    assert_no_errors_logged(&fixture.server);
    fixture.check_history().await;
}

// D-75
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_that_left_the_ring_are_counted_as_dropped() {
    const QUEUE_MAX: usize = 400;
    const RING_EVENTS: usize = 300;
    // More than is emitted while the viewer still seems to read, and less than the queue.
    let options = options(QUEUE_MAX)
        .set("stream", "ring_events", RING_EVENTS)
        .set("stream", "pending_bytes", 16_384);
    let fixture = ServerFixture::new(options).await;
    let question = ChatSubmit::new("go")
        .session(fixture.session)
        .continue_on_disconnect();
    let first = say(&fixture.api, "first", &question).await;
    let turn = first.turn();
    let mut alone = frozen(&fixture.api, turn).await;
    drop(first);
    // On a busy machine the viewer may lose an event of the ring before it is behind by the queue.
    until("all frames are counted", || async {
        MetricsSnapshot::read(&fixture.api).await.sum(DROPPED) > RING_EVENTS as f64
    })
    .await;
    resume_reading(&mut alone).await;
    fixture.api.ended(turn).await.expect("an end");
}

// D-75
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn continuing_turn_ignores_a_closed_slow_viewer() {
    let fixture = ServerFixture::new(options(50)).await;
    let question = ChatSubmit::new("go")
        .session(fixture.session)
        .continue_on_disconnect();
    let first = say(&fixture.api, "first", &question).await;
    let turn = first.turn();
    let mut alone = frozen(&fixture.api, turn).await;
    drop(first);
    cut(&fixture.api).await;
    let row = fixture.api.ended(turn).await.expect("an end");
    assert_eq!(row["state"], "completed", "{row}");
    let early = resume_reading(&mut alone).await;
    let mut again = back(&fixture.api, "frozen", turn, alone.last()).await;
    let late = again.read_to_end().await.expect("the rest");
    let all = words(&early) + &words(&late);
    assert_eq!(all.len() as u64, 400 * CHUNKS);
    fixture.check_history().await;
}

// D-15, S1-012
#[tokio::test]
async fn large_frame_is_sent_whole_and_counted() {
    let fixture = ServerFixture::new(options(50)).await;
    let question = ChatSubmit::new("large").session(fixture.session);
    let (turn, frames) = whole(&fixture.api, "live", &question).await;
    let large = |frames: &[Block]| {
        frames
            .iter()
            .filter(|f| f.frame_text().len() > 256 << 10)
            .count()
    };
    assert_eq!((large(&frames), words(&frames).len()), (1, 300_000));
    assert_eq!(MetricsSnapshot::read(&fixture.api).await.sum(OVERSIZE), 1.0);
    let again = back(&fixture.api, "again", turn, None)
        .await
        .read_to_end()
        .await;
    let again = again.expect("a replay");
    assert_eq!((large(&again), words(&again)), (1, words(&frames)));
    let metrics = MetricsSnapshot::read(&fixture.api).await;
    assert_eq!((metrics.sum(OVERSIZE), metrics.sum(DROPPED)), (2.0, 0.0));
    // It is said in the log, and not as an error.
    assert!(fixture.server.stderr().contains("above 256 KB"));
    assert_no_errors_logged(&fixture.server);
    fixture.check_history().await;
}

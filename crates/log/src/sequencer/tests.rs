//! The sequencer over a log that commits on permit: order, gates, turn states, refusals.

use std::sync::atomic::AtomicI64;
use std::sync::mpsc;
use std::time::Duration;

use turnwire_event::body::feedback::FeedbackRecorded;
use turnwire_event::body::route::{RelayedResponse, RouteDecided};
use turnwire_event::body::session::SessionClosed;
use turnwire_event::body::stream::{MessageComplete, TextDelta};
use turnwire_event::body::turn::{CancelRequested, PartialMessage, TurnCancelled, TurnCompleted};
use turnwire_event::code::{CancelCode, Phase, TurnStatus};
use turnwire_event::row::AuditEntry;
use turnwire_event::{EpisodeId, Epoch, EventType, MessageId, StopReason, TokenUsage, Ulid};

use super::*;
use crate::chain::ChainHash;
use crate::error::{AppendError, ReadError};
use crate::log::Log;
use crate::maintenance::{PieceBudget, TrimCursor, TrimPiece};
use crate::record::{CountedEvents, EventBatch};
use crate::reserve::DiskReserve;
use crate::selection::{EventSelection, ReadLimits};
use crate::sequencer::outbox::Outbox;

/// A log that accepts one append for each permit, or fails it with the permit's error.
struct PermitLog {
    permits: Mutex<mpsc::Receiver<Result<(), AppendError>>>,
    written: Mutex<Vec<Seq>>,
    times: Mutex<Vec<Timestamp>>,
}

#[rustfmt::skip]
impl Log for PermitLog {
    fn append(&self, batch: &[SessionAppend]) -> Result<(), AppendError> {
        self.permits.lock().recv_timeout(Duration::from_secs(10)).expect("a permit")?;
        self.written.lock().extend(batch.iter().flat_map(|a| a.records.iter().map(|r| r.seq)));
        self.times.lock().extend(batch.iter().flat_map(|a| a.records.iter().map(|r| r.time)));
        Ok(())
    }
    fn read(&self, _: SessionId, _: Seq, _: Seq, _: &EventSelection, _: ReadLimits) -> Result<EventBatch, ReadError> { Ok(EventBatch { events: Vec::new(), end: Seq(0) }) }
    fn tail(&self, _: SessionId) -> Result<Option<LogTail>, ReadError> { Ok(None) }
    fn hash_at(&self, session: SessionId, _: Seq) -> Result<ChainHash, ReadError> { Ok(ChainHash::seed(session)) }
    fn count(&self, _: SessionId, _: Seq, _: Seq, _: &EventSelection, _: usize) -> Result<CountedEvents, ReadError> { Ok(CountedEvents { events: 0, end: Seq(0) }) }
    fn trim(&self, _: Timestamp, _: TrimCursor, _: &PieceBudget) -> Result<TrimPiece, AppendError> { Ok(TrimPiece { trimmed: Vec::new(), next: None }) }
    fn delete(&self, _: &[SessionId], _: &[AuditEntry]) -> Result<(), AppendError> { Ok(()) }
    fn close(&self) {}
}

#[derive(Default)]
struct RecordingSink {
    positions: Mutex<Vec<String>>,
    /// The timestamps that clients read in the events' JSON, and those beside the JSON.
    times: Mutex<Vec<(String, String)>>,
    response_ids: Mutex<Vec<String>>,
    quarantined: AtomicBool,
}

impl EventSink for RecordingSink {
    fn publish(&self, events: &mut Vec<ReleasedEvent>) {
        let mut published = self.positions.lock();
        for event in events.drain(..) {
            published.push(event.head.position.to_string());
            let json: serde_json::Value = serde_json::from_slice(&event.bytes).expect("JSON");
            let written = json["timestamp"].as_str().expect("a timestamp").to_owned();
            let response_id = json["response_id"].as_str().unwrap_or_default();
            self.response_ids.lock().push(response_id.to_owned());
            self.times.lock().push((written, event.time.to_string()));
        }
    }
    fn quarantined(&self) {
        self.quarantined.store(true, Ordering::Release);
    }
}

/// A clock that shows the time it was set to, in milliseconds.
struct ManualClock(AtomicI64);
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}

/// A sequencer with its writer, over a [`PermitLog`] and into a [`RecordingSink`].
struct Harness {
    sequencer: Arc<Sequencer>,
    sink: Arc<RecordingSink>,
    log: Arc<PermitLog>,
    clock: Arc<ManualClock>,
    permit: mpsc::Sender<Result<(), AppendError>>,
}

impl Harness {
    fn new() -> Self {
        Self::with_tail(Timestamp::from_millis(0))
    }

    /// Over a log whose newest event is of `time`.
    fn with_tail(time: Timestamp) -> Self {
        let (permit, permits) = mpsc::channel();
        let log = Arc::new(PermitLog {
            permits: Mutex::new(permits),
            written: Mutex::default(),
            times: Mutex::default(),
        });
        let reserve = DiskReserve::new(
            std::env::temp_dir().join(format!("turnwire-reserve-{}", std::process::id())),
            0,
        );
        let fatal = Box::new(|_: &str| {});
        let writer = LogWriter::start(log.clone(), reserve, fatal).expect("a writer");
        let sink = Arc::new(RecordingSink::default());
        let session = SessionId(Ulid(1));
        let tail = LogTail::first(session, time);
        let bounds = OutboxBounds {
            events: 4,
            bytes: 1 << 20,
        };
        let clock = Arc::new(ManualClock(AtomicI64::new(1_000)));
        let sequencer = Sequencer::open(session, tail, bounds, clock.clone(), writer, sink.clone());
        Self {
            sequencer,
            sink,
            log,
            clock,
            permit,
        }
    }

    fn emit(&self, body: Body) -> Result<Position, SequencerError> {
        self.sequencer
            .emit_one(draft(body), OutboxRoom::Reserved)
            .map(|(at, _)| at)
    }

    fn allow_commit(&self) {
        self.permit.send(Ok(())).expect("the log");
    }

    fn published(&self) -> Vec<String> {
        self.sink.positions.lock().clone()
    }

    /// Emits events in one call, at `millis` of the clock.
    fn emit_at(&self, millis: i64, bodies: Vec<Body>) -> Result<(), SequencerError> {
        self.clock.0.store(millis, Ordering::Relaxed);
        let drafts = bodies.into_iter().map(draft).collect();
        let emitted = self.sequencer.emit(drafts, OutboxRoom::Reserved);
        emitted.map(|_| ())
    }

    fn wait_until(&self, condition: impl Fn() -> bool) {
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while !condition() {
            assert!(
                std::time::Instant::now() < deadline,
                "timed out; published {:?}",
                self.published()
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

const TURN: TurnId = TurnId(Ulid(7));

fn draft(body: Body) -> EventDraft {
    let turn = (body.kind() != EventType::FeedbackRecorded).then_some(TURN);
    EventDraft::new(turn, Actor::SYSTEM, body)
}

fn note() -> Body {
    Body::FeedbackRecorded(FeedbackRecorded {
        message_id: None,
        turn_id: None,
        rating: "1".into(),
        comment: None,
    })
}

fn delta() -> Body {
    Body::TextDelta(TextDelta {
        message_id: MessageId(Ulid(1)),
        content_block_index: 0,
        text: "x".into(),
    })
}

fn complete() -> Body {
    let stop_reason = StopReason::EndTurn;
    Body::MessageComplete(MessageComplete {
        message_id: MessageId(Ulid(1)),
        stop_reason,
        final_content: vec![],
        usage: TokenUsage::default(),
    })
}

fn completed() -> Body {
    let usage = TokenUsage::default();
    Body::TurnCompleted(TurnCompleted {
        status: TurnStatus::Ok,
        usage,
        error: None,
        reason: None,
        partial: None,
        paused: None,
    })
}

fn cancelled() -> Body {
    Body::TurnCancelled(TurnCancelled {
        reason: "x".into(),
        code: CancelCode::RequestCancelled,
        phase: Phase::Llm,
        partial: PartialMessage {
            message_id: None,
            bytes: 0,
            kept_until: None,
        },
        receipt: Vec::new(),
    })
}

fn cancel() -> Body {
    Body::TurnCancelRequested(CancelRequested::new("user", "x"))
}

// I-02
#[test]
fn events_are_released_in_order_after_their_commit() {
    let harness = Harness::new();
    harness.sequencer.resume_turn(TURN, false, Sub::LAST.0);
    harness
        .emit(delta())
        .expect("nothing waits ahead of the event");
    assert_eq!(harness.published(), ["evt_00010000000000.000001"]);
    harness.emit(note()).expect("accepted");
    harness.emit(delta()).expect("accepted");
    harness.emit(delta()).expect("accepted");
    std::thread::sleep(Duration::from_millis(30));
    assert_eq!(
        harness.published().len(),
        1,
        "the deltas wait for the event that is not durable"
    );
    harness.allow_commit();
    harness.wait_until(|| harness.published().len() == 4);
    let expected = [
        "evt_00010000000000.000001",
        "evt_00010000000001",
        "evt_00010000000001.000001",
        "evt_00010000000001.000002",
    ];
    assert_eq!(harness.published(), expected);
}

#[test]
fn barrier_is_released_with_the_commit_of_its_row() {
    let harness = Harness::new();
    harness.sequencer.resume_turn(TURN, false, Sub::LAST.0);
    let mut barrier = draft(complete());
    barrier.rows.push(RowChange::CostAdd(1.0));
    harness
        .sequencer
        .emit(vec![barrier, draft(note())], OutboxRoom::Reserved)
        .expect("accepted");
    std::thread::sleep(Duration::from_millis(30));
    assert!(
        harness.published().is_empty(),
        "message.complete waits for its message row"
    );
    harness.allow_commit();
    harness.wait_until(|| harness.published().len() == 2);
}

#[test]
fn full_disk_is_retried_with_the_same_numbers() {
    let harness = Harness::new();
    harness.emit(note()).expect("accepted");
    harness
        .permit
        .send(Err(AppendError::Full))
        .expect("the log");
    harness.allow_commit();
    harness.wait_until(|| harness.published().len() == 1);
    assert_eq!(*harness.log.written.lock(), [Seq(1)]);
    assert_eq!(
        harness.emit(note()).map(|at| at.seq),
        Ok(Seq(2)),
        "no number is skipped or reused"
    );
    harness.allow_commit();
}

#[test]
fn refused_batch_quarantines_the_session() {
    let harness = Harness::new();
    harness.emit(note()).expect("accepted");
    for _ in 0..2 {
        harness
            .permit
            .send(Err(AppendError::Refused("test".into())))
            .expect("the log");
    }
    harness.wait_until(|| harness.sink.quarantined.load(Ordering::Acquire));
    assert_eq!(harness.emit(note()), Err(SequencerError::Closed));
    assert!(harness.published().is_empty());
}

#[test]
fn law_1_turn_accepts_no_event_after_its_terminal() {
    let harness = Harness::new();
    assert_eq!(
        harness.emit(delta()),
        Err(SequencerError::Ended),
        "the turn has not started"
    );
    harness.sequencer.resume_turn(TURN, false, Sub::LAST.0);
    harness.emit(completed()).expect("the terminal");
    for body in [delta(), completed(), cancel()] {
        assert_eq!(harness.emit(body), Err(SequencerError::Ended));
    }
    harness.allow_commit();
}

// S1-119, I-01
#[test]
fn second_terminal_in_one_call_is_refused_with_the_call() {
    let terminals: [fn() -> Body; 2] = [completed, cancelled];
    for first in terminals {
        for second in terminals {
            let harness = Harness::new();
            harness.sequencer.resume_turn(TURN, false, Sub::LAST.0);
            let before = harness.sequencer.last();
            let both = harness.emit_at(1_000, vec![delta(), first(), second()]);
            assert_eq!(both, Err(SequencerError::Ended));
            assert_eq!(harness.sequencer.last(), before, "all or none");
            // The turn is still open, and ends once.
            assert_eq!(harness.emit_at(1_000, vec![first()]), Ok(()));
            let late = harness.emit_at(1_000, vec![second()]);
            assert_eq!(late, Err(SequencerError::Ended));
            harness.allow_commit();
        }
    }
}

// S1-034, D-04
#[test]
fn events_have_the_response_id_of_their_route_until_the_terminal() {
    let harness = Harness::new();
    let response = RelayedResponse {
        response_id: Some("resp_abc".parse().expect("an id")),
        episode_id: EpisodeId(Ulid(9)),
        unanswered: false,
    };
    let route = Body::RouteDecided(RouteDecided::relayed("relay:desk".into(), response));
    let other = TurnId(Ulid(8));
    harness.sequencer.resume_turn(TURN, false, 1);
    harness.sequencer.resume_turn(other, false, 1);
    let bodies = [delta(), route, delta(), completed()];
    let mut drafts: Vec<_> = bodies.into_iter().map(draft).collect();
    drafts.insert(
        3,
        EventDraft::new(Some(other), Actor::ORCHESTRATOR, delta()),
    );
    let emitted = harness.sequencer.emit(drafts, OutboxRoom::Reserved);
    emitted.expect("the events");
    harness.allow_commit();
    harness.wait_until(|| harness.published().len() == 5);
    let own = |turn: TurnId| format!("resp_{turn}");
    let given = || "resp_abc".to_owned();
    let expected = [own(TURN), given(), given(), own(other), given()];
    assert_eq!(*harness.sink.response_ids.lock(), expected);
    // Streams of the ended turn may still have to be closed with an error of that id.
    let given = harness.sequencer.response_id(TURN);
    assert_eq!(given.as_ref().map(UpstreamId::as_str), Some("resp_abc"));
    assert_eq!(harness.sequencer.response_id(other), None);
}

// S1-119, I-01
#[test]
fn terminals_of_two_turns_in_one_call_end_each_once() {
    let harness = Harness::new();
    let other = TurnId(Ulid(8));
    let of = |turn, body| EventDraft::new(Some(turn), Actor::SYSTEM, body);
    for turn in [TURN, other] {
        harness.sequencer.resume_turn(turn, false, Sub::LAST.0);
    }
    let emit = |drafts| harness.sequencer.emit(drafts, OutboxRoom::Reserved);
    let thrice = vec![
        of(TURN, completed()),
        of(other, completed()),
        of(TURN, completed()),
    ];
    assert_eq!(emit(thrice).err(), Some(SequencerError::Ended));
    let after_a_cancel = vec![
        of(TURN, cancel()),
        of(other, delta()),
        of(TURN, completed()),
    ];
    let refused = emit(after_a_cancel).err();
    assert_eq!(refused, Some(SequencerError::Cancelled));
    let each = vec![of(TURN, completed()), of(other, completed())];
    assert!(emit(each).is_ok());
    harness.allow_commit();
}

// S1-009
#[test]
fn timestamps_do_not_decrease_when_the_clock_is_set_back() {
    let harness = Harness::new();
    harness.sequencer.resume_turn(TURN, false, Sub::LAST.0);
    for millis in [5_000, 3_000, 4_999, 5_001] {
        let emitted = harness.emit_at(millis, vec![delta(), note()]);
        assert_eq!(emitted, Ok(()));
        harness.allow_commit();
    }
    harness.wait_until(|| harness.published().len() == 8);
    let text = |millis| Timestamp::from_millis(millis).to_string();
    let expected: Vec<(String, String)> = [5_000, 5_000, 5_000, 5_001]
        .into_iter()
        .flat_map(|millis| [millis; 2])
        .map(|millis| (text(millis), text(millis)))
        .collect();
    assert_eq!(*harness.sink.times.lock(), expected);
    assert_eq!(
        *harness.log.times.lock(),
        [5_000, 5_000, 5_000, 5_001].map(Timestamp::from_millis),
        "the column of the log"
    );
}

// S1-009
#[test]
fn timestamps_continue_from_the_stored_tail() {
    let harness = Harness::with_tail(Timestamp::from_millis(9_000));
    harness.sequencer.resume_turn(TURN, false, Sub::LAST.0);
    assert_eq!(harness.emit_at(1_000, vec![delta()]), Ok(()));
    let tail = Timestamp::from_millis(9_000).to_string();
    assert_eq!(*harness.sink.times.lock(), [(tail.clone(), tail)]);
}

#[test]
fn law_8_cancelling_turn_starts_nothing_and_does_not_complete() {
    let harness = Harness::new();
    harness.sequencer.resume_turn(TURN, false, Sub::LAST.0);
    harness.emit(cancel()).expect("the first");
    assert_eq!(
        harness.emit(cancel()),
        Err(SequencerError::Cancelled),
        "the second"
    );
    assert_eq!(harness.emit(completed()), Err(SequencerError::Cancelled));
    let start = turnwire_event::body::tool::ToolCalled {
        upstream_id: None,
        tool_use_id: turnwire_event::ToolUseId(Ulid(1)),
        tool_name: "echo".into(),
        tool_type: turnwire_event::code::ToolType::Function,
        input_summary: String::new(),
    };
    let step = turnwire_event::body::plan::StepStarted {
        plan_step_id: "turn-1-1".into(),
        expected_subagents: vec!["shop".into()],
        cap: 3,
        dropped: Vec::new(),
        deadline_ms: 1,
    };
    for start in [Body::ToolCalled(start), Body::PlanStepStarted(step)] {
        assert_eq!(harness.emit(start), Err(SequencerError::Cancelled));
    }
    harness.emit(delta()).expect("running work may still emit");
    harness.allow_commit();
}

#[test]
fn full_outbox_refuses_bounded_and_accepts_reserved() {
    let harness = Harness::new();
    for _ in 0..4 {
        harness
            .sequencer
            .emit_one(draft(note()), OutboxRoom::Bounded)
            .expect("below the bounds");
    }
    assert_eq!(
        harness
            .sequencer
            .emit_one(draft(note()), OutboxRoom::Bounded)
            .err(),
        Some(SequencerError::Full)
    );
    assert!(
        harness
            .sequencer
            .emit_one(draft(note()), OutboxRoom::Reserved)
            .is_ok()
    );
    for _ in 0..3 {
        let _ = harness.permit.send(Ok(()));
    }
    harness.wait_until(|| harness.published().len() == 5);
    assert!(!harness.sequencer.is_full());
}

/// A notification that is lost fails the test instead of hanging it.
async fn in_time<T>(future: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(Duration::from_secs(30), future).await;
    waited.expect("a notification within 30 s")
}

#[tokio::test]
async fn rows_without_an_event_are_stored_with_their_batch() {
    let harness = Harness::new();
    let row = || vec![RowChange::TurnCancelling(TURN)];
    let wait_briefly = |ticket| {
        let sequencer = harness.sequencer.clone();
        async move { tokio::time::timeout(Duration::ZERO, sequencer.stored(ticket)).await }
    };
    let (at, first) = harness.sequencer.put(row()).expect("accepted");
    assert_eq!(at, harness.sequencer.last());
    assert!(wait_briefly(first).await.is_err(), "not durable yet");
    assert!(!harness.sequencer.is_settled());
    harness.allow_commit();
    in_time(harness.sequencer.stored(first))
        .await
        .expect("durable");
    harness.wait_until(|| harness.sequencer.is_settled());
    let (_, second) = harness.sequencer.put(row()).expect("accepted");
    assert!(wait_briefly(second).await.is_err(), "another batch");
    harness.allow_commit();
    in_time(harness.sequencer.stored(second))
        .await
        .expect("durable");
    let (_, dropped) = harness.sequencer.put(row()).expect("accepted");
    harness.sequencer.close();
    assert_eq!(
        in_time(harness.sequencer.stored(dropped)).await,
        Err(SequencerError::Closed)
    );
    assert_eq!(harness.sequencer.put(row()), Err(SequencerError::Closed));
    harness.allow_commit();
}

/// True if `future` does not resolve at once.
async fn is_pending<T>(future: impl Future<Output = T>) -> bool {
    let waited = tokio::time::timeout(Duration::ZERO, future).await;
    waited.is_err()
}

#[tokio::test]
async fn waits_for_events_end_with_their_commit() {
    let harness = Harness::new();
    let sequencer = &harness.sequencer;
    let first = harness.emit(note()).expect("accepted").seq;
    assert!(is_pending(sequencer.committed(first)).await);
    assert!(is_pending(sequencer.all_committed()).await);
    harness.allow_commit();
    assert_eq!(in_time(sequencer.committed(first)).await, Ok(()));
    assert_eq!(in_time(sequencer.all_committed()).await, Ok(()));
    let second = harness.emit(note()).expect("accepted").seq;
    assert!(!is_pending(sequencer.committed(first)).await);
    assert!(is_pending(sequencer.committed(second)).await);
    assert!(is_pending(sequencer.all_committed()).await);
    assert!(is_pending(sequencer.closed()).await);
    sequencer.close();
    let closed = Err(SequencerError::Closed);
    assert_eq!(in_time(sequencer.committed(second)).await, closed);
    assert!(!is_pending(sequencer.closed()).await);
    harness.allow_commit();
}

#[tokio::test]
async fn producer_waits_while_the_outbox_is_full() {
    let harness = Harness::new();
    let sequencer = &harness.sequencer;
    for _ in 0..4 {
        assert!(!sequencer.is_full());
        assert!(!is_pending(sequencer.ready()).await);
        harness.emit(note()).expect("accepted");
    }
    assert!(sequencer.is_full());
    assert!(is_pending(sequencer.ready()).await);
    // The first event is one batch, the others the next.
    harness.allow_commit();
    harness.allow_commit();
    assert_eq!(in_time(sequencer.ready()).await, Ok(()));
    harness.wait_until(|| harness.published().len() == 4);
    assert!(!sequencer.is_full());
}

#[tokio::test]
async fn checkpoint_writes_the_rows_of_open_sessions() {
    let harness = Harness::new();
    let sequencer = &harness.sequencer;
    let checkpoint = || {
        let row = RowChange::TurnCancelling(TURN);
        Sequencer::checkpoint(&sequencer.writer, vec![(sequencer.clone(), vec![row])]);
    };
    checkpoint();
    assert!(!sequencer.is_settled(), "the rows wait for their commit");
    harness.allow_commit();
    harness.wait_until(|| sequencer.is_settled());
    // Rows beside an event that is being written go with the next batch.
    harness.emit(note()).expect("accepted");
    checkpoint();
    harness.allow_commit();
    harness.allow_commit();
    harness.wait_until(|| sequencer.is_settled());
    sequencer.close();
    checkpoint();
    assert!(sequencer.is_settled(), "a closed session takes no rows");
}

//
#[test]
fn closed_event_is_the_last_of_a_session() {
    let harness = Harness::new();
    harness.sequencer.resume_turn(TURN, false, Sub::LAST.0);
    harness.emit(note()).expect("accepted");
    let closed = Body::SessionClosed(SessionClosed {
        reason: "deleted".into(),
    });
    harness.emit(closed).expect("accepted");
    for late in [note(), delta(), completed()] {
        assert_eq!(harness.emit(late), Err(SequencerError::Closed));
    }
    let row = vec![RowChange::TurnCancelling(TURN)];
    assert_eq!(harness.sequencer.put(row), Err(SequencerError::Closed));
    harness.allow_commit();
    harness.allow_commit();
    harness.wait_until(|| harness.published().len() == 2);
}

#[test]
fn outbox_counts_the_bytes_that_wait() {
    let bounds = OutboxBounds {
        events: 100,
        bytes: 300,
    };
    let event = |seq: u64| ReleasedEvent {
        head: EventHead {
            position: Position::persisted(Epoch::FIRST, Seq(seq)),
            kind: EventType::FeedbackRecorded,
            turn: None,
            actor: Actor::USER,
            suppressed: false,
        },
        time: Timestamp::default(),
        bytes: vec![b'x'; 100].into(),
        body: note(),
        trace: None,
    };
    let mut outbox = Outbox::default();
    // As often as the sum would have to overflow the bound if it only grew.
    for round in 0..5 {
        let seqs = || (1..=3).map(|at| round * 3 + at);
        for seq in seqs() {
            assert!(!outbox.is_full(bounds), "{seq}");
            outbox.push(Seq(seq), event(seq));
        }
        assert!(outbox.is_full(bounds));
        let waiting = outbox.iter().map(|event| event.head.position.seq.0);
        assert!(waiting.eq(seqs()));
        assert_eq!(outbox.release(Seq(round * 3 + 1)).len(), 1);
        assert!(!outbox.is_full(bounds));
        assert_eq!(outbox.release(Seq(round * 3 + 3)).len(), 2);
        assert!(outbox.release(Seq(round * 3 + 3)).is_empty());
    }
    for seq in 1..=3 {
        outbox.push(Seq(seq), event(seq));
    }
    outbox.clear();
    assert!(!outbox.is_full(bounds) && outbox.iter().next().is_none());
}

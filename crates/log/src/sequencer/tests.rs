//! The sequencer over a store that commits when told: order, gates, latches, refusals.

use std::sync::mpsc;
use std::time::Duration;

use turnwire_event::body::feedback::Recorded;
use turnwire_event::body::stream::{MessageComplete, TextDelta};
use turnwire_event::body::turn::{CancelRequested, Completed};
use turnwire_event::code::TurnStatus;
use turnwire_event::{EventType, MessageId, StopReason, Ulid, Usage};

use super::*;
use crate::error::{AppendError, ReadError};
use crate::record::StoredEvent;
use crate::reserve::Reserve;
use crate::store::{StatusCount, Store, UsageDay, View};
use turnwire_event::row::{
    ApprovalRow, KeyRow, KeyScope, LlmCallRow, MessagePart, QueuedRow, RowChange, SessionRow,
    StoredMessage, ToolCallRow, TurnRow,
};
use turnwire_event::{ApprovalId, CallId, Day, Filter, Owner, TenantId};

/// Commits one batch for each permit; refuses when the permit says so.
struct Gated {
    permits: Mutex<mpsc::Receiver<Result<(), AppendError>>>,
    written: Mutex<Vec<Seq>>,
}

#[rustfmt::skip]
impl Store for Gated {
    fn append(&self, batch: &[Append]) -> Result<(), AppendError> {
        self.permits.lock().recv_timeout(Duration::from_secs(10)).expect("a permit")?;
        self.written.lock().extend(batch.iter().flat_map(|a| a.records.iter().map(|r| r.seq)));
        Ok(())
    }
    fn delete(&self, _: SessionId) -> Result<(), AppendError> { Ok(()) }
    fn trim(&self, _: Timestamp, _: usize) -> Result<Vec<(SessionId, Seq)>, AppendError> { Ok(Vec::new()) }
    fn close(&self) {}
    fn tail(&self, _: SessionId) -> Result<Option<Tail>, ReadError> { Ok(None) }
    fn hash_at(&self, _: SessionId, _: Seq) -> Result<[u8; 32], ReadError> { Ok([0; 32]) }
    fn events(&self, _: SessionId, _: Seq, _: Seq, _: usize) -> Result<Vec<StoredEvent>, ReadError> { Ok(Vec::new()) }
    fn count(&self, _: SessionId, _: Seq, _: Seq, _: &Filter) -> Result<u64, ReadError> { Ok(0) }
    fn session(&self, _: SessionId) -> Result<Option<SessionRow>, ReadError> { Ok(None) }
    fn sessions(&self, _: &Owner, _: Option<SessionId>, _: usize) -> Result<Vec<SessionRow>, ReadError> { Ok(Vec::new()) }
    fn turn(&self, _: TurnId) -> Result<Option<(Owner, TurnRow)>, ReadError> { Ok(None) }
    fn turns(&self, _: SessionId, _: Option<TurnId>, _: usize) -> Result<Vec<TurnRow>, ReadError> { Ok(Vec::new()) }
    fn open_turns(&self) -> Result<Vec<TurnRow>, ReadError> { Ok(Vec::new()) }
    fn queued(&self, _: SessionId) -> Result<Vec<QueuedRow>, ReadError> { Ok(Vec::new()) }
    fn queues(&self) -> Result<Vec<SessionId>, ReadError> { Ok(Vec::new()) }
    fn key(&self, _: &KeyScope) -> Result<Option<KeyRow>, ReadError> { Ok(None) }
    fn forget_keys(&self, _: Timestamp, _: usize) -> Result<usize, AppendError> { Ok(0) }
    fn messages(&self, _: SessionId, _: View<'_>, _: Position, _: Option<MessageId>, _: usize) -> Result<Vec<StoredMessage>, ReadError> { Ok(Vec::new()) }
    fn messages_since(&self, _: SessionId, _: View<'_>, _: Position, _: Position) -> Result<Vec<StoredMessage>, ReadError> { Ok(Vec::new()) }
    fn message(&self, _: SessionId, _: MessageId) -> Result<Option<StoredMessage>, ReadError> { Ok(None) }
    fn message_count(&self, _: SessionId, _: View<'_>, _: Position) -> Result<u64, ReadError> { Ok(0) }
    fn status_counts(&self, _: Timestamp) -> Result<Vec<StatusCount>, ReadError> { Ok(Vec::new()) }
    fn streamed(&self, _: SessionId, _: Position, _: Position) -> Result<Vec<StoredMessage>, ReadError> { Ok(Vec::new()) }
    fn parts(&self, _: TurnId) -> Result<Vec<MessagePart>, ReadError> { Ok(Vec::new()) }
    fn tool_calls(&self, _: SessionId, _: Option<turnwire_event::ToolUseId>, _: usize) -> Result<Vec<ToolCallRow>, ReadError> { Ok(Vec::new()) }
    fn llm_calls(&self, _: SessionId, _: Option<CallId>, _: usize) -> Result<Vec<LlmCallRow>, ReadError> { Ok(Vec::new()) }
    fn usage(&self, _: Option<TenantId>, _: (Day, Day), _: usize) -> Result<Vec<UsageDay>, ReadError> { Ok(Vec::new()) }
    fn workers(&self, _: SessionId, _: Option<SessionId>, _: usize) -> Result<Vec<SessionRow>, ReadError> { Ok(Vec::new()) }
    fn approval(&self, _: ApprovalId) -> Result<Option<(Owner, ApprovalRow)>, ReadError> { Ok(None) }
    fn approvals(&self, _: TurnId) -> Result<Vec<ApprovalRow>, ReadError> { Ok(Vec::new()) }
    fn open_approvals(&self, _: SessionId) -> Result<Vec<ApprovalRow>, ReadError> { Ok(Vec::new()) }
    fn leg(&self, _: TurnId) -> Result<Option<TurnRow>, ReadError> { Ok(None) }
    fn turn_tool_calls(&self, _: TurnId) -> Result<Vec<ToolCallRow>, ReadError> { Ok(Vec::new()) }
}

#[derive(Default)]
struct Seen(Mutex<(Vec<String>, bool)>);

impl Sink for Seen {
    fn publish(&self, events: &mut Vec<Released>) {
        self.0.lock().0.extend(
            events
                .drain(..)
                .map(|event| event.head.position.to_string()),
        );
    }
    fn quarantined(&self) {
        self.0.lock().1 = true;
    }
}

struct FrozenClock;
impl Clock for FrozenClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_000)
    }
}

struct Bench {
    sequencer: Arc<Sequencer>,
    seen: Arc<Seen>,
    store: Arc<Gated>,
    permit: mpsc::Sender<Result<(), AppendError>>,
}

impl Bench {
    fn new() -> Self {
        let (permit, permits) = mpsc::channel();
        let store = Arc::new(Gated {
            permits: Mutex::new(permits),
            written: Mutex::default(),
        });
        let reserve = Reserve::new(
            std::env::temp_dir().join(format!("turnwire-reserve-{}", std::process::id())),
            0,
        );
        let fatal = Box::new(|_: &str| {});
        let writer = Writer::start(store.clone(), reserve, fatal).expect("a writer");
        let seen = Arc::new(Seen::default());
        let session = SessionId(Ulid(1));
        let tail = Tail::first(session, Timestamp::from_millis(0));
        let bounds = Bounds {
            events: 4,
            bytes: 1 << 20,
        };
        let sequencer = Sequencer::open(
            session,
            tail,
            bounds,
            Arc::new(FrozenClock),
            writer,
            seen.clone(),
        );
        Self {
            sequencer,
            seen,
            store,
            permit,
        }
    }

    fn emit(&self, body: Body) -> Result<Position, Refused> {
        self.sequencer
            .emit_one(draft(body), Room::Reserved)
            .map(|(at, _)| at)
    }

    fn seen(&self) -> Vec<String> {
        self.seen.0.lock().0.clone()
    }

    fn eventually(&self, what: impl Fn() -> bool) {
        let patience = std::time::Instant::now() + Duration::from_secs(10);
        while !what() {
            assert!(
                std::time::Instant::now() < patience,
                "never happened; seen {:?}",
                self.seen()
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

const TURN: TurnId = TurnId(Ulid(7));

fn draft(body: Body) -> Draft {
    let turn = (body.kind() != EventType::FeedbackRecorded).then_some(TURN);
    Draft::new(turn, Actor::SYSTEM, body)
}

fn note() -> Body {
    Body::FeedbackRecorded(Recorded {
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
        usage: Usage::default(),
    })
}

fn completed() -> Body {
    let usage = Usage::default();
    Body::TurnCompleted(Completed {
        status: TurnStatus::Ok,
        usage,
        error: None,
        reason: None,
        partial: None,
    })
}

fn cancel() -> Body {
    Body::TurnCancelRequested(CancelRequested {
        by: "user".into(),
        reason: "x".into(),
    })
}

#[test]
fn nothing_is_visible_before_it_is_durable_and_order_is_kept() {
    let bench = Bench::new();
    bench.sequencer.resume_turn(TURN, false, Sub::LAST.0);
    bench.emit(delta()).expect("nothing is ahead of it");
    assert_eq!(bench.seen(), ["evt_00010000000000.000001"]);
    bench.emit(note()).expect("taken");
    bench.emit(delta()).expect("taken");
    bench.emit(delta()).expect("taken");
    std::thread::sleep(Duration::from_millis(30));
    assert_eq!(
        bench.seen().len(),
        1,
        "the deltas wait behind the event that is not durable"
    );
    bench.permit.send(Ok(())).expect("the store");
    bench.eventually(|| bench.seen().len() == 4);
    let expected = [
        "evt_00010000000000.000001",
        "evt_00010000000001",
        "evt_00010000000001.000001",
        "evt_00010000000001.000002",
    ];
    assert_eq!(bench.seen(), expected);
}

#[test]
fn a_barrier_waits_for_the_commit_that_holds_its_row() {
    let bench = Bench::new();
    bench.sequencer.resume_turn(TURN, false, Sub::LAST.0);
    let mut barrier = draft(complete());
    barrier.rows.push(RowChange::CostAdd(1.0));
    bench
        .sequencer
        .emit(vec![barrier, draft(note())], Room::Reserved)
        .expect("taken");
    std::thread::sleep(Duration::from_millis(30));
    assert!(
        bench.seen().is_empty(),
        "message.complete is not shown before its message is stored"
    );
    bench.permit.send(Ok(())).expect("the store");
    bench.eventually(|| bench.seen().len() == 2);
}

#[test]
fn a_full_disk_is_waited_out_with_the_same_numbers() {
    let bench = Bench::new();
    bench.emit(note()).expect("taken");
    bench
        .permit
        .send(Err(AppendError::Full))
        .expect("the store");
    bench.permit.send(Ok(())).expect("the store");
    bench.eventually(|| bench.seen().len() == 1);
    assert_eq!(*bench.store.written.lock(), [Seq(1)]);
    assert_eq!(
        bench.emit(note()).map(|at| at.seq),
        Ok(Seq(2)),
        "no number is skipped or given twice"
    );
    bench.permit.send(Ok(())).expect("the store");
}

#[test]
fn what_can_never_be_written_quarantines_the_session() {
    let bench = Bench::new();
    bench.emit(note()).expect("taken");
    for _ in 0..2 {
        bench
            .permit
            .send(Err(AppendError::Refused("no".into())))
            .expect("the store");
    }
    bench.eventually(|| bench.seen.0.lock().1);
    assert_eq!(bench.emit(note()), Err(Refused::Closed));
    assert!(bench.seen().is_empty());
}

#[test]
fn law_1_a_turn_has_one_terminal_and_nothing_after() {
    let bench = Bench::new();
    assert_eq!(
        bench.emit(delta()),
        Err(Refused::Ended),
        "it has not started"
    );
    bench.sequencer.resume_turn(TURN, false, Sub::LAST.0);
    bench.emit(completed()).expect("the terminal");
    for body in [delta(), completed(), cancel()] {
        assert_eq!(bench.emit(body), Err(Refused::Ended));
    }
    bench.permit.send(Ok(())).expect("the store");
}

#[test]
fn law_8_after_a_cancel_nothing_starts_and_only_the_cancel_ends_it() {
    let bench = Bench::new();
    bench.sequencer.resume_turn(TURN, false, Sub::LAST.0);
    bench.emit(cancel()).expect("the first");
    assert_eq!(bench.emit(cancel()), Err(Refused::Cancelled), "the second");
    assert_eq!(bench.emit(completed()), Err(Refused::Cancelled));
    let start = turnwire_event::body::tool::Called {
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
        assert_eq!(bench.emit(start), Err(Refused::Cancelled));
    }
    bench
        .emit(delta())
        .expect("what was under way may still be told");
    bench.permit.send(Ok(())).expect("the store");
}

#[test]
fn a_full_outbox_makes_producers_wait_and_endings_pass() {
    let bench = Bench::new();
    for _ in 0..4 {
        bench
            .sequencer
            .emit_one(draft(note()), Room::Bounded)
            .expect("room");
    }
    assert_eq!(
        bench.sequencer.emit_one(draft(note()), Room::Bounded).err(),
        Some(Refused::Full)
    );
    assert!(
        bench
            .sequencer
            .emit_one(draft(note()), Room::Reserved)
            .is_ok()
    );
    for _ in 0..3 {
        let _ = bench.permit.send(Ok(()));
    }
    bench.eventually(|| bench.seen().len() == 5);
    assert!(!bench.sequencer.is_full());
}

#[tokio::test]
async fn rows_without_an_event_are_waited_for_by_their_batch() {
    let bench = Bench::new();
    let row = || vec![RowChange::TurnCancelling(TURN)];
    let stored = |ticket| {
        let sequencer = bench.sequencer.clone();
        async move { tokio::time::timeout(Duration::ZERO, sequencer.stored(ticket)).await }
    };
    let (at, first) = bench.sequencer.put(row()).expect("taken");
    assert_eq!(at, bench.sequencer.last());
    assert!(stored(first).await.is_err(), "not durable yet");
    assert!(!bench.sequencer.is_settled());
    bench.permit.send(Ok(())).expect("the writer");
    bench.sequencer.stored(first).await.expect("durable");
    bench.eventually(|| bench.sequencer.is_settled());
    let (_, second) = bench.sequencer.put(row()).expect("taken");
    assert!(stored(second).await.is_err(), "another batch");
    bench.permit.send(Ok(())).expect("the writer");
    bench.sequencer.stored(second).await.expect("durable");
    let (_, lost) = bench.sequencer.put(row()).expect("taken");
    bench.sequencer.close();
    assert_eq!(bench.sequencer.stored(lost).await, Err(Refused::Closed));
    assert_eq!(bench.sequencer.put(row()), Err(Refused::Closed));
    bench.permit.send(Ok(())).expect("the writer");
}

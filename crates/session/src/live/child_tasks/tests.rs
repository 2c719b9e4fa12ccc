//! Child tasks that end at once, late and never, on a paused clock.

use std::future::{pending, ready};

use tokio::time::{Instant, sleep};
use turnwire_event::code::ToolType;
use turnwire_event::fold::turn::{OpenDelegate, OpenTool};
use turnwire_event::port::BoxFuture;
use turnwire_event::{Epoch, Position, Seq, SessionId, TurnId, Ulid};

use super::*;

/// A clock that follows tokio's paused time.
struct PausedClock(Instant);

impl Clock for PausedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.elapsed().as_millis() as i64)
    }
}

fn child_tasks() -> Arc<ChildTasks> {
    ChildTasks::new(Handle::current(), Arc::new(PausedClock(Instant::now())))
}

const TOOL: ToolUseId = ToolUseId(Ulid(7));

fn child(kind: ReceiptKind, id: &str, ended: BoxFuture<'static, StopOutcome>) -> ChildTask {
    ChildTask {
        kind,
        id: id.to_owned().into(),
        tool_use_id: TOOL,
        ended,
    }
}

fn try_take(
    tasks: &Arc<ChildTasks>,
    id: &str,
    ended: BoxFuture<'static, StopOutcome>,
) -> Result<(), EmitRefusal> {
    let wards: Arc<dyn ChildTaskRegistry> = tasks.clone();
    wards.track(child(ReceiptKind::Process, id, ended))
}

fn take(tasks: &Arc<ChildTasks>, id: &str, ended: BoxFuture<'static, StopOutcome>) {
    try_take(tasks, id, ended).expect("accepted");
}

fn after(ms: u64, outcome: StopOutcome) -> BoxFuture<'static, StopOutcome> {
    Box::pin(async move {
        sleep(Duration::from_millis(ms)).await;
        outcome
    })
}

fn lines(finished: &[FinishedChild]) -> Vec<(&str, StopOutcome, i64)> {
    let lines = finished.iter();
    lines
        .map(|child| (child.id.as_str(), child.outcome, child.at.as_millis()))
        .collect()
}

/// A turn whose tool [`TOOL`] runs.
fn open_turn() -> OpenTurn {
    let mut open = OpenTurn::new(TurnId(Ulid(1)));
    open.tools.push(OpenTool {
        upstream_id: None,
        id: TOOL,
        name: "nap".into(),
        tool_type: ToolType::Process,
        called: true,
    });
    open
}

const WAIT: Duration = Duration::from_secs(7);

#[tokio::test(start_paused = true)]
async fn child_that_ends_before_a_cancel_is_forgotten() {
    let tasks = child_tasks();
    // Far more than the limit, one after the other: a long turn leaks nothing.
    for n in 0..3 * CHILDREN_MAX {
        take(
            &tasks,
            &n.to_string(),
            Box::pin(ready(StopOutcome::Finished)),
        );
        tasks.wait_for_children(WAIT, Duration::ZERO).await;
    }
    take(&tasks, "last", after(10, StopOutcome::Finished));
    sleep(Duration::from_millis(11)).await;
    tasks.start_recording();
    assert_eq!(tasks.state.lock().running.len(), 0);
    assert!(tasks.finish().is_empty());
}

//
#[tokio::test(start_paused = true)]
async fn child_that_ends_after_a_cancel_is_recorded() {
    let tasks = child_tasks();
    take(&tasks, "late", after(5_200, StopOutcome::Killed));
    take(&tasks, "soon", after(30, StopOutcome::Stopped));
    take(&tasks, "never", Box::pin(pending()));
    sleep(Duration::from_millis(20)).await;
    tasks.start_recording();
    let late = try_take(&tasks, "too late", Box::pin(pending()));
    assert_eq!(late, Err(EmitRefusal::Cancelled));
    tasks.wait_for_children(WAIT, Duration::ZERO).await;
    let finished = tasks.finish();
    assert_eq!(
        lines(&finished),
        [
            ("soon", StopOutcome::Stopped, 30),
            ("late", StopOutcome::Killed, 5_200),
            ("never", StopOutcome::Discarded, 7_020),
        ]
    );
    // Relative to the request, which may be a little later than the first end.
    let report = StopReport {
        producer_ended: Timestamp::from_millis(45),
        producer_left_behind: false,
        children: finished,
    };
    let mut open = open_turn();
    open.finished.push(ReceiptLine {
        kind: ReceiptKind::Process,
        id: "soon".into(),
        name: "nap".into(),
        outcome: StopOutcome::Finished,
        ms: 1,
    });
    let stops = report.stops(&open, Timestamp::from_millis(25));
    let lines = stops.child_tasks.iter();
    let lines: Vec<_> = lines
        .map(|child| (child.line.id.as_str(), child.line.ms))
        .collect();
    assert_eq!(lines, [("late", 5_175), ("never", 6_995)]);
    assert_eq!((stops.let_go_ms, stops.left_behind), (20, false));
}

#[tokio::test(start_paused = true)]
async fn child_reported_before_the_cancel_is_not_in_the_receipt() {
    let [running, reported] = [8, 9].map(|id| SessionId(Ulid(id)));
    let worker = |id: SessionId, outcome| FinishedChild {
        kind: ReceiptKind::Worker,
        id: id.to_string(),
        tool_use_id: TOOL,
        outcome,
        at: Timestamp::from_millis(30),
    };
    let process = |id: &str, outcome| FinishedChild {
        kind: ReceiptKind::Process,
        id: id.into(),
        tool_use_id: ToolUseId(Ulid(99)),
        ..worker(reported, outcome)
    };
    let report = StopReport {
        producer_ended: Timestamp::from_millis(45),
        producer_left_behind: false,
        children: vec![
            worker(running, StopOutcome::Finished),
            worker(reported, StopOutcome::Finished),
            process("of an ended tool", StopOutcome::Finished),
            process("left behind by an ended tool", StopOutcome::Discarded),
        ],
    };
    let mut open = open_turn();
    open.delegates.push(OpenDelegate {
        worker_session_id: running,
        tool_use_id: TOOL,
        at: Position::persisted(Epoch(1), Seq(4)),
    });
    let stops = report.stops(&open, Timestamp::from_millis(20));
    let lines: Vec<_> = stops
        .child_tasks
        .into_iter()
        .map(|child| child.line.id)
        .collect();
    let expected = [running.to_string(), "left behind by an ended tool".into()];
    assert_eq!(lines, expected);
}

#[tokio::test(start_paused = true)]
async fn wait_ends_with_the_last_child_and_later_ones_are_refused() {
    let tasks = child_tasks();
    let start = Instant::now();
    take(&tasks, "a", after(40, StopOutcome::Stopped));
    take(&tasks, "b", after(90, StopOutcome::Stopped));
    tasks.start_recording();
    tasks.wait_for_children(WAIT, Duration::ZERO).await;
    assert_eq!(start.elapsed(), Duration::from_millis(90));
    assert_eq!(tasks.finish().len(), 2);
    assert!(try_take(&tasks, "c", Box::pin(pending())).is_err());
    assert_eq!(tasks.state.lock().running.len(), 0);
    tasks.wait_for_children(WAIT, Duration::ZERO).await;
    assert_eq!(start.elapsed(), Duration::from_millis(90));
}

#[tokio::test(start_paused = true)]
async fn child_whose_future_panics_is_discarded() {
    let tasks = child_tasks();
    take(
        &tasks,
        "broken",
        Box::pin(async { panic!("the future of a child panics") }),
    );
    tasks.start_recording();
    tasks.wait_for_children(WAIT, Duration::ZERO).await;
    let finished = tasks.finish();
    assert_eq!(lines(&finished), [("broken", StopOutcome::Discarded, 0)]);
}

#[tokio::test(start_paused = true)]
async fn children_are_refused_above_the_limit() {
    let tasks = child_tasks();
    for n in 0..CHILDREN_MAX + 5 {
        let accepted = try_take(&tasks, &n.to_string(), Box::pin(pending()));
        assert_eq!(accepted.is_ok(), n < CHILDREN_MAX);
    }
    assert_eq!(tasks.state.lock().running.len(), CHILDREN_MAX);
    let start = Instant::now();
    tasks.wait_for_children(WAIT, Duration::ZERO).await;
    assert_eq!(start.elapsed(), WAIT);
    assert_eq!(tasks.finish().len(), CHILDREN_MAX);
}

//
#[tokio::test(start_paused = true)]
async fn child_is_refused_once_the_producer_is_done() {
    let tasks = child_tasks();
    tasks.refuse_new();
    let late = try_take(&tasks, "late", Box::pin(pending()));
    assert_eq!(late, Err(EmitRefusal::Ended));
    assert!(tasks.finish().is_empty());
}

#[tokio::test(start_paused = true)]
async fn child_that_never_started_is_in_no_receipt() {
    let tasks = child_tasks();
    let unnamed = ChildTask {
        id: ChildTaskId::default(),
        ..child(ReceiptKind::Process, "", after(5, StopOutcome::Stopped))
    };
    tasks.track(unnamed).expect("accepted");
    tasks.start_recording();
    tasks.wait_for_children(WAIT, Duration::ZERO).await;
    assert!(tasks.finish().is_empty());
}

// S3-081
#[tokio::test(start_paused = true)]
async fn workers_are_awaited_longer_than_processes() {
    let worker_extra = Duration::from_secs(2);
    let tasks = child_tasks();
    take(&tasks, "process", Box::pin(pending()));
    let late = after(8_000, StopOutcome::Stopped);
    tasks
        .track(child(ReceiptKind::Worker, "worker", late))
        .expect("accepted");
    tasks.start_recording();
    tasks.wait_for_children(WAIT, worker_extra).await;
    let finished = tasks.finish();
    let expected = [
        ("worker", StopOutcome::Stopped, 8_000),
        ("process", StopOutcome::Discarded, 8_000),
    ];
    assert_eq!(lines(&finished), expected);
}

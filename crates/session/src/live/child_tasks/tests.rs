//! Wards that end at once, late and never, with the clock in hand.

use std::future::{pending, ready};

use tokio::time::{Instant, sleep};
use turnwire_event::port::BoxFuture;
use turnwire_event::{TurnId, Ulid};

use super::*;

/// The clock that timers go by.
struct Hand(Instant);

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.elapsed().as_millis() as i64)
    }
}

fn care() -> Arc<ChildTasks> {
    ChildTasks::new(Handle::current(), Arc::new(Hand(Instant::now())))
}

const TOOL: ToolUseId = ToolUseId(Ulid(7));

fn ward(kind: ReceiptKind, id: &str, ended: BoxFuture<'static, StopOutcome>) -> Ward {
    Ward {
        kind,
        id: id.to_owned().into(),
        tool_use_id: TOOL,
        ended,
    }
}

fn try_take(
    care: &Arc<ChildTasks>,
    id: &str,
    ended: BoxFuture<'static, StopOutcome>,
) -> Result<(), Refusal> {
    let wards: Arc<dyn Wards> = care.clone();
    wards.take(ward(ReceiptKind::Process, id, ended))
}

fn take(care: &Arc<ChildTasks>, id: &str, ended: BoxFuture<'static, StopOutcome>) {
    try_take(care, id, ended).expect("taken");
}

fn after(ms: u64, outcome: StopOutcome) -> BoxFuture<'static, StopOutcome> {
    Box::pin(async move {
        sleep(Duration::from_millis(ms)).await;
        outcome
    })
}

fn lines(gone: &[FinishedChild]) -> Vec<(&str, StopOutcome, i64)> {
    let lines = gone.iter();
    lines
        .map(|gone| (gone.id.as_str(), gone.outcome, gone.at.as_millis()))
        .collect()
}

const WAIT: Duration = Duration::from_secs(7);

#[tokio::test(start_paused = true)]
async fn what_ends_by_itself_before_a_cancel_is_forgotten() {
    let care = care();
    // Far more than may be there at once, one after the other: a long turn leaks nothing.
    for n in 0..3 * WARDS_MAX {
        take(
            &care,
            &n.to_string(),
            Box::pin(ready(StopOutcome::Finished)),
        );
        care.gone(WAIT, Duration::ZERO).await;
    }
    take(&care, "last", after(10, StopOutcome::Finished));
    sleep(Duration::from_millis(11)).await;
    care.note();
    assert_eq!(care.desk.lock().alive.len(), 0);
    assert!(care.close().is_empty());
}

#[tokio::test(start_paused = true)]
async fn r_17_what_ends_after_a_cancel_is_noted_with_its_outcome_and_time() {
    let care = care();
    take(&care, "late", after(5_200, StopOutcome::Killed));
    take(&care, "soon", after(30, StopOutcome::Stopped));
    take(&care, "never", Box::pin(pending()));
    sleep(Duration::from_millis(20)).await;
    care.note();
    let late = try_take(&care, "too late", Box::pin(pending()));
    assert_eq!(late, Err(Refusal::Cancelled));
    care.gone(WAIT, Duration::ZERO).await;
    let gone = care.close();
    assert_eq!(
        lines(&gone),
        [
            ("soon", StopOutcome::Stopped, 30),
            ("late", StopOutcome::Killed, 5_200),
            ("never", StopOutcome::Discarded, 7_020),
        ]
    );
    // By the time of the request, which may be a little later than the first end.
    let rest = StopReport {
        let_go: Timestamp::from_millis(45),
        left_behind: false,
        wards: gone,
    };
    let mut open = OpenTurn::new(TurnId(Ulid(1)));
    open.finished.push(ReceiptLine {
        kind: ReceiptKind::Process,
        id: "soon".into(),
        outcome: StopOutcome::Finished,
        ms: 1,
    });
    let stops = rest.stops(&open, Timestamp::from_millis(25));
    let told = stops.wards.iter();
    let told: Vec<_> = told
        .map(|ward| (ward.line.id.as_str(), ward.line.ms))
        .collect();
    assert_eq!(told, [("late", 5_175), ("never", 6_995)]);
    assert_eq!((stops.let_go_ms, stops.left_behind), (20, false));
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_the_last_is_gone_and_nothing_is_taken_after_the_end() {
    let care = care();
    let begun = Instant::now();
    take(&care, "a", after(40, StopOutcome::Stopped));
    take(&care, "b", after(90, StopOutcome::Stopped));
    care.note();
    care.gone(WAIT, Duration::ZERO).await;
    assert_eq!(begun.elapsed(), Duration::from_millis(90));
    assert_eq!(care.close().len(), 2);
    assert!(try_take(&care, "c", Box::pin(pending())).is_err());
    assert_eq!(care.desk.lock().alive.len(), 0);
    care.gone(WAIT, Duration::ZERO).await;
    assert_eq!(begun.elapsed(), Duration::from_millis(90));
}

#[tokio::test(start_paused = true)]
async fn one_whose_word_breaks_may_still_be_there() {
    let care = care();
    take(&care, "broken", Box::pin(async { panic!("a ward breaks") }));
    care.note();
    care.gone(WAIT, Duration::ZERO).await;
    let gone = care.close();
    assert_eq!(lines(&gone), [("broken", StopOutcome::Discarded, 0)]);
}

#[tokio::test(start_paused = true)]
async fn no_more_are_watched_than_may_be() {
    let care = care();
    for n in 0..WARDS_MAX + 5 {
        let taken = try_take(&care, &n.to_string(), Box::pin(pending()));
        assert_eq!(taken.is_ok(), n < WARDS_MAX);
    }
    assert_eq!(care.desk.lock().alive.len(), WARDS_MAX);
    let begun = Instant::now();
    care.gone(WAIT, Duration::ZERO).await;
    assert_eq!(begun.elapsed(), WAIT);
    assert_eq!(care.close().len(), WARDS_MAX);
}

#[tokio::test(start_paused = true)]
async fn r_17_nothing_begins_once_the_work_is_done() {
    let care = care();
    care.shut();
    let late = try_take(&care, "late", Box::pin(pending()));
    assert_eq!(late, Err(Refusal::Ended));
    assert!(care.close().is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_that_never_began_is_in_no_receipt() {
    let care = care();
    let unnamed = Ward {
        id: WardId::default(),
        ..ward(ReceiptKind::Process, "", after(5, StopOutcome::Stopped))
    };
    care.take(unnamed).expect("taken");
    care.note();
    care.gone(WAIT, Duration::ZERO).await;
    assert!(care.close().is_empty());
}

#[tokio::test(start_paused = true)]
async fn s3_081_workers_are_waited_for_longer_than_processes() {
    let more = Duration::from_secs(2);
    let care = care();
    take(&care, "process", Box::pin(pending()));
    let late = after(8_000, StopOutcome::Stopped);
    care.take(ward(ReceiptKind::Worker, "worker", late))
        .expect("taken");
    care.note();
    care.gone(WAIT, more).await;
    let gone = care.close();
    let expected = [
        ("worker", StopOutcome::Stopped, 8_000),
        ("process", StopOutcome::Discarded, 8_000),
    ];
    assert_eq!(lines(&gone), expected);
}

//! A ring read by cursors: shared frames, order, and cursors that fall behind.

use std::cell::Cell;
use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use turnwire_event::body::feedback::FeedbackRecorded;
use turnwire_event::{
    Actor, Body, Epoch, EventFilter, EventHead, EventType, Seq, Sub, Timestamp, TurnId, TypeSet,
    Ulid,
};

use super::*;

struct Count(u64);

impl RingState for Count {
    fn apply(&mut self, _: &ReleasedEvent) {
        self.0 += 1;
    }
}

fn position(seq: u64) -> Position {
    Position::persisted(Epoch(1), Seq(seq))
}

fn event(seq: u64) -> ReleasedEvent {
    let body = Body::FeedbackRecorded(FeedbackRecorded {
        message_id: None,
        turn_id: None,
        rating: "1".into(),
        comment: None,
    });
    let head = EventHead {
        position: position(seq),
        kind: body.kind(),
        turn: None,
        actor: Actor::USER,
        suppressed: false,
    };
    ReleasedEvent {
        head,
        time: Timestamp::from_millis(0),
        bytes: Bytes::from(format!("<{seq}>")),
        body,
        trace: None,
    }
}

fn ring(events: usize) -> Arc<Ring<Count>> {
    ring_within(events, &RingBudget::without_task(1 << 30))
}

fn ring_within(events: usize, budget: &Arc<RingBudget>) -> Arc<Ring<Count>> {
    Ring::new(
        position(0),
        Count(0),
        RingBounds {
            events,
            bytes: 1 << 20,
        },
        WakePump::start(),
        budget.clone(),
    )
}

/// A wake-up that is lost fails the test instead of hanging it.
async fn in_time<T>(future: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(Duration::from_secs(30), future).await;
    waited.expect("a wake-up within 30 s")
}

fn publish(ring: &Ring<Count>, seqs: std::ops::RangeInclusive<u64>) {
    ring.publish(&mut seqs.map(event).collect());
}

fn append_bytes(entry: &RingEntry, out: &mut Vec<u8>) -> u64 {
    out.extend_from_slice(&entry.bytes);
    entry.head.position.seq.0
}

fn read(ring: &Ring<Count>, cursor: u64, max: usize) -> (String, u64) {
    read_with(ring, cursor, max, &EventFilter::full())
}

fn read_with(ring: &Ring<Count>, cursor: u64, max: usize, filter: &EventFilter) -> (String, u64) {
    let mut out = Vec::new();
    let mut take = |run: FrameRun<'_>| run.select(filter, |bytes, _| out.extend_from_slice(&bytes));
    match ring.read(0, cursor, max, &append_bytes, &mut take) {
        RingRead::Advanced(after) => (String::from_utf8(out).expect("utf-8"), after),
        other => panic!("{other:?}"),
    }
}

fn try_read(ring: &Ring<Count>, cursor: u64) -> RingRead {
    ring.read(0, cursor, 10, &append_bytes, &mut |_| {})
}

#[tokio::test]
async fn cursor_reads_every_event_once_in_order() {
    let ring = ring(100);
    assert!(matches!(try_read(&ring, 0), RingRead::Empty));
    publish(&ring, 1..=3);
    assert_eq!(read(&ring, 0, 2), ("<1><2>".into(), 2));
    publish(&ring, 4..=5);
    assert_eq!(read(&ring, 2, 10), ("<3><4><5>".into(), 5));
    assert!(matches!(try_read(&ring, 5), RingRead::Empty));
    assert_eq!(
        ring.with_state(|state, tail, cursor| (state.0, tail, cursor)),
        (5, position(5), 5)
    );
}

#[tokio::test]
async fn frames_are_projected_once_for_all_readers() {
    let ring = ring(100);
    publish(&ring, 1..=10);
    let projections = Cell::new(0);
    let project = |entry: &RingEntry, out: &mut Vec<u8>| {
        projections.set(projections.get() + 1);
        append_bytes(entry, out)
    };
    for cursor in [0, 0, 3, 9, 0] {
        assert!(matches!(
            ring.read(1, cursor, 100, &project, &mut |_| {}),
            RingRead::Advanced(_)
        ));
    }
    assert_eq!(projections.get(), 10);
}

#[tokio::test]
async fn cursor_before_oldest_entry_reads_behind() {
    let ring = ring(4);
    publish(&ring, 1..=3);
    assert_eq!(read(&ring, 0, 1), ("<1>".into(), 1));
    publish(&ring, 4..=9);
    assert!(matches!(try_read(&ring, 1), RingRead::Behind));
    assert_eq!(read(&ring, 5, 10), ("<6><7><8><9>".into(), 9));
}

#[tokio::test]
async fn filter_selects_frames_within_a_run() {
    let ring = ring(100);
    publish(&ring, 1..=4);
    let text = |filter: &EventFilter| read_with(&ring, 0, 10, filter).0;
    assert_eq!(text(&EventFilter::of(TypeSet::EMPTY)), "");
    let spec = turnwire_event::FilterSpec {
        actors: Some(vec!["orchestrator".into()]),
        ..Default::default()
    };
    assert_eq!(text(&EventFilter::resolve(&spec).expect("a filter")), "");
    let spec = turnwire_event::FilterSpec {
        actors: Some(vec!["user".into()]),
        ..Default::default()
    };
    assert_eq!(
        text(&EventFilter::resolve(&spec).expect("a filter")),
        "<1><2><3><4>"
    );
}

#[tokio::test]
async fn passing_events_are_counted_with_those_that_left_the_ring() {
    let ring = ring(4);
    publish(&ring, 1..=2);
    let mut other = event(3);
    other.head.kind = EventType::TextDelta;
    ring.publish(&mut vec![other]);
    let feedback = EventFilter::of(TypeSet::EMPTY.with(EventType::FeedbackRecorded));
    let count = |from, seq, filter: &EventFilter| {
        let count = ring.count_passing(from, position(seq), filter);
        (count.left, count.passing, count.end)
    };
    assert_eq!(count(0, 0, &feedback), (0, 2, 3));
    assert_eq!(count(2, 2, &feedback), (0, 0, 3), "hidden by the filter");
    assert_eq!(count(0, 0, &EventFilter::full()), (0, 3, 3));
    // Of ten events the ring has four; what the six were is not known any more.
    publish(&ring, 4..=10);
    assert_eq!(count(3, 3, &feedback), (3, 4, 10));
    assert_eq!(count(8, 8, &feedback), (0, 2, 10));
    assert_eq!(count(10, 10, &feedback), (0, 0, 10));
}

#[tokio::test]
async fn persisted_events_among_those_that_left_are_known() {
    let ring = ring(3);
    let delta = |seq, sub| {
        let mut delta = event(seq);
        delta.head.position.sub = Sub(sub);
        delta.head.kind = EventType::TextDelta;
        delta
    };
    publish(&ring, 1..=1);
    ring.publish(&mut (1..=5).map(|sub| delta(1, sub)).collect());
    publish(&ring, 2..=3);
    let left = |from, seq| {
        let count = ring.count_passing(from, position(seq), &EventFilter::full());
        (count.left, count.left_persisted, count.passing, count.at)
    };
    // The ring has the last delta and 2, 3. The first event and four deltas have left.
    assert_eq!(left(0, 0), (5, 1, 3, position(3)));
    assert_eq!(left(1, 1), (4, 0, 3, position(3)));
    // Now the oldest entry is a persisted event.
    publish(&ring, 4..=4);
    assert_eq!(left(0, 0), (6, 1, 3, position(4)));
    assert_eq!(left(7, 2), (0, 0, 2, position(4)));
    publish(&ring, 5..=7);
    assert_eq!(left(1, 1), (8, 3, 3, position(7)));
}

// S1-055
#[tokio::test]
async fn suppressed_events_need_include_suppressed() {
    let ring = ring(100);
    let hide = |seq| {
        let mut event = event(seq);
        event.head.suppressed = seq % 2 == 0;
        event
    };
    ring.publish(&mut (1..=4).map(hide).collect());
    publish(&ring, 5..=6);
    let text = |include_suppressed, actors: Option<&str>| {
        let spec = turnwire_event::FilterSpec {
            actors: actors.map(|actor| vec![actor.to_owned()]),
            include_suppressed,
            ..Default::default()
        };
        let filter = EventFilter::resolve(&spec).expect("a filter");
        read_with(&ring, 0, 10, &filter).0
    };
    for actors in [None, Some("user")] {
        assert_eq!(text(false, actors), "<1><3><5><6>");
        assert_eq!(text(true, actors), "<1><2><3><4><5><6>");
    }
}

#[tokio::test]
async fn published_events_wake_every_waiter() {
    let ring = ring(100);
    let viewers: Vec<_> = (0..50)
        .map(|_| {
            let ring = ring.clone();
            tokio::spawn(async move {
                let waker = Arc::new(AtomicWaker::new());
                let _seat = ring.register(waker.clone());
                let mut cursor = 0;
                let mut received = String::new();
                while cursor < 20 {
                    let mut take = |run: FrameRun<'_>| {
                        run.select(&EventFilter::full(), |bytes, _| {
                            received += std::str::from_utf8(&bytes).expect("utf-8")
                        });
                    };
                    match ring.read(0, cursor, 3, &append_bytes, &mut take) {
                        RingRead::Advanced(after) => cursor = after,
                        RingRead::Empty => {
                            poll_fn(|cx| ring.poll_readable(&waker, cursor, cx)).await
                        }
                        RingRead::Behind | RingRead::Evicted => panic!("behind"),
                    }
                }
                received
            })
        })
        .collect();
    for seq in 1..=20 {
        publish(&ring, seq..=seq);
        tokio::task::yield_now().await;
    }
    let expected: String = (1..=20).map(|seq| format!("<{seq}>")).collect();
    for viewer in viewers {
        assert_eq!(in_time(viewer).await.expect("a viewer"), expected);
    }
}

// Up to `DIRECT_WAKES_MAX` waiters are woken by the publisher itself.
#[tokio::test]
async fn published_event_wakes_a_few_waiters_directly() {
    let ring = ring(100);
    let waiters: Vec<_> = (0..DIRECT_WAKES_MAX)
        .map(|_| {
            let (ring, waker) = (ring.clone(), Arc::new(AtomicWaker::new()));
            let seat = ring.register(waker.clone());
            tokio::spawn(async move {
                poll_fn(|cx| ring.poll_readable(&waker, 0, cx)).await;
                drop(seat);
            })
        })
        .collect();
    tokio::task::yield_now().await;
    publish(&ring, 1..=1);
    for waiter in waiters {
        in_time(waiter).await.expect("a waiter");
    }
}

#[tokio::test]
async fn closing_wakes_waiters_and_keeps_first_reason() {
    let ring = ring(4);
    let waker = Arc::new(AtomicWaker::new());
    let _seat = ring.register(waker.clone());
    let waiting = ring.clone();
    let news =
        tokio::spawn(async move { poll_fn(|cx| waiting.poll_readable(&waker, 0, cx)).await });
    tokio::task::yield_now().await;
    ring.close(RingClosed::Deleted);
    ring.close(RingClosed::Quarantined);
    in_time(news).await.expect("the task");
    assert_eq!(ring.close_reason(), Some(RingClosed::Deleted));
}

#[tokio::test]
async fn seek_finds_position_while_later_events_are_in_ring() {
    let ring = ring(4);
    assert_eq!(ring.cursor_after(position(0)), Some(0));
    publish(&ring, 1..=3);
    assert_eq!(ring.cursor_after(position(0)), Some(0));
    assert_eq!(ring.cursor_after(position(2)), Some(2));
    assert_eq!(ring.cursor_after(position(4)), None, "ahead of the tail");
    publish(&ring, 4..=9);
    assert_eq!(ring.cursor_after(position(4)), None, "5 has left the ring");
    assert_eq!(ring.cursor_after(position(5)), Some(5));
    assert_eq!(read(&ring, 5, 10), ("<6><7><8><9>".into(), 9));
    assert_eq!(ring.cursor_after(position(9)), Some(9));
}

/// The part of the ring that belongs to `turn`: slices, tags, and whether the turn ended.
fn of_turn(ring: &Ring<Count>, cursor: u64, turn: TurnId) -> (Vec<String>, Vec<u64>, bool) {
    let (mut slices, mut tags, mut ended) = (Vec::new(), Vec::new(), false);
    let mut take = |run: FrameRun<'_>| {
        ended |= run.select_turn(turn, |bytes, heads, event_tags| {
            assert_eq!(heads.len(), event_tags.len());
            slices.push(String::from_utf8(bytes.to_vec()).expect("utf-8"));
            tags.extend_from_slice(event_tags);
        });
    };
    ring.read(0, cursor, 100, &append_bytes, &mut take);
    (slices, tags, ended)
}

#[tokio::test]
async fn turn_is_selected_up_to_its_terminal_event() {
    let ring = ring(100);
    let (one, two) = (TurnId(Ulid(1)), TurnId(Ulid(2)));
    let publish_events = |seqs: &[(u64, Option<TurnId>, EventType)]| {
        let events = seqs.iter().map(|&(seq, turn, kind)| {
            let mut event = event(seq);
            (event.head.turn, event.head.kind) = (turn, kind);
            event
        });
        ring.publish(&mut events.collect());
    };
    use EventType::{RouteDecided, TurnCancelled, TurnCompleted, TurnStarted};
    publish_events(&[(1, Some(one), TurnStarted), (2, Some(one), RouteDecided)]);
    let (slices, tags, ended) = of_turn(&ring, 0, one);
    assert_eq!(
        (slices, tags, ended),
        (vec!["<1><2>".into()], vec![1, 2], false)
    );
    assert_eq!(of_turn(&ring, 0, two), (vec![], vec![], false));
    // Another turn starts and ends in between, and one event has no turn.
    publish_events(&[
        (3, Some(two), TurnStarted),
        (4, Some(two), TurnCancelled),
        (5, None, RouteDecided),
        (6, Some(one), RouteDecided),
        (7, Some(one), TurnCompleted),
        (8, None, RouteDecided),
    ]);
    let slices = vec!["<1><2>".into(), "<6><7>".into()];
    assert_eq!(of_turn(&ring, 0, one), (slices, vec![1, 2, 6, 7], true));
    assert_eq!(
        of_turn(&ring, 0, two),
        (vec!["<3><4>".into()], vec![3, 4], true)
    );
    assert_eq!(of_turn(&ring, 7, one), (vec![], vec![], false));
}

/// An event whose bytes are long.
fn long_event(seq: u64) -> ReleasedEvent {
    ReleasedEvent {
        bytes: Bytes::from(vec![b'x'; 10_000]),
        ..event(seq)
    }
}

fn watch(ring: &Ring<Count>) -> WakerGuard {
    ring.register(Arc::new(AtomicWaker::new()))
}

#[tokio::test]
async fn budget_counts_entries_and_frames_and_forgets_dropped_rings() {
    let budget = RingBudget::without_task(1 << 20);
    let ring = ring_within(4, &budget);
    publish(&ring, 1..=1);
    let one = budget.used();
    assert!(one > 0);
    publish(&ring, 2..=9);
    assert_eq!(budget.used(), one * 4, "the bounds of the ring hold four");
    read(&ring, 5, 10);
    assert!(budget.used() > one * 4, "frames count too");
    publish(&ring, 10..=13);
    read(&ring, 9, 10);
    assert_eq!(budget.used(), ring.weight());
    drop(ring);
    assert_eq!(budget.used(), 0);
}

#[tokio::test]
async fn sweep_evicts_unwatched_rings_before_watched_ones() {
    let budget = RingBudget::without_task(440_000);
    let (watched, unwatched) = (ring_within(100, &budget), ring_within(100, &budget));
    let _guard = watch(&watched);
    watched.publish(&mut (1..=16).map(long_event).collect());
    read(&watched, 0, 5);
    unwatched.publish(&mut (1..=5).map(long_event).collect());
    assert!(budget.used() > 330_000);
    budget.sweep();
    assert_eq!(unwatched.weight(), 0);
    assert!(budget.used() <= 220_000, "{}", budget.used());
    assert!(matches!(try_read(&unwatched, 0), RingRead::Evicted));
    assert_eq!(unwatched.cursor_after(position(4)), None);
    assert_eq!(unwatched.cursor_after(position(5)), Some(5));
    // The newest events of the watched ring are still there.
    assert!(matches!(try_read(&watched, 0), RingRead::Evicted));
    assert!(matches!(try_read(&watched, 15), RingRead::Advanced(16)));
    unwatched.publish(&mut vec![event(6)]);
    assert_eq!(read(&unwatched, 5, 10), ("<6>".into(), 6));
}

#[tokio::test]
async fn ring_shrinks_itself_when_budget_is_used_up() {
    let budget = RingBudget::without_task(300_000);
    let ring = ring_within(100, &budget);
    for seq in 1..=90 {
        ring.publish(&mut vec![long_event(seq)]);
        assert!(budget.used() < 320_000, "{}", budget.used());
    }
    assert_eq!(budget.evicted(), ring.first());
    assert!(ring.first() > 1);
    assert!(matches!(try_read(&ring, 0), RingRead::Evicted));
    assert!(matches!(try_read(&ring, 89), RingRead::Advanced(90)));
    assert_eq!(
        ring.with_state(|state, _, _| state.0),
        90,
        "no event is lost"
    );
}

#[tokio::test]
async fn task_sweeps_when_publishers_pass_the_threshold() {
    let budget = RingBudget::start(400_000);
    let ring = ring_within(100, &budget);
    ring.publish(&mut (1..=35).map(long_event).collect());
    in_time(async {
        while budget.used() > 200_000 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(ring.weight(), 0);
}

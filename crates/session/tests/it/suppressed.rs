//! Events that the rendering policy suppresses: they are in the log, and only clients that ask for
//! them read them.

use std::sync::Arc;
use std::time::Instant;

use turnwire_event::fold::replay::FinishedReplay;
use turnwire_event::port::{Emission, EventGate, GateOutput};
use turnwire_event::{EventFilter, EventType, FilterSpec, Position, RenderPolicy, Seq, TypeSet};
use turnwire_session::{CatchUp, LiveSession, ReplayError};

use crate::stage::*;

/// A gate that suppresses every status.
struct Hiding;

impl EventGate for Hiding {
    fn take(&mut self, emission: Emission, _: Instant, out: GateOutput<'_>) {
        let hides = emission.body.kind() == EventType::StatusEmitted;
        out(emission, hides.then(|| RenderPolicy::Suppress.into()));
    }
    fn due(&self) -> Option<Instant> {
        None
    }
    fn flush(&mut self, _: GateOutput<'_>) {}
}

const HIDDEN: u64 = 30;

/// A session whose log has its creation, the start, suppressed statuses, the trace and the terminal.
async fn report_worker_end(dir: &std::path::Path) -> Arc<LiveSession> {
    let act = producer_fn(|turn| async move {
        for _ in 0..HIDDEN {
            emit(&turn, status("searching"));
        }
        OK
    });
    let sessions = service_with_gates(dir, Arc::new(|| Box::new(Hiding)), act).await;
    let id = new_session(&sessions).await;
    let accepted = submit(&sessions, &owner("local"), id, text_request("hi")).await;
    accepted.expect("accepted");
    let events = wait_for_end(&sessions, id).await;
    assert_eq!(events.len() as u64, HIDDEN + 4, "all of it is in the log");
    let counts = sessions.reader().status_counts(&owner("local")).await;
    let counts = counts.expect("counts");
    let [count] = &counts[..] else {
        panic!("{counts:?}")
    };
    assert_eq!(
        (count.event_id.as_str(), count.total),
        ("searching", HIDDEN)
    );
    assert_eq!(count.days.iter().map(|(_, n)| n).sum::<u64>(), HIDDEN);
    sessions
        .live_sessions()
        .open(&owner("local"), id)
        .await
        .expect("a session")
}

fn every(include_suppressed: bool) -> EventFilter {
    let spec = FilterSpec {
        include_suppressed,
        ..FilterSpec::default()
    };
    EventFilter::resolve(&spec).expect("a filter")
}

async fn catch_up(
    live: &Arc<LiveSession>,
    since: u64,
    filter: &EventFilter,
    max: u64,
) -> Result<CatchUp, ReplayError> {
    let epoch = live.ring.with_state(|_, tail, _| tail.epoch);
    let since = Position::persisted(epoch, Seq(since));
    live.catch_up(since, filter, FinishedReplay::Ends, max)
        .await
}

// S1-055
#[tokio::test]
async fn hidden_events_are_replayed_only_on_request() {
    let dir = tempfile::tempdir().expect("a folder");
    let live = report_worker_end(dir.path()).await;
    let statuses = EventFilter::of([EventType::StatusEmitted].into_iter().collect::<TypeSet>());
    let cases = [
        (0, every(false), 4),
        (0, every(true), HIDDEN + 4),
        (0, EventFilter::chat(), 2),
        (0, statuses, 0),
        (12, every(false), 2),
        (12, every(true), HIDDEN - 8),
    ];
    for (since, filter, count) in cases {
        // Twice: the second reuses the count of the first.
        for _ in 0..2 {
            let mut caught = catch_up(&live, since, &filter, 10_000).await.expect("told");
            assert_eq!(caught.count, count, "since {since}, {filter:?}");
            let mut passed = 0;
            while let Some(chunk) = caught.next(None).await.expect("a chunk") {
                passed += chunk
                    .iter()
                    .filter(|(head, _)| filter.matches(head))
                    .count();
            }
            assert_eq!(passed as u64, count, "what is counted is what passes");
        }
    }
}

#[tokio::test]
async fn replay_limit_counts_only_events_that_pass_the_filter() {
    let dir = tempfile::tempdir().expect("a folder");
    let live = report_worker_end(dir.path()).await;
    assert!(catch_up(&live, 0, &every(false), 4).await.is_ok());
    let refused = catch_up(&live, 0, &every(false), 3).await.err();
    assert_eq!(refused, Some(ReplayError::TooLarge(4, 3)));
    let refused = catch_up(&live, 0, &every(true), 33).await.err();
    assert_eq!(refused, Some(ReplayError::TooLarge(HIDDEN + 4, 33)));
}

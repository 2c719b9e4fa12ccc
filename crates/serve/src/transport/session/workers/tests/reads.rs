//! What a replay reads from the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use turnwire_event::{EventFilter, EventHead, EventType, Position};
use turnwire_hub::FrameRun;
use turnwire_session::{CatchUp, LiveSession, ReplayError};

use super::super::super::super::carrier::{
    FrameFormat, PageStep, PendingWrites, Selection, SessionCursor,
};
use super::super::super::format::FilterSelection;
use super::super::session_delivery::BoundarySelection;
use super::START;
use super::stage::Stage;

type TallyOf<S> = <<S as Selection>::Format as FrameFormat>::Tally;

/// A selection that counts the events that it is given from the store.
struct CountingSelection<'a, S> {
    selection: S,
    rows: &'a AtomicUsize,
}

impl<S: Selection + Sync> Selection for CountingSelection<'_, S> {
    type Format = S::Format;
    const RING_IS_HISTORY: bool = S::RING_IS_HISTORY;

    fn format(&self) -> S::Format {
        self.selection.format()
    }

    fn stored_filter(&self) -> Option<&EventFilter> {
        self.selection.stored_filter()
    }

    fn take(&mut self, run: FrameRun<'_>, put: impl FnMut(Bytes, TallyOf<S>)) -> usize {
        self.selection.take(run, put)
    }

    fn write_stored(
        &mut self,
        head: &EventHead,
        json: &Bytes,
        out: &mut Vec<u8>,
        tally: &mut TallyOf<S>,
    ) -> Result<PageStep, ReplayError> {
        self.rows.fetch_add(1, Ordering::Relaxed);
        self.selection.write_stored(head, json, out, tally)
    }

    async fn replay(&self, live: &Arc<LiveSession>, at: Position) -> Result<CatchUp, ReplayError> {
        self.selection.replay(live, at).await
    }
}

/// The number of events that a replay of the whole session reads.
async fn rows_read<S: Selection + Sync>(live: &Arc<LiveSession>, select: impl Fn() -> S) -> usize {
    let rows = AtomicUsize::new(0);
    let replay = select().replay(live, START).await.expect("a replay");
    let mut cursor = SessionCursor::in_replay(START, replay);
    while cursor.is_replaying() {
        let mut counting = CountingSelection {
            selection: select(),
            rows: &rows,
        };
        let mut pending = PendingWrites::new();
        let filled = cursor.fill(live, &mut counting, &mut pending).await;
        filled.expect("a page");
    }
    rows.into_inner()
}

// S3-037, S3-087
#[tokio::test]
async fn replay_of_a_narrow_filter_reads_its_events_only() {
    let dir = tempfile::tempdir().expect("a folder");
    let stage = Stage::new(dir.path()).await;
    let mut session = stage.acting(None).await;
    for _ in 0..10 {
        let half = session.begins_to_say("hidden ").await;
        session.has_said(half).await;
    }
    let worker = stage.acting(Some(session.id())).await;
    session.delegates(worker.id()).await;
    session.has_done(worker.id(), true).await;
    session.ends().await;
    let log = session.log(&stage).await;
    assert!(log.len() > 20, "{log:?}");
    let live = &session.live;
    let narrow = EventFilter::of([EventType::TurnCompleted].into_iter().collect());
    assert_eq!(rows_read(live, || FilterSelection(&narrow)).await, 1);
    // With workers the events that start and end one are read too.
    let mut ends = log
        .iter()
        .filter(|event| event.body.kind() == EventType::DelegateCompleted);
    let end = ends.next().expect("an end").id;
    let at_boundaries = || BoundarySelection::new(&narrow, Some(end));
    assert_eq!(rows_read(live, at_boundaries).await, 3);
    let full = EventFilter::full();
    assert!(rows_read(live, || FilterSelection(&full)).await >= log.len());
}

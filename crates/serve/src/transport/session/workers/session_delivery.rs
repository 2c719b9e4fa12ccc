//! Delivers the events of one session to a connection that gets the events of its workers too. The
//! delivery stops after each event that starts a worker and before each that ends one, so that the
//! worker's own events are sent between the two.
//!
//! ```text
//!   parent  … delegate.started(W) │ …… │ delegate.completed(W) …
//!                                 │    │ waits until W is delivered up to its tail
//!   W                             └ session.created … turn.completed
//! ```

use std::sync::Arc;

use bytes::Bytes;
use turnwire_event::{Actor, EventFilter, EventHead, EventType, Position, SessionId, TypeSet};
use turnwire_hub::FrameRun;
use turnwire_session::{CatchUp, LiveSession, ReplayError};

use super::super::super::carrier::{EventCount, Fill, PageStep, Selection, SessionCursor};
use super::super::format::{EventFormat, EventWrites, FilterSelection};

/// The worker whose end is the session's next event, which waits for the worker's own events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WorkerWait {
    pub(super) worker: SessionId,
    /// The last position in the worker's session that must be delivered first.
    pub(super) worker_tail: Position,
    /// The position, in the parent's session, of the event that ends the worker.
    pub(super) end: Position,
}

/// An event that starts or ends a worker, at which the delivery of its parent's session stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkerBoundary {
    /// A worker starts; the delivery stops after the event.
    Start(SessionId),
    /// A worker ends, at this position in its parent's session; the delivery stops before the event.
    End(SessionId, Position),
}

/// The [`WorkerBoundary`] of an event; `None` if the event neither starts nor ends a worker.
fn boundary(head: &EventHead) -> Option<WorkerBoundary> {
    let worker = || head.actor.name()?.parse().ok();
    match head.kind {
        EventType::DelegateStarted => Some(WorkerBoundary::Start(worker()?)),
        EventType::DelegateCompleted | EventType::DelegateFailed => {
            Some(WorkerBoundary::End(worker()?, head.position))
        }
        _ => None,
    }
}

/// Selects the events that pass a filter, up to the next [`WorkerBoundary`].
pub(super) struct BoundarySelection<'a> {
    filter: FilterSelection<'a>,
    /// The end of a worker at which the selection does not stop.
    allowed_end: Option<Position>,
    /// The boundary at which the selection has stopped.
    reached: Option<WorkerBoundary>,
    /// Passes what the filter does, and every boundary: other events are not read from the store.
    stored: EventFilter,
}

/// The event types that start or end a worker.
const BOUNDARY_TYPES: TypeSet = TypeSet::EMPTY
    .with(EventType::DelegateStarted)
    .with(EventType::DelegateCompleted)
    .with(EventType::DelegateFailed);

impl<'a> BoundarySelection<'a> {
    /// Selects by `filter`, and does not stop at the end of a worker at `allowed_end`.
    pub(super) fn new(filter: &'a EventFilter, allowed_end: Option<Position>) -> Self {
        Self {
            filter: FilterSelection(filter),
            allowed_end,
            reached: None,
            stored: filter.widened(BOUNDARY_TYPES, Actor::WORKER),
        }
    }
}

impl BoundarySelection<'_> {
    /// Whether the selection stops before or after the event, or continues; a stop sets `reached`.
    fn step_at(&mut self, head: &EventHead) -> PageStep {
        let step = match boundary(head) {
            Some(WorkerBoundary::Start(_)) => PageStep::StopAfter,
            Some(WorkerBoundary::End(_, end)) if self.allowed_end != Some(end) => {
                PageStep::StopBefore
            }
            Some(WorkerBoundary::End(..)) | None => return PageStep::Next,
        };
        self.reached = boundary(head);
        step
    }
}

impl Selection for BoundarySelection<'_> {
    type Format = EventFormat;
    const RING_IS_HISTORY: bool = false;

    fn format(&self) -> EventFormat {
        EventFormat
    }

    fn stored_filter(&self) -> Option<&EventFilter> {
        Some(&self.stored)
    }

    fn may_leave_ring(&self) -> bool {
        self.filter.may_leave_ring()
    }

    fn take(&mut self, run: FrameRun<'_>, put: impl FnMut(Bytes, EventCount)) -> usize {
        if self.reached.is_some() {
            return 0;
        }
        let mut passed = run.len();
        for (index, head) in run.heads().iter().enumerate() {
            match self.step_at(head) {
                PageStep::Next => continue,
                PageStep::StopAfter => passed = index + 1,
                PageStep::StopBefore => passed = index,
            }
            break;
        }
        if passed > 0 {
            self.filter.take(run.first(passed), put);
        }
        passed
    }

    fn write_stored(
        &mut self,
        head: &EventHead,
        json: &Bytes,
        out: &mut Vec<u8>,
        tally: &mut EventCount,
    ) -> Result<PageStep, ReplayError> {
        let step = self.step_at(head);
        if step != PageStep::StopBefore {
            self.filter.write_stored(head, json, out, tally)?;
        }
        Ok(step)
    }

    async fn replay(&self, live: &Arc<LiveSession>, at: Position) -> Result<CatchUp, ReplayError> {
        self.filter.replay(live, at).await
    }
}

/// Delivers one session, the subscribed one or that of a worker, and stops at each
/// [`WorkerBoundary`].
pub(super) struct SessionDelivery {
    /// Set while the session's next event, the end of a worker, must not be delivered.
    pub(super) wait: Option<WorkerWait>,
    /// The end of a worker that may be delivered, because the worker's own events were.
    allowed_end: Option<Position>,
    /// The tail of the session when its running workers were listed. If a listed worker's start is not
    /// among the events delivered up to here, the worker started before the client's cursor.
    pub(super) workers_listed_at: Position,
}

impl SessionDelivery {
    pub(super) fn new(workers_listed_at: Position) -> Self {
        Self {
            wait: None,
            allowed_end: None,
            workers_listed_at,
        }
    }

    /// Allows the delivery of the event at `end`, which ends a worker.
    pub(super) fn allow_end(&mut self, end: Position) {
        (self.wait, self.allowed_end) = (None, Some(end));
    }

    /// True if there are events to deliver and the next one does not wait for a worker.
    pub(super) fn has_more(&self, cursor: &SessionCursor, live: &LiveSession) -> bool {
        self.wait.is_none() && cursor.has_more(live)
    }

    /// Queues the session's next events in `pending`, at most up to the next [`WorkerBoundary`];
    /// returns the boundary if it was reached.
    pub(super) async fn fill(
        &self,
        cursor: &mut SessionCursor,
        live: &Arc<LiveSession>,
        filter: &EventFilter,
        pending: &mut EventWrites,
    ) -> Result<(Fill, Option<WorkerBoundary>), ReplayError> {
        let mut selection = BoundarySelection::new(filter, self.allowed_end);
        let fill = cursor.fill(live, &mut selection, pending).await?;
        if let Some(WorkerBoundary::End(..)) = selection.reached {
            cursor.pause();
        }
        Ok((fill, selection.reached))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::{Epoch, FilterSpec, Seq, Ulid};

    fn head(kind: EventType, actor: Actor, suppressed: bool) -> EventHead {
        EventHead {
            position: Position::persisted(Epoch(1), Seq(1)),
            kind,
            turn: None,
            actor,
            suppressed,
        }
    }

    // S3-037, S3-087
    #[test]
    fn narrow_filter_reads_its_events_and_boundaries_only() {
        let spec = FilterSpec {
            event_types: Some(vec!["turn.completed".into()]),
            actors: Some(vec!["system".into()]),
            ..FilterSpec::default()
        };
        let filter = EventFilter::resolve(&spec).expect("a filter");
        let selection = BoundarySelection::new(&filter, None);
        let stored = selection.stored_filter().expect("a filter");
        let worker = || Actor::worker(SessionId(Ulid(9)));
        let read = [
            head(EventType::TurnCompleted, Actor::SYSTEM, false),
            head(EventType::DelegateStarted, worker(), false),
            head(EventType::DelegateCompleted, worker(), true),
            head(EventType::DelegateFailed, worker(), true),
        ];
        let skipped = [
            head(EventType::ToolCalled, Actor::SYSTEM, false),
            head(EventType::LlmCallStarted, worker(), false),
            head(EventType::TurnCompleted, Actor::ORCHESTRATOR, false),
        ];
        assert_eq!(read.map(|head| stored.matches(&head)), [true; 4]);
        assert_eq!(skipped.map(|head| stored.matches(&head)), [false; 3]);
        assert!(selection.may_leave_ring(), "no event of it is transient");
        let of = |kinds: &[EventType]| EventFilter::of(kinds.iter().copied().collect());
        let ends = of(&[EventType::MessageStart, EventType::MessageComplete]);
        assert!(BoundarySelection::new(&ends, None).may_leave_ring());
        let inputs = of(&[EventType::MessageComplete, EventType::ToolUseEnd]);
        assert!(!BoundarySelection::new(&inputs, None).may_leave_ring());
        let full = EventFilter::full();
        assert!(!BoundarySelection::new(&full, None).may_leave_ring());
    }
}

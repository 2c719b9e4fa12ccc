//! The events of one session where its workers' events are delivered too: up to the next event
//! that starts or ends a worker, so that the worker's own events come between the two.
//!
//! ```text
//!   parent  … delegate.started(W) │ …… │ delegate.completed(W) …
//!                                 │    │ delivered when W is delivered up to its tail
//!   W                             └ session.created … turn.completed
//! ```

use std::sync::Arc;

use bytes::Bytes;
use turnwire_event::{EventFilter, EventHead, EventType, Position, SessionId};
use turnwire_hub::FrameRun;
use turnwire_session::{CatchUp, LiveSession, ReplayError};

use super::super::super::carrier::{EventCount, Fill, PageStep, Selection, SessionCursor};
use super::super::format::{EventFormat, EventWrites, FilterSelection};

/// The worker that a session's next event waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WorkerWait {
    pub(super) worker: SessionId,
    /// The worker must be delivered up to here.
    pub(super) upto: Position,
    /// The event that ends the worker in its parent's session.
    pub(super) end: Position,
}

/// An event at which the delivery of a session stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Boundary {
    /// The start of a worker; it was delivered.
    Started(SessionId),
    /// The end of a worker, at this position; it was not delivered.
    Ending(SessionId, Position),
}

/// The [`Boundary`] that `head` is, if any.
fn boundary(head: &EventHead) -> Option<Boundary> {
    let worker = || head.actor.name()?.parse().ok();
    match head.kind {
        EventType::DelegateStarted => Some(Boundary::Started(worker()?)),
        EventType::DelegateCompleted | EventType::DelegateFailed => {
            Some(Boundary::Ending(worker()?, head.position))
        }
        _ => None,
    }
}

/// The [`Selection`] of the events that pass a filter, up to the next [`Boundary`].
struct BoundarySelection<'a> {
    filter: FilterSelection<'a>,
    passed_end: Option<Position>,
    boundary: Option<Boundary>,
}

impl BoundarySelection<'_> {
    /// The [`PageStep`] at `head`: whether delivery stops there, and on which side.
    fn stop_at(&mut self, head: &EventHead) -> PageStep {
        let step = match boundary(head) {
            Some(Boundary::Started(_)) => PageStep::StopAfter,
            Some(Boundary::Ending(_, end)) if self.passed_end != Some(end) => PageStep::StopBefore,
            Some(Boundary::Ending(..)) | None => return PageStep::Next,
        };
        self.boundary = boundary(head);
        step
    }
}

impl Selection for BoundarySelection<'_> {
    type Format = EventFormat;
    const RING_IS_HISTORY: bool = false;

    fn format(&self) -> EventFormat {
        EventFormat
    }

    fn take(&mut self, run: FrameRun<'_>, put: impl FnMut(Bytes, EventCount)) -> usize {
        if self.boundary.is_some() {
            return 0;
        }
        let mut upto = run.len();
        for (index, head) in run.heads().iter().enumerate() {
            match self.stop_at(head) {
                PageStep::Next => continue,
                PageStep::StopAfter => upto = index + 1,
                PageStep::StopBefore => upto = index,
            }
            break;
        }
        if upto > 0 {
            self.filter.take(run.first(upto), put);
        }
        upto
    }

    fn write_stored(
        &mut self,
        head: &EventHead,
        json: &Bytes,
        out: &mut Vec<u8>,
        tally: &mut EventCount,
    ) -> Result<PageStep, ReplayError> {
        let step = self.stop_at(head);
        if step != PageStep::StopBefore {
            self.filter.write_stored(head, json, out, tally)?;
        }
        Ok(step)
    }

    async fn replay(&self, live: &Arc<LiveSession>, at: Position) -> Result<CatchUp, ReplayError> {
        self.filter.replay(live, at).await
    }
}

/// Stops the delivery of a session at each [`Boundary`] until the worker is delivered.
pub(super) struct DelegateGate {
    pub(super) wait: Option<WorkerWait>,
    /// The end of a worker that may be delivered, because all events of the worker are.
    passed_end: Option<Position>,
    /// The position at which the open workers of the session were looked up: a worker whose start is
    /// not delivered by then had started before the delivery began.
    pub(super) looked_up_at: Position,
}

impl DelegateGate {
    pub(super) fn new(looked_up_at: Position) -> Self {
        Self {
            wait: None,
            passed_end: None,
            looked_up_at,
        }
    }

    /// Lets the end of a worker pass.
    pub(super) fn pass(&mut self, end: Position) {
        (self.wait, self.passed_end) = (None, Some(end));
    }

    /// True if there are events and none of them waits for a worker.
    pub(super) fn has_more(&self, cursor: &SessionCursor, live: &LiveSession) -> bool {
        self.wait.is_none() && cursor.has_more(live)
    }

    /// Queues the session's next events, up to the next [`Boundary`], which is returned.
    pub(super) async fn fill(
        &self,
        cursor: &mut SessionCursor,
        live: &Arc<LiveSession>,
        filter: &EventFilter,
        pending: &mut EventWrites,
    ) -> Result<(Fill, Option<Boundary>), ReplayError> {
        let mut selection = BoundarySelection {
            filter: FilterSelection(filter),
            passed_end: self.passed_end,
            boundary: None,
        };
        let fill = cursor.fill(live, &mut selection, pending).await?;
        if let Some(Boundary::Ending(..)) = selection.boundary {
            cursor.pause();
        }
        Ok((fill, selection.boundary))
    }
}

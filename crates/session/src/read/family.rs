//! A session and its workers, for streams that carry both: the workers that are running, the
//! parent of a worker, and the replay of a worker from its start.

use std::sync::Arc;

use turnwire_event::fold::replay::FinishedReplay;
use turnwire_event::{Actor, Epoch, EventFilter, EventType, Position, Seq, SessionId, TypeSet};
use turnwire_log::{EventSelection, Store};

use super::replay::{CatchUp, ReplayError};
use crate::error::Error;
use crate::live::session::LiveSession;

/// The deepest level of workers that a stream carries: the upper bound of
/// `session.worker_depth_max`. It also bounds the walk from a worker that a client names up to the
/// session that it watches.
pub const WORKER_DEPTH_MAX: u8 = 16;

impl LiveSession {
    /// The ring's tail, and the workers that were running there, each with the position of its
    /// start.
    pub fn delegates(&self) -> (Position, Vec<(SessionId, Position)>) {
        self.ring.with_state(|transcript, tail, _| {
            let running = transcript.open.iter().flat_map(|turn| &turn.delegates);
            let running = running.map(|worker| (worker.worker_session_id, worker.at));
            (tail, running.collect())
        })
    }

    /// The position of the newest event in the ring.
    pub fn tail(&self) -> Position {
        self.ring.with_state(|_, tail, _| tail)
    }

    /// The session whose turn started this one as a worker.
    pub fn parent(&self) -> Option<SessionId> {
        self.with_row(|row| row.parent)
    }

    /// Starts a replay of all stored events.
    pub async fn catch_up_all(
        self: &Arc<Self>,
        filter: &EventFilter,
        missed: FinishedReplay,
    ) -> Result<CatchUp, ReplayError> {
        let id = self.id;
        let tail = self
            .services
            .read_rows_for(&self.owner, move |store| store.tail(id))
            .await?;
        let low = tail.ok_or(Error::SessionNotFound)?.low;
        let since = Position::persisted(Epoch::FIRST, low);
        self.catch_up_from(since, filter, missed, u64::MAX).await
    }

    /// Whether the stored events of this session contain the start of `worker`.
    pub async fn started(&self, worker: SessionId) -> Result<bool, Error> {
        let (id, upto) = (self.id, self.tail().seq);
        let scan_max = self.services.options.scan_max;
        let read = self.read(move |store| names_worker(store, (id, upto), worker, scan_max));
        read.await
    }
}

/// Whether the stored events of a session up to `upto` contain the start of `worker`.
pub(crate) fn names_worker(
    store: &dyn Store,
    (session, upto): (SessionId, Seq),
    worker: SessionId,
    scan_max: usize,
) -> Result<bool, Error> {
    let selection = EventSelection::all()
        .with_types(TypeSet::EMPTY.with(EventType::DelegateStarted))
        .with_actors(vec![Actor::worker(worker)]);
    let mut after = store.tail(session)?.ok_or(Error::SessionNotFound)?.low;
    // As many pieces as the starts of workers make: other events are not looked at.
    while after < upto {
        let counted = store.count(session, after, upto, &selection, scan_max)?;
        if counted.events > 0 {
            return Ok(true);
        }
        after = counted.end;
    }
    Ok(false)
}

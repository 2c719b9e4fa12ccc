//! A session and its workers, for streams that carry both: which of them have not ended, whether
//! one descends from another, and a worker's story from its start.

use std::sync::Arc;

use turnwire_event::fold::replay::Missed;
use turnwire_event::{Actor, Epoch, EventType, Filter, FilterSpec, Position, SessionId};

use crate::error::Error;
use crate::lifecycle::core::Sessions;
use crate::live::session::LiveSession;
use crate::read::replay::{CatchUp, ReplayError};
use crate::store_read::blocking;

/// How far down workers of workers are told: as deep as `session.worker_depth_max` may let them
/// be nested, so that a stream has room for every level. It bounds the walk from a worker that a
/// client names up to the session it watches.
pub const DEPTH_MAX: u8 = 16;

impl LiveSession {
    /// The ring's tail, and the workers that had not ended there, each with the position of its
    /// start.
    pub fn delegates(&self) -> (Position, Vec<(SessionId, Position)>) {
        self.ring.look(|transcript, tail, _| {
            let open = transcript.open.iter().flat_map(|turn| &turn.delegates);
            let open = open.map(|open| (open.worker_session_id, open.at));
            (tail, open.collect())
        })
    }

    /// The ring's tail.
    pub fn tail(&self) -> Position {
        self.ring.look(|_, tail, _| tail)
    }

    /// The session that this one works for.
    pub fn parent(&self) -> Option<SessionId> {
        self.ring.look(|transcript, _, _| transcript.row.parent)
    }

    /// Starts telling everything that is kept.
    pub async fn catch_up_whole(
        self: &Arc<Self>,
        filter: &Filter,
        missed: Missed,
    ) -> Result<CatchUp, ReplayError> {
        let id = self.id;
        let low = blocking(self.house.store(), move |store| {
            let tail = store.tail(id).map_err(Error::from)?;
            Ok::<_, Error>(tail.ok_or(Error::SessionNotFound)?.low)
        });
        let since = Position::persisted(Epoch::FIRST, low.await?);
        self.catch_up_from(since, filter, missed, u64::MAX).await
    }

    /// Whether `worker` was started here, as far as the log is kept.
    pub async fn started(&self, worker: SessionId) -> Result<bool, Error> {
        let spec = FilterSpec {
            event_types: Some(vec![EventType::DelegateStarted.name().to_owned()]),
            actors: Some(vec![Actor::worker(worker).to_string()]),
            include_worker_sessions: false,
            include_suppressed: true,
        };
        let filter = Filter::resolve(&spec).map_err(|_| Error::Internal)?;
        let (id, upto) = (self.id, self.tail().seq);
        blocking(self.house.store(), move |store| {
            let tail = store.tail(id)?.ok_or(Error::SessionNotFound)?;
            Ok(store.count(id, tail.low, upto, &filter)? > 0)
        })
        .await
    }
}

impl Sessions {
    /// How many steps `worker` is below the session `of`; none if it is not below it.
    pub async fn depth_below(
        &self,
        of: SessionId,
        worker: &LiveSession,
    ) -> Result<Option<u8>, Error> {
        let mut parent = worker.parent();
        for depth in 1..=DEPTH_MAX {
            match parent {
                None => return Ok(None),
                Some(id) if id == of => return Ok(Some(depth)),
                Some(id) => parent = self.live(&worker.owner, id).await?.parent(),
            }
        }
        Ok(None)
    }
}

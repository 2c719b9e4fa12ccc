//! The handle for streams: opens live sessions.

use std::sync::Arc;

use turnwire_event::row::SessionRow;
use turnwire_event::{Owner, SessionId};

use crate::error::Error;
use crate::live::session::LiveSession;
use crate::read::family::WORKER_DEPTH_MAX;

handle!(
    /// Opens live sessions for streams.
    LiveSessions
);

impl LiveSessions {
    /// The [`LiveSession`] of a session of `owner`, loaded if it is not in memory.
    pub async fn open(&self, owner: &Owner, id: SessionId) -> Result<Arc<LiveSession>, Error> {
        self.core.open(owner, id).await
    }

    /// The row of a session of `owner` with current counts and cost.
    pub async fn row(&self, owner: &Owner, id: SessionId) -> Result<SessionRow, Error> {
        let live = self.core.open(owner, id).await?;
        Ok(live.with_row(SessionRow::clone))
    }

    /// The number of levels from `ancestor` down to `worker`; `None` if it is not an ancestor.
    pub async fn depth_below(
        &self,
        ancestor: SessionId,
        worker: &LiveSession,
    ) -> Result<Option<u8>, Error> {
        let mut parent = worker.parent();
        for depth in 1..=WORKER_DEPTH_MAX {
            match parent {
                None => return Ok(None),
                Some(id) if id == ancestor => return Ok(Some(depth)),
                Some(id) => parent = self.core.open(&worker.owner, id).await?.parent(),
            }
        }
        Ok(None)
    }
}

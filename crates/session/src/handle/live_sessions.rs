//! The handle for streams: opens live sessions, and exchanges attach tokens for them.

use std::sync::Arc;

use turnwire_event::row::SessionRow;
use turnwire_event::{Owner, SessionId};

use crate::error::Error;
use crate::live::session::LiveSession;
use crate::read::family::WORKER_DEPTH_MAX;

/// The permission to attach to a session once.
#[derive(Clone, Debug)]
pub struct AttachTicket {
    /// The token, which [`LiveSessions::redeem`] accepts once.
    pub token: String,
    /// The session's row with current counts and cost.
    pub session: SessionRow,
}

handle!(
    /// Opens live sessions for streams.
    LiveSessions
);

impl LiveSessions {
    /// The [`LiveSession`] of a session of `owner`, loaded if it is not in memory.
    pub async fn open(&self, owner: &Owner, id: SessionId) -> Result<Arc<LiveSession>, Error> {
        self.core.open(owner, id).await
    }

    /// Issues an attach token for a session of `owner`; see [`redeem`](Self::redeem).
    pub async fn attach(&self, owner: &Owner, id: SessionId) -> Result<AttachTicket, Error> {
        let live = self.core.open(owner, id).await?;
        Ok(AttachTicket {
            token: self.core.tokens.issue(id, owner)?,
            session: live.with_row(SessionRow::clone),
        })
    }

    /// Consumes an attach token if `admit` accepts the owner that it was issued to, and returns the
    /// owner with what `admit` gave. `admit` runs under a lock and must return quickly.
    pub fn redeem<T, E: From<Error>>(
        &self,
        id: SessionId,
        token: &str,
        admit: impl FnOnce(&Owner) -> Result<T, E>,
    ) -> Result<(Owner, T), E> {
        self.core.tokens.redeem(id, token, admit)
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

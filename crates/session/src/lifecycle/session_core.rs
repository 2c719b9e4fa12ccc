//! The state behind all handles: the services, the sessions in memory and the
//! idempotency locks. A session of another owner is treated as if it did not exist.

use std::sync::Arc;

use turnwire_event::row::TurnRow;
use turnwire_event::{Owner, SessionId, Timestamp, TurnId, UpstreamId, UtcDay};
use turnwire_hub::RingClosed;
use turnwire_log::{Store, UsageOn};

use super::deletion_queue::DeletionQueue;
use crate::error::Error;
use crate::live::session::{LiveSession, SessionServices};
use crate::metering::quota::CountedTurn;
use crate::read::viewer::Viewer;
use crate::registry::open_sessions::SessionRegistry;
use crate::submit::idempotency::IdempotencyLocks;
use crate::turn::cancel::early_cancel::EarlyCancels;

/// The state that all handles share.
pub(crate) struct SessionCore {
    pub(crate) services: Arc<SessionServices>,
    pub(crate) registry: Arc<SessionRegistry>,
    pub(crate) idempotency: Arc<IdempotencyLocks>,
    pub(crate) early_cancels: EarlyCancels,
    pub(crate) deletions: Arc<DeletionQueue>,
}

impl SessionCore {
    /// Fails if no new turn is accepted.
    pub(crate) fn check_accepts_turns(&self) -> Result<(), Error> {
        if self.services.runner.is_draining() {
            return Err(Error::Draining);
        }
        self.services.check_storage()
    }

    /// What `owner` and its tenant have used today; `None` if no quota needs it.
    pub(crate) async fn used_today(&self, owner: &Owner) -> Result<Option<UsageOn>, Error> {
        let services = &self.services;
        if !services.quotas.has_daily() {
            return Ok(None);
        }
        let (of, day) = (owner.clone(), UtcDay::of(services.clock.now()));
        let read = move |store: &dyn Store| store.usage_on(&of, day);
        services.read_rows_for(owner, read).await.map(Some)
    }

    /// Counts a turn of `owner` in the quotas, or refuses it.
    pub(crate) async fn count_turn(&self, owner: &Owner) -> Result<CountedTurn<'_>, Error> {
        let services = &self.services;
        if let Some(used) = self.used_today(owner).await? {
            services.quotas.check_day(used, services.clock.now())?;
        }
        Ok(services.quotas.count_turn(owner)?)
    }

    /// A session that `viewer` sees, loaded if it is not in memory.
    pub(crate) async fn open(
        &self,
        viewer: impl Into<Viewer<'_>>,
        id: SessionId,
    ) -> Result<Arc<LiveSession>, Error> {
        let viewer = viewer.into();
        let live = self.registry.open(&self.services, id, Some(viewer)).await?;
        match live.ring.close_reason() {
            None if self.services.quarantined.lock().contains(&id) => {
                Err(self.services.quarantine_error())
            }
            None => Ok(live),
            Some(RingClosed::Deleted) => Err(Error::SessionNotFound),
            Some(RingClosed::Quarantined) => {
                self.services.quarantined.lock().insert(id);
                Err(self.services.quarantine_error())
            }
        }
    }

    /// The stored row of a turn that `viewer` sees.
    pub(crate) async fn turn(
        &self,
        viewer: impl Into<Viewer<'_>>,
        id: TurnId,
    ) -> Result<TurnRow, Error> {
        let viewer = viewer.into();
        let read = move |store: &dyn Store| store.turn(id);
        let stored = self.services.read_rows_for(viewer.owner, read).await?;
        stored
            .filter(|(turn_owner, _)| viewer.sees(turn_owner))
            .map(|(_, row)| row)
            .ok_or(Error::TurnNotFound)
    }

    /// The turn of `owner` whose upstream gave its response the id `id`.
    pub(crate) async fn turn_of_response(
        &self,
        owner: &Owner,
        id: UpstreamId,
    ) -> Result<TurnId, Error> {
        let of = owner.clone();
        let read = move |store: &dyn Store| store.turn_of_response(&of, &id);
        let turn = self.services.read_rows_for(owner, read).await?;
        turn.ok_or(Error::TurnNotFound)
    }

    /// The creation time up to which idempotency keys have expired.
    pub(crate) fn keys_expired_until(&self) -> Timestamp {
        let now = self.services.trusted_clock.now();
        now.before(self.services.options.idempotency_ttl)
    }
}

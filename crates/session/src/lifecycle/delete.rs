//! Deleting a session with its workers: turns stop, connections close, rows are removed. A session
//! is closed before the last search for its workers, and workers are removed before their parents,
//! so that an interrupted deletion leaves no worker without a parent.
//!
//! One small transaction makes a session disappear, with others that wait in the [`DeletionQueue`];
//! its rows are removed in the background. On a full disk, or if the data folder is lost, a deletion
//! is refused before anything is closed.
//!
//! [`DeletionQueue`]: super::deletion_queue::DeletionQueue

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use turnwire_event::{Owner, SessionId};

use super::deletion_queue::{DeletionStage, SessionDeletion, check_folder};
use super::session_core::SessionCore;
use crate::error::Error;
use crate::live::session::LiveSession;
use crate::store_read::Reader;
use crate::submit::write_slots::WriteSlot;

/// How long a caller waits for a deletion: many times what a busy disk needs.
const DELETION_WAIT: Duration = Duration::from_secs(10);

/// Resolves at the end of a deletion.
type DeletionEnd = oneshot::Receiver<Result<(), Error>>;

impl SessionCore {
    /// Deletes a session and its workers. Once begun, continues to the end even if the caller goes
    /// away.
    pub(crate) async fn delete(&self, owner: &Owner, id: SessionId) -> Result<(), Error> {
        let live = match self.open(owner, id).await {
            Err(Error::Quarantined | Error::DatabaseDamaged) => {
                let reader = Reader::Owner(owner.clone());
                self.registry.open(&self.services, id, reader).await?
            }
            other => other?,
        };
        if live.owner != *owner {
            return Err(Error::SessionNotFound);
        }
        if self.services.is_storage_full() {
            return Err(Error::StorageFull);
        }
        check_folder(&self.services)?;
        let deleted = async {
            let slot = self.services.write_slot(owner).await?;
            let deleted = self.queue_deletion(live, DeletionStage::Waiting, Some(slot));
            deleted.await.unwrap_or(Err(Error::Internal))
        };
        match tokio::time::timeout(DELETION_WAIT, deleted).await {
            Ok(deleted) => deleted,
            // The writer does not come to the deletion, or repeats it. One that has begun goes on when
            // there is space.
            Err(_) if self.services.is_storage_full() => Err(Error::StorageFull),
            Err(_) => Err(Error::TooMany),
        }
    }

    /// Closes a session and starts its deletion; the receiver resolves when it is deleted, or when
    /// damage refuses it.
    pub(crate) fn start_deletion(&self, live: Arc<LiveSession>) -> DeletionEnd {
        // Closed first: its turn starts no more workers.
        live.close();
        self.queue_deletion(live, DeletionStage::Final, None)
    }

    fn queue_deletion(
        &self,
        live: Arc<LiveSession>,
        stage: DeletionStage,
        slot: Option<WriteSlot>,
    ) -> DeletionEnd {
        let (done, deleted) = oneshot::channel();
        let deletion = SessionDeletion {
            live,
            registry: self.registry.clone(),
            on_deleted: self.services.on_deleted.get().cloned(),
            done: Some(done),
            _slot: slot,
            stage,
            closed: Vec::new(),
        };
        self.deletions.push(&self.services, deletion);
        deleted
    }
}

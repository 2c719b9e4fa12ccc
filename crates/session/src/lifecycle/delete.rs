//! Deleting a session with its workers: turns stop, connections close, rows are removed. A session
//! is closed before the last search for its workers, and workers are removed before their parents,
//! so that an interrupted deletion leaves no worker without a parent.
//!
//! One small transaction makes a session disappear, with others that wait in the [`DeletionQueue`];
//! its rows are removed in the background. On a full disk, or if the data folder is lost, a deletion
//! is refused before anything is closed. One that was announced to watchers goes on after a restart:
//! `session.closed` stays the last event.
//!
//! [`DeletionQueue`]: super::deletion_queue::DeletionQueue

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use turnwire_event::SessionId;
use turnwire_event::code::AuditAction;
use turnwire_event::row::{AuditEntry, Requester};

use super::deletion_queue::{DeletionStage, SessionDeletion, check_folder};
use super::session_core::SessionCore;
use crate::error::Error;
use crate::live::session::LiveSession;
use crate::store_read::worker_depth;
use crate::submit::write_slots::WriteSlot;

/// How long a caller waits for a deletion: many times what a busy disk needs.
const DELETION_WAIT: Duration = Duration::from_secs(10);

/// Resolves at the end of a deletion.
pub(crate) type DeletionEnd = oneshot::Receiver<Result<(), Error>>;

impl SessionCore {
    /// Deletes a session and its workers. Once begun, continues to the end even if the caller goes
    /// away.
    pub(crate) async fn delete(&self, by: &Requester, id: SessionId) -> Result<(), Error> {
        let owner = &by.owner;
        let live = match self.open(owner, id).await {
            Err(Error::Quarantined | Error::DatabaseDamaged) => {
                let viewer = Some(owner.into());
                self.registry.open(&self.services, id, viewer).await?
            }
            other => other?,
        };
        if self.services.is_storage_full() {
            return Err(Error::StorageFull);
        }
        check_folder(&self.services)?;
        let deleted = async {
            let slot = self.services.write_slot(owner).await?;
            let now = self.services.clock.now();
            let audit = AuditEntry {
                session_id: Some(id),
                ..AuditEntry::new(now, AuditAction::SessionDeleted, by)
            };
            let request = (Some(slot), Some(audit));
            let deleted = self.queue_deletion(live, DeletionStage::Waiting, request);
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
        self.queue_deletion(live, DeletionStage::Final, (None, None))
    }

    /// Finishes the deletions that the last run announced to watchers, before its open turns are ended.
    /// On a full disk they go on in the background, and their sessions are closed meanwhile.
    pub(crate) async fn finish_deletions(&self) -> Result<(), Error> {
        let announced = self.services.read_rows(|store| store.closed_sessions());
        let mut deletions = Vec::new();
        for id in announced.await? {
            match self.load_closed(id).await {
                Ok(live) => deletions.push(self.start_deletion(live)),
                Err(Error::SessionNotFound) => {} // deleted with its parent
                Err(error) => {
                    self.services.quarantined.lock().insert(id);
                    tracing::error!(session = %id, %error, "could not finish a deletion: session quarantined");
                }
            }
        }
        if deletions.is_empty() {
            return Ok(());
        }
        tracing::info!(
            sessions = deletions.len(),
            "finishing deletions of the last run"
        );
        wait_for_all(deletions).await;
        Ok(())
    }

    /// Loads a session that is to be deleted. Its queued turns do not start.
    pub(crate) async fn load_closed(&self, id: SessionId) -> Result<Arc<LiveSession>, Error> {
        let read = self.services.read(move |store| {
            let row = store.session(id)?.ok_or(Error::SessionNotFound)?;
            let tail = store.tail(id)?.ok_or(Error::SessionNotFound)?;
            let depth = worker_depth(store, &row)?;
            Ok::<_, Error>(((row, depth), tail))
        });
        let (row, tail) = read.await?;
        let live = LiveSession::load(self.services.clone(), row, tail, None);
        live.close();
        self.registry.insert(live.clone());
        Ok(live)
    }

    fn queue_deletion(
        &self,
        live: Arc<LiveSession>,
        stage: DeletionStage,
        (slot, audit): (Option<WriteSlot>, Option<AuditEntry>),
    ) -> DeletionEnd {
        let (done, deleted) = oneshot::channel();
        let deletion = SessionDeletion {
            live,
            registry: self.registry.clone(),
            on_deleted: self.services.on_deleted.get().cloned(),
            done: Some(done),
            _slot: slot,
            stage,
            audit,
            closed: Vec::new(),
        };
        self.deletions.push(&self.services, deletion);
        deleted
    }
}

/// Waits for deletions at the start of a server, [`DELETION_WAIT`] at most.
pub(crate) async fn wait_for_all(deletions: Vec<DeletionEnd>) {
    let all_deleted = async {
        for deleted in deletions {
            let _ = deleted.await;
        }
    };
    if tokio::time::timeout(DELETION_WAIT, all_deleted)
        .await
        .is_err()
    {
        tracing::warn!("deletions of the last run are not finished and go on in the background");
    }
}

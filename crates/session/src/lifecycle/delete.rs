//! Deleting a session with its workers: turns stop, connections close, rows are removed. A session
//! is closed before the last search for its workers, and workers are removed before their parents,
//! so that an interrupted deletion leaves no worker without a parent.
//!
//! One small transaction makes a session disappear; its rows are removed in the background. On a full
//! disk a deletion is refused before anything is closed.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use turnwire_event::{Owner, SessionId};
use turnwire_log::{AppendError, ReadError, Store};

use super::session_core::SessionCore;
use crate::error::Error;
use crate::live::session::{DeletedCallback, LiveSession, SessionServices};
use crate::registry::open_sessions::SessionRegistry;
use crate::registry::retention;
use crate::store_read::Reader;

/// Sessions deleted in one transaction: batches of events are written between two of them.
const BATCH: usize = 32;
/// How long a caller waits for a deletion: many times what a busy disk needs.
const DELETION_WAIT: Duration = Duration::from_secs(10);

/// Resolves at the end of a deletion.
type DeletionEnd = oneshot::Receiver<Result<(), Error>>;

impl SessionCore {
    /// Deletes a session and its workers. Continues to the end even if the caller goes away.
    pub(crate) async fn delete(&self, owner: &Owner, id: SessionId) -> Result<(), Error> {
        let live = match self.open(owner, id).await {
            Err(Error::Quarantined) => {
                let reader = Reader::Owner(owner.clone());
                self.registry.open(&self.services, id, reader).await?
            }
            other => other?,
        };
        if live.owner != *owner {
            return Err(Error::SessionNotFound);
        }
        self.check_writable().await?;
        let deleted = self.start_deletion(live);
        match tokio::time::timeout(DELETION_WAIT, deleted).await {
            Ok(deleted) => deleted.unwrap_or(Err(Error::Internal)),
            // The disk became full after the check: the deletion goes on when there is space.
            Err(_) if self.services.is_storage_full() => Err(Error::StorageFull),
            Err(_) => Err(Error::TooMany),
        }
    }

    /// Fails if the disk is full or the writer is busy, which a small write finds out.
    async fn check_writable(&self) -> Result<(), Error> {
        if self.services.is_storage_full() {
            return Err(Error::StorageFull);
        }
        let (result, written) = oneshot::channel();
        let (mut result, services) = (Some(result), Arc::downgrade(&self.services));
        self.services.writer.run(Box::new(move || {
            // The writer repeats a task that found the disk full; the answer is given by then.
            let (Some(result), Some(services)) = (result.take(), services.upgrade()) else {
                return Ok(());
            };
            let mark = services.trusted_clock.mark();
            let written = services.store.set_clock_mark(&mark);
            let _ = result.send(match written {
                Ok(()) => Ok(()),
                Err(AppendError::Full) => Err(Error::StorageFull),
                Err(AppendError::Busy) => Err(Error::TooMany),
                Err(_) => Err(Error::Internal),
            });
            written
        }));
        match tokio::time::timeout(DELETION_WAIT, written).await {
            Ok(Ok(written)) => written,
            // A writer that does not come to the task is busy, or retries a batch: the disk is full
            // or locked.
            _ if self.services.is_storage_full() => Err(Error::StorageFull),
            _ => Err(Error::TooMany),
        }
    }

    /// Closes a session and starts its deletion; the receiver resolves when it is deleted, or when
    /// damage refuses it.
    pub(crate) fn start_deletion(&self, live: Arc<LiveSession>) -> DeletionEnd {
        // Closed first: its turn starts no more workers.
        live.close();
        let (done, deleted) = oneshot::channel();
        let deletion = SessionDeletion {
            live,
            registry: self.registry.clone(),
            on_deleted: self.services.on_deleted.get().cloned(),
            done: Some(done),
        };
        deletion.run_next_batch(&self.services);
        deleted
    }
}

/// The deletion of one session with its workers.
struct SessionDeletion {
    /// Referenced to the end, so that the session is not unloaded and loaded again meanwhile.
    live: Arc<LiveSession>,
    registry: Arc<SessionRegistry>,
    on_deleted: Option<DeletedCallback>,
    done: Option<oneshot::Sender<Result<(), Error>>>,
}

impl SessionDeletion {
    /// Deletes a batch on the writer's thread, then queues the next one at the writer.
    fn run_next_batch(self, services: &Arc<SessionServices>) {
        let (store, weak_services) = (services.store.clone(), Arc::downgrade(services));
        let mut deletion = Some(self);
        services.writer.run(Box::new(move || {
            let Some(this) = &mut deletion else {
                return Ok(());
            };
            let is_complete = this.delete_batch(store.as_ref()).inspect_err(|error| {
                if matches!(error, AppendError::Refused(_)) {
                    this.refuse();
                }
            })?;
            if let Some(services) = weak_services.upgrade() {
                retention::remove_deleted(&services);
            }
            if is_complete {
                this.live.close();
                this.report(Ok(()));
            } else if let (Some(services), Some(this)) = (weak_services.upgrade(), deletion.take())
            {
                this.run_next_batch(&services);
            }
            Ok(())
        }));
    }

    /// Ends a deletion that damage makes impossible. The session is loaded again when it is next
    /// asked for, as a damaged one, and can be deleted once the damage is repaired.
    fn refuse(&mut self) {
        self.live.quarantine();
        self.registry.remove(self.live.id);
        self.report(Err(Error::Quarantined));
    }

    /// Tells the caller how the deletion ended.
    fn report(&mut self, result: Result<(), Error>) {
        if let Some(done) = self.done.take() {
            let _ = done.send(result);
        }
    }

    /// Deletes the next sessions; true if these were the last ones. Refused if a page that it needs
    /// is damaged.
    fn delete_batch(&self, store: &dyn Store) -> Result<bool, AppendError> {
        let mut family = Vec::new();
        let is_complete = collect_family(store, self.live.id, &mut family).map_err(|error| {
            tracing::error!(session = %self.live.id, %error, "could not read the workers of a deleted session");
            match error {
                ReadError::Corrupt(_) | ReadError::Damaged { .. } => {
                    AppendError::Refused(error.to_string())
                }
                // The writer repeats the step if the store cannot be read now, as with a failed
                // write.
                ReadError::Trimmed { .. } | ReadError::SessionNotFound | ReadError::Database(_) => {
                    AppendError::Busy
                }
            }
        })?;
        // A session that is not closed may have created a worker whose rows wait behind this step.
        // Once closed it creates no more, and the next step finds them all.
        let loaded = family.iter().filter_map(|id| self.registry.get(*id));
        let not_closed: Vec<_> = loaded
            .filter(|live| live.ring.close_reason().is_none())
            .collect();
        if !not_closed.is_empty() {
            not_closed.iter().for_each(|live| live.close());
            return Ok(false);
        }
        if !family.is_empty() {
            store.delete(&family)?;
        }
        for id in family {
            // A caller that loaded it in between has a session that no longer exists.
            if let Some(loaded) = self.registry.remove(id) {
                loaded.close();
            }
            if let Some(on_deleted) = &self.on_deleted {
                on_deleted(id);
            }
        }
        Ok(is_complete)
    }
}

/// Collects a session after all its workers, at most [`BATCH`]; true if the family is complete.
fn collect_family(
    store: &dyn Store,
    id: SessionId,
    family: &mut Vec<SessionId>,
) -> Result<bool, ReadError> {
    for worker in store.workers(id, None, BATCH.into())?.rows {
        if !collect_family(store, worker.id, family)? {
            return Ok(false);
        }
    }
    // A full page of workers fills the batch, so no worker is missed.
    if family.len() >= BATCH {
        return Ok(false);
    }
    family.push(id);
    Ok(true)
}

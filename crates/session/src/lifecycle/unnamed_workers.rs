//! Deletion of the sessions of workers that a crash kept from being named. A worker's session is
//! durable before its parent names it in `delegate.started`; after a crash in between, no event leads
//! to it.

use turnwire_event::SessionId;
use turnwire_log::Store;

use super::delete::wait_for_all;
use super::session_core::SessionCore;
use crate::error::Error;
use crate::read::family::names_worker;

impl SessionCore {
    /// Deletes the unnamed workers of turns that the last run left open, before those turns are ended:
    /// a crash during the deletion finds them again.
    pub(crate) async fn delete_unnamed_workers(&self) -> Result<(), Error> {
        let open = self.services.read_rows(|store| store.open_turns()).await?;
        let mut deletions = Vec::new();
        let parents = open.iter().map(|turn| turn.session_id);
        // The workers of a session that is being deleted go with it.
        for parent in parents.filter(|id| self.registry.get(*id).is_none()) {
            let options = &self.services.options;
            let (workers_max, scan_max) = (options.workers_max, options.scan_max);
            let unnamed = self
                .services
                .read(move |store| unnamed_workers(store, parent, workers_max, scan_max));
            let unnamed = unnamed.await.unwrap_or_else(|error| {
                tracing::warn!(session = %parent, %error, "could not look for workers without a name");
                Vec::new()
            });
            for id in unnamed {
                match self.load_closed(id).await {
                    Ok(live) => deletions.push(self.start_deletion(live)),
                    Err(error) => {
                        tracing::warn!(session = %id, %error, "could not delete a worker without a name");
                    }
                }
            }
        }
        if !deletions.is_empty() {
            tracing::info!(
                sessions = deletions.len(),
                "deleting workers that the last run created and did not name"
            );
            wait_for_all(deletions).await;
        }
        Ok(())
    }
}

/// The workers of `parent` whose log has only its first event and that no event of `parent` names.
/// Looks at the newest `workers_max`, which is as many as one turn may create.
fn unnamed_workers(
    store: &dyn Store,
    parent: SessionId,
    workers_max: usize,
    scan_max: usize,
) -> Result<Vec<SessionId>, Error> {
    let upto = store.tail(parent)?.ok_or(Error::SessionNotFound)?.seq;
    let mut unnamed = Vec::new();
    for worker in store.workers(parent, None, workers_max.into())?.rows {
        let id = worker.id;
        let is_untouched = worker.turn_count == 0
            && store.tail(id)?.is_some_and(|tail| tail.seq.0 == 1)
            && store.queued_turns(id)?.is_empty();
        if is_untouched && !names_worker(store, (parent, upto), id, scan_max)? {
            unnamed.push(id);
        }
    }
    Ok(unnamed)
}

//! Removing a session with its workers: turns are stopped, connections closed, rows gone. Each is
//! shut before it is looked for workers the last time, and children go before their parents, so
//! that whatever comes between or cuts it short, nothing is left without one.

use std::sync::Arc;

use tokio::sync::oneshot;
use turnwire_event::{Owner, SessionId};
use turnwire_log::{AppendError, ReadError, Store};

use crate::error::Error;
use crate::lifecycle::core::Sessions;
use crate::live::session::{DeletedCallback, LiveSession, SessionServices};
use crate::registry::open_sessions::SessionRegistry;

/// Sessions removed in one go of the writing thread: batches of events go between one and the
/// next.
const PIECE: usize = 32;

impl Sessions {
    /// Removes a session and its workers. Goes on to the end even if the caller is no longer
    /// there.
    pub async fn delete(&self, owner: &Owner, id: SessionId) -> Result<(), Error> {
        let live = match self.live(owner, id).await {
            Err(Error::Quarantined) => self.registry.get(&self.house, id).await?,
            other => other?,
        };
        if live.owner != *owner {
            return Err(Error::SessionNotFound);
        }
        self.erase(live).await.map_err(|_| Error::Internal)
    }

    /// Shuts a session and has it removed; what comes back is told when it is gone.
    pub(crate) fn erase(&self, live: Arc<LiveSession>) -> oneshot::Receiver<()> {
        // From here on its turn makes no more workers.
        live.shut();
        let (done, gone) = oneshot::channel();
        let erasing = SessionDeletion {
            live,
            registry: self.registry.clone(),
            erased: self.house.erased.get().cloned(),
            done: Some(done),
        };
        erasing.go_on(&self.house);
        gone
    }
}

/// A session on its way out.
struct SessionDeletion {
    /// Held until the end, so that the session cannot be opened anew meanwhile.
    live: Arc<LiveSession>,
    registry: Arc<SessionRegistry>,
    erased: Option<DeletedCallback>,
    done: Option<oneshot::Sender<()>>,
}

impl SessionDeletion {
    /// Removes a piece, then the next behind whatever else waits for the writer.
    fn go_on(self, house: &Arc<SessionServices>) {
        let again = Arc::downgrade(house);
        let mut erasing = Some(self);
        house.writer.run(Box::new(move |store| {
            let Some(this) = &mut erasing else {
                return Ok(());
            };
            let whole = this.piece(store)?;
            if whole {
                this.live.shut();
                if let Some(done) = this.done.take() {
                    let _ = done.send(());
                }
            } else if let (Some(house), Some(this)) = (again.upgrade(), erasing.take()) {
                this.go_on(&house);
            }
            Ok(())
        }));
    }

    /// Removes the next few; says whether that was all.
    fn piece(&self, store: &dyn Store) -> Result<bool, AppendError> {
        let mut family = Vec::new();
        // A store that cannot be read now is asked again, as one that cannot be written.
        let whole = gather(store, self.live.id, &mut family).map_err(|error| {
            tracing::error!(session = %self.live.id, %error, "the workers of a session cannot be read");
            AppendError::Busy
        })?;
        // One that is open may have made a worker whose start waits behind this. Shut, it makes no
        // more, and next time everyone it made is found.
        let open = family.iter().filter_map(|id| self.registry.peek(*id));
        let open: Vec<_> = open.filter(|live| live.ring.closed().is_none()).collect();
        if !open.is_empty() {
            open.iter().for_each(|live| live.shut());
            return Ok(false);
        }
        for id in family {
            store.delete(id)?;
            // Whoever opened it in between holds a session that is no more.
            if let Some(opened) = self.registry.remove(id) {
                opened.shut();
            }
            if let Some(erased) = &self.erased {
                erased(id);
            }
        }
        Ok(whole)
    }
}

/// A session below all its workers, as many of them as go at once; says whether that is everyone.
fn gather(store: &dyn Store, id: SessionId, out: &mut Vec<SessionId>) -> Result<bool, ReadError> {
    for worker in store.workers(id, None, PIECE)? {
        if !gather(store, worker.id, out)? {
            return Ok(false);
        }
    }
    // A full page of workers has filled it, so nobody is left out unseen.
    if out.len() >= PIECE {
        return Ok(false);
    }
    out.push(id);
    Ok(true)
}

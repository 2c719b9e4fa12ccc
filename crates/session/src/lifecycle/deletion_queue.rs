//! Deletions on the writer's thread, many of them in one transaction.
//!
//! ```text
//!   waiting ──▶ told ──▶ closed ──▶ steps of some sessions each, workers first ──▶ deleted
//!      │          └ watchers get `session.closed`, which is committed before the next step
//!      │          └ the disk is full, and closing ended nothing: refused, and loaded again
//!      └ the disk is full, the folder is lost, or the caller is gone: refused, nothing is closed
//! ```
//!
//! Damage that refuses one deletion refuses no other: then each is repeated in a transaction of its
//! own.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use turnwire_event::SessionId;
use turnwire_event::row::AuditEntry;
use turnwire_log::{AppendError, ReadError, Store, StoreFault};

use crate::error::Error;
use crate::live::session::{DeletedCallback, LiveSession, SessionServices};
use crate::registry::open_sessions::SessionRegistry;
use crate::registry::retention;
use crate::submit::write_slots::WriteSlot;

/// Sessions and deletions in one transaction: batches of events are written between two of them.
const BATCH: usize = 32;

/// Fails if the data folder is lost: the session would be there again after a restart. In a damaged
/// database a session can be deleted.
pub(super) fn check_folder(services: &SessionServices) -> Result<(), Error> {
    match services.store.fault() {
        Some(fault @ StoreFault::FolderLost) => Err(fault.into()),
        Some(StoreFault::Damaged) | None => Ok(()),
    }
}

/// How far a [`SessionDeletion`] has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeletionStage {
    /// The session is open.
    Waiting,
    /// The session was closed before, by another deletion or for damage. If this one does not delete
    /// it, it is left to that other one.
    Joined,
    /// The session is closed, which ended nothing: if it is not deleted, it is loaded again.
    Restorable,
    /// The deletion goes on until the session is deleted.
    Final,
}

/// The deletion of one session with its workers.
pub(crate) struct SessionDeletion {
    /// Referenced to the end, so that the session is not unloaded and loaded again meanwhile.
    pub(crate) live: Arc<LiveSession>,
    pub(crate) registry: Arc<SessionRegistry>,
    pub(crate) on_deleted: Option<DeletedCallback>,
    pub(crate) done: Option<oneshot::Sender<Result<(), Error>>>,
    /// The slot of the request; `None` for a deletion by the server itself.
    pub(crate) _slot: Option<WriteSlot>,
    pub(crate) stage: DeletionStage,
    /// The record of the deletion; `None` for one by the server itself. It commits with what is told
    /// to the watchers, and if there are none with the deletion.
    pub(crate) audit: Option<AuditEntry>,
    /// The loaded workers that it closed and has not deleted yet.
    pub(crate) closed: Vec<ClosedWorker>,
}

/// A worker that the deletion of its parent has closed.
pub(crate) struct ClosedWorker {
    live: Arc<LiveSession>,
    /// Closing it ended nothing, so it can be loaded again.
    is_restorable: bool,
}

impl ClosedWorker {
    fn close(live: Arc<LiveSession>) -> Self {
        let is_restorable = live.close_if_unused();
        live.close();
        Self {
            live,
            is_restorable,
        }
    }
}

/// What a [`SessionDeletion`] deletes in the next transaction.
struct DeletionStep {
    sessions: Vec<SessionId>,
    is_last: bool,
}

impl DeletionStep {
    /// The writer first commits what was emitted so far.
    const NOTHING_YET: Self = Self {
        sessions: Vec::new(),
        is_last: false,
    };
}

/// A small write, once for a batch of deletions, which finds out whether the disk is full.
struct DiskProbe<'a> {
    services: &'a SessionServices,
    is_writable: bool,
}

impl DiskProbe<'_> {
    fn check(&mut self) -> Result<(), AppendError> {
        if !self.is_writable {
            let mark = self.services.trusted_clock.mark();
            let written = self.services.store.set_clock_mark(&mark);
            written.map_err(|error| match error {
                // Damage elsewhere: no reason to give up the session.
                AppendError::Refused(cause) => {
                    tracing::error!(cause, "the time could not be stored before a deletion");
                    AppendError::Busy
                }
                error => error,
            })?;
            self.is_writable = true;
        }
        Ok(())
    }
}

impl SessionDeletion {
    /// Closes the session if it is open, and finds the next sessions to delete. `None` for a deletion
    /// that has not begun if its caller is gone, or is told that the folder is lost.
    fn prepare(&mut self, probe: &mut DiskProbe<'_>) -> Result<Option<DeletionStep>, AppendError> {
        if self.stage == DeletionStage::Waiting {
            if self.done.as_ref().is_none_or(oneshot::Sender::is_closed) {
                return Ok(None);
            }
            if let Err(lost) = check_folder(probe.services) {
                self.report(Err(lost));
                return Ok(None);
            }
            self.stage = if self.live.close_if_unused() {
                DeletionStage::Restorable
            } else if self.live.ring.close_reason().is_some() {
                DeletionStage::Joined
            } else {
                probe.check()?;
                DeletionStage::Final
            };
        }
        if self.stage == DeletionStage::Final && self.live.ring.close_reason().is_none() {
            if self.live.announce_deletion(self.audit.as_ref()) {
                return Ok(Some(DeletionStep::NOTHING_YET));
            }
            self.live.close();
        }
        let mut sessions = Vec::new();
        let store = probe.services.store.as_ref();
        let is_last = collect_family(store, self.live.id, &mut sessions)
            .map_err(|error| self.read_failure(&error))?;
        // A session that is not closed may have created a worker whose rows wait behind this step.
        // Once closed it creates no more, and the next step finds them all.
        let loaded = sessions.iter().filter_map(|id| self.registry.get(*id));
        let not_closed: Vec<_> = loaded
            .filter(|live| live.ring.close_reason().is_none())
            .collect();
        if not_closed.is_empty() {
            return Ok(Some(DeletionStep { sessions, is_last }));
        }
        if self.stage != DeletionStage::Final {
            probe.check()?;
            self.stage = DeletionStage::Final;
        }
        let is_told = |live: &Arc<LiveSession>| live.announce_deletion(None);
        let unwatched = not_closed.into_iter().filter(|live| !is_told(live));
        self.closed.extend(unwatched.map(ClosedWorker::close));
        Ok(Some(DeletionStep::NOTHING_YET))
    }

    /// The error of a deletion whose workers cannot be read: refused if a page is damaged, else
    /// repeated, as after a failed write.
    fn read_failure(&self, error: &ReadError) -> AppendError {
        tracing::error!(session = %self.live.id, %error, "could not read the workers of a deleted session");
        match error {
            ReadError::Corrupt(_) | ReadError::Damaged { .. } => {
                AppendError::Refused(error.to_string())
            }
            ReadError::DatabaseDamaged(cause) => AppendError::Damaged(cause.clone()),
            ReadError::Trimmed { .. } | ReadError::SessionNotFound | ReadError::Database(_) => {
                AppendError::Busy
            }
        }
    }

    /// Ends a step that is durable; returns the deletion if there are more.
    fn complete(mut self, step: DeletionStep) -> Option<Self> {
        let is_left = |closed: &ClosedWorker| !step.sessions.contains(&closed.live.id);
        self.closed.retain(is_left);
        for id in step.sessions {
            self.stage = DeletionStage::Final;
            // A caller that loaded it in between has a session that no longer exists.
            if let Some(loaded) = self.registry.remove(id) {
                loaded.close();
            }
            if let Some(on_deleted) = &self.on_deleted {
                on_deleted(id);
            }
        }
        if !step.is_last {
            return Some(self);
        }
        self.live.close();
        self.report(Ok(()));
        None
    }

    /// Ends a deletion after an error, or returns it to be repeated.
    fn fail(mut self, error: &AppendError) -> Option<Self> {
        let answer = Error::from(error);
        match (self.stage, error) {
            (DeletionStage::Waiting, _) => self.report(Err(answer)),
            (_, AppendError::Refused(_) | AppendError::Damaged(_)) => {
                // The session is loaded again when it is next asked for, as a damaged one, and can be
                // deleted once the damage is repaired.
                tracing::error!(session = %self.live.id, %error, "a session could not be deleted");
                self.live.quarantine();
                self.forget(&self.live);
                self.give_up_workers();
                self.report(Err(self.live.services.quarantine_error()));
            }
            (DeletionStage::Joined, _) => self.report(Err(answer)),
            (DeletionStage::Restorable, _) => {
                self.forget(&self.live);
                self.report(Err(answer));
            }
            (DeletionStage::Final, _) => return Some(self),
        }
        None
    }

    /// Makes the workers that were closed loadable again. The turns of one that was in use are open in
    /// its log until the next start ends them: until then it counts as damaged, like its parent.
    fn give_up_workers(&mut self) {
        for worker in std::mem::take(&mut self.closed) {
            if self.is_loaded(&worker.live) && !worker.is_restorable {
                worker.live.quarantine();
            }
            self.forget(&worker.live);
        }
    }

    /// Removes a closed session from memory, unless it was loaded again.
    fn forget(&self, live: &Arc<LiveSession>) {
        if self.is_loaded(live) {
            self.registry.remove(live.id);
        }
    }

    /// Whether `live` is the session in memory. It stays that while it is referenced: only the writer
    /// removes such a session.
    fn is_loaded(&self, live: &Arc<LiveSession>) -> bool {
        let loaded = self.registry.get(live.id);
        loaded.is_some_and(|loaded| Arc::ptr_eq(&loaded, live))
    }

    /// Tells the caller how the deletion ended.
    fn report(&mut self, result: Result<(), Error>) {
        if let Some(done) = self.done.take() {
            let _ = done.send(result);
        }
    }
}

/// The deletions that wait for the writer.
#[derive(Default)]
pub(crate) struct DeletionQueue {
    state: Mutex<DeletionQueueState>,
}

#[derive(Default)]
struct DeletionQueueState {
    waiting: VecDeque<SessionDeletion>,
    /// True while the writer has a task that will take from `waiting`.
    is_scheduled: bool,
}

impl DeletionQueue {
    /// Queues a deletion; the writer begins it with all that wait when it comes to them.
    pub(crate) fn push(self: &Arc<Self>, services: &Arc<SessionServices>, new: SessionDeletion) {
        let mut state = self.state.lock();
        state.waiting.push_back(new);
        let is_scheduled = std::mem::replace(&mut state.is_scheduled, true);
        drop(state);
        if !is_scheduled {
            self.schedule(services);
        }
    }

    fn schedule(self: &Arc<Self>, services: &Arc<SessionServices>) {
        let (queue, weak_services) = (self.clone(), Arc::downgrade(services));
        // What is left after an error is repeated by the same task.
        let mut batch = Vec::new();
        services.writer.run(Box::new(move || {
            let Some(services) = weak_services.upgrade() else {
                return Ok(());
            };
            if batch.is_empty() {
                batch = queue.take_batch(&services);
            }
            queue.run_batch(&services, &mut batch)
        }));
    }

    fn take_batch(self: &Arc<Self>, services: &Arc<SessionServices>) -> Vec<SessionDeletion> {
        let mut state = self.state.lock();
        let count = state.waiting.len().min(BATCH);
        let batch = state.waiting.drain(..count).collect();
        state.is_scheduled = !state.waiting.is_empty();
        let is_scheduled = state.is_scheduled;
        drop(state);
        if is_scheduled {
            self.schedule(services);
        }
        batch
    }

    /// Runs one step of each deletion in `batch`, in one transaction. After an error, `batch` has the
    /// deletions that the writer repeats.
    fn run_batch(
        self: &Arc<Self>,
        services: &Arc<SessionServices>,
        batch: &mut Vec<SessionDeletion>,
    ) -> Result<(), AppendError> {
        let mut probe = DiskProbe {
            services,
            is_writable: false,
        };
        let mut result = Ok(());
        let mut steps = Vec::new();
        let mut sessions = 0;
        for mut deletion in std::mem::take(batch) {
            if sessions >= BATCH {
                self.push(services, deletion);
                continue;
            }
            match deletion.prepare(&mut probe) {
                Ok(Some(step)) => {
                    sessions += step.sessions.len();
                    steps.push((deletion, step));
                }
                Ok(None) => {}
                Err(error) => {
                    batch.extend(deletion.fail(&error));
                    result = result.and(retryable(error));
                }
            }
        }
        let deleted = self.delete_steps(services, steps, batch);
        if sessions > 0 {
            retention::remove_deleted(services);
        }
        result.and(deleted)
    }

    /// Deletes the sessions of `steps` in one transaction; one by one if that is refused.
    fn delete_steps(
        self: &Arc<Self>,
        services: &Arc<SessionServices>,
        steps: Vec<(SessionDeletion, DeletionStep)>,
        failed: &mut Vec<SessionDeletion>,
    ) -> Result<(), AppendError> {
        let sessions = steps.iter().flat_map(|(_, step)| &step.sessions);
        let sessions: Vec<SessionId> = sessions.copied().collect();
        // In the step that deletes the session itself, after its workers.
        let last_steps = steps.iter().filter(|(_, step)| step.is_last);
        let audit: Vec<AuditEntry> = last_steps
            .filter_map(|(deletion, _)| deletion.audit.clone())
            .collect();
        let deleted = match sessions.is_empty() {
            true => Ok(()),
            false => services.store.delete(&sessions, &audit),
        };
        match deleted {
            Ok(()) => {
                for (deletion, step) in steps {
                    if let Some(deletion) = deletion.complete(step) {
                        self.push(services, deletion);
                    }
                }
                Ok(())
            }
            Err(AppendError::Refused(_) | AppendError::Damaged(_)) if steps.len() > 1 => {
                let mut result = Ok(());
                for step in steps {
                    let deleted = self.delete_steps(services, vec![step], failed);
                    result = result.and(deleted);
                }
                result
            }
            Err(error) => {
                for (deletion, _) in steps {
                    failed.extend(deletion.fail(&error));
                }
                retryable(error)
            }
        }
    }
}

/// The result for the writer: what was refused is answered and not repeated.
fn retryable(error: AppendError) -> Result<(), AppendError> {
    match error {
        AppendError::Refused(_) | AppendError::Damaged(_) => Ok(()),
        error => Err(error),
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

#[cfg(test)]
mod tests;

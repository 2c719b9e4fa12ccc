//! A worker at work, seen from the turn that delegated its task: it can be stopped and waited for,
//! and returns its answer at the end.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use turnwire_event::TurnId;
use turnwire_event::body::delegate::{DelegateEnd, SummaryDetail};
use turnwire_event::code::{FailureMode, StopOutcome};
use turnwire_event::port::WorkerEnd;

use crate::error::Error;
use crate::live::child_tasks::ChildTasks;
use crate::live::session::LiveSession;
use crate::read::worker_result::{PARENT_CANCELLED, WorkerResult, worker_result};
use crate::turn::cancel::request::{CancelOutcome, request_cancel};

/// The time between two attempts to read the end of a worker while too many reads wait.
const READ_DELAY: Duration = Duration::from_millis(20);
/// The attempts to read the end of a worker: two seconds, well within the wait for a stop.
const READ_ATTEMPTS: usize = 100;

/// The session and turn of a worker at work.
#[derive(Clone)]
pub(crate) struct WorkerRun {
    pub(crate) live: Arc<LiveSession>,
    pub(crate) turn: TurnId,
    /// What the event of the worker's end shows of its answer.
    pub(crate) detail: SummaryDetail,
    /// Cancelled when the worker's turn has ended.
    pub(crate) ended: CancellationToken,
}

/// Stops the worker when dropped: its parent's tool call no longer waits for it.
pub(crate) struct WorkerGuard(pub(crate) WorkerRun);

impl Drop for WorkerGuard {
    fn drop(&mut self) {
        if !self.0.ended.is_cancelled() {
            self.0.stop(PARENT_CANCELLED);
        }
    }
}

/// Waits for the end of a worker, records it in `siblings`, the child tasks of the parent's turn, and
/// stops the worker when its parent turn stops, also if the parent's tool call never drops its
/// [`WorkerGuard`].
pub(crate) async fn watch_worker(
    started: oneshot::Receiver<WorkerRun>,
    parent_stop: CancellationToken,
    siblings: Arc<ChildTasks>,
) -> StopOutcome {
    // The sender was dropped: the worker never started.
    let Ok(worker) = started.await else {
        return StopOutcome::Stopped;
    };
    tokio::select! {
        biased;
        () = worker.ended.cancelled() => {}
        () = parent_stop.cancelled() => {
            worker.stop(PARENT_CANCELLED);
        }
    }
    worker.record_end(&siblings).await
}

impl WorkerRun {
    pub(crate) fn stop(&self, reason: &str) -> CancelOutcome {
        request_cancel(&self.live, self.turn, "system", reason)
    }

    /// Waits until the worker's terminal is durable; fails if the session was closed before.
    pub(crate) async fn wait_until_durable(&self) -> Result<(), Error> {
        self.ended.cancelled().await;
        self.live.all_committed().await
    }

    /// How the worker ended, for its parent's model. The end is recorded in `siblings`.
    pub(crate) async fn end(&self, siblings: &ChildTasks) -> WorkerEnd {
        match self.read_and_record(siblings).await {
            Some((_, result)) => result.into_end(),
            None => WorkerEnd::Failed(FailureMode::Error),
        }
    }

    /// How the worker ended, for the cancel receipt of its parent. The end is recorded in `siblings`.
    async fn record_end(self, siblings: &ChildTasks) -> StopOutcome {
        match self.read_and_record(siblings).await {
            Some((Some(end), _)) => end.stop_outcome(),
            // Stopped with its parent, or deleted.
            Some((None, _)) | None => StopOutcome::Stopped,
        }
    }

    async fn read_and_record(
        &self,
        siblings: &ChildTasks,
    ) -> Option<(Option<DelegateEnd>, WorkerResult)> {
        let result = self.read_result().await.inspect_err(|error| {
            tracing::warn!(session = %self.live.id, %error, "the end of a worker could not be read");
        });
        let result = result.ok()?;
        let end = result.delegate_end(self.live.id, self.detail);
        if let Some(end) = &end {
            siblings.record_worker_end(end.clone());
        }
        Some((end, result))
    }

    async fn read_result(&self) -> Result<WorkerResult, Error> {
        self.wait_until_durable().await?;
        let (id, turn) = (self.live.id, self.turn);
        let upto = self.live.tail();
        let (share, store) = (self.live.turn_read_share(), &self.live.services.store);
        for _ in 1..READ_ATTEMPTS {
            let read = share.read(store.clone(), move |store| {
                worker_result(store, id, turn, upto)
            });
            match read.await {
                Err(Error::TooManyReads) => tokio::time::sleep(READ_DELAY).await,
                read => return read,
            }
        }
        Err(Error::TooManyReads)
    }
}

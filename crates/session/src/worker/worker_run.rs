//! A worker at work, seen from the turn that delegated its task: it can be stopped and waited for,
//! and returns its answer at the end.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use turnwire_event::body::turn::{TurnCancelled, TurnCompleted};
use turnwire_event::code::{FailureMode, StopOutcome, TurnStatus};
use turnwire_event::port::WorkerEnd;
use turnwire_event::{EventType, Message, Role, TurnId};
use turnwire_log::MessageView;

use crate::error::Error;
use crate::live::session::LiveSession;
use crate::turn::cancel::request::{CancelOutcome, request_cancel};

/// Bytes of a worker's answer that its parent gets: dozens of pages, far more than anyone reads.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// The newest messages that are searched for the worker's answer: only results of tools that were
/// called in the same message can follow it.
const LAST_MESSAGES: usize = 64;
/// The cancel reason of a worker whose parent turn stops.
const PARENT_CANCELLED: &str = "parent_cancelled";
/// The cancel reason of a turn that exceeds its time.
const TURN_TIMEOUT: &str = "turn_timeout";

/// The session and turn of a worker at work.
#[derive(Clone)]
pub(crate) struct WorkerRun {
    pub(crate) live: Arc<LiveSession>,
    pub(crate) turn: TurnId,
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

/// Waits for the end of a worker, and stops it when its parent turn stops, also if the parent's
/// tool call never drops its [`WorkerGuard`].
pub(crate) async fn watch_worker(
    started: oneshot::Receiver<WorkerRun>,
    parent_stop: CancellationToken,
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
    worker.stop_outcome().await
}

/// The type and payload of the terminal of a worker's turn, and the text of its answer.
type WorkerResult = (EventType, serde_json::Value, String);

impl WorkerRun {
    pub(crate) fn stop(&self, reason: &str) -> CancelOutcome {
        request_cancel(&self.live, self.turn, "system", reason)
    }

    /// Waits until the worker's terminal is durable; fails if the session was closed before.
    pub(crate) async fn wait_until_durable(&self) -> Result<(), Error> {
        self.ended.cancelled().await;
        self.live.all_committed().await
    }

    /// How the worker ended, for the cancel receipt of its parent.
    async fn stop_outcome(self) -> StopOutcome {
        match self.read_result().await {
            Ok((EventType::TurnCompleted, ..)) => StopOutcome::Finished,
            // A deleted worker has stopped too.
            Ok(_) | Err(_) => StopOutcome::Stopped,
        }
    }

    /// How the worker ended, for its parent's model. `timed_out` if the parent stopped it for
    /// taking too long.
    pub(crate) async fn end(&self, timed_out: bool) -> WorkerEnd {
        let result = self.read_result().await;
        result
            .and_then(|result| worker_end(result, timed_out))
            .unwrap_or_else(|error| {
                tracing::warn!(session = %self.live.id, %error, "the end of a worker could not be read");
                WorkerEnd::Failed(FailureMode::Error)
            })
    }

    async fn read_result(&self) -> Result<WorkerResult, Error> {
        self.wait_until_durable().await?;
        let (id, turn) = (self.live.id, self.turn);
        let upto = self.live.tail();
        let (share, store) = (self.live.turn_read_share(), &self.live.services.store);
        let read = share.read(store.clone(), move |store| {
            let (_, row) = store.turn(turn)?.ok_or(Error::TurnNotFound)?;
            let view = MessageView::Clients;
            let newest = store.messages(id, view, upto, None, LAST_MESSAGES.into())?;
            let mut newest = newest.rows.into_iter().rev();
            let answer = newest.find(|message| is_answer(message, turn));
            let (kind, payload) = row.terminal.ok_or(Error::Internal)?;
            Ok((kind, payload, answer.map(answer_text).unwrap_or_default()))
        });
        read.await
    }
}

/// Whether a message is text of the agent in this turn.
fn is_answer(message: &Message, turn: TurnId) -> bool {
    let of_agent = message.turn_id == turn && message.role == Role::Assistant;
    of_agent && !message.text().trim().is_empty()
}

fn answer_text(message: Message) -> String {
    let mut text = message.text();
    text.truncate(text.floor_char_boundary(ANSWER_BYTES_MAX));
    text
}

fn worker_end((kind, payload, text): WorkerResult, timed_out: bool) -> Result<WorkerEnd, Error> {
    if kind == EventType::TurnCancelled {
        let cancelled: TurnCancelled = parse_terminal(payload)?;
        let timed_out = timed_out || cancelled.reason == TURN_TIMEOUT;
        return Ok(WorkerEnd::Failed(if timed_out {
            FailureMode::Timeout
        } else {
            FailureMode::CancelledByUser
        }));
    }
    let completed: TurnCompleted = parse_terminal(payload)?;
    // A paused worker needs an approval, which its parent turn cannot wait for.
    if completed.status == TurnStatus::Paused {
        return Ok(WorkerEnd::Failed(FailureMode::Error));
    }
    let success = completed.status != TurnStatus::Failed;
    Ok(WorkerEnd::Completed { success, text })
}

fn parse_terminal<T: serde::de::DeserializeOwned>(payload: serde_json::Value) -> Result<T, Error> {
    serde_json::from_value(payload).map_err(|error| {
        tracing::error!(%error, "the stored terminal of a turn is invalid");
        Error::Internal
    })
}

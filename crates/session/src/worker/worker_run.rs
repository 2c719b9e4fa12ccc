//! A worker at work, as the turn that gave it the work sees it: stopped, waited for, and what it
//! answered at its end.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use turnwire_event::body::turn::{Cancelled, Completed};
use turnwire_event::code::{FailureMode, StopOutcome, TurnStatus};
use turnwire_event::port::WorkerEnd;
use turnwire_event::{EventType, Message, Role, TurnId};
use turnwire_log::{Store, View};

use crate::cancel::request::{self, CancelOutcome};
use crate::error::Error;
use crate::live::session::LiveSession;
use crate::store_read::blocking;

/// Bytes of a worker's answer that are handed on: dozens of pages, far more than anyone reads.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// The newest messages among which its last words are looked for: after them can only be results
/// of tools that were asked for in the same breath.
const LAST_MESSAGES: usize = 64;
/// Why a turn is cancelled whose parent does not wait for it any more.
const PARENT_CANCELLED: &str = "parent_cancelled";
/// Why any turn is cancelled that takes too long.
const TURN_TIMEOUT: &str = "turn_timeout";

/// A worker at work.
#[derive(Clone)]
pub(crate) struct WorkerRun {
    pub(crate) live: Arc<LiveSession>,
    pub(crate) turn: TurnId,
    pub(crate) over: CancellationToken,
}

/// Stops the worker when nobody waits for it any more.
pub(crate) struct WorkerGuard(pub(crate) WorkerRun);

impl Drop for WorkerGuard {
    fn drop(&mut self) {
        if !self.0.over.is_cancelled() {
            self.0.stop(PARENT_CANCELLED);
        }
    }
}

/// What becomes of a worker, which stops with the turn it works for, also where that turn's own
/// work does not let go of it.
pub(crate) async fn watched(
    begun: oneshot::Receiver<WorkerRun>,
    stop: CancellationToken,
) -> StopOutcome {
    // Dropped without a word, the worker never was.
    let Ok(job) = begun.await else {
        return StopOutcome::Stopped;
    };
    tokio::select! {
        biased;
        () = job.over.cancelled() => {}
        () = stop.cancelled() => {
            job.stop(PARENT_CANCELLED);
        }
    }
    job.outcome().await
}

/// The end of a worker's turn, as stored, and its last words.
struct WorkerResult {
    terminal: (EventType, serde_json::Value),
    text: String,
}

impl WorkerRun {
    pub(crate) fn stop(&self, reason: &str) -> CancelOutcome {
        request::request(&self.live, self.turn, "system", reason)
    }

    /// Waits until its terminal is durable; an error if there is none, and never will be.
    pub(crate) async fn settled(&self) -> Result<(), Error> {
        self.over.cancelled().await;
        let sequencer = &self.live.sequencer;
        Ok(sequencer.committed(sequencer.last().seq).await?)
    }

    /// What became of it, for those who stopped it.
    async fn outcome(self) -> StopOutcome {
        let stored = self.stored().await;
        match stored.map(|stored| stored.terminal.0) {
            Ok(EventType::TurnCompleted) => StopOutcome::Finished,
            // Deleted, it has stopped too.
            Ok(_) | Err(_) => StopOutcome::Stopped,
        }
    }

    /// How it ended; `late` if it was stopped for taking too long.
    pub(crate) async fn ended(&self, late: bool) -> WorkerEnd {
        let stored = self.stored().await;
        stored
            .and_then(|stored| end(stored, late))
            .unwrap_or_else(|error| {
                tracing::warn!(session = %self.live.id, %error, "a worker has no end");
                WorkerEnd::Failed(FailureMode::Error)
            })
    }

    async fn stored(&self) -> Result<WorkerResult, Error> {
        self.settled().await?;
        let (id, turn) = (self.live.id, self.turn);
        let upto = self.live.ring.look(|_, tail, _| tail);
        blocking(self.live.house.store(), move |store: &dyn Store| {
            let (_, row) = store.turn(turn)?.ok_or(Error::TurnNotFound)?;
            let newest = store.messages(id, View::Clients, upto, None, LAST_MESSAGES)?;
            let mut newest = newest.into_iter().rev().map(|stored| stored.message);
            let last = newest.find(|message| speaks(message, turn));
            Ok(WorkerResult {
                terminal: row.terminal.ok_or(Error::Internal)?,
                text: last.map(words).unwrap_or_default(),
            })
        })
        .await
    }
}

/// Whether a message is words of the agent in the turn.
fn speaks(message: &Message, turn: TurnId) -> bool {
    let of_turn = message.turn_id == turn && message.role == Role::Assistant;
    of_turn && !message.text().trim().is_empty()
}

fn words(message: Message) -> String {
    let mut text = message.text();
    text.truncate(text.floor_char_boundary(ANSWER_BYTES_MAX));
    text
}

fn end(stored: WorkerResult, late: bool) -> Result<WorkerEnd, Error> {
    let WorkerResult {
        terminal: (kind, payload),
        text,
    } = stored;
    if kind == EventType::TurnCancelled {
        let cancelled: Cancelled = read(payload)?;
        let late = late || cancelled.reason == TURN_TIMEOUT;
        return Ok(WorkerEnd::Failed(if late {
            FailureMode::Timeout
        } else {
            FailureMode::CancelledByUser
        }));
    }
    let completed: Completed = read(payload)?;
    let success = match completed.status {
        TurnStatus::Ok | TurnStatus::Degraded => true,
        TurnStatus::Failed => false,
        // It waits for a person, and the turn it works for cannot.
        TurnStatus::Paused => return Ok(WorkerEnd::Failed(FailureMode::Error)),
    };
    Ok(WorkerEnd::Completed { success, text })
}

fn read<T: serde::de::DeserializeOwned>(payload: serde_json::Value) -> Result<T, Error> {
    serde_json::from_value(payload).map_err(|error| {
        tracing::error!(%error, "a terminal cannot be read");
        Error::Internal
    })
}

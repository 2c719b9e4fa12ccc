//! How the turn of a worker ended: read from its terminal and its messages, for the agent that
//! delegated the task and for the events of its parent.

use turnwire_event::body::delegate::{
    DelegateCompleted, DelegateEnd, DelegateFailed, SummaryDetail,
};
use turnwire_event::body::turn::{TurnCancelled, TurnCompleted};
use turnwire_event::code::{FailureMode, TurnStatus};
use turnwire_event::port::WorkerEnd;
use turnwire_event::{Actor, EventType, Message, Position, Role, SessionId, TurnId, TypeSet};
use turnwire_log::{EventSelection, MessageView, ReadLimits, Store};

use crate::error::Error;

/// Bytes of a worker's answer that its parent gets: dozens of pages, far more than anyone reads.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// The newest messages that are searched for the worker's answer: only results of tools that were
/// called in the same message can follow it.
const LAST_MESSAGES: usize = 64;
/// The cancel reason of a worker whose parent turn stops.
pub(crate) const PARENT_CANCELLED: &str = TurnCancelled::PARENT_CANCELLED;
/// The cancel reason of a worker that takes too long.
pub(crate) const DELEGATE_TIMEOUT: &str = TurnCancelled::DELEGATE_TIMEOUT;
/// The cancel reason of a turn that exceeds its time.
const TURN_TIMEOUT: &str = TurnCancelled::TURN_TIMEOUT;
const IDLE_TIMEOUT: &str = TurnCancelled::IDLE_TIMEOUT;
/// The reasons of turns that the server ended with all others.
const SERVER_ENDED: [&str; 2] = [
    TurnCompleted::SERVER_SHUTDOWN,
    TurnCompleted::SERVER_RESTART,
];
/// The read of the event that starts a worker's task, or of the request to cancel it.
const FIRST_EVENT: ReadLimits = ReadLimits {
    events: 1,
    bytes: usize::MAX,
    scanned: 10_000,
};

/// How the turn of a worker ended, and the text of its answer.
#[derive(Clone)]
pub(crate) struct WorkerResult {
    terminal: Terminal,
    answer: String,
}

/// The terminal of a turn.
#[derive(Clone)]
enum Terminal {
    Completed(Box<TurnCompleted>),
    Cancelled {
        end: TurnCancelled,
        /// The server requested the cancel: only then [`TurnCancelled::reason`] is one of its own.
        by_server: bool,
    },
}

/// Reads how `turn`, the task of the worker `id`, ended; its messages up to `upto` are stored.
pub(crate) fn worker_result(
    store: &dyn Store,
    id: SessionId,
    turn: TurnId,
    upto: Position,
) -> Result<WorkerResult, Error> {
    let (_, row) = store.turn(turn)?.ok_or(Error::TurnNotFound)?;
    let view = MessageView::Clients;
    let newest = store.messages(id, view, upto, None, LAST_MESSAGES.into())?;
    let mut newest = newest.rows.into_iter().rev();
    let answer = newest.find(|message| is_answer(message, turn));
    let (kind, payload) = row.terminal.ok_or(Error::Internal)?;
    let terminal = match kind {
        EventType::TurnCancelled => Terminal::Cancelled {
            end: parse_terminal(payload)?,
            by_server: is_cancelled_by_server(store, id, (turn, row.started))?,
        },
        _ => Terminal::Completed(Box::new(parse_terminal(payload)?)),
    };
    Ok(WorkerResult {
        terminal,
        answer: answer.map(answer_text).unwrap_or_default(),
    })
}

/// Whether the server, not a person, requested the cancel of a turn of the worker `id` that began at
/// `started`.
fn is_cancelled_by_server(
    store: &dyn Store,
    id: SessionId,
    (turn, started): (TurnId, Position),
) -> Result<bool, Error> {
    let tail = store.tail(id)?.ok_or(Error::SessionNotFound)?;
    let types = TypeSet::EMPTY.with(EventType::TurnCancelRequested);
    let requests = EventSelection::all().with_turn(turn).with_types(types);
    let after = tail.low.max(started.seq.prev());
    let page = store.read(id, after, tail.seq, &requests, FIRST_EVENT)?;
    let request = page.events.first();
    Ok(request.is_some_and(|event| event.head.actor == Actor::SYSTEM))
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

impl WorkerResult {
    /// How the worker ended, for its parent's model.
    pub(crate) fn into_end(self) -> WorkerEnd {
        let completed = match self.terminal {
            Terminal::Completed(completed) => completed,
            Terminal::Cancelled { end, by_server } => {
                let is_late =
                    [DELEGATE_TIMEOUT, TURN_TIMEOUT, IDLE_TIMEOUT].contains(&&*end.reason);
                return WorkerEnd::Failed(match by_server && is_late {
                    true => FailureMode::Timeout,
                    false => FailureMode::CancelledByUser,
                });
            }
        };
        // A paused worker needs an approval, which its parent turn cannot wait for.
        if completed.status == TurnStatus::Paused {
            return WorkerEnd::Failed(FailureMode::Error);
        }
        WorkerEnd::Completed {
            success: completed.status != TurnStatus::Failed,
            text: self.answer,
        }
    }

    /// The end of the worker `id`, as its parent's log reports it. `None` if the worker did not end
    /// by itself: it was stopped with its parent, or the server ended both.
    pub(crate) fn delegate_end(&self, id: SessionId, detail: SummaryDetail) -> Option<DelegateEnd> {
        let is_stopped = match &self.terminal {
            Terminal::Cancelled { end, by_server } => *by_server && end.reason == PARENT_CANCELLED,
            Terminal::Completed(completed) => {
                let reason = completed.reason.as_deref();
                reason.is_some_and(|reason| SERVER_ENDED.contains(&reason))
            }
        };
        if is_stopped {
            return None;
        }
        let end = match self.clone().into_end() {
            WorkerEnd::Completed { success, text } => DelegateEnd::Completed(DelegateCompleted {
                worker_session_id: id,
                success,
                summary: detail.summary(&text),
            }),
            WorkerEnd::Failed(failure_mode) => DelegateEnd::Failed(DelegateFailed {
                worker_session_id: id,
                failure_mode,
            }),
        };
        Some(end)
    }
}

/// The end of a worker that a crash kept its parent from reporting. `None` if the worker never began,
/// or did not end by itself.
pub(crate) fn stored_worker_end(
    store: &dyn Store,
    id: SessionId,
) -> Result<Option<DelegateEnd>, Error> {
    let Some(tail) = store.tail(id)? else {
        return Ok(None);
    };
    let starts = EventSelection::all().with_types(TypeSet::EMPTY.with(EventType::TurnStarted));
    let page = store.read(id, tail.low, tail.seq, &starts, FIRST_EVENT)?;
    let Some(turn) = page.events.first().and_then(|event| event.head.turn) else {
        return Ok(None);
    };
    let result = worker_result(store, id, turn, tail.position())?;
    // Who delegated is not stored: the size tells nothing that a sub-agent would keep private.
    Ok(result.delegate_end(id, SummaryDetail::Size))
}

fn parse_terminal<T: serde::de::DeserializeOwned>(payload: serde_json::Value) -> Result<T, Error> {
    serde_json::from_value(payload).map_err(|error| {
        tracing::error!(%error, "the stored terminal of a turn is invalid");
        Error::Internal
    })
}

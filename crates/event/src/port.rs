//! Ports: what a producer of turns may ask of the house, and what the house asks of a producer.
//!
//! Producers know no session, log, hub or wire. They emit through `Emitter`, read through
//! `History`, and are stopped by being dropped.

mod wards;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::actor::Actor;
use crate::body::Body;
use crate::body::approval::Answer;
use crate::body::turn::{TurnError, Versions};
use crate::code::{FailureMode, LlmErrorClass, ToolType, TurnKind, TurnStatus};
use crate::content::{ContentBlock, StopReason, Usage};
use crate::envelope::{Render, Trace};
use crate::id::{CallId, EpisodeId, MessageId, Owner, SessionId, ToolUseId, TurnId};
use crate::kind::EventType;
use crate::message::{Kept, Message};
use crate::position::Position;
use crate::row::NewMessage;

pub use wards::{Part, Ward, WardId, Wards};

/// A boxed future, so that ports stay objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One event handed over, with a message row that commits with it if there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Emission {
    /// Who did it.
    pub actor: Actor,
    /// What happened.
    pub body: Body,
    /// What was said with it.
    pub message: Option<NewMessage>,
    /// The span it happened in; the turn's own if not given.
    pub trace: Option<Arc<Trace>>,
    /// With the end of a model call: what the provider calls its answer. For the call's row alone.
    pub provider_response_id: Option<String>,
}

impl Emission {
    /// An event alone.
    pub fn new(actor: Actor, body: Body) -> Self {
        Self {
            actor,
            body,
            message: None,
            trace: None,
            provider_response_id: None,
        }
    }
}

/// Why an event was not taken. A producer that is refused has nothing left to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The turn has its terminal.
    #[error("the turn has ended")]
    Ended,
    /// The turn was asked to stop; nothing new may start.
    #[error("the turn was asked to stop")]
    Cancelled,
    /// The session takes no events: deleted, quarantined, or the store is gone.
    #[error("the session takes no events")]
    Unavailable,
}

/// Why `emit` did not take an event now.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EmitError {
    /// The outbox is full; the event comes back. Await `ready`, then try again.
    #[error("the outbox is full")]
    Full(Box<Emission>),
    /// It never will be taken.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// How a model call ended, for the message it wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageEnd {
    /// Which call.
    pub call_id: CallId,
    /// Which message.
    pub message_id: MessageId,
    /// Why the model stopped; ignored when the call failed.
    pub stop_reason: StopReason,
    /// What it cost.
    pub usage: Usage,
    /// Why the call failed, if it did.
    pub failure: Option<LlmErrorClass>,
    /// The kinds of the tools that the message asks for.
    pub tools: Vec<(ToolUseId, ToolType)>,
    /// What the provider wants back with the message.
    pub kept: Kept,
    /// What the provider calls its answer. For the call's row alone.
    pub provider_response_id: Option<String>,
}

/// Where a turn's events go. Every implementation keeps the order of calls.
pub trait Emitter: Send + Sync {
    /// Hands over one event; returns its place at once, before it is durable.
    fn emit(&self, emission: Emission) -> Result<Position, EmitError>;

    /// Ends the message in flight: `message.complete` and the call's end together. Gives back
    /// the content, which is the sum of the deltas.
    fn complete(&self, end: MessageEnd) -> Result<Vec<ContentBlock>, Refusal>;

    /// Resolves when the outbox has room.
    fn ready(&self) -> BoxFuture<'_, ()>;

    /// Resolves when what stands at `at` is durable.
    fn committed(&self, at: Position) -> BoxFuture<'_, Result<(), Refusal>>;
}

/// How much of a session's past a model is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryBudget {
    /// At most so many messages.
    pub messages_max: usize,
    /// At most so many bytes of their JSON.
    pub bytes_max: usize,
}

/// The history could not be read; the cause is in the server's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the history could not be read")]
pub struct HistoryError;

/// A session's past.
pub trait History: Send + Sync {
    /// The newest messages that fit the budget, oldest first, from the start of a turn; messages
    /// of the turn at hand are the last.
    fn recent(&self, budget: HistoryBudget) -> BoxFuture<'_, Result<Vec<Message>, HistoryError>>;

    /// The newest messages of turns before this one: first those that every sub-agent is shown,
    /// which have a bound of their own, then those of the sub-agent `agent` that fit the budget,
    /// from the start of a turn. Each oldest first.
    fn of_agent(
        &self,
        agent: &str,
        budget: HistoryBudget,
    ) -> BoxFuture<'_, Result<Vec<Message>, HistoryError>>;
}

/// What a worker is to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its session, as `Delegate::reserve` gave it.
    pub worker_session_id: SessionId,
    /// The tool use that asks.
    pub tool_use_id: ToolUseId,
    /// The agent that works.
    pub agent: String,
    /// What it is told.
    pub task: String,
    /// How long it may take.
    pub limit: Duration,
    /// The span it happens in.
    pub trace: Option<Arc<Trace>>,
}

/// How a worker's turn ended; its terminal is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerEnd {
    /// By itself.
    Completed {
        /// Whether it did what it was to do.
        success: bool,
        /// What it said last.
        text: String,
    },
    /// Otherwise.
    Failed(FailureMode),
}

/// Why there is no worker to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoWorker {
    /// The turn has had as many as it may.
    #[error("the turn has had as many workers as it may")]
    TooMany,
    /// The worker would be the worker of a worker of a worker.
    #[error("workers are nested as deep as they may be")]
    TooDeep,
    /// There are no sessions to be had here.
    #[error("there are no workers here")]
    Unavailable,
}

/// Work given to another session, for agents that delegate.
pub trait Delegate: Send + Sync {
    /// The id of a worker session that does not exist yet, so that it can be told before it does.
    fn reserve(&self) -> Result<SessionId, NoWorker>;

    /// Makes the worker's session, has it do `task`, and waits for its end. Dropping the future
    /// stops the worker; the session of the turn has charge of it as a ward from the start.
    fn run(&self, task: Task) -> BoxFuture<'static, WorkerEnd>;

    /// The workers that `tool_use_id` is told to have and not told to have lost, as when its
    /// `run` was dropped. Resolves when nothing of them runs any more.
    fn left(&self, tool_use_id: ToolUseId) -> BoxFuture<'static, Vec<SessionId>> {
        let _ = tool_use_id;
        Box::pin(std::future::ready(Vec::new()))
    }
}

/// Takes charge of nothing and has no workers: for work without a session.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Wards for Nobody {
    fn take(&self, _: Ward) -> Result<(), Refusal> {
        Ok(())
    }
}

impl Delegate for Nobody {
    fn reserve(&self) -> Result<SessionId, NoWorker> {
        Err(NoWorker::Unavailable)
    }

    fn run(&self, _: Task) -> BoxFuture<'static, WorkerEnd> {
        Box::pin(std::future::ready(WorkerEnd::Failed(FailureMode::Error)))
    }
}

/// What a turn goes on with that a person's word had held up.
#[derive(Clone, Debug, PartialEq)]
pub struct Resumed {
    /// The turn that paused.
    pub turn_id: TurnId,
    /// What the person said to its questions.
    pub answers: Vec<Answer>,
}

/// What a turn is about.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnInput {
    /// Its session.
    pub session_id: SessionId,
    /// Its id.
    pub turn_id: TurnId,
    /// Whose it is; never changes within the turn.
    pub owner: Owner,
    /// What it is for.
    pub kind: TurnKind,
    /// The agent that answers, where it is not the one that speaks for all.
    pub agent: Option<String>,
    /// What it goes on with.
    pub resumed: Option<Resumed>,
    /// What the session has cost before it, in US dollars.
    pub cost_usd: f64,
    /// The language the person wants.
    pub locale: String,
    /// What the person said.
    pub content: Vec<ContentBlock>,
    /// Whatever the client sent along.
    pub metadata: Map<String, Value>,
    /// Where the person is, if the client says.
    pub location: Option<String>,
    /// The episode it belongs to.
    pub episode_id: EpisodeId,
    /// The caller's trace.
    pub trace: Option<Arc<Trace>>,
    /// How long it may take, from when its work begins.
    pub turn_timeout: Duration,
}

/// What a producer is given for one turn.
#[derive(Clone)]
pub struct TurnContext {
    /// What it is about.
    pub input: TurnInput,
    /// Where its events go.
    pub emitter: Arc<dyn Emitter>,
    /// What was said before.
    pub history: Arc<dyn History>,
    /// Who sees to what outlives a future.
    pub wards: Arc<dyn Wards>,
    /// Who has workers.
    pub delegate: Arc<dyn Delegate>,
}

/// How a producer ended a turn; the session makes the terminal of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How it went.
    pub status: TurnStatus,
    /// What failed.
    pub error: Option<TurnError>,
    /// Why, in one word, where the error alone does not say: which bound of the turn was met.
    pub reason: Option<String>,
}

/// The work of one turn. Dropping the future stops everything it started.
pub type Work = Box<dyn FnOnce(TurnContext) -> BoxFuture<'static, Outcome> + Send>;

/// A turn bound to everything it will use, before its first model call: whatever changes in the
/// meantime, this turn keeps what it was bound to (S2-001).
pub struct Bound {
    /// What it is bound to.
    pub versions: Versions,
    /// How much of the session's past it is shown.
    pub history: HistoryBudget,
    /// What every event of it passes.
    pub gate: Box<dyn Gate>,
    /// What answers it.
    pub work: Work,
}

/// Something that can answer turns: an agent here, a relay to one elsewhere, a mission.
pub trait Producer: Send + Sync {
    /// The most history any of its turns reads.
    fn history(&self) -> HistoryBudget;

    /// Binds one turn.
    fn bind(&self, input: &TurnInput) -> Bound;
}

/// Where a gate puts what goes on: the event and what the rendering policy made of it.
pub type Onward<'a> = &'a mut dyn FnMut(Emission, Option<Render>);

/// The interceptor of one turn: every event passes it on its way to the log, in order, under one
/// lock. It may stamp an event, write its words, and hold it back a little; it never swallows one.
pub trait Gate: Send {
    /// Takes one event; what goes on now, in order, goes to `out`. What is held goes on later,
    /// before any event that it must stand before.
    fn take(&mut self, emission: Emission, now: Instant, out: Onward<'_>);

    /// When something held is due, if anything is held.
    fn due(&self) -> Option<Instant>;

    /// Whether `take` must be told exactly when an event of this type comes: it may be held for a
    /// time, or something is held. Asked for every delta, so it must cost next to nothing.
    fn times(&self, kind: EventType) -> bool {
        let _ = kind;
        true
    }

    /// Lets go of what is due at `now`. What waits for more of its message, such as a word that
    /// is half there, stays.
    fn lapse(&mut self, now: Instant, out: Onward<'_>) {
        let _ = now;
        self.flush(out);
    }

    /// Lets go of everything held. Called before a message or the turn ends.
    fn flush(&mut self, out: Onward<'_>);
}

//! Port traits between the session and the producer of a turn.
//!
//! Producers know no session, log, hub or wire. They emit through [`EventEmitter`], read through
//! [`HistoryReader`], and stop when their future is dropped.

mod child_task;
mod turn_tracer;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::actor::Actor;
use crate::body::Body;
use crate::body::approval::ResolvedApproval;
use crate::body::delegate::{DelegateEnd, SummaryDetail};
use crate::body::turn::{BoundVersions, TurnError};
use crate::code::{CancelCode, FailureMode, LlmErrorClass, ToolType, TurnKind, TurnStatus};
use crate::content::{ContentBlock, StopReason, TokenUsage};
use crate::envelope::RenderDecision;
use crate::id::{CallId, EpisodeId, MessageId, Owner, SessionId, ToolUseId, TurnId, UpstreamId};
use crate::json_object::JsonObject;
use crate::kind::EventType;
use crate::message::{Message, ProviderState};
use crate::metric::SubAgentVerticals;
use crate::position::Position;
use crate::row::NewMessage;
use crate::trace::{TraceContext, TracePropagation};

pub use child_task::{ChildTask, ChildTaskId, ChildTaskRegistry, TaskPermit};
pub use turn_tracer::{
    CommittedBatch, MeasuredSpan, SpanValue, StartingTurn, TracedEvent, TurnTracer,
};

/// A boxed future, so that the port traits stay object-safe.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One event for [`EventEmitter::emit`], with the message row that commits with it, if any.
#[derive(Clone, Debug, PartialEq)]
pub struct Emission {
    pub actor: Actor,
    pub body: Body,
    /// The message row that commits with the event.
    pub message: Option<NewMessage>,
    /// The span of the event; `None` for the turn's own.
    pub trace: Option<Arc<TraceContext>>,
    /// The sub-agent whose tool is the actor.
    pub sub_agent_id: Option<Arc<str>>,
    /// The provider's id of the answer, with the end of a model call. Stored in the call's row only.
    pub provider_response_id: Option<String>,
}

impl Emission {
    /// An event without a message row.
    pub fn new(actor: Actor, body: Body) -> Self {
        Self {
            actor,
            body,
            message: None,
            trace: None,
            sub_agent_id: None,
            provider_response_id: None,
        }
    }

    /// The sub-agent that the event counts for: the actor itself, or the one whose tool it is.
    pub fn sub_agent(&self) -> Option<&str> {
        self.actor.sub_agent().or(self.sub_agent_id.as_deref())
    }
}

/// Why an event was refused. A producer that gets a refusal must stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmitRefusal {
    /// The turn has its terminal event.
    #[error("the turn has ended")]
    Ended,
    /// The turn is being cancelled; no new work may start.
    #[error("the turn is being cancelled")]
    Cancelled,
    /// The session accepts no events: deleted, quarantined, or the log is closed.
    #[error("the session accepts no events")]
    Unavailable,
}

/// Why [`EventEmitter::emit`] did not accept an event.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EmitError {
    /// The outbox is full; the event is returned. Await [`EventEmitter::ready`], then try again.
    #[error("the outbox is full")]
    Full(Box<Emission>),
    /// The event will never be accepted.
    #[error(transparent)]
    Refused(#[from] EmitRefusal),
}

/// The end of a model call and of the message that it streamed, for [`EventEmitter::complete`].
#[derive(Clone, Debug, PartialEq)]
pub struct MessageEnd {
    pub call_id: CallId,
    pub message_id: MessageId,
    /// Why the model stopped; ignored if the call failed.
    pub stop_reason: StopReason,
    pub usage: TokenUsage,
    /// Why the call failed; `None` if it succeeded.
    pub failure: Option<LlmErrorClass>,
    /// The kinds of the tools that the message requests.
    pub tools: Vec<(ToolUseId, ToolType)>,
    /// Provider state to send back with the message in later requests.
    pub provider_state: ProviderState,
    /// The provider's id of the answer. Stored in the call's row only.
    pub provider_response_id: Option<String>,
}

/// Accepts the events of one turn. Every implementation keeps the order of calls.
pub trait EventEmitter: Send + Sync {
    /// Accepts one event and returns its position at once, before the event is durable.
    fn emit(&self, emission: Emission) -> Result<Position, EmitError>;

    /// Ends the streaming message: `message.complete` and the call's end together. Returns
    /// the content, which is the concatenation of the deltas.
    fn complete(&self, end: MessageEnd) -> Result<Vec<ContentBlock>, EmitRefusal>;

    /// Reports what the running call `call_id` has used so far. Not an event: the session writes the
    /// newest report into the end of a call that is stopped.
    fn report_usage(&self, call_id: CallId, usage: TokenUsage) {
        let _ = (call_id, usage);
    }

    /// Records a span that was measured where it happened; see [`MeasuredSpan`]. Not an event.
    fn record_span(&self, span: MeasuredSpan) {
        let _ = span;
    }

    /// Reserves the id that an upstream gave to the response of this turn. False if another turn of
    /// the owner has it.
    fn claim_response_id<'a>(&'a self, id: &'a UpstreamId) -> BoxFuture<'a, bool> {
        let _ = id;
        // An emitter that cannot reserve an id has none to give.
        Box::pin(std::future::ready(false))
    }

    /// Resolves when the outbox has room.
    fn ready(&self) -> BoxFuture<'_, ()>;

    /// Resolves when the event at `at` is durable.
    fn committed(&self, at: Position) -> BoxFuture<'_, Result<(), EmitRefusal>>;
}

/// Emits `emission` as soon as the outbox has room. An event is accepted or refused, never lost and
/// never accepted twice.
pub async fn deliver(
    emitter: &dyn EventEmitter,
    mut emission: Emission,
) -> Result<Position, EmitRefusal> {
    loop {
        match emitter.emit(emission) {
            Ok(position) => return Ok(position),
            Err(EmitError::Refused(refusal)) => return Err(refusal),
            Err(EmitError::Full(returned)) => {
                emission = *returned;
                emitter.ready().await;
            }
        }
    }
}

/// How much of a session's history a model sees; see [`HistoryReader`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryBudget {
    /// The maximum number of messages.
    pub messages_max: usize,
    /// The maximum size of the messages, in bytes of JSON.
    pub bytes_max: usize,
}

/// The history could not be read; the cause is in the server's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the history could not be read")]
pub struct HistoryError;

/// Reads the messages of earlier turns.
pub trait HistoryReader: Send + Sync {
    /// The newest messages within the budget, oldest first, starting at the beginning of a turn;
    /// messages of the current turn are last.
    fn recent(&self, budget: HistoryBudget) -> BoxFuture<'_, Result<Vec<Message>, HistoryError>>;

    /// The newest messages of earlier turns: first the notes for every sub-agent,
    /// which have their own limit, then those of the sub-agent `agent` within the budget,
    /// starting at the beginning of a turn. Each part is oldest first.
    fn of_agent(
        &self,
        agent: &str,
        budget: HistoryBudget,
    ) -> BoxFuture<'_, Result<Vec<Message>, HistoryError>>;
}

/// The work that a turn delegates to a worker session, for [`WorkerLauncher::run`].
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerTask {
    /// The worker's session, from [`WorkerLauncher::create`].
    pub worker_session_id: SessionId,
    /// The tool use that delegates.
    pub tool_use_id: ToolUseId,
    /// The instruction for the worker.
    pub task: String,
    /// The time limit of the worker.
    pub limit: Duration,
    /// What the event of the worker's end shows of its answer.
    pub detail: SummaryDetail,
    /// The span of the worker's turn, below that of the tool.
    pub trace: Option<TraceContext>,
    /// What the trace has beside its ids.
    pub propagation: TracePropagation,
}

/// How a worker's turn ended, as [`WorkerLauncher::run`] reports it; its terminal is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerEnd {
    /// The turn ended without a cancel.
    Completed {
        /// True if the turn did not fail.
        success: bool,
        /// The text of the worker's last message.
        text: String,
    },
    /// The turn was cancelled or timed out, or the worker could not run.
    Failed(FailureMode),
}

/// Why [`WorkerLauncher::create`] refused a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkerRefusal {
    /// The turn has reached its limit of workers.
    #[error("the turn has reached its limit of workers")]
    TooMany,
    /// The worker would exceed the nesting limit.
    #[error("workers are nested as deep as the limit allows")]
    TooDeep,
    /// This host has no sessions for workers.
    #[error("workers are not available")]
    Unavailable,
}

/// Starts worker sessions for agents that delegate.
pub trait WorkerLauncher: Send + Sync {
    /// Creates the session of a worker that runs `agent`. The session is durable when the future
    /// resolves, so that an event may name it.
    fn create(&self, agent: &str) -> BoxFuture<'static, Result<SessionId, WorkerRefusal>>;

    /// Deletes the session of a worker that no event has named.
    fn discard(&self, worker: SessionId) {
        let _ = worker;
    }

    /// Runs `task` in the session of the worker, and waits for its end. Dropping the future cancels
    /// the worker; from the start it is a child task of the turn.
    fn run(&self, task: WorkerTask) -> BoxFuture<'static, WorkerEnd>;

    /// The ends of the workers of `tool_use_id` whose start was reported and whose end was not, as
    /// when its [`WorkerLauncher::run`] was dropped. Resolves when all of them have ended; those that
    /// did not end by themselves have failed with `stopped`.
    fn left(
        &self,
        tool_use_id: ToolUseId,
        stopped: FailureMode,
    ) -> BoxFuture<'static, Vec<DelegateEnd>> {
        let _ = (tool_use_id, stopped);
        Box::pin(std::future::ready(Vec::new()))
    }
}

/// Ignores child tasks and has no workers: for work outside of a session.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoChildTasks;

impl ChildTaskRegistry for NoChildTasks {
    fn track(&self, _: ChildTask) -> Result<(), EmitRefusal> {
        Ok(())
    }
}

impl WorkerLauncher for NoChildTasks {
    fn create(&self, _: &str) -> BoxFuture<'static, Result<SessionId, WorkerRefusal>> {
        Box::pin(std::future::ready(Err(WorkerRefusal::Unavailable)))
    }

    fn run(&self, _: WorkerTask) -> BoxFuture<'static, WorkerEnd> {
        Box::pin(std::future::ready(WorkerEnd::Failed(FailureMode::Error)))
    }
}

/// The paused turn that a resumed turn continues.
#[derive(Clone, Debug, PartialEq)]
pub struct ResumeInput {
    pub turn_id: TurnId,
    /// The decisions on its approval requests.
    pub answers: Vec<ResolvedApproval>,
}

/// The input of a turn, for its [`TurnProducer`].
#[derive(Clone, Debug, PartialEq)]
pub struct TurnInput {
    pub session_id: SessionId,
    pub turn_id: TurnId,
    /// The owner; constant within the turn.
    pub owner: Owner,
    pub kind: TurnKind,
    /// The agent that answers; `None` for the orchestrator.
    pub agent: Option<String>,
    /// The paused turn to continue, for a resumed turn.
    pub resumed: Option<ResumeInput>,
    /// The cost of the session before this turn, in US dollars.
    pub cost_usd: f64,
    pub locale: String,
    pub content: Vec<ContentBlock>,
    /// Free-form data from the client.
    pub metadata: JsonObject,
    /// The user's location, if the client sends it.
    pub location: Option<String>,
    pub episode_id: EpisodeId,
    /// The caller's trace context.
    pub trace: Option<Arc<TraceContext>>,
    /// What the trace has beside its ids, for the services that the turn calls.
    pub propagation: TracePropagation,
    /// The time limit of the turn, from the start of its work.
    pub turn_timeout: Duration,
    /// The kind of message as a label of metrics; empty for a turn of a person.
    pub dm_type: String,
}

/// The handles that a [`TurnProducer`] gets for one turn.
#[derive(Clone)]
pub struct TurnContext {
    pub input: TurnInput,
    pub emitter: Arc<dyn EventEmitter>,
    pub history: Arc<dyn HistoryReader>,
    /// Tracks processes and workers, which outlive a dropped future.
    pub child_tasks: Arc<dyn ChildTaskRegistry>,
    pub delegate: Arc<dyn WorkerLauncher>,
}

/// How a [`TurnProducer`] ended a turn; the session derives the terminal event from the outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnOutcome {
    pub status: TurnStatus,
    /// The failure, for a failed or degraded turn.
    pub error: Option<TurnError>,
    /// The limit that ended the turn, where the error alone is ambiguous.
    pub reason: Option<String>,
    /// Set if the turn did not end by itself: an agent elsewhere was silent for too long, or says
    /// that it was stopped. The turn ends as cancelled then.
    pub cancelled: Option<CancelCode>,
}

/// The work of one turn. Dropping the future stops everything it started.
pub type TurnWork = Box<dyn FnOnce(TurnContext) -> BoxFuture<'static, TurnOutcome> + Send>;

/// A turn bound to everything it will use, before its first model call: whatever changes in the
/// meantime, this turn keeps what it was bound to (S2-001).
pub struct BoundTurn {
    pub versions: BoundVersions,
    /// The experiments that the turn is part of, as a label of metrics.
    pub experiment_arm: String,
    /// The verticals of the sub-agents that the turn may call, as labels of metrics.
    pub verticals: SubAgentVerticals,
    pub history: HistoryBudget,
    /// The agent elsewhere that answers, as [`TurnStarted`](crate::body::turn::TurnStarted) names it.
    pub relayed_to: Option<String>,
    /// The [`EventGate`] that every event of the turn passes.
    pub gate: Box<dyn EventGate>,
    /// The future that answers the turn.
    pub work: TurnWork,
}

/// Answers turns: a local agent, a relay to a remote one, or a mission.
pub trait TurnProducer: Send + Sync {
    /// The largest history budget of any of its turns.
    fn history(&self) -> HistoryBudget;

    /// Binds one turn to the configuration that is current now.
    fn bind(&self, input: &TurnInput) -> BoundTurn;
}

/// The output of a [`EventGate`]: the event and its rendering decision.
pub type GateOutput<'a> = &'a mut dyn FnMut(Emission, Option<RenderDecision>);

/// The interceptor of one turn: every event passes it on the way to the log, in order, under one
/// lock. It may stamp an event, set its text, and delay it briefly; it never drops one.
pub trait EventGate: Send {
    /// Processes one event and passes what is ready to `out`, in order. Delayed events follow later,
    /// before any event that they must precede.
    fn take(&mut self, emission: Emission, now: Instant, out: GateOutput<'_>);

    /// The time at which the next delayed event is due; `None` if no event is delayed.
    fn due(&self) -> Option<Instant>;

    /// True if [`EventGate::take`] needs the exact time for an event of this type, because it may delay the
    /// event or another one is delayed. Called for every delta, so it must be cheap.
    fn times(&self, kind: EventType) -> bool {
        let _ = kind;
        true
    }

    /// Releases the events that are due at `now`. Text that waits for the rest of its message, such
    /// as an incomplete word, stays.
    fn lapse(&mut self, now: Instant, out: GateOutput<'_>) {
        let _ = now;
        self.flush(out);
    }

    /// Releases all delayed events. Called before a message or the turn ends.
    fn flush(&mut self, out: GateOutput<'_>);
}

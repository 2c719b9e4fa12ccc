//! The closed sets of codes that clients may see. Exception text, hosts and paths never are.

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident, $case:literal { $($(#[$vdoc:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = $case)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }
    };
}

codes!(/// How a turn ended that was not cancelled.
TurnStatus, "snake_case" {
    /// As asked.
    Ok,
    /// With something missing.
    Degraded,
    /// Not at all.
    Failed,
    /// Waiting for a person; another turn goes on.
    Paused,
});

codes!(/// What a turn is for.
TurnKind, "snake_case" {
    /// A person talks.
    Chat,
    /// A mission's leg.
    Mission,
    /// A worker session's turn.
    Worker,
    /// Started by a timer.
    Scheduled,
});

codes!(/// Who or what began a turn.
#[derive(Default)]
Origin, "snake_case" {
    /// A person, now.
    #[default]
    Chat,
    /// A timer, for a person.
    Scheduled,
    /// A message service, for a person.
    Dm,
});

codes!(/// What went wrong, as clients are told.
ErrorCode, "SCREAMING_SNAKE_CASE" {
    /// Something inside.
    InternalError,
    /// The model's provider said: too much.
    RateLimitError,
    /// A sub-agent failed.
    SubAgentFailed,
    /// An enricher answered with an error.
    CcsEnvelopeError,
    /// Some of several sub-agents failed.
    PartialFanOut,
});

codes!(/// Why an enricher failed. A word outside the set becomes `UpstreamUnavailable` (D-29).
Reason, "snake_case" {
    /// What it asks is not there.
    UpstreamUnavailable,
    /// What it asks took too long.
    UpstreamTimeout,
    /// Too much of what it asks was missing.
    UpstreamPartial,
    /// Not for this person.
    Unauthorized,
    /// It did not understand.
    InvalidRequest,
});

codes!(/// Why a sub-agent failed.
AgentErrorClass, "snake_case" {
    /// The turn was cancelled.
    Cancelled,
    /// No answer in time.
    Timeout,
    /// It could not be made: no such model.
    Instantiation,
    /// Its model failed.
    Model,
    /// A tool failed beyond repair.
    Tool,
    /// Something inside.
    Internal,
});

codes!(/// How a sub-agent did.
DispatchOutcome, "snake_case" {
    /// It answered.
    Success,
    /// It failed.
    Failure,
    /// It answered without data that it wanted.
    StatusError,
    /// The turn was cancelled, and whatever it had is thrown away.
    Discarded,
});

codes!(/// How many sub-agents were asked for, beside how many may run.
#[derive(Default)]
CapBehavior, "snake_case" {
    /// Fewer.
    #[default]
    Within,
    /// As many.
    At,
    /// More.
    Over,
});

codes!(/// How a slot of a plan step stands.
SlotStatus, "snake_case" {
    /// Not begun.
    Pending,
    /// At work.
    InProgress,
    /// It gave something, more will come.
    Partial,
    /// It gave its result.
    Success,
    /// It failed.
    Error,
    /// Its deadline passed.
    Timeout,
});

codes!(/// How a plan step ended.
StepStatus, "snake_case" {
    /// Every slot gave its result.
    Success,
    /// Some did.
    PartialFailure,
    /// None did.
    Failed,
    /// It was ended from outside.
    Terminated,
});

codes!(/// Why a turn was cancelled, as client wires tell it.
CancelCode, "SCREAMING_SNAKE_CASE" {
    /// The relay heard nothing for too long.
    IdleTimeout,
    /// Someone asked.
    RequestCancelled,
});

codes!(/// What a turn was doing when it was cancelled.
Phase, "snake_case" {
    /// Choosing the model.
    Route,
    /// Streaming from the model.
    Llm,
    /// Running tools.
    Tool,
    /// Between the model's answer and the tools.
    Seam,
    /// Waiting for a worker.
    Delegate,
    /// Waiting for an upstream that said nothing.
    Idle,
    /// Waiting for its turn.
    Queued,
});

codes!(/// Why a model call failed.
LlmErrorClass, "snake_case" {
    /// The turn was cancelled.
    Cancelled,
    /// The provider said: too much.
    RateLimited,
    /// No answer in time.
    Timeout,
    /// The connection broke.
    Transport,
    /// The provider answered with an error.
    Provider,
    /// Something inside.
    Internal,
});

codes!(/// Why a tool failed.
ToolErrorClass, "snake_case" {
    /// The turn was cancelled.
    Cancelled,
    /// No result in time.
    Timeout,
    /// The enricher's envelope said so.
    EnvelopeError,
    /// The result was for someone else.
    PrincipalMismatch,
    /// The model's input does not fit the tool.
    InvalidInput,
    /// Something inside.
    Internal,
});

codes!(/// What kind of tool it is.
ToolType, "snake_case" {
    /// Behind MCP.
    Mcp,
    /// Behind the connector.
    Ccs,
    /// A sub-agent as a tool.
    SubAgent,
    /// In process.
    Function,
    /// Over HTTP.
    Http,
    /// A process.
    Process,
    /// On the client.
    Client,
    /// A component.
    Render,
    /// A worker session.
    Delegate,
});

codes!(/// Why a worker did not get to its end.
FailureMode, "snake_case" {
    /// It was stopped: by someone who watches it, or with the turn that gave it its work.
    CancelledByUser,
    /// It took too long.
    Timeout,
    /// Something broke.
    Error,
});

codes!(/// The answer to the question whether a tool may act.
Decision, "snake_case" {
    /// It may.
    Approve,
    /// It may not.
    Reject,
});

codes!(/// Where a question whether a tool may act stands.
ApprovalState, "snake_case" {
    /// Without an answer.
    Pending,
    /// It may.
    Approved,
    /// It may not, or the conversation went on without an answer.
    Rejected,
});

codes!(/// What became of something that ran when the cancel came.
StopOutcome, "snake_case" {
    /// It was stopped.
    Stopped,
    /// It finished by itself before it could be stopped.
    Finished,
    /// Its result is thrown away; the call may still be in flight.
    Discarded,
    /// It had to be killed.
    Killed,
});

codes!(/// What a line of the cancel receipt is about.
ReceiptKind, "snake_case" {
    /// A model call.
    Llm,
    /// A tool.
    Tool,
    /// A sub-agent.
    Subagent,
    /// A worker session.
    Worker,
    /// A process.
    Process,
});

codes!(/// What becomes of a turn when those who watch it leave.
OnDisconnect, "snake_case" {
    /// It goes on.
    Continue,
    /// It is cancelled, after the grace.
    Cancel,
});

codes!(/// What becomes of a new turn while its session is busy with another.
#[derive(Default)]
OnBusy, "snake_case" {
    /// It is refused.
    #[default]
    Reject,
    /// It waits, behind those that wait already.
    Enqueue,
    /// It is next: the running turn is asked to stop.
    Interrupt,
});

codes!(/// What a model call is for.
CallPurpose, "snake_case" {
    /// To decide what to do.
    Orchestrate,
    /// To say the answer.
    Compose,
    /// To work for the orchestrator.
    Subagent,
});

codes!(/// Where a model call stands.
CallState, "snake_case" {
    /// The provider was asked.
    Started,
    /// It answered as it should.
    Completed,
    /// It ended otherwise.
    Failed,
});

codes!(/// Where a turn stands, as REST tells it.
TurnState, "snake_case" {
    /// Accepted, waiting for the one before.
    Queued,
    /// At work.
    Running,
    /// Asked to stop.
    Cancelling,
    /// Ended.
    Completed,
    /// Ended by a cancel.
    Cancelled,
});

codes!(/// Where a tool call stands.
ToolState, "snake_case" {
    /// Asked for by the model.
    Pending,
    /// At work.
    Running,
    /// Done.
    Completed,
    /// Not done.
    Failed,
    /// Stopped.
    Cancelled,
});

//! The sets of codes that clients may see, all closed but [`Reason`]. They never carry exception
//! text, hosts or paths.

mod reason;
mod inner_type;

use serde::{Deserialize, Serialize};

pub use inner_type::{InnerType, Outward, STATUS_FRAME};
pub use reason::{Reason, ReasonToken};

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident, $case:literal { $($(#[$vdoc:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = $case)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        #[cfg(test)]
        impl CodeSet for $name {
            const ALL: &'static [Self] = &[$(Self::$variant),+];
        }
    };
}

/// A set of codes, for tests that compare it with its contract.
#[cfg(test)]
trait CodeSet: Sized + 'static {
    const ALL: &'static [Self];
}

/// The text of a code, or of any other value whose JSON is a string; otherwise the JSON.
pub fn code_name<T: Serialize>(code: &T) -> String {
    match serde_json::to_value(code) {
        Ok(serde_json::Value::String(name)) => name,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

codes!(/// How a turn ended without a cancel.
TurnStatus, "snake_case" {
    /// The turn answered completely.
    Ok,
    /// The turn answered, but some data or sub-agents failed.
    Degraded,
    /// The turn did not answer.
    Failed,
    /// The turn waits for approvals; a resumed turn continues it.
    Paused,
});

codes!(/// The kind of a turn.
TurnKind, "snake_case" {
    /// A message of a user.
    Chat,
    /// One part of a mission.
    Mission,
    /// A worker session's turn.
    Worker,
    /// Started by a scheduler.
    Scheduled,
});

codes!(/// The initiator of a turn.
#[derive(Default)]
Origin, "snake_case" {
    /// A user, in a conversation.
    #[default]
    Chat,
    /// A scheduler, on behalf of a user.
    Scheduled,
    /// A message service, on behalf of a user.
    Dm,
});

codes!(/// An act that the audit records.
AuditAction, "snake_case" {
    /// A scheduler asked for a turn; the outcome says whether there is one.
    JobFired,
    /// A job was paused.
    JobPaused,
    /// A paused job was resumed.
    JobResumed,
    /// A session was deleted with its workers.
    SessionDeleted,
    /// A person decided an approval.
    ApprovalDecided,
});

codes!(/// The outcome of an act that the audit records.
AuditOutcome, "snake_case" {
    /// The turn of a scheduler was accepted.
    Dispatched,
    /// The job of a scheduler is paused: there is no turn.
    SkippedPaused,
    /// The tool may run.
    Approved,
    /// The tool may not run.
    Rejected,
});

codes!(/// The code of a failure as clients see it.
ErrorCode, "SCREAMING_SNAKE_CASE" {
    /// A fault of the server.
    InternalError,
    /// The model's provider failed, did not answer, or refused the call.
    ModelUnavailable,
    /// The model provider's rate limit was exceeded.
    RateLimitError,
    /// A sub-agent of the turn failed.
    SubAgentFailed,
    /// A data service answered with an error.
    CcsEnvelopeError,
    /// Some of several sub-agents failed.
    PartialFanOut,
});

codes!(/// Why a sub-agent failed.
AgentErrorClass, "snake_case" {
    /// The turn was cancelled.
    Cancelled,
    /// The sub-agent exceeded its deadline.
    Timeout,
    /// The sub-agent could not be created, for example because its model does not exist.
    Instantiation,
    /// The sub-agent's model failed.
    Model,
    /// A tool failed and the failure cannot be corrected by the model.
    Tool,
    /// A fault of the server.
    Internal,
});

codes!(/// The outcome of a sub-agent.
DispatchOutcome, "snake_case" {
    /// The sub-agent gave its answer.
    Success,
    /// The sub-agent gave no answer.
    Failure,
    /// The sub-agent answered although a data service failed.
    StatusError,
    /// The turn was cancelled and the sub-agent's result was discarded.
    Discarded,
});

codes!(/// The number of requested sub-agents compared with the cap.
#[derive(Default, PartialOrd, Ord)]
CapBehavior, "snake_case" {
    /// Fewer than the cap.
    #[default]
    Within,
    /// Exactly as many as the cap.
    At,
    /// More than the cap.
    Over,
});

codes!(/// The state of a slot of a plan step.
SlotStatus, "snake_case" {
    /// The slot has not started.
    Pending,
    /// The sub-agent of the slot is running.
    InProgress,
    /// The slot has a first result; more will follow.
    Partial,
    /// The slot has its result.
    Success,
    /// The sub-agent of the slot failed.
    Error,
    /// The slot's deadline passed.
    Timeout,
});

codes!(/// How a plan step ended.
StepStatus, "snake_case" {
    /// Every slot has its result.
    Success,
    /// Some slots have their result.
    PartialFailure,
    /// No slot has a result.
    Failed,
    /// The step was ended from outside, for example by a cancel.
    Terminated,
});

codes!(/// Who decided that a turn is cancelled, as client wires report it (D-44).
#[derive(Default)]
CancelCode, "SCREAMING_SNAKE_CASE" {
    /// The server gave up: nothing happened for too long, or the turn took too long.
    IdleTimeout,
    /// A person or a client requested the cancel.
    #[default]
    RequestCancelled,
});

codes!(/// What a turn was doing when it was cancelled.
Phase, "snake_case" {
    /// Choosing the model of the turn.
    Route,
    /// Streaming from the model.
    Llm,
    /// Running the requested tools.
    Tool,
    /// Between the model's answer and the tools.
    Seam,
    /// Waiting for a worker.
    Delegate,
    /// Nothing that has a time limit of its own, or waiting for a silent upstream, for too long.
    Idle,
    /// Waiting in the session's queue.
    Queued,
});

codes!(/// Why a model call failed.
LlmErrorClass, "snake_case" {
    /// The turn was cancelled.
    Cancelled,
    /// The provider's rate limit was exceeded.
    RateLimited,
    /// The provider exceeded the deadline.
    Timeout,
    /// The connection to the provider failed.
    Transport,
    /// The provider answered with an error.
    Provider,
    /// A fault of the server.
    Internal,
});

codes!(/// Why a tool failed.
ToolErrorClass, "snake_case" {
    /// The turn was cancelled.
    Cancelled,
    /// The tool exceeded its deadline.
    Timeout,
    /// The enricher's envelope reports an error.
    EnvelopeError,
    /// The result belongs to another principal.
    PrincipalMismatch,
    /// The model's input does not satisfy the tool's schema.
    InvalidInput,
    /// The server did not run the tool: the message called more than the limit allows.
    NotExecuted,
    /// A fault of the server.
    Internal,
});

codes!(/// The kind of a tool.
ToolType, "snake_case" {
    /// A tool of an MCP server.
    Mcp,
    /// A data service behind the connector.
    Ccs,
    /// A sub-agent, called as a tool.
    SubAgent,
    /// A function inside the server.
    Function,
    /// A call of an HTTP endpoint.
    Http,
    /// A program that the server starts.
    Process,
    /// A tool that runs on the client.
    Client,
    /// A tool that renders a component.
    Render,
    /// A worker session that is started.
    Delegate,
});

codes!(/// Why a worker did not finish.
FailureMode, "snake_case" {
    /// The worker was cancelled, directly or with the turn that started it.
    CancelledByUser,
    /// The worker exceeded its time limit.
    Timeout,
    /// The worker or its server failed.
    Error,
});

codes!(/// A person's decision on an approval request.
Decision, "snake_case" {
    /// The tool may run.
    Approve,
    /// The tool must not run.
    Reject,
});

codes!(/// The state of an approval request.
ApprovalState, "snake_case" {
    /// No person has decided yet.
    Pending,
    /// A person approved the tool.
    Approved,
    /// Rejected by a person, or because the conversation continued without a decision.
    Rejected,
});

codes!(/// The outcome of work that was running when a cancel arrived.
StopOutcome, "snake_case" {
    /// The work was stopped.
    Stopped,
    /// The work finished by itself before it could be stopped.
    Finished,
    /// The result is discarded; the work may still be running.
    Discarded,
    /// The process was killed after its grace period.
    Killed,
});

codes!(/// The kind of work that a receipt line describes.
ReceiptKind, "snake_case" {
    /// One call of a model.
    Llm,
    /// One use of a tool.
    Tool,
    /// One invocation of a sub-agent.
    Subagent,
    /// One session of a worker.
    Worker,
    /// One process of a program.
    Process,
});

codes!(/// What happens to a turn when its last client disconnects.
OnDisconnect, "snake_case" {
    /// The turn continues without clients.
    Continue,
    /// The turn is cancelled after its grace period.
    Cancel,
});

codes!(/// What happens to a submitted turn while its session runs another.
#[derive(Default)]
OnBusy, "snake_case" {
    /// The submit is refused.
    #[default]
    Reject,
    /// The turn is appended to the queue.
    Enqueue,
    /// The running turn is cancelled and the new turn runs next.
    Interrupt,
});

codes!(/// The purpose of a model call.
CallPurpose, "snake_case" {
    /// Decide which tools and sub-agents to call.
    Orchestrate,
    /// Writes the final answer.
    Compose,
    /// Answer the orchestrator as a sub-agent.
    Subagent,
    /// Answer in place of an agent of this server: the agent runs elsewhere.
    Relay,
});

codes!(/// The state of a model call.
CallState, "snake_case" {
    /// The request was sent to the provider.
    Started,
    /// The provider answered completely.
    Completed,
    /// The call failed or was cancelled.
    Failed,
});

codes!(/// The state of a turn in the REST API.
TurnState, "snake_case" {
    /// Accepted, waiting in the queue.
    Queued,
    /// The turn is being answered.
    Running,
    /// A cancel was accepted; the turn has not ended yet.
    Cancelling,
    /// Ended without a cancel, also if it failed.
    Completed,
    /// Ended by a cancel.
    Cancelled,
});

codes!(/// The state of a tool call.
ToolState, "snake_case" {
    /// Requested by the model, not yet started.
    Pending,
    /// The tool is running now.
    Running,
    /// The tool returned its result.
    Completed,
    /// The tool failed or timed out.
    Failed,
    /// The tool was cancelled, rejected or not executed.
    Cancelled,
});

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that `words` are the codes of `T`, no more and no less, and are read as written.
    fn assert_codes<T: CodeSet + Serialize + serde::de::DeserializeOwned>(words: &[&str]) {
        let mut names: Vec<String> = T::ALL.iter().map(code_name).collect();
        let mut words = words.to_vec();
        names.sort();
        words.sort_unstable();
        assert_eq!(names, words);
        for word in words {
            let code: T =
                serde_json::from_value(word.into()).unwrap_or_else(|why| panic!("{word}: {why}"));
            assert_eq!(code_name(&code), word);
        }
    }

    //
    #[test]
    fn codes_have_the_words_of_their_contracts() {
        assert_codes::<TurnStatus>(&["ok", "degraded", "failed", "paused"]);
        assert_codes::<TurnKind>(&["chat", "mission", "worker", "scheduled"]);
        assert_codes::<CancelCode>(&["IDLE_TIMEOUT", "REQUEST_CANCELLED"]);
        assert_codes::<Phase>(&["route", "llm", "tool", "seam", "delegate", "idle", "queued"]);
        assert_codes::<FailureMode>(&["cancelled_by_user", "timeout", "error"]);
        assert_codes::<LlmErrorClass>(&[
            "cancelled",
            "rate_limited",
            "timeout",
            "transport",
            "provider",
            "internal",
        ]);
        assert_codes::<ErrorCode>(&[
            "INTERNAL_ERROR",
            "MODEL_UNAVAILABLE",
            "RATE_LIMIT_ERROR",
            "SUB_AGENT_FAILED",
            "CCS_ENVELOPE_ERROR",
            "PARTIAL_FAN_OUT",
        ]);
    }

    // D-21
    #[test]
    fn every_type_of_tool_has_its_word() {
        assert_codes::<ToolType>(&[
            "mcp",
            "ccs",
            "sub_agent",
            "function",
            "http",
            "process",
            "client",
            "render",
            "delegate",
        ]);
    }
}

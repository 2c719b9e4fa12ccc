//! The open work in a snapshot: what the events up to its position have started and not ended.

use serde::{Deserialize, Serialize};
use turnwire_event::body::delegate::DelegateStarted;
use turnwire_event::body::stream::ToolUseInputDelta;
use turnwire_event::body::tool::ToolCalled;
use turnwire_event::code::ToolType;
use turnwire_event::fold::OpenWork;
use turnwire_event::fold::open_work::Running;
use turnwire_event::{Actor, InvocationId, Position, SessionId, Timestamp, ToolUseId, TurnId};

use crate::rest::approval::ApprovalRecord;

/// The event that started a piece of open work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StartEvent {
    pub event_id: Position,
    pub turn_id: TurnId,
    /// The agent, tool or worker that the event names as its actor.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub actor: Actor,
    /// When the work started.
    pub timestamp: Timestamp,
}

impl<T> From<&Running<T>> for StartEvent {
    fn from(running: &Running<T>) -> Self {
        Self {
            event_id: running.at,
            turn_id: running.turn_id,
            actor: running.actor.clone(),
            timestamp: running.time,
        }
    }
}

/// A running tool: the payload of its `tool.called`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpenToolCall {
    #[serde(flatten)]
    pub started: StartEvent,
    pub tool_use_id: ToolUseId,
    pub tool_name: String,
    pub tool_type: ToolType,
    /// The tool's input, shortened.
    pub input_summary: String,
}

/// A running sub-agent, without the context of its `subagent.started`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpenSubagent {
    #[serde(flatten)]
    pub started: StartEvent,
    pub invocation_id: InvocationId,
    pub sub_agent_id: String,
    /// The tool use that called the sub-agent.
    pub tool_use_id: ToolUseId,
    /// The plan step that the invocation belongs to.
    pub plan_step_id: String,
}

/// A running worker: the payload of its `delegate.started`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpenWorker {
    #[serde(flatten)]
    pub started: StartEvent,
    /// The session that the worker runs in.
    pub worker_session_id: SessionId,
    /// The tool use that started the worker.
    pub tool_use_id: ToolUseId,
    /// The worker's task, shortened.
    pub task_summary: String,
}

/// An approval without a decision; it may belong to a turn that has ended as paused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpenApproval {
    /// The turn that requested the approval.
    pub turn_id: TurnId,
    #[serde(flatten)]
    pub approval: ApprovalRecord,
}

/// The open work of a session in a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SnapshotWork {
    /// The running tools, in the order of their calls.
    pub tools: Vec<OpenToolCall>,
    /// The running sub-agents, in the order of their start.
    pub sub_agents: Vec<OpenSubagent>,
    /// The running workers, in the order of their start.
    pub workers: Vec<OpenWorker>,
    /// The approvals that wait for a decision, in the order of their requests.
    pub approvals: Vec<OpenApproval>,
    /// The inputs of tool uses in the streaming message that are not complete, each as one delta
    /// with the raw text so far: later `tool.use_input_delta` events append to it.
    pub inputs: Vec<ToolUseInputDelta>,
}

impl SnapshotWork {
    /// The work as a client sees it; hidden work only if the client receives hidden events.
    pub fn new(work: OpenWork, inputs: Vec<ToolUseInputDelta>, includes_hidden: bool) -> Self {
        let is_shown = |is_hidden: bool| includes_hidden || !is_hidden;
        let tools = work
            .tools
            .into_iter()
            .filter(|tool| is_shown(tool.is_hidden));
        let sub_agents = work.sub_agents.into_iter();
        let sub_agents = sub_agents.filter(|agent| is_shown(agent.is_hidden));
        let workers = work.workers.into_iter();
        let workers = workers.filter(|worker| is_shown(worker.is_hidden));
        Self {
            tools: tools.map(OpenToolCall::from).collect(),
            sub_agents: sub_agents
                .map(|agent| OpenSubagent {
                    started: StartEvent::from(&agent),
                    invocation_id: agent.started.invocation_id,
                    sub_agent_id: agent.started.sub_agent_id,
                    tool_use_id: agent.started.tool_use_id,
                    plan_step_id: agent.started.plan_step_id,
                })
                .collect(),
            workers: workers.map(OpenWorker::from).collect(),
            approvals: work
                .approvals
                .into_iter()
                .map(|row| OpenApproval {
                    turn_id: row.turn_id,
                    approval: row.into(),
                })
                .collect(),
            inputs,
        }
    }
}

impl From<Running<ToolCalled>> for OpenToolCall {
    fn from(tool: Running<ToolCalled>) -> Self {
        Self {
            started: StartEvent::from(&tool),
            tool_use_id: tool.started.tool_use_id,
            tool_name: tool.started.tool_name,
            tool_type: tool.started.tool_type,
            input_summary: tool.started.input_summary,
        }
    }
}

impl From<Running<DelegateStarted>> for OpenWorker {
    fn from(worker: Running<DelegateStarted>) -> Self {
        Self {
            started: StartEvent::from(&worker),
            worker_session_id: worker.started.worker_session_id,
            tool_use_id: worker.started.tool_use_id,
            task_summary: worker.started.task_summary,
        }
    }
}

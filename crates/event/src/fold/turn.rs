//! The open work of a turn: model calls, the streaming message, tools, workers, and the usage so far.

use crate::actor::{Actor, ActorKind};
use crate::body::turn::{CancelRequested, ReceiptLine};
use crate::body::{Body, family};
use crate::clock::Timestamp;
use crate::code::{FailureMode, Phase, ReceiptKind, StopOutcome, ToolType};
use crate::content::{ContentBlock, StopReason, TokenUsage};
use crate::fold::checkpoint::MessageCheckpoint;
use crate::fold::dispatch::DispatchState;
use crate::fold::message::MessageFold;
use crate::id::{ApprovalId, CallId, SessionId, ToolUseId, TurnId};
use crate::position::Position;

/// A tool use that the model requested and that has not ended.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenTool {
    pub id: ToolUseId,
    pub name: String,
    pub tool_type: ToolType,
    /// True once `tool.called` was emitted.
    pub called: bool,
}

/// A running model call.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenCall {
    pub id: CallId,
    /// The agent that calls.
    pub actor: Actor,
}

/// A worker that is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenDelegate {
    pub worker_session_id: SessionId,
    /// The tool use that started the worker.
    pub tool_use_id: ToolUseId,
    /// The position of its `delegate.started`.
    pub at: Position,
}

/// A turn that has not ended, with its open work.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenTurn {
    pub id: TurnId,
    /// The number of model calls that were started.
    pub calls: u32,
    /// The running model calls of the orchestrator and of sub-agents.
    pub in_call: Vec<OpenCall>,
    /// The streaming message; only the orchestrator streams.
    pub message: Option<MessageFold>,
    /// How much of the streaming [`message`](Self::message) is stored.
    pub checkpoint: MessageCheckpoint,
    /// The requested and running tools, in the order of the requests.
    pub tools: Vec<OpenTool>,
    /// Tool uses that wait for approval; they outlive the turn.
    pub waiting: Vec<ToolUseId>,
    /// The approval requests; a turn that does not end as paused withdraws them.
    pub approvals: Vec<ApprovalId>,
    pub delegates: Vec<OpenDelegate>,
    /// The [`DispatchState`]: sub-agents and steps.
    pub dispatch: DispatchState,
    /// The usage of the completed calls.
    pub usage: TokenUsage,
    /// The cancel request and its time, if one was accepted.
    pub cancel: Option<(CancelRequested, Timestamp)>,
    /// Receipt lines of work that ended by itself after the cancel.
    pub finished: Vec<ReceiptLine>,
}

impl OpenTurn {
    /// A turn without any work yet.
    pub fn new(id: TurnId) -> Self {
        Self {
            id,
            calls: 0,
            in_call: Vec::new(),
            message: None,
            checkpoint: MessageCheckpoint::default(),
            tools: Vec::new(),
            waiting: Vec::new(),
            approvals: Vec::new(),
            delegates: Vec::new(),
            dispatch: DispatchState::default(),
            usage: TokenUsage::default(),
            cancel: None,
            finished: Vec::new(),
        }
    }

    /// Applies one event of the turn.
    pub fn apply(&mut self, at: Position, time: Timestamp, actor: &Actor, body: &Body) {
        self.dispatch.apply(time, actor, body);
        match body {
            Body::TurnCancelRequested(cancel) => self.cancel = Some((cancel.clone(), time)),
            Body::LlmCallStarted(call) => {
                self.calls += 1;
                self.in_call.push(OpenCall {
                    id: call.call_id,
                    actor: actor.clone(),
                });
            }
            Body::LlmCallCompleted(call) => {
                self.usage = self.usage.plus(call.usage);
                self.in_call.retain(|open| open.id != call.call_id);
                self.finish(ReceiptKind::Llm, call.call_id.to_string(), time);
            }
            Body::LlmCallFailed(call) => {
                self.finish(ReceiptKind::Llm, call.call_id.to_string(), time);
                self.in_call.retain(|open| open.id != call.call_id);
                // A sub-agent's call writes no message that streams.
                if actor.kind() != ActorKind::Subagent {
                    self.message = None;
                }
            }
            Body::MessageStart(start) => {
                self.checkpoint = MessageCheckpoint::default();
                self.message = Some(MessageFold::new(
                    start.message_id,
                    self.id,
                    start.model.clone(),
                    at,
                    time,
                ));
            }
            family!(Delta) => {
                if let Some(message) = &mut self.message {
                    message.apply(at, time, body);
                }
            }
            Body::MessageComplete(end) => {
                self.message = None;
                // A message that was cut off requests nothing: its tools will never be called.
                if !matches!(end.stop_reason, StopReason::Cancelled | StopReason::Error) {
                    self.tools
                        .extend(end.final_content.iter().filter_map(pending));
                }
            }
            Body::ToolCalled(tool) => {
                match self.tools.iter_mut().find(|t| t.id == tool.tool_use_id) {
                    Some(open) => {
                        open.called = true;
                        open.tool_type = tool.tool_type;
                    }
                    None => self.tools.push(OpenTool {
                        id: tool.tool_use_id,
                        name: tool.tool_name.clone(),
                        tool_type: tool.tool_type,
                        called: true,
                    }),
                }
            }
            Body::ToolCompleted(tool) => self.end_tool(tool.tool_use_id, time),
            Body::ToolFailed(tool) => self.end_tool(tool.tool_use_id, time),
            Body::SubagentCompleted(end) => {
                self.finish(ReceiptKind::Subagent, end.sub_agent_id.clone(), time);
            }
            Body::SubagentFailed(end) => {
                self.finish(ReceiptKind::Subagent, end.sub_agent_id.clone(), time);
            }
            Body::DelegateStarted(worker) => self.delegates.push(OpenDelegate {
                worker_session_id: worker.worker_session_id,
                tool_use_id: worker.tool_use_id,
                at,
            }),
            Body::DelegateCompleted(end) => {
                self.end_delegate(end.worker_session_id, StopOutcome::Finished, time);
            }
            Body::DelegateFailed(end) => {
                let outcome = match end.failure_mode {
                    FailureMode::CancelledByUser => StopOutcome::Stopped,
                    FailureMode::Timeout | FailureMode::Error => StopOutcome::Finished,
                };
                self.end_delegate(end.worker_session_id, outcome, time);
            }
            Body::ApprovalRequested(question) => {
                self.waiting.push(question.tool_use_id);
                self.approvals.push(question.approval_id);
            }
            // A resumed turn requests the tools of the paused turn again.
            Body::TurnStarted(start) => {
                self.tools
                    .extend(start.answers.iter().map(|answer| OpenTool {
                        id: answer.tool_use_id,
                        name: answer.tool_name.clone(),
                        tool_type: answer.tool_type,
                        called: false,
                    }));
            }
            family!(Session | TurnEnd | Routing | Plan | Display | Bus | Mcp | Note)
            | Body::ApprovalResolved(_)
            | Body::DispatchTraced(_)
            | Body::SubagentStarted(_)
            | Body::StatusEmitted(_) => {}
        }
    }

    fn end_tool(&mut self, id: ToolUseId, time: Timestamp) {
        self.tools.retain(|tool| tool.id != id);
        self.finish(ReceiptKind::Tool, id.to_string(), time);
    }

    fn end_delegate(&mut self, id: SessionId, outcome: StopOutcome, time: Timestamp) {
        self.delegates.retain(|open| open.worker_session_id != id);
        self.end(ReceiptKind::Worker, id.to_string(), outcome, time);
    }

    /// True if the turn may end as its producer says: only tools that wait for approval are open.
    pub fn is_settled(&self) -> bool {
        self.in_call.is_empty()
            && self.message.is_none()
            && self
                .tools
                .iter()
                .all(|tool| self.waiting.contains(&tool.id))
            && self.delegates.is_empty()
            && self.dispatch.agents.is_empty()
            && self.dispatch.steps.is_empty()
    }

    /// Adds work that ended by itself after the cancel to the receipt.
    fn finish(&mut self, kind: ReceiptKind, id: String, time: Timestamp) {
        self.end(kind, id, StopOutcome::Finished, time);
    }

    fn end(&mut self, kind: ReceiptKind, id: String, outcome: StopOutcome, time: Timestamp) {
        if let Some((_, requested_at)) = self.cancel {
            self.finished.push(ReceiptLine {
                kind,
                id,
                outcome,
                ms: time.ms_since(requested_at),
            });
        }
    }

    /// The current phase, as the cancel cases distinguish them.
    pub fn phase(&self) -> Phase {
        let speaking = |call: &OpenCall| call.actor.kind() != ActorKind::Subagent;
        if self.in_call.iter().any(speaking) {
            Phase::Llm
        } else if !self.delegates.is_empty() {
            Phase::Delegate
        } else if self.tools.iter().any(|tool| tool.called) {
            Phase::Tool
        } else if self.calls == 0 {
            Phase::Route
        } else {
            Phase::Seam
        }
    }
}

/// The tool that a block requests, if it requests one.
fn pending(block: &ContentBlock) -> Option<OpenTool> {
    let ContentBlock::ToolUse { id, name, .. } = block else {
        return None;
    };
    Some(OpenTool {
        id: *id,
        name: name.clone(),
        tool_type: ToolType::Function,
        called: false,
    })
}

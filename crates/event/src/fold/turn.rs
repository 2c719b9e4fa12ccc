//! The open work of a turn: model calls, the streaming message, tools, workers, and the usage so far.

use crate::actor::{Actor, ActorKind};
use crate::body::approval::ApprovalRequested;
use crate::body::turn::{CancelRequested, ReceiptLine};
use crate::body::{Body, family};
use crate::clock::Timestamp;
use crate::code::{Phase, ReceiptKind, StopOutcome, ToolType};
use crate::content::{ContentBlock, StopReason, TokenUsage};
use crate::fold::checkpoint::MessageCheckpoint;
use crate::fold::dispatch::DispatchState;
use crate::fold::message::MessageFold;
use crate::id::{CallId, EpisodeId, InvocationId, SessionId, ToolUseId, TurnId, UpstreamId};
use crate::position::Position;

/// A tool use that the model requested and that has not ended.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenTool {
    pub id: ToolUseId,
    /// The id that an agent elsewhere gave to the call.
    pub upstream_id: Option<UpstreamId>,
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
    pub model: String,
    /// What the call has used so far, as [`EventEmitter::report_usage`] was told.
    ///
    /// [`EventEmitter::report_usage`]: crate::port::EventEmitter::report_usage
    pub usage: TokenUsage,
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
    /// For a relayed turn: the agent that answers and the episode, until its `route.decided`.
    pub unrouted: Option<(String, EpisodeId)>,
    /// The id that the upstream of a relayed turn gave to its response.
    pub response_id: Option<UpstreamId>,
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
    pub approvals: Vec<ApprovalRequested>,
    pub delegates: Vec<OpenDelegate>,
    /// The [`DispatchState`]: sub-agents and steps.
    pub dispatch: DispatchState,
    /// The usage of the calls that ended.
    pub usage: TokenUsage,
    /// The cancel request and its time, if one was accepted.
    pub cancel: Option<(CancelRequested, Timestamp)>,
    /// Receipt lines of work that ended by itself after the cancel.
    pub finished: Vec<ReceiptLine>,
    /// For a turn that a crash cut off in a model call: the last event whose text is stored.
    pub kept_until: Option<Position>,
}

impl OpenTurn {
    /// A turn without any work yet.
    pub fn new(id: TurnId) -> Self {
        Self {
            id,
            unrouted: None,
            response_id: None,
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
            kept_until: None,
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
                    model: call.model.clone(),
                    usage: TokenUsage::default(),
                });
            }
            Body::LlmCallCompleted(call) => {
                self.usage = self.usage.plus(call.usage);
                self.end_call(call.call_id, time);
            }
            Body::LlmCallFailed(call) => {
                self.usage = self.usage.plus(call.usage);
                self.end_call(call.call_id, time);
                // A sub-agent's call writes no message that streams.
                if actor.kind() != ActorKind::Subagent {
                    self.message = None;
                }
            }
            Body::MessageStart(start) => {
                self.checkpoint = MessageCheckpoint::default();
                let model = start.model.clone();
                let mut message = MessageFold::new(start.message_id, self.id, model, at, time);
                message.response_id.clone_from(&self.response_id);
                self.message = Some(message);
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
                        upstream_id: tool.upstream_id.clone(),
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
                self.end_agent(end.invocation_id, &end.sub_agent_id, time);
            }
            Body::SubagentFailed(end) => {
                self.end_agent(end.invocation_id, &end.sub_agent_id, time);
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
                self.end_delegate(end.worker_session_id, end.stop_outcome(), time);
            }
            Body::ApprovalRequested(question) => {
                self.waiting.push(question.tool_use_id);
                self.approvals.push(question.clone());
            }
            Body::RouteDecided(route) => {
                if let Some(relayed) = &route.relayed {
                    self.unrouted = None;
                    self.response_id.clone_from(&relayed.response_id);
                }
            }
            // A resumed turn requests the tools of the paused turn again.
            Body::TurnStarted(start) => {
                let agent = start.relayed_to.clone();
                self.unrouted = agent.map(|agent| (agent, start.episode_id));
                self.tools
                    .extend(start.answers.iter().map(|answer| OpenTool {
                        upstream_id: None,
                        id: answer.tool_use_id,
                        name: answer.tool_name.clone(),
                        tool_type: answer.tool_type,
                        called: false,
                    }));
            }
            family!(Session | TurnEnd | Plan | Display | Bus | Mcp | Note)
            | Body::RoutingPolicyReloaded(_)
            | Body::ApprovalResolved(_)
            | Body::DispatchTraced(_)
            | Body::SubagentStarted(_)
            | Body::StatusEmitted(_) => {}
        }
    }

    fn end_call(&mut self, id: CallId, time: Timestamp) {
        let ended = self.in_call.iter().position(|call| call.id == id);
        let model = ended.map(|index| self.in_call.remove(index).model);
        let subject = (ReceiptKind::Llm, id.to_string(), model.unwrap_or_default());
        self.end(subject, StopOutcome::Finished, time);
    }

    fn end_tool(&mut self, id: ToolUseId, time: Timestamp) {
        let name = self.tool_name(id);
        self.tools.retain(|tool| tool.id != id);
        let subject = (ReceiptKind::Tool, id.to_string(), name);
        self.end(subject, StopOutcome::Finished, time);
    }

    fn end_agent(&mut self, id: InvocationId, sub_agent_id: &str, time: Timestamp) {
        let name = sub_agent_id.to_owned();
        let subject = (ReceiptKind::Subagent, id.to_string(), name);
        self.end(subject, StopOutcome::Finished, time);
    }

    fn end_delegate(&mut self, id: SessionId, outcome: StopOutcome, time: Timestamp) {
        let mut delegates = self.delegates.iter();
        let ended = delegates.find(|open| open.worker_session_id == id);
        let name = ended.map(|open| self.tool_name(open.tool_use_id));
        self.delegates.retain(|open| open.worker_session_id != id);
        let subject = (
            ReceiptKind::Worker,
            id.to_string(),
            name.unwrap_or_default(),
        );
        self.end(subject, outcome, time);
    }

    /// The name of a tool that is open or has ended after the cancel; empty for any other.
    pub fn tool_name(&self, id: ToolUseId) -> String {
        if let Some(open) = self.tools.iter().find(|tool| tool.id == id) {
            return open.name.clone();
        }
        let id = id.to_string();
        let mut lines = self.finished.iter();
        let ended = lines.find(|line| line.kind == ReceiptKind::Tool && line.id == id);
        ended.map(|line| line.name.clone()).unwrap_or_default()
    }

    /// True if the turn may end as its producer says: only tools that wait for approval are open.
    pub fn is_settled(&self) -> bool {
        self.unrouted.is_none()
            && self.in_call.is_empty()
            && self.message.is_none()
            && self
                .tools
                .iter()
                .all(|tool| self.waiting.contains(&tool.id))
            && self.delegates.is_empty()
            && self.dispatch.agents.is_empty()
            && self.dispatch.steps.is_empty()
    }

    /// True if something runs that has a time limit of its own: a model call, a tool, a sub-agent or
    /// a worker.
    pub fn has_timed_work(&self) -> bool {
        !self.in_call.is_empty()
            || self.tools.iter().any(|tool| tool.called)
            || !self.delegates.is_empty()
            || !self.dispatch.agents.is_empty()
    }

    /// Adds work that ended after the cancel to the receipt, by kind, id and name.
    fn end(
        &mut self,
        (kind, id, name): (ReceiptKind, String, String),
        outcome: StopOutcome,
        time: Timestamp,
    ) {
        if let Some((_, requested_at)) = self.cancel {
            self.finished.push(ReceiptLine {
                kind,
                id,
                name,
                outcome,
                ms: time.ms_since(requested_at),
            });
        }
    }

    /// The usage so far of the call that streams the [`message`](Self::message).
    pub(super) fn speaking_usage(&self) -> TokenUsage {
        let mut calls = self.in_call.iter();
        let speaking = calls.find(|call| call.actor.kind() != ActorKind::Subagent);
        speaking.map_or_else(TokenUsage::default, |call| call.usage)
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
        upstream_id: None,
        id: *id,
        name: name.clone(),
        tool_type: ToolType::Function,
        called: false,
    })
}

#[cfg(test)]
mod tests;

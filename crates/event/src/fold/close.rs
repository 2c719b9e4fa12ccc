//! Ends an open turn from outside: after a cancel, a failure, a shutdown or a crash.
//!
//! One function derives the one consistent sequence (S3 6.2.1 to 6.2.4) from the open work:
//! the streaming message and its calls, then tools and sub-agents, then the terminal.

use crate::actor::{Actor, ActorKind};
use crate::body::Body;
use crate::body::approval;
use crate::body::delegate::{DelegateEnd, DelegateFailed};
use crate::body::llm::CallFailed;
use crate::body::route::{RelayedResponse, RouteDecided};
use crate::body::tool::ToolFailed;
use crate::body::turn::{PartialMessage, ReceiptLine, TurnCancelled, TurnCompleted, TurnError};
use crate::clock::Timestamp;
use crate::code::{
    AgentErrorClass, CancelCode, Decision, FailureMode, LlmErrorClass, Phase, ReceiptKind,
    StopOutcome, ToolErrorClass, ToolType, TurnStatus,
};
use crate::content::{StopReason, content_json};
use crate::fold::rows::rows;
use crate::fold::turn::{OpenDelegate, OpenTool, OpenTurn};
use crate::id::{ApprovalId, SessionId, ToolUseId, TurnId};
use crate::row::RowChange;

/// Why [`closing`] ends a turn.
#[derive(Clone, Debug, PartialEq)]
pub enum CloseCause {
    /// A cancel was accepted.
    Cancelled {
        reason: String,
        code: CancelCode,
        /// The time of the cancel request.
        asked: Timestamp,
        /// How the work stopped; `None` if the server crashed before it knew.
        stops: Option<StopSummary>,
    },
    Failed {
        error: TurnError,
        /// The cause where the code alone is ambiguous.
        reason: Option<String>,
    },
}

/// How the work of a [cancelled](CloseCause::Cancelled) turn stopped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StopSummary {
    /// Milliseconds from the request until the turn's own tasks had ended.
    pub let_go_ms: u64,
    /// True if the turn's own tasks did not end in time; nothing is accepted from them any more.
    pub left_behind: bool,
    /// The child tasks of the turn.
    pub child_tasks: Vec<StoppedTask>,
}

/// A child task that the turn waited for.
#[derive(Clone, Debug, PartialEq)]
pub struct StoppedTask {
    /// The tool use that started the task.
    pub tool_use_id: ToolUseId,
    pub line: ReceiptLine,
}

/// One closing event, with the rows that commit with it. `approval.resolved` belongs to no turn, all
/// other events to the ending turn.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosingEvent {
    pub actor: Actor,
    pub body: Body,
    pub rows: Vec<RowChange>,
}

/// The error classes of the closing events.
struct ErrorClasses {
    stop_reason: StopReason,
    llm: LlmErrorClass,
    tool: ToolErrorClass,
    agent: AgentErrorClass,
    delegate: FailureMode,
}

impl ErrorClasses {
    const fn of(end: &CloseCause) -> Self {
        match end {
            CloseCause::Cancelled { .. } => Self {
                stop_reason: StopReason::Cancelled,
                llm: LlmErrorClass::Cancelled,
                tool: ToolErrorClass::Cancelled,
                agent: AgentErrorClass::Cancelled,
                delegate: FailureMode::CancelledByUser,
            },
            CloseCause::Failed { .. } => Self {
                stop_reason: StopReason::Error,
                llm: LlmErrorClass::Internal,
                tool: ToolErrorClass::Internal,
                agent: AgentErrorClass::Internal,
                delegate: FailureMode::Error,
            },
        }
    }
}

/// Collects the closing events of a turn.
struct ClosingEvents {
    turn: TurnId,
    out: Vec<ClosingEvent>,
}

impl ClosingEvents {
    fn put(&mut self, actor: Actor, body: Body) {
        self.put_with(actor, body, Vec::new());
    }

    fn put_with(&mut self, actor: Actor, body: Body, mut changes: Vec<RowChange>) {
        changes.extend(rows(Some(self.turn), &actor, &body));
        self.out.push(ClosingEvent {
            actor,
            body,
            rows: changes,
        });
    }

    /// Rejects an open approval request: an ended turn cannot be approved.
    fn withdraw(&mut self, approval_id: ApprovalId) {
        let body = Body::ApprovalResolved(approval::ApprovalResolved {
            approval_id,
            decision: Decision::Reject,
            by: "system".to_owned(),
            comment: None,
        });
        self.out.push(ClosingEvent {
            rows: rows(None, &Actor::SYSTEM, &body),
            actor: Actor::SYSTEM,
            body,
        });
    }
}

/// The events that end `open`, in order, terminal last. `worker_ends` has the workers of `open` that
/// ended by themselves; all others were stopped with the turn. The caller has already emitted
/// `tool.use_end` for tool uses whose input was cut, so that the fold holds them.
pub fn closing(
    open: &OpenTurn,
    end: &CloseCause,
    worker_ends: &[DelegateEnd],
    now: Timestamp,
) -> Vec<ClosingEvent> {
    let classes = ErrorClasses::of(end);
    let mut ending = ClosingEvents {
        turn: open.id,
        out: Vec::new(),
    };
    // The frames of a relayed turn begin with its route.
    if let Some((agent, episode_id)) = open.unrouted.clone() {
        let response = RelayedResponse {
            response_id: None,
            episode_id,
            unanswered: true,
        };
        let route = RouteDecided::relayed(agent, response);
        ending.put(Actor::ORCHESTRATOR, Body::RouteDecided(route));
    }
    let partial = close_calls(&mut ending, open, &classes);
    close_dispatch(&mut ending, open, (&classes, worker_ends), now);
    for approval in &open.approvals {
        ending.withdraw(approval.approval_id);
    }
    let terminal = match end {
        CloseCause::Cancelled {
            reason,
            code,
            asked,
            stops,
        } => Body::TurnCancelled(TurnCancelled {
            reason: reason.clone(),
            code: *code,
            phase: match (*code, &**reason) {
                (CancelCode::IdleTimeout, TurnCancelled::IDLE_TIMEOUT) => Phase::Idle,
                _ => open.phase(),
            },
            partial,
            receipt: receipt(open, (stops.as_ref(), worker_ends), now.ms_since(*asked)),
        }),
        CloseCause::Failed { error, reason } => Body::TurnCompleted(TurnCompleted {
            status: TurnStatus::Failed,
            usage: (open.in_call.iter()).fold(open.usage, |sum, call| sum.plus(call.usage)),
            error: Some(error.clone()),
            reason: reason.clone(),
            partial: (partial.message_id.is_some() || partial.kept_until.is_some())
                .then_some(partial),
            paused: None,
        }),
    };
    ending.put(Actor::SYSTEM, terminal);
    ending.out
}

/// Closes the streaming message and the model calls. Returns the stored part of the message.
fn close_calls(
    ending: &mut ClosingEvents,
    open: &OpenTurn,
    classes: &ErrorClasses,
) -> PartialMessage {
    let mut partial = PartialMessage {
        message_id: None,
        bytes: 0,
        kept_until: open.kept_until,
    };
    let mut content_sha256 = None;
    if let Some(message) = &open.message {
        partial = PartialMessage {
            message_id: Some(message.id),
            bytes: message.text_bytes(),
            kept_until: open.kept_until,
        };
        let complete = message.complete(classes.stop_reason, open.speaking_usage());
        content_sha256 = Some(content_json(&complete.final_content).1);
        let row = RowChange::MessageFinished(open.id, Box::new(message.finished(&complete)));
        let complete = Body::MessageComplete(complete);
        ending.put_with(Actor::ORCHESTRATOR, complete, vec![row]);
    }
    for call in &open.in_call {
        // Only the orchestrator's call streams a message.
        let inner = call.actor.kind() == ActorKind::Subagent;
        let failed = CallFailed {
            call_id: call.id,
            message_id: partial.message_id.filter(|_| !inner),
            content_sha256: content_sha256.clone().filter(|_| !inner),
            error_class: classes.llm,
            usage: call.usage,
        };
        ending.put(call.actor.clone(), Body::LlmCallFailed(failed));
    }
    partial
}

/// Closes children before parents: running tools, sub-agents, the tool uses that called them, their
/// plan steps, and the dispatch trace.
fn close_dispatch(
    ending: &mut ClosingEvents,
    open: &OpenTurn,
    (classes, worker_ends): (&ErrorClasses, &[DelegateEnd]),
    now: Timestamp,
) {
    let (asks, tools): (Vec<_>, Vec<_>) = open
        .tools
        .iter()
        .partition(|tool| tool.tool_type == ToolType::SubAgent);
    for tool in tools {
        for worker in workers(open, tool.id) {
            let id = worker.worker_session_id;
            let stopped = || {
                DelegateEnd::Failed(DelegateFailed {
                    worker_session_id: id,
                    failure_mode: classes.delegate,
                })
            };
            let end = end_of(worker_ends, id).cloned().unwrap_or_else(stopped);
            ending.put(Actor::worker(id), end.into_body());
        }
        ending.put(Actor::tool(&tool.name), failed(tool, classes.tool));
    }
    let mut dispatch = open.dispatch.clone();
    for agent in open.dispatch.closing_agents(classes.agent, now) {
        let actor = Actor::subagent(&agent.sub_agent_id);
        let body = Body::SubagentFailed(agent);
        dispatch.apply(now, &actor, &body);
        ending.put(actor, body);
    }
    for tool in asks {
        ending.put(Actor::tool(&tool.name), failed(tool, classes.tool));
    }
    for step in dispatch.closing_steps() {
        ending.put(Actor::ORCHESTRATOR, Body::PlanStepCompleted(step));
    }
    if let Some(traced) = dispatch.traced() {
        ending.put(Actor::ORCHESTRATOR, Body::DispatchTraced(traced));
    }
}

fn failed(tool: &OpenTool, error_class: ToolErrorClass) -> Body {
    Body::ToolFailed(ToolFailed {
        upstream_id: tool.upstream_id.clone(),
        tool_use_id: tool.id,
        tool_name: tool.name.clone(),
        tool_type: tool.tool_type,
        error_class,
        called: tool.called,
    })
}

/// The running workers of one tool use.
fn workers(open: &OpenTurn, tool: ToolUseId) -> impl Iterator<Item = &OpenDelegate> {
    let of_tool = move |worker: &&OpenDelegate| worker.tool_use_id == tool;
    open.delegates.iter().filter(of_tool)
}

/// The end of a worker that ended by itself.
fn end_of(worker_ends: &[DelegateEnd], worker: SessionId) -> Option<&DelegateEnd> {
    worker_ends.iter().find(|end| end.worker() == worker)
}

/// The receipt: the work that was running when the cancel arrived, with outcomes and times.
fn receipt(
    open: &OpenTurn,
    (stops, worker_ends): (Option<&StopSummary>, &[DelegateEnd]),
    ms: u64,
) -> Vec<ReceiptLine> {
    let child_tasks = stops.map_or(&[][..], |stops| &stops.child_tasks);
    let ms = stops.map_or(ms, |stops| stops.let_go_ms);
    let outcome = match stops {
        Some(stops) if stops.left_behind => StopOutcome::Discarded,
        Some(_) | None => StopOutcome::Stopped,
    };
    let stopped = |kind, id, name: &str| ReceiptLine {
        kind,
        id,
        name: name.to_owned(),
        outcome,
        ms,
    };
    let calls = open.in_call.iter();
    let calls = calls.map(|call| stopped(ReceiptKind::Llm, call.id.to_string(), &call.model));
    let agents = open.dispatch.agents.iter().map(|agent| {
        let started = &agent.started;
        let id = started.invocation_id.to_string();
        stopped(ReceiptKind::Subagent, id, &started.sub_agent_id)
    });
    let tools = open.tools.iter().filter(|t| t.called).map(|t| {
        // A data service call is not stopped: its answer is discarded when it arrives (S1-110).
        let mut line = stopped(ReceiptKind::Tool, t.id.to_string(), &t.name);
        if t.tool_type == ToolType::Ccs {
            line.outcome = StopOutcome::Discarded;
        }
        let of_tool = child_tasks.iter().filter(|task| task.tool_use_id == t.id);
        of_tool.fold(line, |line, task| with(line, &task.line))
    });
    // Workers without a recorded stop: they ended before the cancel, were cancelled before they
    // started, or the server crashed.
    let seen = |worker: &&OpenDelegate| {
        let id = worker.worker_session_id.to_string();
        let mut lines = child_tasks.iter().map(|task| &task.line);
        lines.any(|line| line.kind == ReceiptKind::Worker && line.id == id)
    };
    let unseen = open.delegates.iter().filter(|worker| !seen(worker));
    let unseen = unseen.map(|worker| {
        let id = worker.worker_session_id;
        let tool_name = open.tool_name(worker.tool_use_id);
        let line = stopped(ReceiptKind::Worker, id.to_string(), &tool_name);
        match end_of(worker_ends, id) {
            None => line,
            Some(end) => ReceiptLine {
                outcome: end.stop_outcome(),
                ms: 0,
                ..line
            },
        }
    });
    open.finished
        .iter()
        .cloned()
        .chain(calls)
        .chain(tools)
        .chain(child_tasks.iter().map(|task| task.line.clone()))
        .chain(unseen)
        .chain(agents)
        .collect()
}

/// Merges a child task into its tool's line: the tool ends with its last task and takes the worst outcome.
fn with(tool: ReceiptLine, task: &ReceiptLine) -> ReceiptLine {
    ReceiptLine {
        outcome: std::cmp::max_by_key(task.outcome, tool.outcome, |outcome| weight(*outcome)),
        ms: tool.ms.max(task.ms),
        ..tool
    }
}

/// The severity of an outcome; work that may still be running is worst.
const fn weight(outcome: StopOutcome) -> u8 {
    match outcome {
        StopOutcome::Finished => 0,
        StopOutcome::Stopped => 1,
        StopOutcome::Killed => 2,
        StopOutcome::Discarded => 3,
    }
}

#[cfg(test)]
mod tests;

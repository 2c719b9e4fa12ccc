//! How an open turn is ended from outside: by a cancel, a failure, a shutdown or the sweep.
//!
//! One function makes the one consistent sequence (S3 6.2.1 to 6.2.4) out of what is open:
//! the message in flight and its calls, then tools and sub-agents, then the terminal.

use crate::actor::{Actor, ActorKind};
use crate::body::Body;
use crate::body::llm::CallFailed;
use crate::body::tool::Failed;
use crate::body::turn::{Cancelled, Completed, Partial, ReceiptLine, TurnError};
use crate::body::{approval, delegate};
use crate::clock::Timestamp;
use crate::code::{
    CancelCode, Decision, FailureMode, LlmErrorClass, ReceiptKind, StopOutcome, ToolErrorClass,
    ToolType, TurnStatus,
};
use crate::content::{StopReason, Usage, content_json};
use crate::fold::dispatch::agent_class;
use crate::fold::rows::rows;
use crate::fold::turn::{OpenDelegate, OpenTool, OpenTurn};
use crate::id::{ApprovalId, ToolUseId, TurnId};
use crate::row::RowChange;

/// How the turn ends.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// By the cancel that was asked for.
    Cancelled {
        /// What was said with it.
        reason: String,
        /// When it was asked for.
        asked: Timestamp,
        /// How everything stopped; none if the process died over it.
        stops: Option<Stops>,
    },
    /// By something that broke.
    Failed {
        /// What, in codes.
        error: TurnError,
        /// Why, in one word, where the code does not say.
        reason: Option<String>,
    },
}

/// How everything of a turn stopped that was asked to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stops {
    /// How long after the request the turn's own work was gone, in milliseconds.
    pub let_go_ms: u64,
    /// Whether it was not gone even then, and is left behind: nothing of it is taken any more.
    pub left_behind: bool,
    /// What did not end with it.
    pub wards: Vec<Stopped>,
}

/// Something that was waited for.
#[derive(Clone, Debug, PartialEq)]
pub struct Stopped {
    /// The tool use it worked for.
    pub tool_use_id: ToolUseId,
    /// What became of it.
    pub line: ReceiptLine,
}

/// One event of the ending, with the rows that commit with it. An answer belongs to no turn, all
/// others to the one that ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Closing {
    /// Who.
    pub actor: Actor,
    /// What.
    pub body: Body,
    /// The rows.
    pub rows: Vec<RowChange>,
}

/// The classes that an ending gives to what it closes.
struct Classes {
    stop_reason: StopReason,
    llm: LlmErrorClass,
    tool: ToolErrorClass,
    delegate: FailureMode,
}

impl Classes {
    const fn of(end: &End) -> Self {
        match end {
            End::Cancelled { .. } => Self {
                stop_reason: StopReason::Cancelled,
                llm: LlmErrorClass::Cancelled,
                tool: ToolErrorClass::Cancelled,
                delegate: FailureMode::CancelledByUser,
            },
            End::Failed { .. } => Self {
                stop_reason: StopReason::Error,
                llm: LlmErrorClass::Internal,
                tool: ToolErrorClass::Internal,
                delegate: FailureMode::Error,
            },
        }
    }
}

/// An ending as it is made, with the rows of each event.
struct Ending {
    turn: TurnId,
    out: Vec<Closing>,
}

impl Ending {
    fn put(&mut self, actor: Actor, body: Body) {
        self.put_with(actor, body, Vec::new());
    }

    fn put_with(&mut self, actor: Actor, body: Body, mut more: Vec<RowChange>) {
        more.extend(rows(Some(self.turn), &actor, &body));
        self.out.push(Closing {
            actor,
            body,
            rows: more,
        });
    }

    /// Takes a question back: nobody can say yes to a turn that is over.
    fn withdraw(&mut self, question: ApprovalId) {
        let body = Body::ApprovalResolved(approval::Resolved {
            approval_id: question,
            decision: Decision::Reject,
            by: "system".to_owned(),
            comment: None,
        });
        self.out.push(Closing {
            rows: rows(None, &Actor::SYSTEM, &body),
            actor: Actor::SYSTEM,
            body,
        });
    }
}

/// The events that end `open`, in order, terminal last. The caller has already emitted
/// `tool.use_end` for tool uses whose input was cut, so that the fold holds them.
pub fn closing(open: &OpenTurn, end: &End, now: Timestamp) -> Vec<Closing> {
    let classes = Classes::of(end);
    let mut ending = Ending {
        turn: open.id,
        out: Vec::new(),
    };
    let partial = close_calls(&mut ending, open, &classes);
    close_dispatch(&mut ending, open, &classes, now);
    for question in &open.questions {
        ending.withdraw(*question);
    }
    let terminal = match end {
        End::Cancelled {
            reason,
            asked,
            stops,
        } => Body::TurnCancelled(Cancelled {
            reason: reason.clone(),
            code: CancelCode::RequestCancelled,
            phase: open.phase(),
            partial,
            receipt: receipt(open, stops.as_ref(), since(*asked, now)),
        }),
        End::Failed { error, reason } => Body::TurnCompleted(Completed {
            status: TurnStatus::Failed,
            usage: open.usage,
            error: Some(error.clone()),
            reason: reason.clone(),
            partial: partial.message_id.is_some().then_some(partial),
        }),
    };
    ending.put(Actor::SYSTEM, terminal);
    ending.out
}

/// The message in flight and the model calls. Gives back what is kept of the message.
fn close_calls(ending: &mut Ending, open: &OpenTurn, classes: &Classes) -> Partial {
    let mut partial = Partial {
        message_id: None,
        bytes: 0,
    };
    let mut content_sha256 = None;
    if let Some(message) = &open.message {
        partial = Partial {
            message_id: Some(message.id),
            bytes: message.text_bytes(),
        };
        let complete = message.complete(classes.stop_reason, Usage::default());
        content_sha256 = Some(content_json(&complete.final_content).1);
        let row = RowChange::MessageFinished(open.id, Box::new(message.finished(&complete)));
        let complete = Body::MessageComplete(complete);
        ending.put_with(Actor::ORCHESTRATOR, complete, vec![row]);
    }
    for call in &open.in_call {
        // Only the orchestrator's call writes the message in flight.
        let inner = call.actor.kind() == ActorKind::Subagent;
        let failed = CallFailed {
            call_id: call.id,
            message_id: partial.message_id.filter(|_| !inner),
            content_sha256: content_sha256.clone().filter(|_| !inner),
            error_class: classes.llm,
        };
        ending.put(call.actor.clone(), Body::LlmCallFailed(failed));
    }
    partial
}

/// Children before parents: the tools that run, the sub-agents, the uses that asked for them, the
/// steps they were slots of, and the trace of it all.
fn close_dispatch(ending: &mut Ending, open: &OpenTurn, classes: &Classes, now: Timestamp) {
    let (asks, tools): (Vec<_>, Vec<_>) = open
        .tools
        .iter()
        .partition(|tool| tool.tool_type == ToolType::SubAgent);
    for tool in tools {
        for worker in workers(open, tool.id) {
            let actor = Actor::worker(worker.worker_session_id);
            let failed = delegate::Failed {
                worker_session_id: worker.worker_session_id,
                failure_mode: classes.delegate,
            };
            ending.put(actor, Body::DelegateFailed(failed));
        }
        ending.put(Actor::tool(&tool.name), failed(tool, classes.tool));
    }
    let mut dispatch = open.dispatch.clone();
    for agent in open.dispatch.closing_agents(agent_class(classes.tool), now) {
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
    Body::ToolFailed(Failed {
        tool_use_id: tool.id,
        tool_name: tool.name.clone(),
        tool_type: tool.tool_type,
        error_class,
        called: tool.called,
    })
}

/// The workers of one tool use.
fn workers(open: &OpenTurn, tool: ToolUseId) -> impl Iterator<Item = &OpenDelegate> {
    let of_tool = move |worker: &&OpenDelegate| worker.tool_use_id == tool;
    open.delegates.iter().filter(of_tool)
}

fn since(asked: Timestamp, now: Timestamp) -> u64 {
    now.as_millis().saturating_sub(asked.as_millis()).max(0) as u64
}

/// What ran when the cancel came, each with what became of it and when.
fn receipt(open: &OpenTurn, stops: Option<&Stops>, ms: u64) -> Vec<ReceiptLine> {
    let wards = stops.map_or(&[][..], |stops| &stops.wards);
    let ms = stops.map_or(ms, |stops| stops.let_go_ms);
    let outcome = match stops {
        Some(stops) if stops.left_behind => StopOutcome::Discarded,
        Some(_) | None => StopOutcome::Stopped,
    };
    let stopped = |kind, id| ReceiptLine {
        kind,
        id,
        outcome,
        ms,
    };
    let call = open
        .in_call
        .iter()
        .map(|call| stopped(ReceiptKind::Llm, call.id.to_string()));
    let agents = open
        .dispatch
        .agents
        .iter()
        .map(|agent| stopped(ReceiptKind::Subagent, agent.started.sub_agent_id.clone()));
    let tools = open.tools.iter().filter(|t| t.called).map(|t| {
        // A data service is not stopped: its answer is thrown away when it comes (S1-110).
        let outcome = if t.tool_type == ToolType::Ccs {
            StopOutcome::Discarded
        } else {
            outcome
        };
        let line = ReceiptLine {
            outcome,
            ..stopped(ReceiptKind::Tool, t.id.to_string())
        };
        let of_tool = wards.iter().filter(|ward| ward.tool_use_id == t.id);
        of_tool.fold(line, |line, ward| with(line, &ward.line))
    });
    // Those that nobody saw go: after a crash, or because they were stopped before they began.
    let seen = |worker: &&OpenDelegate| {
        let id = worker.worker_session_id.to_string();
        let mut lines = wards.iter().map(|ward| &ward.line);
        lines.any(|line| line.kind == ReceiptKind::Worker && line.id == id)
    };
    let lost = open.delegates.iter().filter(|worker| !seen(worker));
    let lost =
        lost.map(|worker| stopped(ReceiptKind::Worker, worker.worker_session_id.to_string()));
    open.finished
        .iter()
        .cloned()
        .chain(call)
        .chain(tools)
        .chain(wards.iter().map(|ward| ward.line.clone()))
        .chain(lost)
        .chain(agents)
        .collect()
}

/// A tool is gone when all that worked for it is; it has the worst that came of any of it.
fn with(tool: ReceiptLine, ward: &ReceiptLine) -> ReceiptLine {
    let outcome = if weight(ward.outcome) > weight(tool.outcome) {
        ward.outcome
    } else {
        tool.outcome
    };
    ReceiptLine {
        outcome,
        ms: tool.ms.max(ward.ms),
        ..tool
    }
}

/// How bad an outcome is: worst is what may still go on.
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

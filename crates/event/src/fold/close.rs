//! How an open turn is ended from outside: by a cancel, a failure, a shutdown or the sweep.
//!
//! One function makes the one consistent sequence (S3 6.2.1 to 6.2.4) out of what is open:
//! the message in flight and its call, then the tools, then the terminal.

use crate::actor::{Actor, ActorKind};
use crate::body::Body;
use crate::body::llm::CallFailed;
use crate::body::tool::Failed;
use crate::body::turn::{Cancelled, Completed, Partial, ReceiptLine, TurnError};
use crate::clock::Timestamp;
use crate::code::{
    CancelCode, LlmErrorClass, ReceiptKind, StopOutcome, ToolErrorClass, ToolType, TurnStatus,
};
use crate::content::{StopReason, Usage, content_json};
use crate::fold::dispatch::agent_class;
use crate::fold::rows::rows;
use crate::fold::turn::{OpenTool, OpenTurn};
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
    },
    /// By something that broke.
    Failed {
        /// What, in codes.
        error: TurnError,
        /// Why, in one word, where the code does not say.
        reason: Option<String>,
    },
}

/// One event of the ending, with the rows that commit with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Closing {
    /// Who.
    pub actor: Actor,
    /// What.
    pub body: Body,
    /// The rows.
    pub rows: Vec<RowChange>,
}

/// The events that end `open`, in order, terminal last. The caller has already emitted
/// `tool.use_end` for tool uses whose input was cut, so that the fold holds them.
pub fn closing(open: &OpenTurn, end: &End, now: Timestamp) -> Vec<Closing> {
    let turn = Some(open.id);
    let (stop_reason, llm_class, tool_class) = match end {
        End::Cancelled { .. } => (
            StopReason::Cancelled,
            LlmErrorClass::Cancelled,
            ToolErrorClass::Cancelled,
        ),
        End::Failed { .. } => (
            StopReason::Error,
            LlmErrorClass::Internal,
            ToolErrorClass::Internal,
        ),
    };
    let mut out = Vec::new();
    let mut put = |actor: Actor, body: Body, mut more: Vec<RowChange>| {
        more.extend(rows(turn, &body));
        out.push(Closing {
            actor,
            body,
            rows: more,
        });
    };
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
        let complete = message.complete(stop_reason, Usage::default());
        content_sha256 = Some(content_json(&complete.final_content).1);
        let row = RowChange::MessageFinished(open.id, Box::new(message.finished(&complete)));
        put(
            Actor::ORCHESTRATOR,
            Body::MessageComplete(complete),
            vec![row],
        );
    }
    for call in &open.in_call {
        // Only the orchestrator's call writes the message in flight.
        let inner = call.actor.kind() == ActorKind::Subagent;
        let failed = CallFailed {
            call_id: call.id,
            message_id: partial.message_id.filter(|_| !inner),
            content_sha256: content_sha256.clone().filter(|_| !inner),
            error_class: llm_class,
        };
        put(call.actor.clone(), Body::LlmCallFailed(failed), Vec::new());
    }
    // Children before parents: what sub-agents had open, the sub-agents, the uses that asked for
    // them, the steps they were slots of, and the trace of it all.
    let mut dispatch = open.dispatch.clone();
    let asks = |tool: &&OpenTool| tool.tool_type == ToolType::SubAgent;
    for tool in open.tools.iter().filter(|tool| !asks(tool)) {
        put(
            Actor::tool(&tool.name),
            failed(tool, tool_class),
            Vec::new(),
        );
    }
    for agent in dispatch.closing_agents(agent_class(tool_class), now) {
        let actor = Actor::subagent(&agent.sub_agent_id);
        put(actor, Body::SubagentFailed(agent), Vec::new());
    }
    for tool in open.tools.iter().filter(asks) {
        put(
            Actor::tool(&tool.name),
            failed(tool, tool_class),
            Vec::new(),
        );
    }
    for step in dispatch.closing_steps() {
        put(
            Actor::ORCHESTRATOR,
            Body::PlanStepCompleted(step),
            Vec::new(),
        );
    }
    for agent in open.dispatch.closing_agents(agent_class(tool_class), now) {
        dispatch.apply(now, &Actor::SYSTEM, &Body::SubagentFailed(agent));
    }
    if let Some(traced) = dispatch.traced() {
        put(
            Actor::ORCHESTRATOR,
            Body::DispatchTraced(traced),
            Vec::new(),
        );
    }
    let terminal = match end {
        End::Cancelled { reason, asked } => Body::TurnCancelled(Cancelled {
            reason: reason.clone(),
            code: CancelCode::RequestCancelled,
            phase: open.phase(),
            partial,
            receipt: receipt(
                open,
                now.as_millis().saturating_sub(asked.as_millis()).max(0) as u64,
            ),
        }),
        End::Failed { error, reason } => Body::TurnCompleted(Completed {
            status: TurnStatus::Failed,
            usage: open.usage,
            error: Some(error.clone()),
            reason: reason.clone(),
            partial: partial.message_id.is_some().then_some(partial),
        }),
    };
    put(Actor::SYSTEM, terminal, Vec::new());
    out
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

fn receipt(open: &OpenTurn, ms: u64) -> Vec<ReceiptLine> {
    let stopped = |kind, id| ReceiptLine {
        kind,
        id,
        outcome: StopOutcome::Stopped,
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
    let tools = open.tools.iter().filter(|t| t.called).map(|t| ReceiptLine {
        // A data service is not stopped: its answer is thrown away when it comes (S1-110).
        outcome: if t.tool_type == ToolType::Ccs {
            StopOutcome::Discarded
        } else {
            StopOutcome::Stopped
        },
        ..stopped(ReceiptKind::Tool, t.id.to_string())
    });
    open.finished
        .iter()
        .cloned()
        .chain(call)
        .chain(tools)
        .chain(agents)
        .collect()
}

#[cfg(test)]
mod tests;

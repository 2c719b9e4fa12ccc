//! How an open turn is ended from outside: by a cancel, a failure, a shutdown or the sweep.
//!
//! One function makes the one consistent sequence (S3 6.2.1 to 6.2.4) out of what is open:
//! the message in flight and its call, then the tools, then the terminal.

use crate::actor::Actor;
use crate::body::Body;
use crate::body::llm::CallFailed;
use crate::body::tool::Failed;
use crate::body::turn::{Cancelled, Completed, Partial, ReceiptLine, TurnError};
use crate::clock::Timestamp;
use crate::code::{
    CancelCode, LlmErrorClass, ReceiptKind, StopOutcome, ToolErrorClass, TurnStatus,
};
use crate::content::{StopReason, Usage, content_json};
use crate::fold::rows::rows;
use crate::fold::turn::OpenTurn;
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
    if let Some(call_id) = open.call {
        let failed = CallFailed {
            call_id,
            message_id: partial.message_id,
            content_sha256,
            error_class: llm_class,
        };
        put(Actor::ORCHESTRATOR, Body::LlmCallFailed(failed), Vec::new());
    }
    for tool in &open.tools {
        let failed = Failed {
            tool_use_id: tool.id,
            tool_name: tool.name.clone(),
            tool_type: tool.tool_type,
            error_class: tool_class,
            called: tool.called,
        };
        put(
            Actor::tool(&tool.name),
            Body::ToolFailed(failed),
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

fn receipt(open: &OpenTurn, ms: u64) -> Vec<ReceiptLine> {
    let stopped = |kind, id| ReceiptLine {
        kind,
        id,
        outcome: StopOutcome::Stopped,
        ms,
    };
    let call = open
        .call
        .iter()
        .map(|id| stopped(ReceiptKind::Llm, id.to_string()));
    let tools = open
        .tools
        .iter()
        .filter(|t| t.called)
        .map(|t| stopped(ReceiptKind::Tool, t.id.to_string()));
    open.finished
        .iter()
        .cloned()
        .chain(call)
        .chain(tools)
        .collect()
}

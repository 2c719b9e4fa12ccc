//! A turn that paused because tools of it need a person's approval, and the decisions on them.

use std::sync::Arc;

use turnwire_event::body::approval::{ApprovalResolved, ResolvedApproval};
use turnwire_event::code::{ApprovalState, Decision, ToolType, TurnStatus, code_name};
use turnwire_event::port::ResumeInput;
use turnwire_event::row::{ApprovalRow, TurnRow};
use turnwire_event::{Actor, ApprovalId, Body, ToolUseId, TraceContext, TurnId};
use turnwire_log::{EventDraft, Store};

use crate::error::Error;

/// The value of `by` in decisions of a person.
const BY_USER: &str = "user";

/// A person's decision on one approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalDecision {
    /// The approval that the decision resolves.
    pub approval_id: ApprovalId,
    /// Whether the tool may run.
    pub decision: Decision,
    /// A comment for the model.
    pub comment: Option<String>,
}

/// A turn and the approvals that it requested.
pub(crate) struct PausedTurn {
    pub(crate) turn: TurnRow,
    /// The approvals in the order of their requests.
    pub(crate) approvals: Vec<ApprovalRow>,
    tool_types: Vec<(ToolUseId, ToolType)>,
    /// The turn that resumed this one.
    pub(crate) resumed_by: Option<TurnId>,
}

impl PausedTurn {
    /// Reads the approvals of `turn`.
    pub(crate) fn read(store: &dyn Store, turn: TurnRow) -> Result<Self, Error> {
        let approvals = store.turn_approvals(turn.id)?;
        let tools = store.turn_tool_calls(turn.id)?.into_iter();
        // The resuming turn commits with the last decision. One that committed between the two
        // reads is not reported yet.
        let resumed_by = store.resuming_turn(turn.id)?.map(|resuming| resuming.id);
        let has_pending = approvals.iter().any(is_pending);
        let resumed_by = resumed_by.filter(|_| !has_pending);
        Ok(Self {
            approvals,
            tool_types: tools
                .map(|tool| (tool.tool_use_id, tool.tool_type))
                .collect(),
            resumed_by,
            turn,
        })
    }

    /// Applies decisions, and returns those that changed an approval. Fails without effect on the
    /// store if one of them is invalid.
    pub(crate) fn apply(
        &mut self,
        decisions: Vec<ApprovalDecision>,
    ) -> Result<Vec<ApprovalDecision>, Error> {
        let paused = is_paused(&self.turn);
        if self.approvals.is_empty() && !paused {
            return Err(Error::TurnNotPaused);
        }
        let mut applied = Vec::new();
        for decision in decisions {
            let approval = self
                .approvals
                .iter_mut()
                .find(|approval| approval.id == decision.approval_id)
                .ok_or(Error::ApprovalNotFound)?;
            let state = state_after(decision.decision);
            if approval.state == ApprovalState::Pending {
                if !paused {
                    return Err(Error::TurnNotPaused);
                }
                approval.state = state;
                approval.by = Some(BY_USER.to_owned());
                approval.comment.clone_from(&decision.comment);
                applied.push(decision);
            } else if approval.state != state || approval.by.as_deref() != Some(BY_USER) {
                return Err(Error::ApprovalResolved(approval.id));
            }
        }
        Ok(applied)
    }

    /// The number of approvals without a decision.
    pub(crate) fn pending_count(&self) -> usize {
        self.approvals.iter().filter(|row| is_pending(row)).count()
    }

    /// The decisions, as the turn that resumes this one reads them.
    pub(crate) fn resumption(&self) -> ResumeInput {
        let answer = |approval: &ApprovalRow| {
            let of_tool = |(id, _): &&(ToolUseId, ToolType)| *id == approval.tool_use_id;
            let tool_type = self.tool_types.iter().find(of_tool);
            ResolvedApproval {
                approval_id: approval.id,
                tool_use_id: approval.tool_use_id,
                tool_name: approval.tool_name.clone(),
                tool_type: tool_type.map_or(ToolType::Function, |(_, tool_type)| *tool_type),
                decision: match approval.state {
                    ApprovalState::Approved => Decision::Approve,
                    ApprovalState::Rejected | ApprovalState::Pending => Decision::Reject,
                },
                comment: approval.comment.clone(),
            }
        };
        ResumeInput {
            turn_id: self.turn.id,
            answers: self.approvals.iter().map(answer).collect(),
        }
    }
}

fn is_pending(approval: &ApprovalRow) -> bool {
    approval.state == ApprovalState::Pending
}

fn state_after(decision: Decision) -> ApprovalState {
    match decision {
        Decision::Approve => ApprovalState::Approved,
        Decision::Reject => ApprovalState::Rejected,
    }
}

/// Whether a turn ended with [`TurnStatus::Paused`].
fn is_paused(turn: &TurnRow) -> bool {
    let terminal = turn.terminal.as_ref();
    let status = terminal.and_then(|(_, payload)| payload.get("status")?.as_str());
    status == Some(&code_name(&TurnStatus::Paused))
}

/// The draft of an `approval.resolved`, which belongs to no turn.
pub(super) fn resolved_draft(actor: Actor, resolved: ApprovalResolved) -> EventDraft {
    EventDraft::with_rows(None, actor, Body::ApprovalResolved(resolved))
}

/// The draft of the `approval.resolved` of a person's decision.
pub(crate) fn decision_draft(
    decision: ApprovalDecision,
    trace: Option<&Arc<TraceContext>>,
) -> EventDraft {
    let resolved = ApprovalResolved {
        approval_id: decision.approval_id,
        decision: decision.decision,
        by: BY_USER.to_owned(),
        comment: decision.comment,
    };
    let mut draft = resolved_draft(Actor::USER, resolved);
    draft.trace = trace.cloned();
    draft
}

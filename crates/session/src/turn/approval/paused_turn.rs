//! A turn that paused because tools of it need a person's approval, and the decisions on them.

use std::sync::Arc;

use turnwire_event::body::approval::{ApprovalResolved, ResolvedApproval};
use turnwire_event::code::{ApprovalState, Decision, ToolType, TurnStatus, code_name};
use turnwire_event::content::sha256_hex;
use turnwire_event::port::ResumeInput;
use turnwire_event::row::{ApprovalRow, TurnRow};
use turnwire_event::{
    Actor, ApprovalId, Body, ContentBlock, Position, ToolUseId, TraceContext, TurnId,
};
use turnwire_log::{EventDraft, MessageView, PageBounds, Store};

use crate::error::Error;

/// The value of `by` in decisions of a person.
pub(crate) const BY_USER: &str = "user";
/// What an approval says that another person of the tenant decided.
pub(crate) const BY_REVIEWER: &str = "reviewer";

/// The messages that [`input_json`] reads at once. The message with the tool uses is among the last
/// of its turn: only the results of tools that needed no approval follow, of at most 1 MiB each.
const INPUT_PAGE: PageBounds = PageBounds {
    rows: 8,
    bytes: 4 << 20,
};

/// A person's decision on one approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalDecision {
    /// The approval that the decision resolves.
    pub approval_id: ApprovalId,
    /// Whether the tool may run.
    pub decision: Decision,
    /// The SHA-256 of the input that the person was shown, if the client sent it.
    pub input_sha256: Option<String>,
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
        let mut approvals = store.turn_approvals(turn.id)?;
        for approval in &mut approvals {
            if is_pending(approval) && approval.input_sha256.is_none() {
                add_digest(store, &turn, approval)?;
            }
        }
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

    /// The id that the end of the turn has announced for the turn that resumes it.
    pub(crate) fn announced_next(&self) -> Option<TurnId> {
        let (_, payload) = self.turn.terminal.as_ref()?;
        payload["paused"]["next_turn_id"].as_str()?.parse().ok()
    }

    /// Applies decisions, and returns those that changed an approval. Fails without effect on the
    /// store if one of them is invalid.
    pub(crate) fn apply(
        &mut self,
        decisions: Vec<ApprovalDecision>,
        by: &str,
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
            if decision.input_sha256.is_some() && decision.input_sha256 != approval.input_sha256 {
                return Err(Error::ApprovalInputMismatch(approval.id));
            }
            let state = state_after(decision.decision);
            if approval.state == ApprovalState::Pending {
                if !paused {
                    return Err(Error::TurnNotPaused);
                }
                approval.state = state;
                approval.by = Some(by.to_owned());
                approval.comment.clone_from(&decision.comment);
                applied.push(decision);
            } else if approval.state != state || !is_by_person(approval) {
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
                input_sha256: approval.input_sha256.clone(),
                comment: approval.comment.clone(),
            }
        };
        ResumeInput {
            turn_id: self.turn.id,
            answers: self.approvals.iter().map(answer).collect(),
        }
    }
}

/// Adds the digest of the input to a request of a release that did not store it.
fn add_digest(store: &dyn Store, turn: &TurnRow, approval: &mut ApprovalRow) -> Result<(), Error> {
    if let Some(json) = input_json(store, turn, approval.tool_use_id)? {
        approval.input_bytes = Some(json.len() as u64);
        approval.input_sha256 = Some(sha256_hex(json.as_bytes()));
    }
    Ok(())
}

/// The whole input of a tool use of `turn` as JSON text: the bytes that the tool gets and that
/// digests are computed of. `None` if the message with the tool use is no longer stored.
pub(crate) fn input_json(
    store: &dyn Store,
    turn: &TurnRow,
    tool_use: ToolUseId,
) -> Result<Option<String>, Error> {
    let upto = turn.ended.unwrap_or(Position::LAST);
    let mut before = None;
    loop {
        let view = MessageView::Orchestrator;
        let page = store.messages(turn.session_id, view, upto, before, INPUT_PAGE)?;
        let blocks = page.rows.iter().flat_map(|message| &message.content);
        let mut inputs = blocks.filter_map(|block| match block {
            ContentBlock::ToolUse { id, input, .. } if *id == tool_use => Some(input),
            _ => None,
        });
        if let Some(input) = inputs.next() {
            return Ok(Some(input.to_string()));
        }
        match page.rows.first() {
            Some(oldest) if oldest.turn_id == turn.id => before = Some(oldest.id),
            Some(_) | None => return Ok(None),
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

/// True if a person has decided, and not the server for a conversation that went on.
fn is_by_person(approval: &ApprovalRow) -> bool {
    matches!(approval.by.as_deref(), Some(BY_USER | BY_REVIEWER))
}

/// The draft of the `approval.resolved` of a person's decision.
pub(crate) fn decision_draft(
    decision: ApprovalDecision,
    by: &str,
    trace: Option<&Arc<TraceContext>>,
) -> EventDraft {
    let resolved = ApprovalResolved {
        approval_id: decision.approval_id,
        decision: decision.decision,
        by: by.to_owned(),
        comment: decision.comment,
    };
    let mut draft = resolved_draft(Actor::USER, resolved);
    draft.trace = trace.cloned();
    draft
}

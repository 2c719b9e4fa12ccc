//! Approvals that expire: a person submits another turn instead of deciding, so the tools of the
//! paused turn never run.

use serde_json::Value;
use turnwire_event::body::approval::ApprovalResolved;
use turnwire_event::code::{ApprovalState, Decision, ToolState, ToolType};
use turnwire_event::port::ResumeInput;
use turnwire_event::row::{ApprovalRow, NewMessage, RowChange};
use turnwire_event::{Actor, ContentBlock, Message, MessageId, Role, SessionId};
use turnwire_log::{EventDraft, Store};

use super::paused_turn::resolved_draft;
use crate::error::Error;
use crate::live::session::LiveSession;

/// The value of `by` in decisions that no person made.
const BY_SYSTEM: &str = "system";

/// The tool result of a tool without a decision.
const UNDECIDED: &str = "not executed: no one allowed it.";
/// The tool result of an approved tool, beside one without a decision.
const TOO_LATE: &str = "not executed: the person went on with something else.";
/// The tool result of a rejected tool, beside one without a decision.
const REJECTED: &str = "not executed: the person said no.";

/// Reads the approvals of all turns of a session that have an undecided one, with the decided
/// approvals of those turns.
pub(crate) fn open_approvals(store: &dyn Store, id: SessionId) -> Result<Vec<ApprovalRow>, Error> {
    let mut approvals: Vec<ApprovalRow> = Vec::new();
    for open in store.open_approvals(id)? {
        if !approvals.iter().any(|read| read.turn_id == open.turn_id) {
            approvals.extend(store.turn_approvals(open.turn_id)?);
        }
    }
    Ok(approvals)
}

/// Expires the open approvals of a session in which a turn starts, except those that `resumed`
/// answers. Returns the events, and the tool results for the model.
pub(crate) fn expire_approvals(
    live: &LiveSession,
    approvals: &[ApprovalRow],
    resumed: Option<&ResumeInput>,
) -> (Vec<EventDraft>, Vec<Message>) {
    let resumed_turn = resumed.map(|resumed| resumed.turn_id);
    let mut drafts = Vec::new();
    let mut messages = Vec::new();
    let mut rows = Vec::new();
    for approval in approvals
        .iter()
        .filter(|row| Some(row.turn_id) != resumed_turn)
    {
        let (turn, message) = (approval.turn_id, not_executed(live, approval));
        rows.push(RowChange::MessagePut(turn, message.clone()));
        messages.push(message.into_message(live.id, turn, live.services.clock.now()));
        match approval.state {
            ApprovalState::Pending => drafts.push(resolved_draft(
                Actor::SYSTEM,
                ApprovalResolved {
                    approval_id: approval.id,
                    decision: Decision::Reject,
                    by: BY_SYSTEM.to_owned(),
                    comment: None,
                },
            )),
            // Approved, but another of the same turn was not: nothing resumes the turn now.
            ApprovalState::Approved => rows.push(cancelled_row(approval)),
            ApprovalState::Rejected => {}
        }
    }
    if let Some(first) = drafts.first_mut() {
        first.rows.extend(rows);
    }
    (drafts, messages)
}

fn cancelled_row(approval: &ApprovalRow) -> RowChange {
    RowChange::ToolCall {
        tool_use_id: approval.tool_use_id,
        turn_id: approval.turn_id,
        tool_name: approval.tool_name.clone(),
        // The stored row keeps the type that it was inserted with.
        tool_type: ToolType::Function,
        status: ToolState::Cancelled,
    }
}

/// The result of a tool that does not run: providers require a result for each tool use.
fn not_executed(live: &LiveSession, approval: &ApprovalRow) -> NewMessage {
    let reason = match approval.state {
        ApprovalState::Pending => UNDECIDED,
        ApprovalState::Approved => TOO_LATE,
        ApprovalState::Rejected => REJECTED,
    };
    let id = MessageId(live.services.id_generator.ulid());
    let result = ContentBlock::ToolResult {
        tool_use_id: approval.tool_use_id,
        content: Value::from(reason),
        is_error: true,
    };
    NewMessage::new(id, Role::Tool, vec![result])
}

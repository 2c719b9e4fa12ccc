//! Approvals of paused turns: list, read and decide.

use serde_json::json;
use turnwire_event::ApprovalId;

use super::TURN_READ;
use crate::openapi::operation::{OperationSpec, SuccessResponse, get, post};
use crate::openapi::parameter::{OperationParameter, list_limit};
use crate::openapi::schemas::request_schema;
use crate::problem::Code;
use crate::rest::approval::{ApprovalAnswers, ApprovalItem, ApprovalList, ApprovalsAnswered};

pub(super) fn operations() -> Vec<OperationSpec> {
    let answer_examples = json!({
        "yes": {
            "summary": "Yes to one",
            "value": { "approval_id": "appr_01KBZ4M0XQ6V9D7T3C2N8R5HJA", "decision": "approve" },
        },
        "several": {
            "summary": "Several at once",
            "value": { "answers": [
                { "approval_id": "appr_01KBZ4M0XQ6V9D7T3C2N8R5HJA", "decision": "approve" },
                {
                    "approval_id": "appr_01KBZ4M0XQ6V9D7T3C2N8R5HJB",
                    "decision": "reject",
                    "comment": "Not this week.",
                },
            ] },
        },
    });
    let next_turn = "$response.body#/next_turn_id";
    let decided = "All approvals are decided, and the next turn starts.";
    vec![
        get(
            "/turns/{id}/approvals",
            "listApprovals",
            "List what a turn has asked",
        )
        .scopes(&["own", "review"])
            .about("The tool uses of the turn that need approval, and the decisions so far.")
        .turn()
        .query("limit", "The page size.", list_limit)
        .after::<ApprovalId>()
        .json::<ApprovalList>(200, "A page of approvals.")
        .fails(TURN_READ),
        get(
            "/turns/{id}/approvals/{approval_id}",
            "readApproval",
            "Read what a tool would run with",
        )
        .scopes(&["own", "review"])
            .about(
            "One approval with the whole input of its tool. Show all of it before a person decides, \
             and send its `input_sha256` with the decision.",
        )
        .turn()
        .parameter(OperationParameter::path(
            "approval_id",
            "The approval.",
            request_schema::<ApprovalId>,
        ))
        .json::<ApprovalItem>(200, "The approval.")
        .fails(TURN_READ)
        .fails(&[Code::ApprovalNotFound]),
        post(
            "/turns/{id}/approvals",
            "answerApprovals",
            "Answer what a turn has asked",
        )
        .scopes(&["own", "review"])
            .about(
            "The last missing decision starts the turn that continues. Repeating a decision has \
                 no effect and returns the same response.",
        )
        .turn()
        .body::<ApprovalAnswers>(answer_examples)
        .json::<ApprovalsAnswered>(200, "The decisions are stored; others are missing.")
        .response(
            SuccessResponse::json::<ApprovalsAnswered>(202, decided)
                .links(next_turn, &["readTurn"]),
        )
        .fails(TURN_READ)
        .fails(&[
            Code::ApprovalNotFound,
            Code::ApprovalResolved,
            Code::ApprovalInputMismatch,
            Code::TurnNotPaused,
            Code::TurnInFlight,
            Code::Draining,
            Code::FolderLost,
            Code::StorageFull,
        ]),
    ]
}

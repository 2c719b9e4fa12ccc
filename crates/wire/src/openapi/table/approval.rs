//! Approvals of paused turns: list and decide.

use serde_json::{Value, json};

use super::{JSON, ok};
use crate::openapi::operation::{
    FailureCode, OperationMethod, OperationSpec, OperationTag, RequestBody, ResponseLink,
    SuccessResponse,
};
use crate::openapi::parameter::TURN;
use crate::openapi::schemas::{request_schema, response_schema};
use crate::problem::Code;
use crate::rest::approval::{ApprovalAnswers, ApprovalList, ApprovalsAnswered};

pub(super) const OPERATIONS: &[OperationSpec] = &[
    OperationSpec {
        method: OperationMethod::Get,
        path: "/turns/{id}/approvals",
        id: "listApprovals",
        tag: OperationTag::Turns,
        summary: "List what a turn has asked",
        about: "The tool uses of the turn that need approval, and the decisions so far.",
        owned: true,
        parameters: &[TURN],
        body: None,
        responses: &[ok(
            "The approvals.",
            &[(JSON, response_schema::<ApprovalList>)],
        )],
        problems: READ,
    },
    OperationSpec {
        method: OperationMethod::Post,
        path: "/turns/{id}/approvals",
        id: "answerApprovals",
        tag: OperationTag::Turns,
        summary: "Answer what a turn has asked",
        about: "The last missing decision starts the turn that continues. Repeating a decision has no effect and returns the same response.",
        owned: true,
        parameters: &[TURN],
        body: Some(RequestBody {
            shape: request_schema::<ApprovalAnswers>,
            required: true,
            examples,
        }),
        responses: &[
            ok(
                "The decisions are stored; others are missing.",
                &[(JSON, response_schema::<ApprovalsAnswered>)],
            ),
            SuccessResponse {
                contents: &[(JSON, response_schema::<ApprovalsAnswered>)],
                links: &[ResponseLink {
                    operation: "readTurn",
                    parameter: "id",
                    value: "$response.body#/next_turn_id",
                }],
                ..SuccessResponse::new(202, "All approvals are decided, and the next turn starts.")
            },
        ],
        problems: &[
            READ[0],
            READ[1],
            READ[2],
            FailureCode::Default(Code::ApprovalNotFound),
            FailureCode::Default(Code::ApprovalResolved),
            FailureCode::Default(Code::TurnNotPaused),
            FailureCode::Default(Code::TurnInFlight),
            FailureCode::Default(Code::Draining),
            FailureCode::Default(Code::StorageFull),
        ],
    },
];

const READ: &[FailureCode] = &[
    FailureCode::Default(Code::TurnNotFound),
    FailureCode::Default(Code::TooManyRequests),
    FailureCode::Default(Code::SessionQuarantined),
];

fn examples() -> Value {
    json!({
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
    })
}

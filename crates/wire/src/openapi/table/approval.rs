//! Questions of paused turns: list, answer.

use serde_json::{Value, json};

use super::{JSON, ok};
use crate::openapi::operation::{
    FailureCode, OperationMethod, OperationSpec, OperationTag, RequestBody, ResponseLink,
    SuccessResponse,
};
use crate::openapi::parameter::TURN;
use crate::openapi::schemas::{request_schema, response_schema};
use crate::problem::Code;
use crate::rest::approval::{Answered, Answers, List};

pub(super) const OPERATIONS: &[OperationSpec] = &[
    OperationSpec {
        method: OperationMethod::Get,
        path: "/turns/{id}/approvals",
        id: "listApprovals",
        tag: OperationTag::Turns,
        summary: "List what a turn has asked",
        about: "The tools of the turn that wait for a person, and the answers that are there.",
        owned: true,
        parameters: &[TURN],
        body: None,
        responses: &[ok("The questions.", &[(JSON, response_schema::<List>)])],
        problems: READ,
    },
    OperationSpec {
        method: OperationMethod::Post,
        path: "/turns/{id}/approvals",
        id: "answerApprovals",
        tag: OperationTag::Turns,
        summary: "Answer what a turn has asked",
        about: "The last answer opens the turn that goes on. The same answer again is answered the same.",
        owned: true,
        parameters: &[TURN],
        body: Some(RequestBody {
            shape: request_schema::<Answers>,
            required: true,
            examples,
        }),
        responses: &[
            ok(
                "The answers are taken; others are missing.",
                &[(JSON, response_schema::<Answered>)],
            ),
            SuccessResponse {
                contents: &[(JSON, response_schema::<Answered>)],
                links: &[ResponseLink {
                    operation: "readTurn",
                    parameter: "id",
                    value: "$response.body#/next_turn_id",
                }],
                ..SuccessResponse::new(202, "All answers are there, and the next turn goes on.")
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

//! Questions of paused turns: list, answer.

use serde_json::{Value, json};

use super::{JSON, ok};
use crate::openapi::operation::{Answer, Body, Link, Method, Operation, Problem, Tag};
use crate::openapi::parameter::TURN;
use crate::openapi::schemas::{given, sent};
use crate::problem::Code;
use crate::rest::approval::{Answered, Answers, List};

pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        method: Method::Get,
        path: "/turns/{id}/approvals",
        id: "listApprovals",
        tag: Tag::Turns,
        summary: "List what a turn has asked",
        about: "The tools of the turn that wait for a person, and the answers that are there.",
        owned: true,
        parameters: &[TURN],
        body: None,
        answers: &[ok("The questions.", &[(JSON, given::<List>)])],
        problems: READ,
    },
    Operation {
        method: Method::Post,
        path: "/turns/{id}/approvals",
        id: "answerApprovals",
        tag: Tag::Turns,
        summary: "Answer what a turn has asked",
        about: "The last answer opens the turn that goes on. The same answer again is answered the same.",
        owned: true,
        parameters: &[TURN],
        body: Some(Body {
            shape: sent::<Answers>,
            required: true,
            examples,
        }),
        answers: &[
            ok(
                "The answers are taken; others are missing.",
                &[(JSON, given::<Answered>)],
            ),
            Answer {
                contents: &[(JSON, given::<Answered>)],
                links: &[Link {
                    operation: "readTurn",
                    parameter: "id",
                    value: "$response.body#/next_turn_id",
                }],
                ..Answer::new(202, "All answers are there, and the next turn goes on.")
            },
        ],
        problems: &[
            READ[0],
            READ[1],
            READ[2],
            Problem::Of(Code::ApprovalNotFound),
            Problem::Of(Code::ApprovalResolved),
            Problem::Of(Code::TurnNotPaused),
            Problem::Of(Code::TurnInFlight),
            Problem::Of(Code::Draining),
            Problem::Of(Code::StorageFull),
        ],
    },
];

const READ: &[Problem] = &[
    Problem::Of(Code::TurnNotFound),
    Problem::Of(Code::TooManyRequests),
    Problem::Of(Code::SessionQuarantined),
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

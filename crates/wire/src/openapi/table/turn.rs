//! Turns: submit, list, read, cancel.

use serde_json::{Value, json};

use super::session::READ;
use super::{JSON, ok};
use crate::openapi::operation::{
    FailureCode, OperationMethod, OperationSpec, OperationTag, RequestBody, ResponseHeader,
    ResponseLink, SuccessResponse,
};
use crate::openapi::parameter::{
    BEFORE_TURN, IDEMPOTENCY_KEY, LANGUAGE, LIST_LIMIT, SESSION, TURN, WAIT, WIRE_VERSION,
};
use crate::openapi::schemas::{request_schema, response_schema};
use crate::problem::Code;
use crate::rest::turn::{
    SessionCancel, SessionCancelAccepted, TurnAccepted, TurnCancel, TurnCancelAccepted, TurnInfo,
    TurnList, TurnSubmit,
};

pub(super) const OPERATIONS: &[OperationSpec] = &[
    OperationSpec {
        method: OperationMethod::Post,
        path: "/sessions/{id}/turns",
        id: "submitTurn",
        tag: OperationTag::Turns,
        summary: "Submit a turn",
        about: "Responds as soon as the turn is on disk; the streams carry its events.",
        owned: true,
        parameters: &[SESSION, IDEMPOTENCY_KEY, WIRE_VERSION, LANGUAGE],
        body: Some(RequestBody {
            shape: request_schema::<TurnSubmit>,
            required: true,
            examples: submit_examples,
        }),
        responses: &[SuccessResponse {
            contents: &[(JSON, response_schema::<TurnAccepted>)],
            headers: &[ResponseHeader {
                name: "Location",
                about: "The path of the new turn.",
                shape: |_| json!({ "type": "string" }),
            }],
            links: &[to_turn("readTurn"), to_turn("cancelTurn")],
            ..SuccessResponse::new(202, "The turn is accepted.")
        }],
        problems: SUBMIT,
    },
    OperationSpec {
        method: OperationMethod::Get,
        path: "/sessions/{id}/turns",
        id: "listTurns",
        tag: OperationTag::Turns,
        summary: "List turns",
        about: "The turns of the session, newest first, one page at a time.",
        owned: true,
        parameters: &[SESSION, LIST_LIMIT, BEFORE_TURN],
        body: None,
        responses: &[ok(
            "A page of turns.",
            &[(JSON, response_schema::<TurnList>)],
        )],
        problems: PAGE,
    },
    OperationSpec {
        method: OperationMethod::Get,
        path: "/turns/{id}",
        id: "readTurn",
        tag: OperationTag::Turns,
        summary: "Read a turn",
        about: "The state of the turn and, once it has ended, its result.",
        owned: true,
        parameters: &[TURN],
        body: None,
        responses: &[ok("The turn.", &[(JSON, response_schema::<TurnInfo>)])],
        problems: &[
            FailureCode::Default(Code::TurnNotFound),
            FailureCode::Default(Code::TooManyRequests),
            FailureCode::Default(Code::SessionQuarantined),
        ],
    },
    OperationSpec {
        method: OperationMethod::Post,
        path: "/turns/{id}/cancel",
        id: "cancelTurn",
        tag: OperationTag::Turns,
        summary: "Cancel a turn",
        about: "No new work starts after the request. A turn that has ended is not changed.",
        owned: true,
        parameters: &[TURN, WAIT],
        body: Some(RequestBody {
            shape: request_schema::<TurnCancel>,
            required: false,
            examples: cancel_examples,
        }),
        responses: &[
            ok(
                "The ended turn with its receipt, if the request waited for the end.",
                &[(JSON, response_schema::<TurnInfo>)],
            ),
            SuccessResponse {
                contents: &[(JSON, response_schema::<TurnCancelAccepted>)],
                ..SuccessResponse::new(202, "The turn is ending or has ended.")
            },
        ],
        problems: &[
            FailureCode::Default(Code::TurnNotFound),
            FailureCode::Default(Code::TooManyRequests),
            FailureCode::Default(Code::SessionQuarantined),
        ],
    },
    OperationSpec {
        method: OperationMethod::Post,
        path: "/sessions/{id}/cancel",
        id: "cancelSession",
        tag: OperationTag::Turns,
        summary: "Cancel what a session does",
        about: "Cancels the running turn or, by the idempotency key of its submit, the turn of a submit that \
                may not have arrived yet: a submit that arrives within a minute is accepted and \
                cancelled before it starts any work.",
        owned: true,
        parameters: &[SESSION, WAIT],
        body: Some(RequestBody {
            shape: request_schema::<SessionCancel>,
            required: false,
            examples: session_cancel_examples,
        }),
        responses: &[
            ok(
                "No turn runs; or the ended turn, if the request waited for the end.",
                &[(JSON, response_schema::<SessionCancelAccepted>)],
            ),
            SuccessResponse {
                contents: &[(JSON, response_schema::<SessionCancelAccepted>)],
                ..SuccessResponse::new(202, "The turn is ending, has ended, or will not start.")
            },
        ],
        problems: &[
            FailureCode::Default(Code::SessionNotFound),
            FailureCode::Default(Code::TooManyRequests),
            FailureCode::Default(Code::SessionQuarantined),
        ],
    },
];

/// The failures of a submit.
pub(super) const SUBMIT: &[FailureCode] = &[
    FailureCode::Default(Code::SessionNotFound),
    FailureCode::Default(Code::TurnInFlight),
    FailureCode::Default(Code::UnsupportedContent),
    FailureCode::Default(Code::IdempotencyMismatch),
    FailureCode::Default(Code::QueueFull),
    FailureCode::Default(Code::TooManyRequests),
    FailureCode::Default(Code::Draining),
    FailureCode::Default(Code::SessionQuarantined),
    FailureCode::Default(Code::StorageFull),
];

/// The failures of reading a page of a session.
pub(super) const PAGE: &[FailureCode] = &[
    FailureCode::Default(Code::InvalidCursor),
    READ[0],
    READ[1],
    READ[2],
];

const fn to_turn(operation: &'static str) -> ResponseLink {
    ResponseLink {
        operation,
        parameter: "id",
        value: "$response.body#/turn_id",
    }
}

fn submit_examples() -> Value {
    json!({
        "words": { "summary": "Words", "value": { "message": "What is the time in Graz?" } },
        "blocks": {
            "summary": "Content blocks, in German, cancelled 5 s after all have left",
            "value": {
                "message": [{ "type": "text", "text": "Wie spät ist es in Graz?" }],
                "locale": "de-AT",
                "on_disconnect": "cancel",
                "disconnect_grace_ms": 5_000,
            },
        },
    })
}

fn cancel_examples() -> Value {
    json!({
        "silent": { "summary": "Without a word", "value": {} },
        "reason": { "summary": "With a reason", "value": { "reason": "No longer needed." } },
    })
}

fn session_cancel_examples() -> Value {
    json!({
        "running": { "summary": "The turn that runs now", "value": {} },
        "key": {
            "summary": "The turn of a submit, come or not",
            "value": { "idempotency_key": "4f0c7a2e", "reason": "user_cancel" },
        },
    })
}

//! The records of a session: messages, events, calls and feedback.

use serde_json::{Value, json};

use super::turn::PAGE;
use super::{JSON, ok};
use crate::openapi::operation::{
    FailureCode, OperationMethod, OperationSpec, OperationTag, RequestBody, SuccessResponse,
};
use crate::openapi::parameter::{
    BEFORE_CALL, BEFORE_MESSAGE, BEFORE_TOOL_USE, EVENTS_LIMIT, HASHES, LIST_LIMIT, MESSAGES_LIMIT,
    SESSION, SINCE, TYPES,
};
use crate::openapi::schemas::{request_schema, response_schema};
use crate::problem::Code;
use crate::rest::{event, feedback, llm_call, message, tool_call};

pub(super) const OPERATIONS: &[OperationSpec] = &[
    OperationSpec {
        method: OperationMethod::Get,
        path: "/sessions/{id}/messages",
        id: "listMessages",
        tag: OperationTag::Record,
        summary: "List messages",
        about: "The stored messages: the newest page first, each page oldest first.",
        owned: true,
        parameters: &[SESSION, MESSAGES_LIMIT, BEFORE_MESSAGE],
        body: None,
        responses: &[ok(
            "A page of messages.",
            &[(JSON, response_schema::<message::MessagesResponse>)],
        )],
        problems: &[
            PAGE[0],
            PAGE[1],
            PAGE[2],
            PAGE[3],
            FailureCode::Default(Code::MessageNotFound),
        ],
    },
    OperationSpec {
        method: OperationMethod::Get,
        path: "/sessions/{id}/events",
        id: "listEvents",
        tag: OperationTag::Record,
        summary: "Read the log",
        about: "The events of the session as they are stored, oldest first.",
        owned: true,
        parameters: &[SESSION, SINCE, TYPES, EVENTS_LIMIT, HASHES],
        body: None,
        responses: &[ok(
            "A page of the log.",
            &[(JSON, response_schema::<event::EventList>)],
        )],
        problems: &[
            PAGE[0],
            PAGE[1],
            PAGE[2],
            PAGE[3],
            FailureCode::Default(Code::CursorExpired),
            FailureCode::Default(Code::InvalidFilter),
        ],
    },
    OperationSpec {
        method: OperationMethod::Get,
        path: "/sessions/{id}/tool-calls",
        id: "listToolCalls",
        tag: OperationTag::Record,
        summary: "List tool calls",
        about: "The tool calls and how they ended, newest first.",
        owned: true,
        parameters: &[SESSION, LIST_LIMIT, BEFORE_TOOL_USE],
        body: None,
        responses: &[ok(
            "A page of tool calls.",
            &[(JSON, response_schema::<tool_call::ToolCallList>)],
        )],
        problems: PAGE,
    },
    OperationSpec {
        method: OperationMethod::Get,
        path: "/sessions/{id}/llm-calls",
        id: "listLlmCalls",
        tag: OperationTag::Record,
        summary: "List model calls",
        about: "The model calls with caller, result and usage, newest first.",
        owned: true,
        parameters: &[SESSION, LIST_LIMIT, BEFORE_CALL],
        body: None,
        responses: &[ok(
            "A page of model calls.",
            &[(JSON, response_schema::<llm_call::LlmCallList>)],
        )],
        problems: PAGE,
    },
    OperationSpec {
        method: OperationMethod::Post,
        path: "/sessions/{id}/feedback",
        id: "recordFeedback",
        tag: OperationTag::Record,
        summary: "Say what a message or a turn was worth",
        about: "The rating is stored in the log, in the scale of the client.",
        owned: true,
        parameters: &[SESSION],
        body: Some(RequestBody {
            shape: request_schema::<feedback::FeedbackRequest>,
            required: true,
            examples: feedback_examples,
        }),
        responses: &[SuccessResponse {
            contents: &[(JSON, response_schema::<feedback::FeedbackAccepted>)],
            ..SuccessResponse::new(202, "The feedback is in the log.")
        }],
        problems: &[
            FailureCode::Default(Code::SessionNotFound),
            FailureCode::Default(Code::TurnNotFound),
            FailureCode::Default(Code::MessageNotFound),
            FailureCode::Default(Code::TooManyRequests),
            FailureCode::Default(Code::Draining),
            FailureCode::Default(Code::SessionQuarantined),
            FailureCode::Default(Code::StorageFull),
        ],
    },
];

fn feedback_examples() -> Value {
    json!({
        "turn": {
            "summary": "A turn, with a word",
            "value": { "turn_id": "01KBZ4M0XQ6V9D7T3C2N8R5HJA", "rating": "up" },
        },
        "message": {
            "summary": "A message, with a number and a comment",
            "value": {
                "message_id": "01KBZ4M1B2E4P6Q8S0V2X4Z6A8",
                "rating": 2,
                "comment": "It answered another question.",
            },
        },
    })
}

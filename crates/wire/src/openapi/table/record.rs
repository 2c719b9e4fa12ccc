//! What was said and done in a session, and what people thought of it.

use serde_json::{Value, json};

use super::turn::PAGE;
use super::{JSON, ok};
use crate::openapi::operation::{Answer, Body, Method, Operation, Problem, Tag};
use crate::openapi::parameter::{
    BEFORE_CALL, BEFORE_MESSAGE, BEFORE_TOOL_USE, EVENTS_LIMIT, HASHES, LIST_LIMIT, MESSAGES_LIMIT,
    SESSION, SINCE, TYPES,
};
use crate::openapi::schemas::{given, sent};
use crate::problem::Code;
use crate::rest::{event, feedback, llm_call, message, tool_call};

pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        method: Method::Get,
        path: "/sessions/{id}/messages",
        id: "listMessages",
        tag: Tag::Record,
        summary: "List messages",
        about: "What was said: the newest page first, each page oldest first.",
        owned: true,
        parameters: &[SESSION, MESSAGES_LIMIT, BEFORE_MESSAGE],
        body: None,
        answers: &[ok("A page of messages.", &[(JSON, given::<message::List>)])],
        problems: &[
            PAGE[0],
            PAGE[1],
            PAGE[2],
            PAGE[3],
            Problem::Of(Code::MessageNotFound),
        ],
    },
    Operation {
        method: Method::Get,
        path: "/sessions/{id}/events",
        id: "listEvents",
        tag: Tag::Record,
        summary: "Read the log",
        about: "The events of the session as they are stored, oldest first.",
        owned: true,
        parameters: &[SESSION, SINCE, TYPES, EVENTS_LIMIT, HASHES],
        body: None,
        answers: &[ok("A page of the log.", &[(JSON, given::<event::List>)])],
        problems: &[
            PAGE[0],
            PAGE[1],
            PAGE[2],
            PAGE[3],
            Problem::Of(Code::CursorExpired),
            Problem::Of(Code::InvalidFilter),
        ],
    },
    Operation {
        method: Method::Get,
        path: "/sessions/{id}/tool-calls",
        id: "listToolCalls",
        tag: Tag::Record,
        summary: "List tool calls",
        about: "Which tools ran and how they ended, newest first.",
        owned: true,
        parameters: &[SESSION, LIST_LIMIT, BEFORE_TOOL_USE],
        body: None,
        answers: &[ok(
            "A page of tool calls.",
            &[(JSON, given::<tool_call::List>)],
        )],
        problems: PAGE,
    },
    Operation {
        method: Method::Get,
        path: "/sessions/{id}/llm-calls",
        id: "listLlmCalls",
        tag: Tag::Record,
        summary: "List model calls",
        about: "Which models were called and by whom, how it went and what it cost, newest first.",
        owned: true,
        parameters: &[SESSION, LIST_LIMIT, BEFORE_CALL],
        body: None,
        answers: &[ok(
            "A page of model calls.",
            &[(JSON, given::<llm_call::List>)],
        )],
        problems: PAGE,
    },
    Operation {
        method: Method::Post,
        path: "/sessions/{id}/feedback",
        id: "recordFeedback",
        tag: Tag::Record,
        summary: "Say what a message or a turn was worth",
        about: "It is kept in the log, in the client's own scale.",
        owned: true,
        parameters: &[SESSION],
        body: Some(Body {
            shape: sent::<feedback::Feedback>,
            required: true,
            examples: feedback_examples,
        }),
        answers: &[Answer {
            contents: &[(JSON, given::<feedback::Recorded>)],
            ..Answer::new(202, "It is in the log.")
        }],
        problems: &[
            Problem::Of(Code::SessionNotFound),
            Problem::Of(Code::TurnNotFound),
            Problem::Of(Code::MessageNotFound),
            Problem::Of(Code::TooManyRequests),
            Problem::Of(Code::Draining),
            Problem::Of(Code::SessionQuarantined),
            Problem::Of(Code::StorageFull),
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

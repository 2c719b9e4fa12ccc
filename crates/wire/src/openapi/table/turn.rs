//! Turns: submit, list, read, cancel.

use serde_json::{Value, json};

use super::session::READ;
use super::{JSON, ok};
use crate::openapi::operation::{Answer, Body, Header, Link, Method, Operation, Problem, Tag};
use crate::openapi::parameter::{
    BEFORE_TURN, IDEMPOTENCY_KEY, LANGUAGE, LIST_LIMIT, SESSION, TURN, WAIT, WIRE_VERSION,
};
use crate::openapi::schemas::{given, sent};
use crate::problem::Code;
use crate::rest::turn::{
    Accepted, Cancel, CancelAccepted, List, SessionCancel, SessionCancelAccepted, Submit, Turn,
};

pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        method: Method::Post,
        path: "/sessions/{id}/turns",
        id: "submitTurn",
        tag: Tag::Turns,
        summary: "Submit a turn",
        about: "Answers as soon as the turn is on disk; what happens in it is told on the streams.",
        owned: true,
        parameters: &[SESSION, IDEMPOTENCY_KEY, WIRE_VERSION, LANGUAGE],
        body: Some(Body {
            shape: sent::<Submit>,
            required: true,
            examples: submit_examples,
        }),
        answers: &[Answer {
            contents: &[(JSON, given::<Accepted>)],
            headers: &[Header {
                name: "Location",
                about: "The path of the new turn.",
                shape: |_| json!({ "type": "string" }),
            }],
            links: &[to_turn("readTurn"), to_turn("cancelTurn")],
            ..Answer::new(202, "The turn is accepted.")
        }],
        problems: SUBMIT,
    },
    Operation {
        method: Method::Get,
        path: "/sessions/{id}/turns",
        id: "listTurns",
        tag: Tag::Turns,
        summary: "List turns",
        about: "The session's turns, newest first, a page at a time.",
        owned: true,
        parameters: &[SESSION, LIST_LIMIT, BEFORE_TURN],
        body: None,
        answers: &[ok("A page of turns.", &[(JSON, given::<List>)])],
        problems: PAGE,
    },
    Operation {
        method: Method::Get,
        path: "/turns/{id}",
        id: "readTurn",
        tag: Tag::Turns,
        summary: "Read a turn",
        about: "Where it stands, and once it has ended, how.",
        owned: true,
        parameters: &[TURN],
        body: None,
        answers: &[ok("The turn.", &[(JSON, given::<Turn>)])],
        problems: &[
            Problem::Of(Code::TurnNotFound),
            Problem::Of(Code::TooManyRequests),
            Problem::Of(Code::SessionQuarantined),
        ],
    },
    Operation {
        method: Method::Post,
        path: "/turns/{id}/cancel",
        id: "cancelTurn",
        tag: Tag::Turns,
        summary: "Cancel a turn",
        about: "Nothing new starts after it. A turn that has ended stays as it is.",
        owned: true,
        parameters: &[TURN, WAIT],
        body: Some(Body {
            shape: sent::<Cancel>,
            required: false,
            examples: cancel_examples,
        }),
        answers: &[
            ok(
                "The turn as it ended, with its receipt, where that was waited for.",
                &[(JSON, given::<Turn>)],
            ),
            Answer {
                contents: &[(JSON, given::<CancelAccepted>)],
                ..Answer::new(202, "The turn ends, or has ended.")
            },
        ],
        problems: &[
            Problem::Of(Code::TurnNotFound),
            Problem::Of(Code::TooManyRequests),
            Problem::Of(Code::SessionQuarantined),
        ],
    },
    Operation {
        method: Method::Post,
        path: "/sessions/{id}/cancel",
        id: "cancelSession",
        tag: Tag::Turns,
        summary: "Cancel what a session does",
        about: "Stops the turn that runs now or, by the key of its submit, the turn of a submit that \
                may not have come yet: one that comes within a minute is accepted and stopped \
                before it begins anything.",
        owned: true,
        parameters: &[SESSION, WAIT],
        body: Some(Body {
            shape: sent::<SessionCancel>,
            required: false,
            examples: session_cancel_examples,
        }),
        answers: &[
            ok(
                "Nothing runs; or the turn as it ended, where that was waited for.",
                &[(JSON, given::<SessionCancelAccepted>)],
            ),
            Answer {
                contents: &[(JSON, given::<SessionCancelAccepted>)],
                ..Answer::new(202, "The turn ends, has ended, or will not begin.")
            },
        ],
        problems: &[
            Problem::Of(Code::SessionNotFound),
            Problem::Of(Code::TooManyRequests),
            Problem::Of(Code::SessionQuarantined),
        ],
    },
];

/// What submitting can come to.
pub(super) const SUBMIT: &[Problem] = &[
    Problem::Of(Code::SessionNotFound),
    Problem::Of(Code::TurnInFlight),
    Problem::Of(Code::UnsupportedContent),
    Problem::Of(Code::IdempotencyMismatch),
    Problem::Of(Code::QueueFull),
    Problem::Of(Code::TooManyRequests),
    Problem::Of(Code::Draining),
    Problem::Of(Code::SessionQuarantined),
    Problem::Of(Code::StorageFull),
];

/// What reading a page of a session can come to.
pub(super) const PAGE: &[Problem] = &[Problem::Of(Code::InvalidCursor), READ[0], READ[1], READ[2]];

const fn to_turn(operation: &'static str) -> Link {
    Link {
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

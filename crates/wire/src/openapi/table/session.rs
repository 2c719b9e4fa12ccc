//! `/sessions`: make, list, attach, delete, workers, stream.

use serde_json::{Value, json};

use super::{JSON, ok};
use crate::openapi::operation::{Answer, Body, Header, Link, Method, Operation, Problem, Tag};
use crate::openapi::parameter::{
    ATTACH, BEFORE_SESSION, HANDSHAKE, LIST_LIMIT, Parameter, SESSION,
};
use crate::openapi::schemas::{given, sent};
use crate::problem::Code;
use crate::rest::session::{Attached, Create, Created, List, Workers};

pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        method: Method::Post,
        path: "/sessions",
        id: "createSession",
        tag: Tag::Sessions,
        summary: "Make a session",
        about: "A session is one conversation with its own order of events.",
        owned: true,
        parameters: &[],
        body: Some(Body {
            shape: sent::<Create>,
            required: false,
            examples: create_examples,
        }),
        answers: &[Answer {
            contents: &[(JSON, given::<Created>)],
            headers: &[Header {
                name: "Location",
                about: "The path of the new session.",
                shape: |_| json!({ "type": "string" }),
            }],
            links: &[
                to_session("attachSession"),
                to_session("deleteSession"),
                to_session("listWorkers"),
                to_session("submitTurn"),
                to_session("listTurns"),
                to_session("listMessages"),
                to_session("listEvents"),
                to_session("listToolCalls"),
                to_session("listLlmCalls"),
            ],
            ..Answer::new(201, "The session is made.")
        }],
        problems: &[Problem::Of(Code::Draining), Problem::Of(Code::StorageFull)],
    },
    Operation {
        method: Method::Get,
        path: "/sessions",
        id: "listSessions",
        tag: Tag::Sessions,
        summary: "List sessions",
        about: "The owner's sessions, newest first, a page at a time. Workers are listed with the session they work for.",
        owned: true,
        parameters: &[LIST_LIMIT, BEFORE_SESSION],
        body: None,
        answers: &[ok("A page of sessions.", &[(JSON, given::<List>)])],
        problems: &[Problem::Of(Code::InvalidCursor)],
    },
    Operation {
        method: Method::Get,
        path: "/sessions/{id}",
        id: "attachSession",
        tag: Tag::Sessions,
        summary: "Read a session and get a ticket to its stream",
        about: "The attach token opens one WebSocket connection, once, soon.",
        owned: true,
        parameters: &[SESSION],
        body: None,
        answers: &[ok(
            "The session and its ticket.",
            &[(JSON, given::<Attached>)],
        )],
        problems: READ,
    },
    Operation {
        method: Method::Delete,
        path: "/sessions/{id}",
        id: "deleteSession",
        tag: Tag::Sessions,
        summary: "Delete a session",
        about: "Its turn is cancelled, its streams are closed, and what it holds is removed; so are its workers.",
        owned: true,
        parameters: &[SESSION],
        body: None,
        answers: &[Answer::new(204, "The session is gone.")],
        problems: READ,
    },
    Operation {
        method: Method::Get,
        path: "/sessions/{id}/workers",
        id: "listWorkers",
        tag: Tag::Sessions,
        summary: "List the workers of a session",
        about: "The sessions that its turns gave work to, newest first, a page at a time, each with its newest turn. A worker is a session: it is read, followed and cancelled like any other.",
        owned: true,
        parameters: &[SESSION, LIST_LIMIT, BEFORE_SESSION],
        body: None,
        answers: &[ok("A page of workers.", &[(JSON, given::<Workers>)])],
        problems: PAGED,
    },
    Operation {
        method: Method::Get,
        path: "/sessions/{id}/stream",
        id: "streamSession",
        tag: Tag::Sessions,
        summary: "Follow a session over a WebSocket",
        about: "Frames and close codes are described in docs/wires/session.md.",
        owned: false,
        parameters: &STREAM,
        body: None,
        answers: &[Answer::new(
            101,
            "The connection is a WebSocket from here on.",
        )],
        problems: &[
            Problem::Of(Code::InvalidRequest),
            Problem::Of(Code::Unauthorized),
            Problem::Of(Code::SessionNotFound),
            Problem::Of(Code::Draining),
            Problem::Of(Code::SessionQuarantined),
        ],
    },
];

/// What reading anything of a session can come to.
pub(super) const READ: &[Problem] = &[
    Problem::Of(Code::SessionNotFound),
    Problem::Of(Code::TooManyRequests),
    Problem::Of(Code::SessionQuarantined),
];

/// What reading a page of anything of a session can come to.
const PAGED: &[Problem] = &[Problem::Of(Code::InvalidCursor), READ[0], READ[1], READ[2]];

const STREAM: [Parameter; 6] = {
    let [upgrade, connection, version, key] = HANDSHAKE;
    [SESSION, ATTACH, upgrade, connection, version, key]
};

const fn to_session(operation: &'static str) -> Link {
    Link {
        operation,
        parameter: "id",
        value: "$response.body#/session_id",
    }
}

fn create_examples() -> Value {
    json!({
        "empty": { "summary": "Nothing to say about it", "value": {} },
        "labelled": {
            "summary": "With a folder and a label",
            "value": { "workspace_path": "/home/ada/project", "metadata": { "label": "first try" } },
        },
    })
}

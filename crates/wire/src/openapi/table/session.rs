//! `/sessions`: create, list, attach, delete, workers, stream.

use serde_json::{Value, json};

use super::{JSON, ok};
use crate::openapi::operation::{
    FailureCode, OperationMethod, OperationSpec, OperationTag, RequestBody, ResponseHeader,
    ResponseLink, SuccessResponse,
};
use crate::openapi::parameter::{
    ATTACH, BEFORE_SESSION, HANDSHAKE, LIST_LIMIT, OperationParameter, SESSION,
};
use crate::openapi::schemas::{request_schema, response_schema};
use crate::problem::Code;
use crate::rest::session::{
    SessionAttached, SessionCreate, SessionCreatedBody, SessionList, WorkerList,
};

pub(super) const OPERATIONS: &[OperationSpec] = &[
    OperationSpec {
        method: OperationMethod::Post,
        path: "/sessions",
        id: "createSession",
        tag: OperationTag::Sessions,
        summary: "Make a session",
        about: "A session is one conversation with its own order of events.",
        owned: true,
        parameters: &[],
        body: Some(RequestBody {
            shape: request_schema::<SessionCreate>,
            required: false,
            examples: create_examples,
        }),
        responses: &[SuccessResponse {
            contents: &[(JSON, response_schema::<SessionCreatedBody>)],
            headers: &[ResponseHeader {
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
            ..SuccessResponse::new(201, "The session is created.")
        }],
        problems: &[
            FailureCode::Default(Code::Draining),
            FailureCode::Default(Code::StorageFull),
        ],
    },
    OperationSpec {
        method: OperationMethod::Get,
        path: "/sessions",
        id: "listSessions",
        tag: OperationTag::Sessions,
        summary: "List sessions",
        about: "The sessions of the owner, newest first, one page at a time. Workers are listed with the session that started them.",
        owned: true,
        parameters: &[LIST_LIMIT, BEFORE_SESSION],
        body: None,
        responses: &[ok(
            "A page of sessions.",
            &[(JSON, response_schema::<SessionList>)],
        )],
        problems: &[FailureCode::Default(Code::InvalidCursor)],
    },
    OperationSpec {
        method: OperationMethod::Get,
        path: "/sessions/{id}",
        id: "attachSession",
        tag: OperationTag::Sessions,
        summary: "Read a session and get a ticket to its stream",
        about: "The attach token opens one WebSocket connection, once, within 60 s.",
        owned: true,
        parameters: &[SESSION],
        body: None,
        responses: &[ok(
            "The session and its attach token.",
            &[(JSON, response_schema::<SessionAttached>)],
        )],
        problems: READ,
    },
    OperationSpec {
        method: OperationMethod::Delete,
        path: "/sessions/{id}",
        id: "deleteSession",
        tag: OperationTag::Sessions,
        summary: "Delete a session",
        about: "Cancels its turn, closes its streams, and removes its records and its workers.",
        owned: true,
        parameters: &[SESSION],
        body: None,
        responses: &[SuccessResponse::new(204, "The session is deleted.")],
        problems: READ,
    },
    OperationSpec {
        method: OperationMethod::Get,
        path: "/sessions/{id}/workers",
        id: "listWorkers",
        tag: OperationTag::Sessions,
        summary: "List the workers of a session",
        about: "The sessions that its turns have started as workers, newest first, one page at a time, each with its newest turn. A worker is a session and can be read, followed and cancelled like any other.",
        owned: true,
        parameters: &[SESSION, LIST_LIMIT, BEFORE_SESSION],
        body: None,
        responses: &[ok(
            "A page of workers.",
            &[(JSON, response_schema::<WorkerList>)],
        )],
        problems: PAGED,
    },
    OperationSpec {
        method: OperationMethod::Get,
        path: "/sessions/{id}/stream",
        id: "streamSession",
        tag: OperationTag::Sessions,
        summary: "Follow a session over a WebSocket",
        about: "Frames and close codes are described in docs/wires/session.md.",
        owned: false,
        parameters: &STREAM,
        body: None,
        responses: &[SuccessResponse::new(
            101,
            "The connection is upgraded to a WebSocket.",
        )],
        problems: &[
            FailureCode::Default(Code::InvalidRequest),
            FailureCode::Default(Code::Unauthorized),
            FailureCode::Default(Code::SessionNotFound),
            FailureCode::Default(Code::Draining),
            FailureCode::Default(Code::SessionQuarantined),
        ],
    },
];

/// The failures of reading a session.
pub(super) const READ: &[FailureCode] = &[
    FailureCode::Default(Code::SessionNotFound),
    FailureCode::Default(Code::TooManyRequests),
    FailureCode::Default(Code::SessionQuarantined),
];

/// The failures of reading a page of records of a session.
const PAGED: &[FailureCode] = &[
    FailureCode::Default(Code::InvalidCursor),
    READ[0],
    READ[1],
    READ[2],
];

const STREAM: [OperationParameter; 6] = {
    let [upgrade, connection, version, key] = HANDSHAKE;
    [SESSION, ATTACH, upgrade, connection, version, key]
};

const fn to_session(operation: &'static str) -> ResponseLink {
    ResponseLink {
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

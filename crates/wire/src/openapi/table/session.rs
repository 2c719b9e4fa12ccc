//! `/sessions`: create, list, attach, delete, workers, stream.

use serde_json::json;
use turnwire_event::SessionId;

use super::{OperationTag, SESSION_READ};
use crate::openapi::operation::{
    OperationSpec, RequestIdentity, SuccessResponse, delete, get, post,
};
use crate::openapi::parameter::{OperationParameter, list_limit, principal_or_all, string};
use crate::problem::Code;
use crate::rest::session::{
    SessionAttached, SessionCreate, SessionCreatedBody, SessionList, WorkerList,
};

pub(super) fn tag() -> OperationTag {
    let create_examples = json!({
        "empty": { "summary": "Nothing to say about it", "value": {} },
        "labelled": {
            "summary": "With a folder and a label",
            "value": { "workspace_path": "/home/ada/project", "metadata": { "label": "first try" } },
        },
    });
    let session_id = "$response.body#/session_id";
    let about_session = [
        "attachSession",
        "deleteSession",
        "listWorkers",
        "submitTurn",
        "listTurns",
        "listMessages",
        "listEvents",
        "listToolCalls",
        "listLlmCalls",
    ];
    let operations = vec![
        post("/sessions", "createSession", "Make a session")
            .scopes(&["own", "tenant:read"])
            .about("A session is one conversation with its own order of events.")
            .optional_body::<SessionCreate>(create_examples)
            .response(
                SuccessResponse::json::<SessionCreatedBody>(201, "The session is created.")
                    .location("The path of the new session.")
                    .links(session_id, &about_session),
            )
            .fails(&[
                Code::Draining,
                Code::DatabaseDamaged,
                Code::FolderLost,
                Code::StorageFull,
            ]),
        get("/sessions", "listSessions", "List sessions")
            .scopes(&["own", "tenant:read"])
            .about("The sessions of the owner, newest first, one page at a time, without their metadata. \
                 Workers are listed with the session that started them.")
            .query(
                "principal",
                "Another principal of the tenant, or `*` for all, with the scope `tenant:read`; the \
                 caller if absent.",
                principal_or_all,
            )
            .page::<SessionId>(list_limit)
            .json::<SessionList>(200, "A page of sessions."),
        get("/sessions/{id}", "attachSession", "Read a session and get a ticket to its stream")
            .about("The attach token opens one WebSocket connection, once, within 60 s.")
            .session()
            .json::<SessionAttached>(200, "The session and its attach token.")
            .fails(SESSION_READ),
        delete("/sessions/{id}", "deleteSession", "Delete a session")
            .about("Cancels its turn, closes its streams, and removes its records and its workers.")
            .session()
            .response(SuccessResponse::new(204, "The session is deleted."))
            .fails(SESSION_READ)
            .fails(&[Code::FolderLost, Code::StorageFull]),
        get("/sessions/{id}/workers", "listWorkers", "List the workers of a session")
            .about("The sessions that its turns have started as workers, newest first, one page at a \
                 time, each with its newest turn. A worker is a session and can be read, followed and \
                 cancelled like any other.")
            .session()
            .page::<SessionId>(list_limit)
            .json::<WorkerList>(200, "A page of workers.")
            .fails(SESSION_READ),
        handshake(get("/sessions/{id}/stream", "streamSession", "Follow a session over a WebSocket").session())
            .about("Both sides send JSON text frames. `/asyncapi.json` has the schema of each; in the repository they \
                 are schema/wires/session-client.json and schema/wires/session-server.json, and \
                 docs/wires/session.md describes them and the close codes.")
            .identity(RequestIdentity::Counted)
            .scopes(&[])
            .attach_token()
            .response(SuccessResponse::new(
                101,
                "The connection is upgraded to a WebSocket.",
            ))
            .fails(&[
                Code::InvalidRequest,
                Code::Unauthorized,
                Code::Forbidden,
                Code::SessionNotFound,
                Code::Draining,
                Code::SessionQuarantined,
                Code::DatabaseDamaged,
            ]),
    ];
    OperationTag {
        name: "sessions",
        about: "Conversations and access to their streams.",
        operations,
    }
}

/// Adds the attach token and the headers of a WebSocket handshake, which are all required.
fn handshake(operation: OperationSpec) -> OperationSpec {
    let token = "The attach token from GET /sessions/{id}.";
    [
        OperationParameter::query("attach", token, string),
        OperationParameter::header(
            "Upgrade",
            "This path is a WebSocket (RFC 6455, version 13).",
            |_| json!({ "type": "string", "enum": ["websocket"] }),
        ),
        OperationParameter::header(
            "Connection",
            "Among others, `Upgrade`.",
            |_| json!({ "type": "string", "enum": ["Upgrade"] }),
        ),
        OperationParameter::header(
            "Sec-WebSocket-Version",
            "The version of the protocol.",
            |_| json!({ "type": "string", "enum": ["13"] }),
        ),
        OperationParameter::header(
            "Sec-WebSocket-Key",
            "Sixteen random bytes in base64.",
            |_| json!({ "type": "string", "pattern": "^[A-Za-z0-9+/]{21}[AQgw]==$" }),
        ),
    ]
    .into_iter()
    .fold(operation, |operation, parameter| {
        operation.parameter(parameter.required())
    })
}

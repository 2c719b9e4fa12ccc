//! The records of a session: messages, events, calls and feedback.

use serde_json::{Value, json};
use turnwire_event::{CallId, EventType, Message, MessageId, Position, ToolUseId, TypeSet};

use super::{OperationTag, SESSION_READ};
use crate::openapi::operation::{get, post};
use crate::openapi::parameter::{OperationParameter, flag, limit, list_limit};
use crate::openapi::schemas::{DocumentSchemas, request_schema};
use crate::problem::Code;
use crate::rest::event::EventList;
use crate::rest::feedback::{FeedbackAccepted, FeedbackRequest};
use crate::rest::llm_call::LlmCallList;
use crate::rest::message::MessagesResponse;
use crate::rest::tool_call::ToolCallList;

pub(super) fn tag() -> OperationTag {
    let feedback_examples = json!({
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
    });
    let operations = vec![
        get("/sessions/{id}/messages", "listMessages", "List messages")
            .scopes(&["own", "tenant:read"])
            .about("The stored messages: the newest page first, each page oldest first. A message that \
                 exceeds an answer has `omitted_bytes` instead of its content.")
            .session()
            .page::<MessageId>(|schemas| limit(schemas.limits.messages_page))
            .json::<MessagesResponse>(200, "A page of messages.")
            .fails(SESSION_READ)
            .fails(&[Code::MessageNotFound]),
        get(
            "/sessions/{id}/messages/{message_id}",
            "readMessage",
            "Read a message",
        )
        .scopes(&["own", "tenant:read"])
            .about("The message with all of its content, whatever its size.")
        .session()
        .parameter(OperationParameter::path(
            "message_id",
            "The message.",
            request_schema::<MessageId>,
        ))
        .json::<Message>(200, "The message.")
        .fails(SESSION_READ)
        .fails(&[Code::MessageNotFound]),
        get("/sessions/{id}/events", "listEvents", "Read the log")
            .scopes(&["own", "tenant:read"])
            .about("The events of the session as they are stored, oldest first.")
            .session()
            .query(
                "since",
                "Only events after this one; from the beginning if absent.",
                request_schema::<Position>,
            )
            .query(
                "types",
                "Only events of these types: names separated by commas.",
                types,
            )
            .query("limit", "The page size.", |schemas| {
                limit(schemas.limits.events_page)
            })
            .query(
                "hashes",
                "Whether to include the hashes of the chain.",
                flag,
            )
            .json::<EventList>(200, "A page of the log.")
            .fails(&[Code::InvalidCursor])
            .fails(SESSION_READ)
            .fails(&[Code::CursorExpired, Code::InvalidFilter, Code::QuotaExceeded]),
        get(
            "/sessions/{id}/tool-calls",
            "listToolCalls",
            "List tool calls",
        )
        .scopes(&["own", "tenant:read"])
            .about("The tool calls and how they ended, newest first.")
        .session()
        .page::<ToolUseId>(list_limit)
        .json::<ToolCallList>(200, "A page of tool calls.")
        .fails(SESSION_READ),
        get(
            "/sessions/{id}/llm-calls",
            "listLlmCalls",
            "List model calls",
        )
        .scopes(&["own", "tenant:read"])
            .about("The model calls with caller, result and usage, newest first.")
        .session()
        .page::<CallId>(list_limit)
        .json::<LlmCallList>(200, "A page of model calls.")
        .fails(SESSION_READ),
        post(
            "/sessions/{id}/feedback",
            "recordFeedback",
            "Say what a message or a turn was worth",
        )
        .about("The rating is stored in the log, in the scale of the client.")
        .session()
        .body::<FeedbackRequest>(feedback_examples)
        .json::<FeedbackAccepted>(202, "The feedback is in the log.")
        .fails(&[
            Code::SessionNotFound,
            Code::TurnNotFound,
            Code::MessageNotFound,
            Code::TooManyRequests,
            Code::Draining,
            Code::SessionQuarantined,
            Code::DatabaseDamaged,
            Code::FolderLost,
            Code::StorageFull,
        ]),
    ];
    OperationTag {
        name: "record",
        about: "Stored messages, events and calls.",
        operations,
    }
}

/// The schema of the names of event types between commas.
fn types(_: &mut DocumentSchemas) -> Value {
    let names: Vec<&str> = TypeSet::filterable().iter().map(EventType::name).collect();
    let alternatives = names.join("|").replace('.', "\\.");
    json!({ "type": "string", "pattern": format!("^({alternatives})(,({alternatives}))*$"),
        "examples": ["turn.started,turn.completed"] })
}

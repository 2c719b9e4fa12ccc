//! `/chat`: a turn whose response is its own stream.

use serde_json::{Value, json};
use turnwire_event::SessionId;

use super::turn::SUBMIT;
use crate::openapi::operation::{
    FailureCode, OperationMethod, OperationSpec, OperationTag, RequestBody, ResponseHeader,
    SuccessResponse,
};
use crate::openapi::parameter::{
    IDEMPOTENCY_KEY, LANGUAGE, LAST_EVENT_ID, LAST_EVENT_ID_QUERY, RESPONSE, WIRE_VERSION,
};
use crate::openapi::schemas::{DocumentSchemas, request_schema, response_schema};
use crate::pc3::cursor::FRAME_ID_PATTERN;
use crate::problem::Code;
use crate::rest::chat::ChatRequest;

const EVENT_STREAM: &str = crate::pc3::MEDIA_TYPE;

const SESSION: ResponseHeader = ResponseHeader {
    name: "X-Session-Id",
    about: "The session of the turn.",
    shape: response_schema::<SessionId>,
};

pub(super) const OPERATIONS: &[OperationSpec] = &[
    OperationSpec {
        method: OperationMethod::Post,
        path: "/chat/stream",
        id: "streamChat",
        tag: OperationTag::Chat,
        summary: "Submit a turn and read its answer as it comes",
        about: "Creates a session if the request names none. The stream ends with the turn; resume a broken \
                stream with GET /chat/{response_id}/stream.",
        owned: true,
        parameters: &[IDEMPOTENCY_KEY, WIRE_VERSION, LANGUAGE],
        body: Some(RequestBody {
            shape: request_schema::<ChatRequest>,
            required: true,
            examples: chat_examples,
        }),
        responses: &[SuccessResponse {
            contents: &[(EVENT_STREAM, block)],
            headers: &[SESSION],
            ..SuccessResponse::new(200, "The frames of the turn.")
        }],
        problems: &STREAM,
    },
    OperationSpec {
        method: OperationMethod::Get,
        path: "/chat/{response_id}/stream",
        id: "resumeChat",
        tag: OperationTag::Chat,
        summary: "Go on reading an answer",
        about: "From the frame after the given one, or from the first.",
        owned: true,
        parameters: &[RESPONSE, LAST_EVENT_ID, LAST_EVENT_ID_QUERY, WIRE_VERSION],
        body: None,
        responses: &[
            SuccessResponse {
                contents: &[(EVENT_STREAM, block)],
                headers: &[SESSION],
                ..SuccessResponse::new(200, "The frames of the turn after the given one.")
            },
            SuccessResponse::new(
                204,
                "The turn has ended, and the client has its last frame.",
            ),
        ],
        problems: &[
            FailureCode::Default(Code::InvalidCursor),
            FailureCode::Default(Code::TurnNotFound),
            FailureCode::Default(Code::WireVersionMismatch),
            FailureCode::Default(Code::CursorExpired),
            FailureCode::Default(Code::TooManyRequests),
            FailureCode::Default(Code::SessionQuarantined),
        ],
    },
];

/// The failures of a submit, and that of streaming.
const STREAM: [FailureCode; SUBMIT.len() + 1] = {
    let mut all = [FailureCode::Default(Code::WireVersionMismatch); SUBMIT.len() + 1];
    let mut at = 0;
    while at < SUBMIT.len() {
        all[at + 1] = SUBMIT[at];
        at += 1;
    }
    all
};

/// The schema of one event of the stream.
fn block(_: &mut DocumentSchemas) -> Value {
    json!({
        "type": "object",
        "description": "One event of the stream. Its data is a frame of the chat wire as JSON, or [DONE] after the \
                        last frame.",
        "properties": {
            "id": { "type": "string", "pattern": FRAME_ID_PATTERN },
            "event": { "type": "string" },
            "data": { "type": "string" },
            "retry": { "type": "integer", "minimum": 0 },
        },
        "required": ["data"],
    })
}

fn chat_examples() -> Value {
    json!({
        "words": { "summary": "In a new session", "value": { "message": "What is the time in Graz?" } },
        "careful": {
            "summary": "Goes on when the client leaves",
            "value": {
                "message": "Summarise the report.",
                "locale": "en",
                "on_disconnect": "continue",
                "metadata": { "page": 3 },
            },
        },
    })
}

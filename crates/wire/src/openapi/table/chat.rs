//! `/chat`: a turn whose response is its own stream.

use serde_json::{Value, json};
use turnwire_event::{ResponseId, SessionId};

use super::{OperationTag, SUBMIT};
use crate::openapi::operation::{SuccessResponse, get, post};
use crate::openapi::parameter::{IDEMPOTENCY_KEY, LANGUAGE, OperationParameter, WIRE_VERSION};
use crate::openapi::schemas::{DocumentSchemas, request_schema, response_schema};
use crate::pc3::MEDIA_TYPE;
use crate::pc3::cursor::FRAME_ID_PATTERN;
use crate::problem::Code;
use crate::rest::chat::ChatRequest;
use crate::rest::turn::TurnName;

pub(super) fn tag() -> OperationTag {
    let chat_examples = json!({
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
    });
    let operations = vec![
        post(
            "/chat/stream",
            "streamChat",
            "Submit a turn and read its answer as it comes",
        )
        .about(
            "Creates a session if the request names none. The stream ends with the turn; resume a \
                 broken stream with GET /chat/{response_id}/stream.",
        )
        .parameter(IDEMPOTENCY_KEY)
        .parameter(WIRE_VERSION)
        .parameter(LANGUAGE)
        .body::<ChatRequest>(chat_examples)
        .response(stream("The frames of the turn."))
        .fails(&[Code::WireVersionMismatch])
        .fails(SUBMIT),
        get(
            "/chat/{response_id}/stream",
            "resumeChat",
            "Go on reading an answer",
        )
        .about("From the frame after the given one, or from the first.")
        .parameter(OperationParameter::path(
            "response_id",
            "The turn, by its response id.",
            request_schema::<TurnName>,
        ))
        .parameter(OperationParameter::header(
            "Last-Event-ID",
            "The id of the last frame that the client has; the stream continues after it.",
            frame_id_or_nothing,
        ))
        .query(
            "last_event_id",
            "The same as the header, for clients that cannot send it; the header takes precedence.",
            frame_id_or_nothing,
        )
        .attach_token()
        .parameter(WIRE_VERSION)
        .response(stream("The frames of the turn after the given one."))
        .response(SuccessResponse::new(
            204,
            "The turn has ended, and the client has its last frame.",
        ))
        .fails(&[
            Code::InvalidCursor,
            Code::TurnNotFound,
            Code::WireVersionMismatch,
            Code::CursorExpired,
            Code::TooManyRequests,
            Code::QuotaExceeded,
            Code::SessionQuarantined,
            Code::DatabaseDamaged,
        ]),
    ];
    OperationTag {
        name: "chat",
        about: "A turn whose response is its own stream of server-sent events.",
        operations,
    }
}

/// An empty id counts as absent: some clients send one before their first frame.
fn frame_id_or_nothing(_: &mut DocumentSchemas) -> Value {
    json!({ "type": "string", "pattern": format!("^$|{FRAME_ID_PATTERN}") })
}

fn stream(about: &'static str) -> SuccessResponse {
    let session = response_schema::<SessionId>;
    let response = response_schema::<ResponseId>;
    SuccessResponse::new(200, about)
        .content(MEDIA_TYPE, blocks)
        .header("X-Session-Id", "The session of the turn.", session)
        .header(
            "X-Response-Id",
            "The turn: `resp_` and its id, also where an upstream gave the `response_id` of the frames.",
            response,
        )
}

/// The text of the stream, which is not JSON: generated clients would parse an object of it.
fn blocks(_: &mut DocumentSchemas) -> Value {
    json!({
        "type": "string",
        "description": "Server-sent events. Each block has the lines `id`, `event` (the type of the frame) and `data` \
                        (the frame as one line of JSON), and ends with an empty line; after the last frame comes \
                        `data: [DONE]`. A `retry` line and comments may stand between blocks. `/asyncapi.json` \
                        has the schema of each frame; in the repository they are schema/wires/pc3-0.5.json and \
                        schema/wires/pc3-0.4.json, and docs/wires/pc3.md describes the wire.",
    })
}

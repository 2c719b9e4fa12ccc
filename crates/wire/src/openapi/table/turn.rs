//! Turns: submit, list, read, cancel.

use serde_json::json;
use turnwire_event::TurnId;

use super::{CANCEL, OperationTag, SESSION_READ, SUBMIT, TURN_READ, approval};
use crate::openapi::operation::{SuccessResponse, get, post};
use crate::openapi::parameter::{IDEMPOTENCY_KEY, LANGUAGE, WAIT, WIRE_VERSION, list_limit};
use crate::problem::Code;
use crate::rest::turn::{
    SessionCancel, SessionCancelAccepted, TurnAccepted, TurnCancel, TurnCancelAccepted, TurnInfo,
    TurnList, TurnSubmit,
};

pub(super) fn tag() -> OperationTag {
    let submit_examples = json!({
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
        "scheduled": {
            "summary": "A turn of a job, started by a scheduler",
            "value": {
                "message": "What changed since yesterday?",
                "origin": "scheduled",
                "job": "daily-digest",
                "on_busy": "enqueue",
            },
        },
    });
    let cancel_examples = json!({
        "silent": { "summary": "Without a word", "value": {} },
        "reason": { "summary": "With a reason", "value": { "reason": "No longer needed." } },
    });
    let session_cancel_examples = json!({
        "running": { "summary": "The turn that runs now", "value": {} },
        "key": {
            "summary": "The turn of a submit, come or not",
            "value": { "idempotency_key": "4f0c7a2e", "reason": "user_cancel" },
        },
    });
    let mut operations = vec![
        post("/sessions/{id}/turns", "submitTurn", "Submit a turn")
            .about("Responds as soon as the turn is on disk; the streams carry its events.")
            .session()
            .parameter(IDEMPOTENCY_KEY)
            .parameter(WIRE_VERSION)
            .parameter(LANGUAGE)
            .body::<TurnSubmit>(submit_examples)
            .response(
                SuccessResponse::json::<TurnAccepted>(202, "The turn is accepted.")
                    .location("The path of the new turn.")
                    .links("$response.body#/turn_id", &["readTurn", "cancelTurn"]),
            )
            .fails(SUBMIT)
            .fails(&[Code::JobPaused]),
        get("/sessions/{id}/turns", "listTurns", "List turns")
            .scopes(&["own", "tenant:read"])
            .scopes(&["own", "tenant:read"])
            .about("The turns of the session, newest first, one page at a time.")
            .session()
            .page::<TurnId>(list_limit)
            .json::<TurnList>(200, "A page of turns.")
            .fails(SESSION_READ),
        get("/turns/{id}", "readTurn", "Read a turn")
            .about("The state of the turn and, once it has ended, its result.")
            .turn()
            .json::<TurnInfo>(200, "The turn.")
            .fails(TURN_READ),
        post("/turns/{id}/cancel", "cancelTurn", "Cancel a turn")
            .about("No new work starts after the request. A turn that has ended is not changed.")
            .turn()
            .parameter(WAIT)
            .optional_body::<TurnCancel>(cancel_examples)
            .json::<TurnInfo>(
                200,
                "The ended turn with its receipt, if the request waited for the end.",
            )
            .json::<TurnCancelAccepted>(202, "The turn is ending or has ended.")
            .fails(TURN_READ)
            .fails(CANCEL),
        post(
            "/sessions/{id}/cancel",
            "cancelSession",
            "Cancel what a session does",
        )
        .about(
            "Cancels the running turn or, by the idempotency key of its submit, the turn of a \
                 submit that may not have arrived yet: a submit that arrives within a minute is \
                 accepted and cancelled before it starts any work.",
        )
        .session()
        .parameter(WAIT)
        .optional_body::<SessionCancel>(session_cancel_examples)
        .json::<SessionCancelAccepted>(
            200,
            "No turn runs; or the ended turn, if the request waited for the end.",
        )
        .json::<SessionCancelAccepted>(202, "The turn is ending, has ended, or will not start.")
        .fails(SESSION_READ)
        .fails(CANCEL),
    ];
    operations.extend(approval::operations());
    OperationTag {
        name: "turns",
        about: "One user input and everything done to answer it.",
        operations,
    }
}

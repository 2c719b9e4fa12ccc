//! The texts about each code: one match arm per code, so that a new code needs its texts to compile.

use super::ProblemHelp;
use super::RetryAdvice::{self, AfterChange, Later, No};
use crate::problem::Code;

impl Code {
    /// The description of the code.
    pub const fn help(self) -> ProblemHelp {
        match self {
            Self::MalformedJson => help(
                "The request body is not valid JSON.",
                "A bracket is missing, the text ends too early, or the body is not UTF-8. \
                `line` and `column` are the position of the error.",
                "Correct the body at that position and send it again.",
                AfterChange,
            ),
            Self::InvalidCursor => help(
                "The cursor is malformed, or belongs to another session.",
                "The cursor in the query was truncated, changed or made up, or comes from another session.",
                "Send a cursor exactly as a response or an event contains it, or omit it to start at the \
                beginning.",
                AfterChange,
            ),
            Self::TenantRequired => help(
                "The request does not name a tenant.",
                "The server is configured to reject requests without the header X-Tenant-Id.",
                "Send X-Tenant-Id with the UUID of your tenant.",
                AfterChange,
            ),
            Self::TenantInvalid => help(
                "The header X-Tenant-Id is not a single UUID.",
                "The value is empty, misspelt, or the header is sent twice.",
                "Send one UUID in its usual spelling, with hyphens.",
                AfterChange,
            ),
            Self::Unauthorized => help(
                "The attach token is not valid for this stream.",
                "The token is unknown, was used before, has expired, or belongs to another session.",
                "Request a new token with GET /sessions/{id} and connect with it at once.",
                AfterChange,
            ),
            Self::HostNotAllowed => help(
                "The request names a host that this server does not serve.",
                "The Host header is not localhost, an address in 127.0.0.0/8 or [::1]; a foreign name may have been pointed at this server.",
                "Use a loopback name or address in the URL.",
                AfterChange,
            ),
            Self::OriginNotAllowed => help(
                "The request comes from a page of another site that is not allowed.",
                "A browser sent an Origin header that is neither this server's own nor listed \
                in the setting http.cors_origins.",
                "Open the page from this server, or add the page's exact origin to \
                http.cors_origins and restart the server.",
                AfterChange,
            ),
            Self::NotFound => help(
                "The path does not exist.",
                "The path is misspelt, or names a resource that does not exist for this owner.",
                "Compare the path with /openapi.json.",
                AfterChange,
            ),
            Self::SessionNotFound => help(
                "This owner has no session with this id.",
                "The id is misspelt, the session was deleted, or it belongs to another tenant \
                or principal.",
                "List your sessions with GET /sessions, or create one with POST /sessions.",
                AfterChange,
            ),
            Self::TurnNotFound => help(
                "This owner has no turn with this id.",
                "The id is misspelt, its session was deleted, or it belongs to another tenant \
                or principal.",
                "List the turns of the session with GET /sessions/{id}/turns.",
                AfterChange,
            ),
            Self::MessageNotFound => help(
                "The session has no message with this id.",
                "The id is misspelt, or the message belongs to another session.",
                "List the messages of the session with GET /sessions/{id}/messages.",
                AfterChange,
            ),
            Self::ApprovalNotFound => help(
                "The turn has not requested an approval with this id.",
                "The id is misspelt, or another turn requested the approval.",
                "List the approvals of the turn with GET /turns/{id}/approvals.",
                AfterChange,
            ),
            Self::MethodNotAllowed => help(
                "The path exists, but does not support this method.",
                "A GET was sent to a path that expects a POST, or the reverse.",
                "Use one of the methods in the Allow header of the response.",
                No,
            ),
            Self::RequestTimeout => help(
                "The request did not arrive in time.",
                "The connection is slow or stalled, and the body did not arrive within the time limit of \
                the server.",
                "Send the request again; for very slow connections the setting is \
                http.body_timeout_ms.",
                Later,
            ),
            Self::TurnInFlight => help(
                "The session is busy: one turn runs at a time.",
                "A turn was submitted while the one in `turn_id` was still running.",
                "Wait for that turn to end, cancel it with POST /turns/{id}/cancel, or submit \
                with `on_busy` set to `enqueue` or `interrupt`.",
                AfterChange,
            ),
            Self::TurnNotPaused => help(
                "The turn does not wait for approvals.",
                "The turn is still running, or ended without requesting an approval.",
                "Read the turn with GET /turns/{id}; only a turn whose terminal has the status `paused` \
                accepts decisions.",
                AfterChange,
            ),
            Self::ApprovalResolved => help(
                "The approval in `approval_id` is already decided differently.",
                "Another person decided first, the turn was cancelled, or a new message was sent instead \
                of a decision.",
                "Read the decisions with GET /turns/{id}/approvals; a decision cannot be changed.",
                No,
            ),
            Self::StreamingDisabled => help(
                "The server is configured not to stream.",
                "A stream was requested while streaming is disabled.",
                "Submit the turn with POST /sessions/{id}/turns and read its messages when it \
                has ended.",
                No,
            ),
            Self::StepConflict => help(
                "A step with this id is already stored with other content.",
                "The same step was sent twice and the two differ.",
                "Send the step again exactly as before, or send the new step with another id.",
                No,
            ),
            Self::WireVersionMismatch => help(
                "The turn uses another version of the chat wire than the requested one.",
                "The stream of a turn was resumed with another X-Wire-Version than it was \
                started with.",
                "Resume with the version that the turn was started with.",
                AfterChange,
            ),
            Self::CursorExpired => help(
                "The server no longer stores the events after this position.",
                "The client was disconnected longer than the retention time, or the log of the session was \
                trimmed.",
                "Start without a cursor: read the messages and continue from there.",
                AfterChange,
            ),
            Self::ReplayExpired => help(
                "The stream of this turn is no longer stored.",
                "The turn ended so long ago that its frames have been removed.",
                "Read the messages with GET /sessions/{id}/messages.",
                No,
            ),
            Self::BodyTooLarge => help(
                "The request body exceeds the size limit.",
                "The body is larger than `limit_bytes`.",
                "Send a smaller body, or raise the setting http.body_max_bytes.",
                AfterChange,
            ),
            Self::UnsupportedMediaType => help(
                "The request does not declare its body as JSON.",
                "Content-Type is missing or is something other than application/json.",
                "Send the header Content-Type: application/json.",
                AfterChange,
            ),
            Self::InvalidRequest => help(
                "The request is well-formed, but one of its values is invalid.",
                "A value is missing, out of bounds, of the wrong type, or conflicts with another one; `field` names it if a single field is the cause.",
                "Follow `detail`; /openapi.json has the limits of every value.",
                AfterChange,
            ),
            Self::UnknownField => help(
                "The body or the query has an unknown field.",
                "The name is misspelt, or the request is for another version of the server. `field` is \
                the name.",
                "Remove the field, or spell it as in /openapi.json.",
                AfterChange,
            ),
            Self::UnsupportedContent => help(
                "The message has a content block of a type that no model supports.",
                "A block has another type than `text`; `content_type` is its type.",
                "Send text blocks only.",
                AfterChange,
            ),
            Self::InvalidFilter => help(
                "The filter names an unknown event type.",
                "One of the names in `types` is misspelt or unknown to this server.",
                "Use the names in schema/event.json, separated by commas.",
                AfterChange,
            ),
            Self::IdempotencyMismatch => help(
                "The Idempotency-Key was used before, with another body.",
                "Two different requests have the same key within the lifetime of keys.",
                "Use a new key for a new request, and the same key only to repeat the same \
                one.",
                No,
            ),
            Self::ModeUnsupported => help(
                "The requested mode is not supported.",
                "The request names a mode that this server, or this turn, does not have.",
                "Omit the mode, or choose one that /openapi.json lists.",
                AfterChange,
            ),
            Self::QueueFull => help(
                "The queue of the session is full.",
                "Turns were submitted with `on_busy: enqueue` faster than the session can run \
                them.",
                "Wait until one of the queued turns has started, then submit again.",
                Later,
            ),
            Self::TooManyRequests => help(
                "A limit on connections or open work is reached.",
                "Very many clients are connected, or very many sessions are open at once.",
                "Try again after the seconds in Retry-After.",
                Later,
            ),
            Self::Internal => help(
                "The server failed for a reason that the client did not cause.",
                "This is a defect of the server or of the machine it runs on.",
                "Try again once; if the error persists, send the `trace_id` to the operator of the server: \
                the log contains the cause.",
                Later,
            ),
            Self::Draining => help(
                "The server is shutting down and accepts no new turns.",
                "The server was asked to stop; running turns have some time to end.",
                "Try again after the seconds in Retry-After, when another process may have replaced it.",
                Later,
            ),
            Self::SessionQuarantined => help(
                "The stored events of this session do not match their hash chain.",
                "The database file was damaged or changed from outside. Other sessions are not affected.",
                "Use another session; the operator of the server can check it with `turnwire verify` and \
                restore a backup.",
                AfterChange,
            ),
            Self::StorageFull => help(
                "The disk has no space left for a new turn.",
                "The disk that holds the data folder is full. Reading and cancelling still \
                work.",
                "Free disk space; the server continues by itself.",
                Later,
            ),
        }
    }
}

/// The arguments are the fields of [`ProblemHelp`], in order.
const fn help(
    meaning: &'static str,
    when: &'static str,
    what_to_do: &'static str,
    retry: RetryAdvice,
) -> ProblemHelp {
    ProblemHelp {
        meaning,
        when,
        what_to_do,
        retry,
    }
}

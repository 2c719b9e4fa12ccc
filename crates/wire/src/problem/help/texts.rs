//! The texts about each code: one match arm per code, so that a new code needs its texts to compile.

use super::ProblemHelp;
use super::Retry::{self, AfterChange, Later, No};
use crate::problem::Code;

impl Code {
    /// The description of the code.
    pub const fn help(self) -> ProblemHelp {
        match self {
            Self::MalformedJson => help(
                "The body of the request is not JSON.",
                "A bracket is missing, the text ends too early, or the body is not UTF-8. \
                `line` and `column` say where reading stopped.",
                "Mend the body at that place and send it again.",
                AfterChange,
            ),
            Self::InvalidCursor => help(
                "The position or id to go on from cannot be read, or is not one of this \
                session's.",
                "A cursor in the query was cut, changed or made by hand, or it comes from \
                another session.",
                "Send a cursor exactly as an answer or an event gave it, or none to start at \
                the beginning.",
                AfterChange,
            ),
            Self::TenantRequired => help(
                "The request does not say for which tenant it speaks.",
                "The server is set to refuse requests without the header X-Tenant-Id.",
                "Send X-Tenant-Id with the UUID of your tenant.",
                AfterChange,
            ),
            Self::TenantInvalid => help(
                "The header X-Tenant-Id is there, but it is not one UUID.",
                "The value is empty, misspelt, or the header is sent twice.",
                "Send one UUID in its usual spelling, with hyphens.",
                AfterChange,
            ),
            Self::Unauthorized => help(
                "The attach token does not open this stream.",
                "The token is unknown, used before, older than its lifetime, or another \
                session's.",
                "Ask for a new one with GET /sessions/{id} and connect with it at once.",
                AfterChange,
            ),
            Self::HostNotAllowed => help(
                "The request names a host that this server does not answer for.",
                "The Host header is not localhost, an address in 127.0.0.0/8 or [::1]; a name \
                elsewhere may have been made to point here.",
                "Use a loopback name or address in the URL.",
                AfterChange,
            ),
            Self::OriginNotAllowed => help(
                "A page of another site made this request, and that site is not let in.",
                "A browser sent an Origin header that is neither this server's own nor listed \
                in the setting http.cors_origins.",
                "Open the page from this server, or add the page's exact origin to \
                http.cors_origins and start the server again.",
                AfterChange,
            ),
            Self::NotFound => help(
                "There is nothing at this path.",
                "The path is misspelt, or the thing it names does not exist for you.",
                "Compare the path with /openapi.json.",
                AfterChange,
            ),
            Self::SessionNotFound => help(
                "There is no session with this id among yours.",
                "The id is misspelt, the session was deleted, or it belongs to another tenant \
                or principal.",
                "List your sessions with GET /sessions, or make one with POST /sessions.",
                AfterChange,
            ),
            Self::TurnNotFound => help(
                "There is no turn with this id among yours.",
                "The id is misspelt, its session was deleted, or it belongs to another tenant \
                or principal.",
                "List the turns of the session with GET /sessions/{id}/turns.",
                AfterChange,
            ),
            Self::MessageNotFound => help(
                "There is no message with this id in the session.",
                "The id is misspelt, or the message belongs to another session.",
                "List the messages of the session with GET /sessions/{id}/messages.",
                AfterChange,
            ),
            Self::ApprovalNotFound => help(
                "The turn has asked no question with this id.",
                "The id is misspelt, or the question was asked by another turn.",
                "List what the turn has asked with GET /turns/{id}/approvals.",
                AfterChange,
            ),
            Self::MethodNotAllowed => help(
                "There is something at this path, but not for this method.",
                "A GET was sent where a POST is wanted, or the other way round.",
                "Use one of the methods that the Allow header of the answer lists.",
                No,
            ),
            Self::RequestTimeout => help(
                "The request did not arrive in time.",
                "The connection is so slow, or stalled for so long, that the body took longer \
                than the server waits.",
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
                "The turn waits for no answers.",
                "It is still at work, or it ended without asking anything.",
                "Look at it with GET /turns/{id}; only a turn whose terminal has the status \
                `paused` takes answers.",
                AfterChange,
            ),
            Self::ApprovalResolved => help(
                "The question in `approval_id` has another answer already.",
                "Someone else has answered first, the turn was cancelled, or another message was \
                sent instead of an answer.",
                "Look with GET /turns/{id}/approvals at who answered what; an answer is not \
                changed.",
                No,
            ),
            Self::StreamingDisabled => help(
                "The server is set not to stream answers.",
                "A stream was asked for while streaming is switched off.",
                "Submit the turn with POST /sessions/{id}/turns and read its messages when it \
                has ended.",
                No,
            ),
            Self::StepConflict => help(
                "A step with this id is already recorded with another content.",
                "The same step was sent twice and the two differ.",
                "Send the step again exactly as before, or give the new one an id of its own.",
                No,
            ),
            Self::WireVersionMismatch => help(
                "The turn speaks another version of the wire than the one asked for.",
                "The stream of a turn was resumed with another X-Wire-Version than it was \
                started with.",
                "Resume with the version that the turn was started with.",
                AfterChange,
            ),
            Self::CursorExpired => help(
                "The position is outside what the server still keeps.",
                "The client was away longer than events are kept, or the session's log has \
                been shortened since.",
                "Start again without a cursor: read the messages and follow from there.",
                AfterChange,
            ),
            Self::ReplayExpired => help(
                "The stream of this answer is no longer kept.",
                "The turn ended so long ago that its frames have been removed.",
                "Read what was said with GET /sessions/{id}/messages.",
                No,
            ),
            Self::BodyTooLarge => help(
                "The body has more bytes than the server takes.",
                "The body is over the limit in `limit_bytes`.",
                "Send less, or have the setting http.body_max_bytes raised.",
                AfterChange,
            ),
            Self::UnsupportedMediaType => help(
                "The body is not said to be JSON.",
                "Content-Type is missing or is something other than application/json.",
                "Send the header Content-Type: application/json.",
                AfterChange,
            ),
            Self::InvalidRequest => help(
                "The request can be read, but one of its values makes no sense.",
                "A value is missing, out of bounds, of the wrong type, or contradicts \
                another; `field` names it where one is to blame.",
                "Follow `detail`; /openapi.json has the bounds of every value.",
                AfterChange,
            ),
            Self::UnknownField => help(
                "The body or the query has a field that does not exist.",
                "A name is misspelt, or the request was made for another version of the \
                server. `field` has the name.",
                "Take the field out, or spell it as in /openapi.json.",
                AfterChange,
            ),
            Self::UnsupportedContent => help(
                "The message has a content block of a kind that no model here takes.",
                "A block has another type than `text`; `content_type` says which.",
                "Send text blocks only.",
                AfterChange,
            ),
            Self::InvalidFilter => help(
                "The filter names a type of event that does not exist.",
                "One of the names in `types` is misspelt or unknown to this server.",
                "Use the names in schema/event.json, separated by commas.",
                AfterChange,
            ),
            Self::IdempotencyMismatch => help(
                "The Idempotency-Key was used before, with another body.",
                "Two different requests carry the same key within the time that keys are \
                kept.",
                "Use a new key for a new request, and the same key only to repeat the same \
                one.",
                No,
            ),
            Self::ModeUnsupported => help(
                "The mode that was asked for is not supported here.",
                "The request names a mode that this server, or this turn, does not have.",
                "Leave the mode out, or choose one that /openapi.json lists.",
                AfterChange,
            ),
            Self::QueueFull => help(
                "As many turns as may wait are waiting already.",
                "Turns were submitted with `on_busy: enqueue` faster than the session can run \
                them.",
                "Wait for one of them to end, then submit again.",
                Later,
            ),
            Self::TooManyRequests => help(
                "A limit on connections or open work is reached.",
                "Very many clients are connected, or very many sessions are open at once.",
                "Try again after the seconds in Retry-After.",
                Later,
            ),
            Self::Internal => help(
                "Something failed inside the server that is not the client's fault.",
                "This is a defect of the server or of the machine it runs on.",
                "Try again once; if it stays, give the `trace_id` to whoever runs the server: \
                its log has the cause under it.",
                Later,
            ),
            Self::Draining => help(
                "The server is about to end and takes no new work.",
                "It was told to stop; turns that run are given time to end.",
                "Try again after the seconds in Retry-After, by when another process may have \
                taken its place.",
                Later,
            ),
            Self::SessionQuarantined => help(
                "The stored record of this session does not match its own hashes.",
                "The database file was damaged or changed from outside. Other sessions go on.",
                "Use another session; whoever runs the server can look with `turnwire verify` \
                and restore a backup.",
                AfterChange,
            ),
            Self::StorageFull => help(
                "There is no room left on the disk for a new turn.",
                "The disk that holds the data folder is full. Reading and cancelling still \
                work.",
                "Make room on the disk; the server goes on by itself.",
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
    retry: Retry,
) -> ProblemHelp {
    ProblemHelp {
        meaning,
        when,
        what_to_do,
        retry,
    }
}

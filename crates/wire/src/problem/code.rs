//! The codes of the REST API's errors: one table with the name, status, title and description of
//! each. A new code is a new entry.

use serde::{Deserialize, Serialize};

use RetryAdvice::{AfterChange, Later, No};

/// Whether the same request can succeed later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "Retry")
)]
#[serde(rename_all = "snake_case")]
pub enum RetryAdvice {
    /// The same request fails again.
    No,
    /// Another condition must change first; `what_to_do` names it.
    AfterChange,
    /// The request may succeed later: wait for `Retry-After`, or with growing delays.
    Later,
}

/// The texts about one [`Code`], for the pages at `/problems/<code>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProblemHelp {
    /// The meaning of the code in one sentence.
    pub meaning: &'static str,
    /// The conditions under which the server responds with the code.
    pub when: &'static str,
    /// The action that resolves the problem.
    pub what_to_do: &'static str,
    /// Whether to repeat the request.
    pub retry: RetryAdvice,
}

macro_rules! codes {
    ($($variant:ident = $name:literal, $status:literal, $title:literal, $retry:ident,
        $meaning:literal, $when:literal, $what_to_do:literal;)+) => {
        /// The stable code of a failed request.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "each variant is its code")]
        pub enum Code { $($variant),+ }

        impl Code {
            /// Every code, ordered by HTTP status.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The code on the wire.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// The HTTP status of the response.
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status),+ }
            }

            /// The meaning of the code in a few words.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title),+ }
            }

            /// The path of the description: `/problems/<code>`.
            pub const fn kind(self) -> &'static str {
                match self { $(Self::$variant => concat!("/problems/", $name)),+ }
            }

            /// The description of the code.
            pub const fn help(self) -> ProblemHelp {
                let (meaning, when, what_to_do, retry) = match self {
                    $(Self::$variant => ($meaning, $when, $what_to_do, $retry)),+
                };
                ProblemHelp { meaning, when, what_to_do, retry }
            }

            /// Parses a code of the wire.
            pub fn named(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

// Name, status, title and whether to retry; then the meaning, when it occurs, and what to do.
codes! {
    MalformedJson = "malformed_json", 400, "The body is not JSON", AfterChange,
        "The request body is not valid JSON.",
        "A bracket is missing, the text ends too early, or the body is not UTF-8. \
        `line` and `column` are the position of the error.",
        "Correct the body at that position and send it again.";
    InvalidCursor = "invalid_cursor", 400, "The cursor is malformed", AfterChange,
        "The cursor is malformed, or belongs to another session.",
        "The cursor in the query was truncated, changed or made up, or comes from another session.",
        "Send a cursor exactly as a response or an event contains it, or omit it to start at the \
        beginning.";
    TenantRequired = "tenant_required", 400, "A tenant is required", AfterChange,
        "The request does not name a tenant.",
        "The server is configured to reject requests without the header X-Tenant-Id.",
        "Send X-Tenant-Id with the UUID of your tenant.";
    TenantInvalid = "tenant_invalid", 400, "The tenant is not a UUID", AfterChange,
        "The header X-Tenant-Id is not a single UUID.",
        "The value is empty, misspelt, or the header is sent twice.",
        "Send one UUID in its usual spelling, with hyphens.";
    Unauthorized = "unauthorized", 401, "Not authorised", AfterChange,
        "The request has no token, or one that is not valid.",
        "A bearer token is missing, unknown, revoked, expired or for another service: `reason` says \
        which. Without `reason` it is the attach token of a stream: unknown, used, expired, or for \
        another session or site.",
        "Send a valid token in the header Authorization: Bearer. For a stream, request a new attach \
        token with GET /sessions/{id} and connect with it at once.";
    Forbidden = "forbidden", 403, "Not allowed", AfterChange,
        "The token is valid and does not allow this.",
        "The token lacks the scope in `scope`, or the header X-Tenant-Id or X-Turnwire-Principal \
        names somebody else than the token.",
        "Use a token with that scope, or leave the header out.";
    HostNotAllowed = "host_not_allowed", 403, "The Host header is not allowed", AfterChange,
        "The request names a host that this server does not serve.",
        "The Host header is neither a loopback name, nor that of server.public_url, nor listed in \
        server.hosts; a foreign name may have been pointed at this server.",
        "Use one of these names in the URL, or add the name to server.hosts.";
    OriginNotAllowed = "origin_not_allowed", 403, "The Origin header is not allowed", AfterChange,
        "The request comes from a page of another site that is not allowed.",
        "A browser sent an Origin header that is neither this server's own nor listed \
        in the setting http.cors_origins.",
        "Open the page from this server, or add the page's exact origin to \
        http.cors_origins and restart the server.";
    NotFound = "not_found", 404, "No such path", AfterChange,
        "The path does not exist.",
        "The path is misspelt, or names a resource that does not exist for this owner.",
        "Compare the path with /openapi.json.";
    SessionNotFound = "session_not_found", 404, "No such session", AfterChange,
        "This owner has no session with this id.",
        "The id is misspelt, the session was deleted, or it belongs to another tenant \
        or principal.",
        "List your sessions with GET /sessions, or create one with POST /sessions.";
    TurnNotFound = "turn_not_found", 404, "No such turn", AfterChange,
        "This owner has no turn with this id.",
        "The id is misspelt, its session was deleted, or it belongs to another tenant \
        or principal.",
        "List the turns of the session with GET /sessions/{id}/turns.";
    MessageNotFound = "message_not_found", 404, "No such message", AfterChange,
        "The session has no message with this id.",
        "The id is misspelt, or the message belongs to another session.",
        "List the messages of the session with GET /sessions/{id}/messages.";
    ApprovalNotFound = "approval_not_found", 404, "No such approval", AfterChange,
        "The turn has not requested an approval with this id.",
        "The id is misspelt, or another turn requested the approval.",
        "List the approvals of the turn with GET /turns/{id}/approvals.";
    JobNotFound = "job_not_found", 404, "No such job", AfterChange,
        "The tenant has no job with this name.",
        "The name is misspelt, the job belongs to another tenant, its scheduler has not started a turn \
        yet, or not for so long that the job was forgotten.",
        "List the jobs of your tenant with GET /jobs.";
    MethodNotAllowed = "method_not_allowed", 405, "The method is not allowed here", No,
        "The path exists, but does not support this method.",
        "A GET was sent to a path that expects a POST, or the reverse.",
        "Use one of the methods in the Allow header of the response.";
    RequestTimeout = "request_timeout", 408, "The request took too long to arrive", Later,
        "The request did not arrive in time.",
        "The connection is slow or stalled, and the body did not arrive within the time limit of \
        the server.",
        "Send the request again; for very slow connections the setting is \
        http.body_timeout_ms.";
    TurnInFlight = "turn_in_flight", 409, "A turn is already in flight", AfterChange,
        "The session is busy: one turn runs at a time.",
        "A turn was submitted while the one in `turn_id` was still running.",
        "Wait for that turn to end, cancel it with POST /turns/{id}/cancel, or submit \
        with `on_busy` set to `enqueue` or `interrupt`.";
    JobPaused = "job_paused", 409, "The job is paused", AfterChange,
        "The turn was not started, because its job is paused.",
        "An administrator has paused the job in `job`. The audit has a record of this request with the \
        outcome `skipped_paused`; the same Idempotency-Key gets the same answer also later.",
        "Do nothing: this run of the job is skipped on purpose. POST /jobs/{job}/resume, or `turnwire jobs \
        resume`, lets later ones run.";
    TurnNotPaused = "turn_not_paused", 409, "The turn is not paused", AfterChange,
        "The turn does not wait for approvals.",
        "The turn is still running, or ended without requesting an approval.",
        "Read the turn with GET /turns/{id}; only a turn whose terminal has the status `paused` \
        accepts decisions.";
    ApprovalResolved = "approval_resolved", 409, "The approval is already decided", No,
        "The approval in `approval_id` is already decided differently.",
        "Another person decided first, the turn was cancelled, or a new message was sent instead \
        of a decision.",
        "Read the decisions with GET /turns/{id}/approvals; a decision cannot be changed.";
    ApprovalInputMismatch = "approval_input_mismatch", 409, "The decision is about another input", AfterChange,
        "The tool would run with another input than the one in `input_sha256`.",
        "The client sent the digest of the input of another approval, or of a part of the input.",
        "Read the whole input with GET /turns/{id}/approvals/{approval_id}, show it, and decide \
        again.";
    StreamingDisabled = "streaming_disabled", 409, "Streaming is disabled", No,
        "The server is configured not to stream.",
        "A stream was requested while streaming is disabled.",
        "Submit the turn with POST /sessions/{id}/turns and read its messages when it \
        has ended.";
    StepConflict = "step_conflict", 409, "The step exists with other content", No,
        "A step with this id is already stored with other content.",
        "The same step was sent twice and the two differ.",
        "Send the step again exactly as before, or send the new step with another id.";
    WireVersionMismatch = "wire_version_mismatch", 409, "The turn is bound to another wire version", AfterChange,
        "The turn uses another version of the chat wire than the requested one.",
        "The stream of a turn was resumed with another X-Wire-Version than it was \
        started with.",
        "Resume with the version that the turn was started with.";
    CursorExpired = "cursor_expired", 410, "The cursor has expired", AfterChange,
        "The server no longer stores the events after this position.",
        "The client was disconnected longer than the retention time, or the log of the session was \
        trimmed.",
        "Start without a cursor: read the messages and continue from there.";
    ReplayExpired = "replay_expired", 410, "The replay has expired", No,
        "The stream of this turn is no longer stored.",
        "The turn ended so long ago that its frames have been removed.",
        "Read the messages with GET /sessions/{id}/messages.";
    BodyTooLarge = "body_too_large", 413, "The body is too large", AfterChange,
        "The request body exceeds the size limit.",
        "The body is larger than `limit_bytes`.",
        "Send a smaller body, or raise the setting http.body_max_bytes.";
    UnsupportedMediaType = "unsupported_media_type", 415, "The body must be JSON", AfterChange,
        "The request does not declare its body as JSON.",
        "Content-Type is missing or is something other than application/json.",
        "Send the header Content-Type: application/json.";
    InvalidRequest = "invalid_request", 422, "The request is invalid", AfterChange,
        "The request is well-formed, but one of its values is invalid.",
        "A value is missing, out of bounds, of the wrong type, or conflicts with another one; `field` names it if a single field is the cause.",
        "Follow `detail`; /openapi.json has the limits of every value.";
    UnknownField = "unknown_field", 422, "Unknown field", AfterChange,
        "The body or the query has an unknown field.",
        "The name is misspelt, or the request is for another version of the server. `field` is \
        the name.",
        "Remove the field, or spell it as in /openapi.json.";
    UnsupportedContent = "unsupported_content", 422, "The content type is not supported", AfterChange,
        "The message has a content block of a type that no model supports.",
        "A block has another type than `text`; `content_type` is its type.",
        "Send text blocks only.";
    InvalidFilter = "invalid_filter", 422, "The filter names something unknown", AfterChange,
        "The filter names an unknown event type.",
        "One of the names in `types` is misspelt or unknown to this server.",
        "Use the names in schema/event.json, separated by commas.";
    IdempotencyMismatch = "idempotency_mismatch", 422, "The key was used with another body", No,
        "The Idempotency-Key was used before, with another body.",
        "Two different requests have the same key within the lifetime of keys.",
        "Use a new key for a new request, and the same key only to repeat the same \
        one.";
    ModeUnsupported = "mode_unsupported", 422, "The mode is not supported", AfterChange,
        "The requested mode is not supported.",
        "The request names a mode that this server, or this turn, does not have.",
        "Omit the mode, or choose one that /openapi.json lists.";
    QueueFull = "queue_full", 429, "Too many turns are waiting", Later,
        "The queue of the session is full.",
        "Turns were submitted with `on_busy: enqueue` faster than the session can run \
        them.",
        "Wait until one of the queued turns has started, then submit again.";
    TooManyRequests = "too_many_requests", 429, "Too many requests", Later,
        "A limit on connections or open work is reached.",
        "Very many clients are connected, or very many sessions are open at once.",
        "Try again after the seconds in Retry-After.";
    QuotaExceeded = "quota_exceeded", 429, "A quota is used up", Later,
        "A quota of the principal or of its tenant is used up.",
        "The principal, or everybody in its tenant together, has used what the operator allows in a \
        minute or on a day (UTC). `quota` names what, `scope` whose, and `limit` how much; the header \
        RateLimit tells what is left of each quota.",
        "Try again after the seconds in Retry-After, or ask the operator for a larger quota.";
    Internal = "internal", 500, "Internal server error", Later,
        "The server failed for a reason that the client did not cause.",
        "This is a defect of the server or of the machine it runs on.",
        "Try again once; if the error persists, send the `trace_id` to the operator of the server: \
        the log contains the cause.";
    Draining = "draining", 503, "The server is shutting down", Later,
        "The server is shutting down and accepts no new turns.",
        "The server was asked to stop; running turns have some time to end.",
        "Try again after the seconds in Retry-After, when another process may have replaced it.";
    AuthUnavailable = "auth_unavailable", 503, "Tokens cannot be checked", Later,
        "The server cannot check tokens now.",
        "The keys of the identity provider could not be loaded since the server started.",
        "Send the request again later; the server keeps asking for the keys.";
    SessionQuarantined = "session_quarantined", 503, "The session is quarantined", AfterChange,
        "The stored events of this session do not match their hash chain.",
        "The database file was damaged or changed from outside. Other sessions are not affected.",
        "Use another session; the operator of the server can check it with `turnwire verify` and \
        restore a backup.";
    DatabaseDamaged = "database_damaged", 503, "The database is damaged", AfterChange,
        "A part of the database that all sessions share cannot be read or written.",
        "The database file was damaged or changed from outside. New turns are refused; what is intact can still be \
        read.",
        "Ask the operator of the server: its log has the cause, and docs/operations.md says how to restore a backup.";
    FolderLost = "data_folder_lost", 503, "The data folder is lost", AfterChange,
        "The server's data folder, or a file of its database, was removed, moved or replaced.",
        "The server still runs, but what it writes now is lost when it ends. New turns are refused.",
        "Ask the operator of the server: move the folder back, or stop the server and restore a backup.";
    StorageFull = "storage_full", 507, "The disk is full", Later,
        "The disk has no space left for a new turn, or for the record of a cancel.",
        "The disk that holds the data folder is full. Reading and cancelling still \
        work. A cancel that is answered with this stops its turn; what cannot be written is \
        the record of it.",
        "Free disk space; the server continues by itself.";
}

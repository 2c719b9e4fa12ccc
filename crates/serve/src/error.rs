//! Error responses: [`RequestFault`], the error that handlers return, and the one table from the
//! session crate's [`Error`] to problem codes and details.
//!
//! A handler's error response has no body. The [`middleware`](crate::middleware) knows the trace id
//! and adds the [`Problem`] with `with_problem_body`, so every error response is a problem
//! document.

mod detail;

use std::borrow::Cow;
use std::fmt::Display;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use tracing::Instrument as _;
use turnwire_event::code::AuditOutcome;
use turnwire_event::{ResponseId, metric};
use turnwire_session::{Error, QuotaExceeded};
use turnwire_wire::problem::{Code, MEDIA_TYPE, Problem};

use detail::{limit_detail, quota_detail};

/// What is left of the quotas of the caller.
pub(crate) const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
/// The quotas of the caller.
pub(crate) const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The error of a request that is refused or has failed; `with_problem_body` turns it into a
/// [`Problem`].
#[derive(Clone, Debug, PartialEq)]
pub struct RequestFault {
    code: Code,
    status: StatusCode,
    detail: Cow<'static, str>,
    /// The time of `Retry-After`, if it is not that of the code.
    retry_in: Option<Duration>,
    /// Members of the problem besides the standard ones.
    extra: Map<String, Value>,
}

impl RequestFault {
    /// A fault with this code. `detail` tells the client what happened and what to do; it has no
    /// internals of the server.
    pub fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            status: StatusCode::from_u16(code.status()).expect("the table has valid statuses"),
            detail: detail.into(),
            retry_in: None,
            extra: Map::new(),
        }
    }

    /// An invalid field, parameter or header. The detail is the sentence `{field} {rule}.`, for
    /// example "limit may occur once.".
    pub fn invalid(field: &str, rule: impl Display) -> Self {
        Self::new(Code::InvalidRequest, format!("{field} {rule}.")).with("field", field)
    }

    /// Returns an [`invalid`](Self::invalid) fault if `text` has more than `max` characters.
    pub fn check_length(field: &str, text: Option<&str>, max: usize) -> Result<(), Self> {
        if text.is_some_and(|text| text.chars().count() > max) {
            return Err(Self::invalid(field, format!("may have {max} characters")));
        }
        Ok(())
    }

    /// Returns an [`invalid`](Self::invalid) fault if a field of `bytes` has more than `max`.
    pub fn check_bytes(field: &str, bytes: usize, max: usize) -> Result<(), Self> {
        if bytes > max {
            return Err(Self::oversized(field, bytes, max));
        }
        Ok(())
    }

    /// The fault of a field of `bytes` that may have `max`.
    pub fn oversized(field: &str, bytes: usize, max: usize) -> Self {
        let rule = format!("has {bytes} bytes and may have {max}");
        Self::invalid(field, rule).with("limit_bytes", max)
    }

    /// Adds a member to the problem.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.extra.insert(name.to_owned(), value.into());
        self
    }

    /// Replaces the status of the [`Code`].
    #[must_use]
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// The code of the problem.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The fault for an error response of axum, by its status.
    fn for_status(status: StatusCode) -> Self {
        let fault = match status {
            StatusCode::NOT_FOUND => Self::not_found(),
            StatusCode::METHOD_NOT_ALLOWED => Self::method_not_allowed(),
            StatusCode::PAYLOAD_TOO_LARGE => {
                Self::new(Code::BodyTooLarge, "The body is over the limit.")
            }
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                Self::new(Code::UnsupportedMediaType, "Send application/json.")
            }
            status if status.is_server_error() => Self::internal(),
            _ => Self::new(Code::InvalidRequest, "The request cannot be read."),
        };
        fault.with_status(status)
    }

    /// No route has this path.
    pub fn not_found() -> Self {
        Self::new(Code::NotFound, "There is nothing at this path.")
    }

    /// A route has this path, but not this method.
    pub fn method_not_allowed() -> Self {
        Self::new(
            Code::MethodNotAllowed,
            "This path does not take this method; see the Allow header.",
        )
    }

    /// An internal failure; the server's log has the cause under the trace id.
    pub fn internal() -> Self {
        Self::new(
            Code::Internal,
            "Something went wrong inside; the server's log has more under the trace id.",
        )
    }

    /// A limit that many requests share is reached: 429 with `Retry-After`.
    pub fn limit_reached(detail: impl Into<Cow<'static, str>>, max: usize) -> Self {
        Self::new(Code::TooManyRequests, detail).with("limit", max)
    }

    /// A quota is used up: 429 with the time after which the request is possible.
    fn quota_exceeded(refused: &QuotaExceeded) -> Self {
        let mut fault = Self::new(Code::QuotaExceeded, quota_detail(refused))
            .with("quota", refused.kind.name())
            .with("scope", refused.scope.name())
            .with("limit", refused.limit);
        fault.retry_in = Some(refused.retry_in.max(Duration::from_millis(1)));
        fault
    }

    /// The value of the `Retry-After` header, in seconds.
    fn retry_after_s(&self) -> Option<u64> {
        if let Some(retry_in) = self.retry_in {
            // Rounded up: a client that waits so long is not refused again.
            return u64::try_from(retry_in.as_millis().div_ceil(1_000)).ok();
        }
        match self.code {
            Code::TooManyRequests | Code::QueueFull => Some(1),
            Code::Draining | Code::StorageFull | Code::AuthUnavailable => Some(5),
            Code::SessionQuarantined | Code::DatabaseDamaged | Code::FolderLost => Some(60),
            _ => None,
        }
    }

    /// The complete response: status, headers and the [`Problem`] as its body.
    fn into_problem_response(self, trace_id: &str) -> Response {
        let retry_after_s = self.retry_after_s();
        let mut problem = Problem::new(self.code, self.detail, trace_id);
        problem.status = self.status.as_u16();
        problem.extra = self.extra;
        let body = serde_json::to_vec(&problem).expect("a problem is plain data");
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        if let Some(seconds) = retry_after_s {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if self.code == Code::Unauthorized {
            let challenge = match problem.extra.get("reason").and_then(Value::as_str) {
                None => "AttachToken",
                Some("missing") => "Bearer realm=\"turnwire\"",
                Some(_) => "Bearer realm=\"turnwire\", error=\"invalid_token\"",
            };
            let challenge = HeaderValue::from_static(challenge);
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

impl IntoResponse for RequestFault {
    /// A response without a body; `with_problem_body` adds the problem.
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.status;
        response.extensions_mut().insert(self);
        response
    }
}

/// Adds a [`Problem`] as the body of an error response, from a handler or from axum. Returns other
/// responses unchanged.
pub(crate) fn with_problem_body(mut response: Response, trace_id: &str) -> Response {
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return response;
    }
    let fault = response.extensions_mut().remove::<RequestFault>();
    let fault = fault.unwrap_or_else(|| RequestFault::for_status(status));
    let mut problem_response = fault.into_problem_response(trace_id);
    // Only axum knows the methods of the route, and only the route the quotas.
    for name in [header::ALLOW, RATE_LIMIT, RATE_LIMIT_POLICY] {
        if let Some(value) = response.headers_mut().remove(&name) {
            problem_response.headers_mut().insert(name, value);
        }
    }
    problem_response
}

impl From<Error> for RequestFault {
    /// The table of codes and details. A resource of another owner and a missing one have the same
    /// detail.
    fn from(error: Error) -> Self {
        let (code, detail) = match error {
            Error::SessionNotFound => (Code::SessionNotFound, "There is no session with this id."),
            Error::TurnNotFound => (Code::TurnNotFound, "There is no turn with this id."),
            Error::MessageNotFound => (Code::MessageNotFound, "There is no message with this id."),
            Error::ToolCallNotFound => (Code::NotFound, "There is no tool call with this id."),
            Error::ApprovalNotFound => (
                Code::ApprovalNotFound,
                "The turn has no approval request with this id.",
            ),
            Error::JobNotFound => (Code::JobNotFound, "The tenant has no job with this name."),
            Error::JobPaused(job) => {
                let detail = "The job is paused: there is no turn, which the audit records.";
                return Self::new(Code::JobPaused, detail)
                    .with("job", json!(job))
                    .with("outcome", json!(AuditOutcome::SkippedPaused));
            }
            Error::TurnNotPaused => (
                Code::TurnNotPaused,
                "The turn is not waiting for approvals.",
            ),
            Error::ApprovalResolved(id) => {
                let detail = "The approval request already has another decision.";
                return Self::new(Code::ApprovalResolved, detail).with("approval_id", json!(id));
            }
            Error::ApprovalInputMismatch(id) => {
                let detail = "The tool would run with another input than the one decided on.";
                let fault = Self::new(Code::ApprovalInputMismatch, detail);
                return fault.with("approval_id", json!(id));
            }
            Error::TurnInFlight(turn) => {
                let detail = "The session is busy with a turn; wait for it or cancel it.";
                return Self::new(Code::TurnInFlight, detail)
                    .with("turn_id", json!(turn))
                    .with("response_id", json!(ResponseId::from(turn)));
            }
            Error::QueueFull => (
                Code::QueueFull,
                "The session's queue of turns is full; try again when a turn has ended.",
            ),
            Error::LimitReached {
                resource,
                refusal,
                max,
            } => return Self::limit_reached(limit_detail(resource, refusal), max),
            Error::IdempotencyMismatch => (
                Code::IdempotencyMismatch,
                "This Idempotency-Key was used with another body; send a new key.",
            ),
            Error::InvalidCursor => (
                Code::InvalidCursor,
                "The cursor does not belong to this session.",
            ),
            Error::CursorExpired => (
                Code::CursorExpired,
                "The cursor is outside the retained events; start again without a cursor.",
            ),
            Error::Quarantined => (
                Code::SessionQuarantined,
                "The session's log is damaged and is not served; other sessions are not affected.",
            ),
            Error::DatabaseDamaged => (
                Code::DatabaseDamaged,
                "The database is damaged: no new turn can start; what is intact can still be read.",
            ),
            Error::FolderLost => (
                Code::FolderLost,
                "The server's data folder was removed or replaced: no new turn can start.",
            ),
            Error::StorageFull => (
                Code::StorageFull,
                "The disk is full: no new turn can start; reading still works, and a cancelled turn \
                 stops.",
            ),
            Error::Draining => (
                Code::Draining,
                "The server is shutting down and accepts no new work.",
            ),
            Error::QuotaExceeded(refused) => return Self::quota_exceeded(&refused),
            Error::TooMany => (Code::TooManyRequests, "A limit is reached; try again soon."),
            Error::TooManyReads => {
                count_refusal("reads");
                let detail = "You have as many reads waiting as one principal may have; try again \
                              soon.";
                (Code::TooManyRequests, detail)
            }
            Error::TooManyWrites => {
                count_refusal("writes");
                let detail = "You have as many writes waiting as one principal may have; try again \
                              soon.";
                (Code::TooManyRequests, detail)
            }
            Error::Internal => return Self::internal(),
        };
        Self::new(code, detail)
    }
}

/// Counts a request that is refused because its owner has reached `limit`.
pub(crate) fn count_refusal(limit: &'static str) {
    ::metrics::counter!(metric::LIMIT_REFUSED_TOTAL, "limit" => limit, "scope" => "owner")
        .increment(1);
}

/// Runs `work` in its own task, so that it completes even if the client disconnects.
pub(crate) async fn run_to_end<T, E, W>(work: W) -> Result<T, RequestFault>
where
    T: Send + 'static,
    E: Into<RequestFault> + Send + 'static,
    W: Future<Output = Result<T, E>> + Send + 'static,
{
    let joined = tokio::spawn(work.in_current_span()).await;
    joined
        .map_err(|_| RequestFault::internal())?
        .map_err(Into::into)
}

#[cfg(test)]
mod tests;

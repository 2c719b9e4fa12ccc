//! Frames of what went wrong: a code, and of the rest only what the code is for (S1-089, S1-093).
//!
//! ```text
//! error.reported          error, is_final false; in 0.4 nothing, where any error is the end (D-22)
//! turn.completed failed   error, is_final true; in 0.4 without the codes of the axes
//! turn.cancelled          cancelled; in 0.4 an error, is_final true
//! ```

use serde::Serialize;
use turnwire_event::body::turn::{Cancelled, TurnError};
use turnwire_event::code::{CancelCode, ErrorCode, Reason};

use super::block::Blocks;
use super::mark::Mark;
use super::version::Version;

/// The `error` object of a failure.
#[derive(Serialize)]
struct Detail<'a> {
    code: ErrorCode,
    #[serde(skip_serializing_if = "Option::is_none")]
    sub_agent_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enricher_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<Vec<Detail<'a>>>,
}

impl<'a> Detail<'a> {
    /// What is told of `error` under this code.
    fn of(code: ErrorCode, error: &'a TurnError) -> Self {
        let mut detail = Self {
            code,
            sub_agent_id: None,
            enricher_id: None,
            reason: None,
            failed: None,
        };
        match code {
            ErrorCode::InternalError | ErrorCode::RateLimitError => {}
            ErrorCode::SubAgentFailed => detail.sub_agent_id = error.sub_agent_id.as_deref(),
            ErrorCode::CcsEnvelopeError => {
                detail.enricher_id = error.enricher_id.as_deref();
                detail.reason = error.reason;
            }
            ErrorCode::PartialFanOut => {
                detail.failed = Some(error.failed.iter().filter_map(Self::record).collect());
            }
        }
        detail
    }

    /// One failure of several: of a sub-agent or of an enricher, in the shape it has alone
    /// (S1-092). Other codes are no records.
    fn record(error: &'a TurnError) -> Option<Self> {
        match error.code {
            ErrorCode::SubAgentFailed | ErrorCode::CcsEnvelopeError => {
                Some(Self::of(error.code, error))
            }
            ErrorCode::InternalError | ErrorCode::RateLimitError | ErrorCode::PartialFanOut => None,
        }
    }
}

/// A failure that the turn outlives.
pub(super) fn reported(to: &mut Blocks<'_>, error: &TurnError) {
    if to.version == Version::V04 {
        return;
    }
    let mark = match error.code {
        ErrorCode::InternalError => Mark::ReportedInternal,
        ErrorCode::RateLimitError => Mark::ReportedRateLimit,
        ErrorCode::SubAgentFailed => Mark::ReportedSubAgent,
        ErrorCode::CcsEnvelopeError => Mark::ReportedEnvelope,
        ErrorCode::PartialFanOut => Mark::ReportedFanOut,
    };
    error_frame(to, mark, &Detail::of(error.code, error));
}

/// The terminal of a turn that failed. Version 0.4 has no codes for the axes (D-22).
pub(super) fn failed(to: &mut Blocks<'_>, error: &TurnError) {
    let (mark, code) = match (to.version, error.code) {
        (Version::V04 | Version::V05, code @ ErrorCode::InternalError) => {
            (Mark::ErrorInternal, code)
        }
        (Version::V04 | Version::V05, code @ ErrorCode::RateLimitError) => {
            (Mark::ErrorRateLimit, code)
        }
        (Version::V05, code @ ErrorCode::SubAgentFailed) => (Mark::ErrorSubAgent, code),
        (Version::V05, code @ ErrorCode::CcsEnvelopeError) => (Mark::ErrorEnvelope, code),
        (Version::V05, code @ ErrorCode::PartialFanOut) => (Mark::ErrorFanOut, code),
        (
            Version::V04,
            ErrorCode::SubAgentFailed | ErrorCode::CcsEnvelopeError | ErrorCode::PartialFanOut,
        ) => (Mark::ErrorInternal, ErrorCode::InternalError),
    };
    error_frame(to, mark, &Detail::of(code, error));
}

/// The terminal of a turn that was cancelled: in 0.4 an error like any other.
pub(super) fn cancelled(to: &mut Blocks<'_>, end: &Cancelled) {
    #[derive(Serialize)]
    struct Detail {
        code: CancelCode,
    }
    let mark = match (to.version, end.code) {
        (Version::V05, CancelCode::RequestCancelled) => Mark::CancelledRequest,
        (Version::V05, CancelCode::IdleTimeout) => Mark::CancelledIdle,
        (Version::V04, CancelCode::RequestCancelled) => Mark::ErrorRequestCancelled,
        (Version::V04, CancelCode::IdleTimeout) => Mark::ErrorIdleTimeout,
    };
    let detail = Detail { code: end.code };
    match to.version {
        Version::V04 => error_frame(to, mark, &detail),
        Version::V05 => to.frame(mark, |payload| payload.field("error", &detail)),
    }
}

/// `is_final` is on every error of either version (S1-026): whether its mark is a terminal's.
fn error_frame<T: Serialize>(to: &mut Blocks<'_>, mark: Mark, detail: &T) {
    to.frame(mark, |payload| {
        payload.field("error", detail);
        payload.field("is_final", &mark.terminal().is_some());
    });
}

#[cfg(test)]
mod tests;

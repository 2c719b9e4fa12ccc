//! Frames of failures: a code and only the fields that belong to the code (S1-089, S1-093).
//!
//! ```text
//! error.reported          error, is_final false; no frame in 0.4, where every error is final (D-22)
//! turn.completed failed   error, is_final true; in 0.4 only the general codes
//! turn.cancelled          cancelled; in 0.4 an error, is_final true
//! ```

use serde::Serialize;
use turnwire_event::Position;
use turnwire_event::body::turn::{PartialMessage, TurnCancelled, TurnError};
use turnwire_event::code::{CancelCode, ErrorCode, Reason};

use super::block::{BlockWriter, PayloadWriter};
use super::frame_kind::FrameKind;
use super::version::WireVersion;

/// The `error` object of a frame.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct FailureDetail<'a> {
    code: ErrorCode,
    #[serde(skip_serializing_if = "Option::is_none")]
    sub_agent_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enricher_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<Vec<FailureDetail<'a>>>,
}

impl<'a> FailureDetail<'a> {
    /// The fields of `error` that belong to `code`.
    fn for_code(code: ErrorCode, error: &'a TurnError) -> Self {
        let mut detail = Self {
            code,
            sub_agent_id: None,
            enricher_id: None,
            reason: None,
            failed: None,
        };
        match code {
            ErrorCode::InternalError | ErrorCode::ModelUnavailable | ErrorCode::RateLimitError => {}
            ErrorCode::SubAgentFailed => detail.sub_agent_id = error.sub_agent_id.as_deref(),
            ErrorCode::CcsEnvelopeError => {
                detail.enricher_id = error.enricher_id.as_deref();
                detail.reason = error.reason;
            }
            ErrorCode::PartialFanOut => {
                let failed = error.failed.iter().filter_map(Self::fan_out_entry);
                detail.failed = Some(failed.collect());
            }
        }
        detail
    }

    /// One failure of a fan-out, of a sub-agent or an enricher, in the form it has alone (S1-092).
    /// `None` for other codes.
    fn fan_out_entry(error: &'a TurnError) -> Option<Self> {
        let is_entry = matches!(
            error.code,
            ErrorCode::SubAgentFailed | ErrorCode::CcsEnvelopeError
        );
        is_entry.then(|| Self::for_code(error.code, error))
    }
}

/// Writes the frame of a failure that does not end the turn.
pub(super) fn write_reported(writer: &mut BlockWriter<'_>, error: &TurnError) {
    if writer.version == WireVersion::V04 {
        return;
    }
    let kind = match error.code {
        ErrorCode::InternalError => FrameKind::ReportedInternal,
        ErrorCode::ModelUnavailable => FrameKind::ReportedModel,
        ErrorCode::RateLimitError => FrameKind::ReportedRateLimit,
        ErrorCode::SubAgentFailed => FrameKind::ReportedSubAgent,
        ErrorCode::CcsEnvelopeError => FrameKind::ReportedEnvelope,
        ErrorCode::PartialFanOut => FrameKind::ReportedFanOut,
    };
    write_error(writer, kind, &FailureDetail::for_code(error.code, error));
}

/// Writes the terminal frame of a failed turn. Version 0.4 has the general codes only (D-22).
pub(super) fn write_failed(
    writer: &mut BlockWriter<'_>,
    error: &TurnError,
    partial: Option<&PartialMessage>,
) {
    let code = match (writer.version, error.code) {
        (
            WireVersion::V04,
            ErrorCode::ModelUnavailable
            | ErrorCode::SubAgentFailed
            | ErrorCode::CcsEnvelopeError
            | ErrorCode::PartialFanOut,
        ) => ErrorCode::InternalError,
        (WireVersion::V04 | WireVersion::V05, code) => code,
    };
    let kind = match code {
        ErrorCode::InternalError => FrameKind::ErrorInternal,
        ErrorCode::ModelUnavailable => FrameKind::ErrorModel,
        ErrorCode::RateLimitError => FrameKind::ErrorRateLimit,
        ErrorCode::SubAgentFailed => FrameKind::ErrorSubAgent,
        ErrorCode::CcsEnvelopeError => FrameKind::ErrorEnvelope,
        ErrorCode::PartialFanOut => FrameKind::ErrorFanOut,
    };
    let kept_until = partial.and_then(|partial| kept_until(writer.version, partial));
    writer.frame(kind, |payload| {
        write_error_fields(payload, kind, &FailureDetail::for_code(code, error));
        if let Some(kept_until) = kept_until {
            payload.field("kept_until", &kept_until);
        }
    });
}

/// The last event whose text a crash has left; version 0.4 has no field for it.
fn kept_until(version: WireVersion, partial: &PartialMessage) -> Option<Position> {
    partial.kept_until.filter(|_| version == WireVersion::V05)
}

/// Writes the terminal frame of a cancelled turn; an ordinary error in 0.4.
pub(super) fn write_cancelled(writer: &mut BlockWriter<'_>, end: &TurnCancelled) {
    #[derive(Serialize)]
    struct CancelDetail {
        code: CancelCode,
    }
    let kind = match (writer.version, end.code) {
        (WireVersion::V05, CancelCode::RequestCancelled) => FrameKind::CancelledRequest,
        (WireVersion::V05, CancelCode::IdleTimeout) => FrameKind::CancelledIdle,
        (WireVersion::V04, CancelCode::RequestCancelled) => FrameKind::ErrorRequestCancelled,
        (WireVersion::V04, CancelCode::IdleTimeout) => FrameKind::ErrorIdleTimeout,
    };
    let detail = CancelDetail { code: end.code };
    match writer.version {
        WireVersion::V04 => write_error(writer, kind, &detail),
        WireVersion::V05 => {
            let kept_until = kept_until(writer.version, &end.partial);
            writer.frame(kind, |payload| {
                payload.field("error", &detail);
                if let Some(kept_until) = kept_until {
                    payload.field("kept_until", &kept_until);
                }
            });
        }
    }
}

/// Every error frame has `is_final`, in either version (S1-026).
fn write_error<T: Serialize>(writer: &mut BlockWriter<'_>, kind: FrameKind, detail: &T) {
    writer.frame(kind, |payload| write_error_fields(payload, kind, detail));
}

fn write_error_fields<T: Serialize>(payload: &mut PayloadWriter<'_>, kind: FrameKind, detail: &T) {
    payload.field("error", detail);
    payload.field("is_final", &kind.terminal_type().is_some());
}

#[cfg(test)]
mod tests;

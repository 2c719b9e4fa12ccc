//! Scenarios of how turns end: every code, every phase of a cancel, a restart.

use serde_json::json;
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::{CancelCode, ErrorCode, Phase, Reason, TurnStatus};
use turnwire_event::fold::CloseCause;
use turnwire_event::{Event, StopReason};

use super::LogBuilder;
use super::catalog::say;

pub(super) fn sweep_in_tool() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("sleep");
    let call = log.call();
    log.message();
    log.text(0, "A moment.");
    let one = log.tool_start(1, "sleep");
    log.tool_end(1, one, json!({"ms": 60_000}));
    let two = log.tool_start(2, "sleep");
    log.tool_end(2, two, json!({"ms": 90_000}));
    log.complete(call, StopReason::ToolUse);
    log.called(one, "sleep", "{\"ms\":60000}");
    log.sweep(&CloseCause::Failed {
        error: ErrorCode::InternalError.into(),
        reason: Some("server_restart".into()),
    });
    log.events
}

pub(super) fn cancel_in_queue() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn_unrouted("after the other one");
    log.stop(CancelCode::RequestCancelled, Phase::Queued, "user_cancel");
    log.events
}

pub(super) fn cancel_before_message() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("quick");
    log.call();
    log.cancel("user_cancel");
    log.events
}

pub(super) fn idle_timeout() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("hello?");
    say(&mut log, &["One "]);
    log.stop(CancelCode::IdleTimeout, Phase::Idle, "idle_timeout");
    log.events
}

/// A turn for each code, with all details set, including those that clients must not see.
pub(super) fn every_error_code() -> Vec<Event> {
    let mut log = LogBuilder::new();
    for code in [
        ErrorCode::InternalError,
        ErrorCode::RateLimitError,
        ErrorCode::SubAgentFailed,
        ErrorCode::CcsEnvelopeError,
        ErrorCode::PartialFanOut,
    ] {
        log.turn("offers near me");
        say(&mut log, &["I could not look that up."]);
        let error = TurnError {
            code,
            sub_agent_id: Some("offers".into()),
            enricher_id: Some("offer_feed".into()),
            reason: Some(Reason::UpstreamTimeout),
            failed: vec![
                TurnError::sub_agent("offers"),
                TurnError::envelope("offer_feed", Reason::InvalidRequest),
            ],
        };
        log.end_with(TurnStatus::Failed, Some(error));
    }
    log.turn("and now?");
    say(&mut log, &["Not now."]);
    log.end_with(TurnStatus::Failed, None);
    log.events
}

pub(super) fn degraded_and_paused() -> Vec<Event> {
    let mut log = LogBuilder::new();
    log.turn("all of it");
    say(&mut log, &["Most of it."]);
    log.end(TurnStatus::Degraded, None);
    log.turn("delete it");
    say(&mut log, &["Shall I?"]);
    log.end(TurnStatus::Paused, None);
    log.events
}

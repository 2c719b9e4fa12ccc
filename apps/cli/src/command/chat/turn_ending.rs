//! The text that the chat prints when a turn ends: one sentence, or, after a cancel, the receipt.
//! Codes are for programs; a person reads them with `/details`.

use turnwire_event::body::turn::{ReceiptLine, TurnCancelled, TurnCompleted, TurnError};
use turnwire_event::code::{ErrorCode, Phase, ReceiptKind, StopOutcome, TurnStatus};

use crate::terminal::wording::code_name;

use super::participants::TurnParticipants;

/// How a submitted turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnEnding {
    /// The turn completed, possibly with parts of the answer missing.
    Answered,
    /// The turn waits for approvals; another turn continues it.
    Paused,
    Failed,
    Cancelled,
    /// The server did not accept the turn, so that it never ran.
    Rejected,
}

impl TurnEnding {
    /// The exit status for a turn that ended like this. A chat whose input is not typed exits with the
    /// highest of its turns.
    pub(crate) fn exit_status(self) -> u8 {
        match self {
            Self::Answered | Self::Paused => 0,
            Self::Failed => 1,
            Self::Rejected => 2,
            Self::Cancelled => 130,
        }
    }
}

/// The [`TurnEnding`] of a turn that was not cancelled, and the text to print, if any.
pub(crate) fn completed_ending(completed: &TurnCompleted) -> (TurnEnding, Option<String>) {
    match completed.status {
        TurnStatus::Ok => (TurnEnding::Answered, None),
        // The answer itself tells the user which part is missing; this line adds the reason.
        TurnStatus::Degraded => {
            let reason = completed.error.as_ref();
            let reason = reason.map(|_| format!(": {}", reason_text(completed)));
            let reason = reason.unwrap_or_default();
            let text = format!("something is missing from this answer{reason}");
            (TurnEnding::Answered, Some(text))
        }
        // The approval prompt reports what the turn waits for.
        TurnStatus::Paused => (TurnEnding::Paused, None),
        TurnStatus::Failed => {
            let text = format!("the turn failed: {}", reason_text(completed));
            (TurnEnding::Failed, Some(text))
        }
    }
}

/// Why a turn failed or is degraded, in words.
fn reason_text(completed: &TurnCompleted) -> &'static str {
    match (completed.reason.as_deref(), completed.error.as_ref()) {
        (Some("server_restart"), _) => "the server was restarted in the middle of it",
        (Some("server_shutdown"), _) => "the server was shut down in the middle of it",
        (Some("limit_calls"), _) => "it needed more model calls than a turn may make",
        (Some("limit_tokens"), _) => "it needed more tokens than a turn may use",
        (Some("limit_cost"), _) => "it cost more than a turn may cost",
        (Some("upstream_unavailable"), _) => "the agent elsewhere could not be reached",
        (Some("upstream_incomplete"), _) => "the answer of the agent elsewhere broke off",
        (Some("upstream_malformed"), _) => "the agent elsewhere sent something unreadable",
        (_, None) => "the server does not say why",
        (_, Some(error)) => match error.code {
            ErrorCode::InternalError => "something went wrong inside the server",
            ErrorCode::ModelUnavailable => "the model's provider failed or refused the call",
            ErrorCode::RateLimitError => "the model's provider limits the rate of requests",
            ErrorCode::SubAgentFailed => "a sub-agent failed",
            ErrorCode::CcsEnvelopeError => "a connected service answered with an error",
            ErrorCode::PartialFanOut => "some of several sub-agents failed",
        },
    }
}

/// The codes and ids of a failed or degraded turn, between commas; empty if it has none.
pub(crate) fn ending_codes(completed: &TurnCompleted) -> String {
    let error = completed.error.iter().flat_map(|error| {
        let failed = error.failed.iter().flat_map(error_codes);
        error_codes(error).chain(failed)
    });
    let codes: Vec<_> = error.chain(completed.reason.clone()).collect();
    codes.join(", ")
}

fn error_codes(error: &TurnError) -> impl Iterator<Item = String> {
    let reason = error.reason.as_ref().map(code_name);
    let ids = [
        error.sub_agent_id.clone(),
        error.enricher_id.clone(),
        reason,
    ];
    [code_name(error.code)]
        .into_iter()
        .chain(ids.into_iter().flatten())
}

/// The receipt of a [`TurnCancelled`] as lines of text, with the names from `participants`.
pub(crate) fn receipt_text(cancelled: &TurnCancelled, participants: &TurnParticipants) -> String {
    let receipt = &cancelled.receipt;
    let phase = match cancelled.phase {
        Phase::Route => "while the model was being chosen",
        Phase::Llm => "while the model was at work",
        Phase::Tool => "while tools were at work",
        Phase::Seam => "between two steps",
        Phase::Delegate => "while it waited for a worker",
        Phase::Idle => "while it waited for an upstream",
        Phase::Queued => "while it was queued",
    };
    let mut text = format!("cancelled {phase}{}", cancel_reason(&cancelled.reason));
    if receipt.is_empty() {
        return text + "; nothing was running";
    }
    for line in receipt {
        let subject = participants.receipt_subject(line);
        text += &format!("\n  {subject}: {}", outcome_text(line));
    }
    let slowest_ms = receipt.iter().map(|line| line.ms).max();
    let is_discarded = |line: &&ReceiptLine| line.outcome == StopOutcome::Discarded;
    let still_running = match receipt.iter().filter(is_discarded).count() {
        0 => "nothing left running".to_owned(),
        count => format!("{count} still in flight"),
    };
    let duration = duration_text(slowest_ms.unwrap_or_default());
    text + &format!("\nstopped in {duration}, {still_running}")
}

/// Why a turn was cancelled; empty for a person who gave no reason.
fn cancel_reason(reason: &str) -> String {
    match reason {
        "user_cancel" => String::new(),
        "turn_timeout" => ": it took too long".to_owned(),
        "idle_timeout" => ": nothing happened for too long".to_owned(),
        "upstream_cancelled" => ": the agent elsewhere stopped".to_owned(),
        "server_shutdown" => ": the server was shut down".to_owned(),
        other => format!(" ({other})"),
    }
}

fn outcome_text(line: &ReceiptLine) -> String {
    let after = format!("after {}", duration_text(line.ms));
    match (line.outcome, line.kind) {
        (StopOutcome::Stopped, _) => format!("stopped {after}"),
        (StopOutcome::Finished, _) => format!("finished by itself {after}"),
        (StopOutcome::Killed, _) => format!("killed {after}"),
        (StopOutcome::Discarded, ReceiptKind::Process | ReceiptKind::Worker) => {
            format!("not ended {after}, may still run")
        }
        (StopOutcome::Discarded, ReceiptKind::Llm | ReceiptKind::Tool | ReceiptKind::Subagent) => {
            "still in flight, its answer is discarded".to_owned()
        }
    }
}

fn duration_text(ms: u64) -> String {
    match ms {
        0..100 => format!("{ms} ms"),
        _ => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::TokenUsage;
    use turnwire_event::body::turn::PartialMessage;
    use turnwire_event::code::CancelCode;

    fn turn_completed(
        status: TurnStatus,
        code: Option<ErrorCode>,
        reason: Option<&str>,
    ) -> TurnCompleted {
        TurnCompleted {
            status,
            usage: TokenUsage::default(),
            error: code.map(Into::into),
            reason: reason.map(str::to_owned),
            partial: None,
            paused: None,
        }
    }

    #[test]
    fn ending_is_a_sentence_and_codes_are_apart() {
        assert_eq!(
            completed_ending(&turn_completed(TurnStatus::Ok, None, None)),
            (TurnEnding::Answered, None)
        );
        let restarted = turn_completed(
            TurnStatus::Failed,
            Some(ErrorCode::InternalError),
            Some("server_restart"),
        );
        assert_eq!(
            completed_ending(&restarted),
            (
                TurnEnding::Failed,
                Some("the turn failed: the server was restarted in the middle of it".to_owned())
            )
        );
        assert_eq!(ending_codes(&restarted), "INTERNAL_ERROR, server_restart");
        let (ending, text) = completed_ending(&turn_completed(
            TurnStatus::Degraded,
            Some(ErrorCode::PartialFanOut),
            None,
        ));
        assert_eq!(ending, TurnEnding::Answered);
        let text = text.expect("a sentence");
        assert!(
            text.ends_with("some of several sub-agents failed"),
            "{text}"
        );
        let mut partial = turn_completed(TurnStatus::Degraded, None, None);
        let missing = TurnError::sub_agent("shop");
        partial.error = Some(TurnError::fan_out(vec![missing]));
        let codes = "PARTIAL_FAN_OUT, SUB_AGENT_FAILED, shop";
        assert_eq!(ending_codes(&partial), codes);
        let text = completed_ending(&turn_completed(TurnStatus::Degraded, None, None)).1;
        assert_eq!(
            text.as_deref(),
            Some("something is missing from this answer")
        );
    }

    #[test]
    fn receipt_names_everything_that_ran_and_its_outcome() {
        let participants = TurnParticipants::default();
        let line = |kind, name: &str, outcome, ms| ReceiptLine {
            kind,
            id: "77".into(),
            name: name.to_owned(),
            outcome,
            ms,
        };
        let mut cancelled = TurnCancelled {
            reason: "user_cancel".into(),
            code: CancelCode::RequestCancelled,
            phase: Phase::Tool,
            partial: PartialMessage {
                message_id: None,
                bytes: 0,
                kept_until: None,
            },
            receipt: vec![
                line(ReceiptKind::Tool, "clock", StopOutcome::Finished, 4),
                line(ReceiptKind::Tool, "sleep", StopOutcome::Killed, 5040),
                line(ReceiptKind::Process, "sleep", StopOutcome::Killed, 5039),
                line(ReceiptKind::Subagent, "shop", StopOutcome::Stopped, 100),
            ],
        };
        assert_eq!(
            receipt_text(&cancelled, &participants),
            "cancelled while tools were at work\n  \
             tool clock: finished by itself after 4 ms\n  \
             tool sleep: killed after 5.0 s\n  \
             process of sleep: killed after 5.0 s\n  \
             sub-agent shop: stopped after 0.1 s\n\
             stopped in 5.0 s, nothing left running"
        );
        cancelled.receipt = vec![
            line(ReceiptKind::Tool, "clock", StopOutcome::Discarded, 4),
            line(ReceiptKind::Process, "", StopOutcome::Discarded, 12_000),
        ];
        assert_eq!(
            receipt_text(&cancelled, &participants),
            "cancelled while tools were at work\n  \
             tool clock: still in flight, its answer is discarded\n  \
             process 77: not ended after 12.0 s, may still run\n\
             stopped in 12.0 s, 2 still in flight",
            "discarded work may still be running"
        );
        cancelled.receipt.clear();
        cancelled.phase = Phase::Route;
        assert_eq!(
            receipt_text(&cancelled, &participants),
            "cancelled while the model was being chosen; nothing was running"
        );
    }
}

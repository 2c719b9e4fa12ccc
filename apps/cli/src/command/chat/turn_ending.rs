//! The ending of a turn as text: one sentence with its codes, and after a cancel the receipt.

use turnwire_event::body::turn::{ReceiptLine, TurnCancelled, TurnCompleted};
use turnwire_event::code::{ErrorCode, Phase, ReceiptKind, StopOutcome, TurnStatus};

use crate::terminal::wording::code_name;

use super::participants::TurnParticipants;

/// How a turn ended, or that it was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnEnding {
    Answered,
    /// The turn waits for approvals; another turn continues it.
    Paused,
    Failed,
    Cancelled,
    /// The server rejected the turn.
    Rejected,
}

impl TurnEnding {
    /// The exit status of a chat with this turn.
    pub(crate) fn exit_status(self) -> u8 {
        match self {
            Self::Answered | Self::Paused => 0,
            Self::Failed => 1,
            Self::Rejected => 2,
            Self::Cancelled => 130,
        }
    }
}

/// The ending of a turn that was not cancelled, with a text unless it went well.
pub(crate) fn completed(end: &TurnCompleted) -> (TurnEnding, Option<String>) {
    let codes = codes(end);
    match end.status {
        TurnStatus::Ok => (TurnEnding::Answered, None),
        // The answer itself names what is missing; a code adds the reason.
        TurnStatus::Degraded => {
            let reason = end.error.as_ref().map(|_| format!(": {}", why(end)));
            let reason = reason.unwrap_or_default();
            let text = format!("something is missing from this answer{reason}{codes}");
            (TurnEnding::Answered, Some(text))
        }
        // The approval prompt reports what the turn waits for.
        TurnStatus::Paused => (TurnEnding::Paused, None),
        TurnStatus::Failed => {
            let text = format!("the turn failed: {}{codes}", why(end));
            (TurnEnding::Failed, Some(text))
        }
    }
}

fn why(end: &TurnCompleted) -> &'static str {
    match (end.reason.as_deref(), end.error.as_ref()) {
        (Some("server_restart"), _) => "the server was restarted in the middle of it",
        (Some("server_shutdown"), _) => "the server was shut down in the middle of it",
        (_, None) => "the server does not say why",
        (_, Some(error)) => match error.code {
            ErrorCode::InternalError => "something went wrong inside the server",
            ErrorCode::RateLimitError => "the model's provider says it is too much at once",
            ErrorCode::SubAgentFailed => "a sub-agent failed",
            ErrorCode::CcsEnvelopeError => "a connected service answered with an error",
            ErrorCode::PartialFanOut => "some of several sub-agents failed",
        },
    }
}

/// The codes of an ending, in parentheses.
fn codes(end: &TurnCompleted) -> String {
    let code = end.error.as_ref().map(|error| code_name(error.code));
    let codes: Vec<_> = code.into_iter().chain(end.reason.clone()).collect();
    match codes.is_empty() {
        true => String::new(),
        false => format!(" ({})", codes.join(", ")),
    }
}

/// The receipt of a [`TurnCancelled`], with names from `participants`.
pub(crate) fn receipt(end: &TurnCancelled, participants: &TurnParticipants) -> String {
    let phase = match end.phase {
        Phase::Route => "while the model was being chosen",
        Phase::Llm => "while the model was at work",
        Phase::Tool => "while tools were at work",
        Phase::Seam => "between two steps",
        Phase::Delegate => "while it waited for a worker",
        Phase::Idle => "while it waited for an upstream",
        Phase::Queued => "before its turn came",
    };
    let mut text = format!("cancelled {phase} ({})", end.reason);
    if end.receipt.is_empty() {
        return text + "; nothing was running";
    }
    for line in &end.receipt {
        let name = participants.name(line, &end.receipt);
        text += &format!("\n  {name}: {}", outcome(line));
    }
    // The receipt reports that nothing is left running only if every line does.
    let ms = end.receipt.iter().map(|line| line.ms).max();
    let lines = end.receipt.iter();
    let running = lines.filter(|line| line.outcome == StopOutcome::Discarded);
    let rest = match running.count() {
        0 => "nothing left running".to_owned(),
        count => format!("{count} still in flight"),
    };
    text + &format!("\nstopped in {}, {rest}", duration(ms.unwrap_or_default()))
}

fn outcome(line: &ReceiptLine) -> String {
    let after = format!("after {}", duration(line.ms));
    match (line.outcome, line.kind) {
        (StopOutcome::Stopped, _) => format!("stopped {after}"),
        (StopOutcome::Finished, _) => format!("finished by itself {after}"),
        (StopOutcome::Killed, _) => format!("killed {after}"),
        (StopOutcome::Discarded, ReceiptKind::Process | ReceiptKind::Worker) => {
            format!("not gone {after}, may still run")
        }
        (StopOutcome::Discarded, ReceiptKind::Llm | ReceiptKind::Tool | ReceiptKind::Subagent) => {
            "still in flight, its answer is thrown away".to_owned()
        }
    }
}

fn duration(ms: u64) -> String {
    match ms {
        0..100 => format!("{ms} ms"),
        _ => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::body::tool::ToolCalled;
    use turnwire_event::body::turn::PartialMessage;
    use turnwire_event::code::{CancelCode, ToolType};
    use turnwire_event::{Timestamp, TokenUsage, ToolUseId, Ulid};

    fn end(status: TurnStatus, code: Option<ErrorCode>, reason: Option<&str>) -> TurnCompleted {
        TurnCompleted {
            status,
            usage: TokenUsage::default(),
            error: code.map(Into::into),
            reason: reason.map(str::to_owned),
            partial: None,
        }
    }

    #[test]
    fn ending_is_a_sentence_with_its_codes() {
        assert_eq!(
            completed(&end(TurnStatus::Ok, None, None)),
            (TurnEnding::Answered, None)
        );
        let restarted = end(
            TurnStatus::Failed,
            Some(ErrorCode::InternalError),
            Some("server_restart"),
        );
        assert_eq!(
            completed(&restarted),
            (
                TurnEnding::Failed,
                Some(
                    "the turn failed: the server was restarted in the middle of it \
                     (INTERNAL_ERROR, server_restart)"
                        .to_owned()
                )
            )
        );
        let (ending, text) = completed(&end(
            TurnStatus::Degraded,
            Some(ErrorCode::PartialFanOut),
            None,
        ));
        assert_eq!(ending, TurnEnding::Answered);
        assert!(text.is_some_and(|text| text.ends_with("failed (PARTIAL_FAN_OUT)")));
        let text = completed(&end(TurnStatus::Degraded, None, None)).1;
        assert_eq!(
            text.as_deref(),
            Some("something is missing from this answer")
        );
    }

    #[test]
    fn receipt_names_everything_that_ran_and_its_outcome() {
        let sleep = ToolUseId(Ulid(1));
        let mut participants = TurnParticipants::default();
        let called = ToolCalled {
            tool_use_id: sleep,
            tool_name: "sleep".into(),
            tool_type: ToolType::Process,
            input_summary: String::new(),
        };
        participants.tool_called(&called, Timestamp::from_millis(0));
        let line = |kind, id: &str, outcome, ms| ReceiptLine {
            kind,
            id: id.to_owned(),
            outcome,
            ms,
        };
        let mut end = TurnCancelled {
            reason: "user_cancel".into(),
            code: CancelCode::RequestCancelled,
            phase: Phase::Tool,
            partial: PartialMessage {
                message_id: None,
                bytes: 0,
            },
            receipt: vec![
                line(ReceiptKind::Tool, "tu_2", StopOutcome::Finished, 4),
                line(
                    ReceiptKind::Tool,
                    &sleep.to_string(),
                    StopOutcome::Killed,
                    5040,
                ),
                line(ReceiptKind::Process, "77", StopOutcome::Killed, 5039),
                line(ReceiptKind::Subagent, "shop", StopOutcome::Stopped, 100),
            ],
        };
        assert_eq!(
            receipt(&end, &participants),
            "cancelled while tools were at work (user_cancel)\n  \
             tool tu_2: finished by itself after 4 ms\n  \
             tool sleep: killed after 5.0 s\n  \
             process of sleep: killed after 5.0 s\n  \
             sub-agent shop: stopped after 0.1 s\n\
             stopped in 5.0 s, nothing left running"
        );
        end.receipt = vec![
            line(ReceiptKind::Tool, "tu_2", StopOutcome::Discarded, 4),
            line(ReceiptKind::Process, "77", StopOutcome::Discarded, 12_000),
        ];
        assert_eq!(
            receipt(&end, &participants),
            "cancelled while tools were at work (user_cancel)\n  \
             tool tu_2: still in flight, its answer is thrown away\n  \
             process 77: not gone after 12.0 s, may still run\n\
             stopped in 12.0 s, 2 still in flight",
            "it never says more than it knows"
        );
        end.receipt.clear();
        end.phase = Phase::Route;
        assert_eq!(
            receipt(&end, &participants),
            "cancelled while the model was being chosen (user_cancel); nothing was running"
        );
    }
}

//! How a turn ended, in words a person can use: one sentence, the code, and after a cancel what
//! ran and what became of it.

use turnwire_event::body::turn::{ReceiptLine, TurnCancelled, TurnCompleted};
use turnwire_event::code::{ErrorCode, Phase, ReceiptKind, StopOutcome, TurnStatus};

use crate::terminal::event_line::word;

use super::participants::TurnParticipants;

/// How a turn ended, or why it never began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnEnding {
    Answered,
    /// With questions: another turn goes on when a person has answered them.
    Paused,
    Failed,
    Cancelled,
    /// The server did not take it.
    Refused,
}

impl TurnEnding {
    /// The exit status of a command that asked once.
    pub(crate) fn status(self) -> u8 {
        match self {
            Self::Answered | Self::Paused => 0,
            Self::Failed => 1,
            Self::Refused => 2,
            Self::Cancelled => 130,
        }
    }
}

/// What to say of a turn that ended by itself; nothing if all went well.
pub(crate) fn completed(end: &TurnCompleted) -> (TurnEnding, Option<String>) {
    let codes = codes(end);
    let with_codes = |what: &str| Some(format!("{what}{codes}"));
    match end.status {
        TurnStatus::Ok => (TurnEnding::Answered, None),
        // What is missing was said in the answer itself, unless a code says more.
        TurnStatus::Degraded => {
            let cause = end.error.as_ref().map(|_| format!(": {}", why(end)));
            let cause = cause.unwrap_or_default();
            let missing = with_codes(&format!("something is missing from this answer{cause}"));
            (TurnEnding::Answered, missing)
        }
        // For whom it waits, and how to answer, is said by whoever can ask.
        TurnStatus::Paused => (TurnEnding::Paused, None),
        TurnStatus::Failed => (
            TurnEnding::Failed,
            with_codes(&format!("the turn failed: {}", why(end))),
        ),
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

/// The codes behind a sentence, for those who look them up.
fn codes(end: &TurnCompleted) -> String {
    let code = end.error.as_ref().map(|error| word(&error.code));
    let codes: Vec<_> = code.into_iter().chain(end.reason.clone()).collect();
    match codes.is_empty() {
        true => String::new(),
        false => format!(" ({})", codes.join(", ")),
    }
}

/// The receipt of a cancel; `cast` knows the names of what ran.
pub(crate) fn receipt(end: &TurnCancelled, cast: &TurnParticipants) -> String {
    let doing = match end.phase {
        Phase::Route => "while the model was being chosen",
        Phase::Llm => "while the model was at work",
        Phase::Tool => "while tools were at work",
        Phase::Seam => "between two steps",
        Phase::Delegate => "while it waited for a worker",
        Phase::Idle => "while it waited for an upstream",
        Phase::Queued => "before its turn came",
    };
    let head = format!("cancelled {doing} ({})", end.reason);
    if end.receipt.is_empty() {
        return format!("{head}; nothing was running");
    }
    let lines = end.receipt.iter().map(|line| {
        let name = cast.name(line, &end.receipt);
        format!("  {name}: {}", became(line))
    });
    std::iter::once(head)
        .chain(lines)
        .chain([sum(&end.receipt)])
        .collect::<Vec<_>>()
        .join("\n")
}

fn became(line: &ReceiptLine) -> String {
    let after = format!("after {}", time(line.ms));
    match line.outcome {
        StopOutcome::Stopped => format!("stopped {after}"),
        StopOutcome::Finished => format!("finished by itself {after}"),
        StopOutcome::Killed => format!("killed {after}"),
        StopOutcome::Discarded => match line.kind {
            ReceiptKind::Process | ReceiptKind::Worker => {
                format!("not gone {after}, may still run")
            }
            ReceiptKind::Llm | ReceiptKind::Tool | ReceiptKind::Subagent => {
                "still in flight, its answer is thrown away".to_owned()
            }
        },
    }
}

/// What a receipt comes to. Nothing is left running only if it says so of every line.
fn sum(receipt: &[ReceiptLine]) -> String {
    let ms = receipt.iter().map(|line| line.ms).max().unwrap_or_default();
    let discarded = receipt
        .iter()
        .filter(|line| line.outcome == StopOutcome::Discarded);
    match discarded.count() {
        0 => format!("stopped in {}, nothing left running", time(ms)),
        left => format!("stopped in {}, {left} still in flight", time(ms)),
    }
}

/// A time as people tell it.
fn time(ms: u64) -> String {
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
    fn an_ending_is_a_sentence_with_its_codes() {
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
        let (outcome, told) = completed(&end(
            TurnStatus::Degraded,
            Some(ErrorCode::PartialFanOut),
            None,
        ));
        assert_eq!(outcome, TurnEnding::Answered);
        assert!(told.is_some_and(|told| told.ends_with("failed (PARTIAL_FAN_OUT)")));
        let told = completed(&end(TurnStatus::Degraded, None, None)).1;
        assert_eq!(
            told.as_deref(),
            Some("something is missing from this answer")
        );
    }

    #[test]
    fn a_receipt_says_what_ran_and_what_became_of_it() {
        let sleep = ToolUseId(Ulid(1));
        let mut cast = TurnParticipants::default();
        let called = ToolCalled {
            tool_use_id: sleep,
            tool_name: "sleep".into(),
            tool_type: ToolType::Process,
            input_summary: String::new(),
        };
        cast.called(&called, Timestamp::from_millis(0));
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
            receipt(&end, &cast),
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
            receipt(&end, &cast),
            "cancelled while tools were at work (user_cancel)\n  \
             tool tu_2: still in flight, its answer is thrown away\n  \
             process 77: not gone after 12.0 s, may still run\n\
             stopped in 12.0 s, 2 still in flight",
            "it never says more than it knows"
        );
        end.receipt.clear();
        end.phase = Phase::Route;
        assert_eq!(
            receipt(&end, &cast),
            "cancelled while the model was being chosen (user_cancel); nothing was running"
        );
    }
}

//! How a turn ended, in words a person can use: one sentence, the code, and after a cancel what
//! ran and what became of it.

use std::collections::HashMap;

use turnwire_event::body::turn::{Cancelled, Completed, ReceiptLine};
use turnwire_event::code::{ErrorCode, Phase, StopOutcome, TurnStatus};

use crate::line::word;

/// How a turn ended, or why it never began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// With an answer.
    Answered,
    /// Without.
    Failed,
    /// By a cancel.
    Cancelled,
    /// The server did not take it.
    Refused,
}

impl Outcome {
    /// The exit status of a command that asked once.
    pub(crate) fn status(self) -> u8 {
        match self {
            Self::Answered => 0,
            Self::Failed => 1,
            Self::Refused => 2,
            Self::Cancelled => 130,
        }
    }
}

/// What to say of a turn that ended by itself; nothing if all went well.
pub(crate) fn completed(end: &Completed) -> (Outcome, Option<String>) {
    let codes = codes(end);
    let told = |what: &str| Some(format!("{what}{codes}"));
    match end.status {
        TurnStatus::Ok => (Outcome::Answered, None),
        // What is missing was said in the answer itself, unless a code says more.
        TurnStatus::Degraded => {
            let why = end.error.as_ref().map(|_| format!(": {}", why(end)));
            let why = why.unwrap_or_default();
            let missing = told(&format!("something is missing from this answer{why}"));
            (Outcome::Answered, missing)
        }
        TurnStatus::Paused => (
            Outcome::Answered,
            told("the turn waits for a person; another one goes on with it"),
        ),
        TurnStatus::Failed => (
            Outcome::Failed,
            told(&format!("the turn failed: {}", why(end))),
        ),
    }
}

fn why(end: &Completed) -> &'static str {
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
fn codes(end: &Completed) -> String {
    let code = end.error.as_ref().map(|error| word(&error.code));
    let codes: Vec<_> = code.into_iter().chain(end.reason.clone()).collect();
    match codes.is_empty() {
        true => String::new(),
        false => format!(" ({})", codes.join(", ")),
    }
}

/// The receipt of a cancel; `names` are those of the tools that were called.
pub(crate) fn receipt(end: &Cancelled, names: &HashMap<String, String>) -> String {
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
    let lines = end.receipt.iter().map(|line| tell(line, names));
    std::iter::once(head)
        .chain(lines)
        .collect::<Vec<_>>()
        .join("\n")
}

fn tell(line: &ReceiptLine, names: &HashMap<String, String>) -> String {
    let name = names.get(&line.id).unwrap_or(&line.id);
    let outcome = match line.outcome {
        StopOutcome::Stopped => "stopped",
        StopOutcome::Finished => "finished by itself",
        StopOutcome::Discarded => "discarded, may still be in flight",
        StopOutcome::Killed => "killed",
    };
    format!(
        "  {} {name}: {outcome} after {} ms",
        word(&line.kind),
        line.ms
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::Usage;
    use turnwire_event::body::turn::Partial;
    use turnwire_event::code::{CancelCode, ReceiptKind};

    fn end(status: TurnStatus, code: Option<ErrorCode>, reason: Option<&str>) -> Completed {
        Completed {
            status,
            usage: Usage::default(),
            error: code.map(Into::into),
            reason: reason.map(str::to_owned),
            partial: None,
        }
    }

    #[test]
    fn an_ending_is_a_sentence_with_its_codes() {
        assert_eq!(
            completed(&end(TurnStatus::Ok, None, None)),
            (Outcome::Answered, None)
        );
        let restarted = end(
            TurnStatus::Failed,
            Some(ErrorCode::InternalError),
            Some("server_restart"),
        );
        assert_eq!(
            completed(&restarted),
            (
                Outcome::Failed,
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
        assert_eq!(outcome, Outcome::Answered);
        assert!(told.is_some_and(|told| told.ends_with("failed (PARTIAL_FAN_OUT)")));
        let told = completed(&end(TurnStatus::Degraded, None, None)).1;
        assert_eq!(
            told.as_deref(),
            Some("something is missing from this answer")
        );
    }

    #[test]
    fn a_receipt_says_what_ran_and_what_became_of_it() {
        let line = |id: &str, outcome| ReceiptLine {
            kind: ReceiptKind::Tool,
            id: id.to_owned(),
            outcome,
            ms: 4,
        };
        let mut end = Cancelled {
            reason: "user_cancel".into(),
            code: CancelCode::RequestCancelled,
            phase: Phase::Tool,
            partial: Partial {
                message_id: None,
                bytes: 0,
            },
            receipt: vec![
                line("tu_1", StopOutcome::Stopped),
                line("tu_2", StopOutcome::Finished),
            ],
        };
        let names = HashMap::from([("tu_1".to_owned(), "sleep".to_owned())]);
        assert_eq!(
            receipt(&end, &names),
            "cancelled while tools were at work (user_cancel)\n  \
             tool sleep: stopped after 4 ms\n  \
             tool tu_2: finished by itself after 4 ms"
        );
        end.receipt.clear();
        end.phase = Phase::Route;
        assert_eq!(
            receipt(&end, &names),
            "cancelled while the model was being chosen (user_cancel); nothing was running"
        );
    }
}

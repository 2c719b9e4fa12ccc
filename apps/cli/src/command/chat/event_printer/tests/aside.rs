//! Workers, stops and questions onto paper.

use turnwire_event::body::turn::{CancelRequested, PartialMessage, ReceiptLine};
use turnwire_event::body::{approval, delegate};
use turnwire_event::code::{CancelCode, Decision, FailureMode, Phase, ReceiptKind, StopOutcome};

use super::*;

fn work() -> Body {
    Body::DelegateStarted(delegate::DelegateStarted {
        worker_session_id: SessionId(Ulid(9)),
        tool_use_id: ToolUseId(Ulid(5)),
        task_summary: "tea\u{1b}[2J".into(),
    })
}

fn given_up(failure_mode: FailureMode) -> Body {
    Body::DelegateFailed(delegate::DelegateFailed {
        worker_session_id: SessionId(Ulid(9)),
        failure_mode,
    })
}

#[test]
fn worker_line_has_its_task_and_the_tail_command() {
    let worker = SessionId(Ulid(9));
    let done = |success| {
        Body::DelegateCompleted(delegate::DelegateCompleted {
            worker_session_id: worker,
            success,
            summary: "said".into(),
        })
    };
    let look = format!("follow it with: turnwire tail {worker} --flag\n]");
    for (end, how) in [
        (done(true), "is done"),
        (done(false), "did not complete its task"),
        (given_up(FailureMode::Timeout), "took too long"),
    ] {
        assert_eq!(
            output(OutputForm::Folded, false, vec![work(), end]),
            format!("[worker {worker} works on: tea\n][worker on \"tea\" {how}; {look}")
        );
    }
}

fn stop() -> Body {
    Body::TurnCancelRequested(CancelRequested::new("user", "user_cancel"))
}

// S3-077
#[test]
fn cancel_is_shown_at_once_and_the_rest_by_the_receipt() {
    let (mut printer, paper) = printer(OutputForm::Folded, false);
    let mut called = tool(Some(ToolErrorClass::Cancelled), ToolType::Process);
    let cancelled = called.pop().expect("its end");
    for body in [called.remove(0), work(), stop()] {
        printer.event(&event(1, body)).expect("paper");
    }
    printer.show_stopping().expect("paper");
    for seconds in 1..4 {
        printer.show_stop_progress(seconds).expect("paper");
    }
    for body in [given_up(FailureMode::CancelledByUser), cancelled] {
        printer.event(&event(2, body)).expect("paper");
    }
    let line = |kind, id: String, outcome, ms| ReceiptLine {
        kind,
        id,
        name: "search".into(),
        outcome,
        ms,
    };
    let end = TurnCancelled {
        reason: "user_cancel".into(),
        code: CancelCode::RequestCancelled,
        phase: Phase::Tool,
        partial: PartialMessage {
            message_id: None,
            bytes: 0,
            kept_until: None,
        },
        receipt: vec![
            line(
                ReceiptKind::Tool,
                ToolUseId(Ulid(5)).to_string(),
                StopOutcome::Killed,
                5_000,
            ),
            line(ReceiptKind::Process, "7".into(), StopOutcome::Killed, 5_000),
        ],
    };
    printer.cancelled(&end).expect("paper");
    let worker = SessionId(Ulid(9));
    assert_eq!(
        paper.read(),
        format!(
            "[worker {worker} works on: tea\n][stopping…\n]\
             [stopping… 1 s; waiting for search to end\n]\
             [cancelled while tools were at work\n  \
             tool search: killed after 5.0 s\n  \
             process of search: killed after 5.0 s\n\
             stopped in 5.0 s, nothing left running\n]"
        ),
        "once for a pipe, and nothing twice"
    );
}

#[test]
fn answer_from_elsewhere_is_printed() {
    let asks = |id, name: &str| {
        Body::ApprovalRequested(approval::ApprovalRequested {
            approval_id: ApprovalId(Ulid(id)),
            tool_use_id: ToolUseId(Ulid(5)),
            tool_name: name.into(),
            input_summary: "{}".into(),
            input_truncated: false,
            input_bytes: None,
            input_sha256: None,
        })
    };
    let answer = |id, decision, by: &str, comment: Option<&str>| {
        let mut event = event(
            1,
            Body::ApprovalResolved(approval::ApprovalResolved {
                approval_id: ApprovalId(Ulid(id)),
                decision,
                by: by.into(),
                comment: comment.map(str::to_owned),
            }),
        );
        event.turn_id = None;
        event
    };
    let (mut printer, paper) = printer(OutputForm::Folded, false);
    for (id, name) in [(1, "a"), (2, "b"), (3, "c"), (4, "d")] {
        printer.event(&event(1, asks(id, name))).expect("paper");
    }
    assert_eq!(
        printer.approvals().collect::<Vec<_>>(),
        ["a {}", "b {}", "c {}", "d {}"]
    );
    assert_eq!(paper.read(), "", "whoever can ask tells it");
    printer.answered_here = Some(ApprovalId(Ulid(1)));
    for event in [
        answer(1, Decision::Approve, "user", None),
        answer(2, Decision::Approve, "user", Some("go")),
        answer(3, Decision::Reject, "user", None),
        answer(4, Decision::Reject, "system", None),
        answer(9, Decision::Reject, "user", None),
    ] {
        printer.event(&event).expect("paper");
    }
    assert_eq!(
        paper.read(),
        "[allowed elsewhere: b {}: go\n][refused elsewhere: c {}\n][withdrawn: d {}\n]"
    );
}

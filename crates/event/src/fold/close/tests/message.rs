//! The end of a turn that was cut off while a message streamed and approvals were open.

use super::*;
use crate::body::approval::ApprovalRequested;
use crate::body::stream::{MessageStart, TextDelta};
use crate::content::TokenUsage;
use crate::id::ApprovalId;
use crate::message::Role;

const MESSAGE: MessageId = MessageId(Ulid(31));
const SPOKEN: CallId = CallId(Ulid(32));

fn usage(output_tokens: u64) -> TokenUsage {
    TokenUsage {
        output_tokens,
        ..TokenUsage::default()
    }
}

/// The orchestrator streams a message, while shop's model is called.
fn streaming() -> OpenTurn {
    let mut open = fan_out();
    let bodies = [
        Body::LlmCallStarted(CallStarted {
            call_id: SPOKEN,
            model: "m".into(),
            purpose: CallPurpose::Orchestrate,
            attempt: 1,
            first: false,
        }),
        Body::MessageStart(MessageStart {
            message_id: MESSAGE,
            role: Role::Assistant,
            model: "m".into(),
        }),
        Body::TextDelta(TextDelta {
            message_id: MESSAGE,
            content_block_index: 0,
            text: "half an ".into(),
        }),
    ];
    for (seq, body) in (20..).zip(bodies) {
        let at = Position::persisted(Epoch(1), Seq(seq));
        open.apply(at, time(100), &Actor::ORCHESTRATOR, &body);
    }
    for call in &mut open.in_call {
        call.usage = usage(if call.id == SPOKEN { 2 } else { 5 });
    }
    open
}

#[test]
fn message_belongs_to_the_call_of_the_orchestrator() {
    let end = CloseCause::Failed {
        error: ErrorCode::InternalError.into(),
        reason: None,
    };
    let ending = closing(&streaming(), &end, &[], time(1_000));
    let complete = ending.iter().find_map(|event| {
        let Body::MessageComplete(complete) = &event.body else {
            return None;
        };
        Some(complete)
    });
    let complete = complete.expect("the end of the message");
    assert_eq!((complete.message_id, complete.usage), (MESSAGE, usage(2)));
    let sha256 = content_json(&complete.final_content).1;
    let calls = ending.iter().filter_map(|event| {
        let Body::LlmCallFailed(call) = &event.body else {
            return None;
        };
        let sha256 = call.content_sha256.clone();
        Some((call.call_id, call.message_id, sha256, call.usage))
    });
    let expected = [
        (CALL, None, None, usage(5)),
        (SPOKEN, Some(MESSAGE), Some(sha256), usage(2)),
    ];
    assert_eq!(calls.collect::<Vec<_>>(), expected);
    let Some(Body::TurnCompleted(completed)) = ending.last().map(|event| &event.body) else {
        panic!("{ending:?}");
    };
    assert_eq!(completed.usage, usage(7));
    let partial = PartialMessage {
        message_id: Some(MESSAGE),
        bytes: 8,
        kept_until: None,
    };
    assert_eq!(completed.partial, Some(partial));
}

#[test]
fn failed_turn_names_a_partial_message_only_if_there_is_one() {
    let end = CloseCause::Failed {
        error: ErrorCode::InternalError.into(),
        reason: None,
    };
    let partial = |open: &OpenTurn| match closing(open, &end, &[], time(1_000)).pop() {
        Some(ClosingEvent {
            body: Body::TurnCompleted(completed),
            ..
        }) => completed.partial,
        other => panic!("{other:?}"),
    };
    let mut open = fan_out();
    assert_eq!(partial(&open), None);
    // Nothing of the message was stored when the server crashed.
    let kept_until = Some(Position::persisted(Epoch(1), Seq(9)));
    open.kept_until = kept_until;
    let expected = PartialMessage {
        message_id: None,
        bytes: 0,
        kept_until,
    };
    assert_eq!(partial(&open), Some(expected));
}

// D-79
#[test]
fn open_approvals_are_rejected_by_the_system() {
    let mut open = fan_out();
    open.approvals.push(ApprovalRequested {
        approval_id: ApprovalId(Ulid(41)),
        tool_use_id: SEARCH,
        tool_name: "search".into(),
        input_summary: String::new(),
        input_truncated: false,
        input_bytes: None,
        input_sha256: None,
    });
    let (_, end) = cancelled();
    let ending = closing(&open, &end, &[], time(1_000));
    let resolved = ending.iter().filter_map(|event| {
        let Body::ApprovalResolved(resolved) = &event.body else {
            return None;
        };
        Some((&event.actor, resolved, event.rows.len()))
    });
    let expected = approval::ApprovalResolved {
        approval_id: ApprovalId(Ulid(41)),
        decision: Decision::Reject,
        by: "system".into(),
        comment: None,
    };
    assert_eq!(
        resolved.collect::<Vec<_>>(),
        [(&Actor::SYSTEM, &expected, 1)]
    );
}

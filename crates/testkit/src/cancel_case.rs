//! Classifies a cancelled turn by the cases of S3 6.2. Input: the turn's events of both lanes, in
//! order. Output: exactly one [`CancelCase`], or an error. [`check_uncancelled_turn`] checks other
//! turns by the same event order (S3-052).

mod turn_order;
#[cfg(test)]
mod tests;

use turnwire_event::body::turn::PartialMessage;
use turnwire_event::code::{LlmErrorClass, Phase, ReceiptKind, StopOutcome, ToolErrorClass};
use turnwire_event::{Body, ContentBlock, Event, MessageId};

use turn_order::{TurnOrder, TurnStage};

/// What a turn was doing when it was cancelled; each case has one valid event sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CancelCase {
    /// S3-077: before the first call.
    Route,
    /// S3-077: a model call is open and has streamed nothing.
    Silent,
    /// 6.2.1: the first call streams.
    Llm,
    Tool,
    /// 6.2.3: the model requested tools and none was called.
    Seam,
    /// 6.2.4: a later call streams.
    LaterLlm,
    /// S3-077: between two steps, with nothing pending.
    Idle,
}

/// Checks that a turn follows the order of S3-052 to its end and was not cancelled.
pub fn check_uncancelled_turn(events: &[Event]) -> Result<(), String> {
    let order = check_order(events)?;
    match (&order.stage, &order.cancelled) {
        (TurnStage::Over, None) => Ok(()),
        (TurnStage::Over, Some(_)) => Err("the turn was cancelled".into()),
        (stage, _) => Err(format!("the turn is not over: {stage:?}")),
    }
}

/// The case of a cancelled turn, or why its events match no case.
pub fn classify_cancel(events: &[Event]) -> Result<CancelCase, String> {
    let order = check_order(events)?;
    let Some(cancelled) = order.cancelled.filter(|_| order.stage == TurnStage::Over) else {
        return Err(format!("the turn was not cancelled: {:?}", order.stage));
    };
    let cancel_index = events
        .iter()
        .position(|e| matches!(e.body, Body::TurnCancelRequested(_)))
        .ok_or("no cancel request")?;
    let after_cancel = CancelTail::of(&events[cancel_index + 1..]);
    let case = match (
        after_cancel.call_failed,
        after_cancel.tools_stopped,
        after_cancel.tools_dropped,
    ) {
        (Some(None), 0, 0) => CancelCase::Silent,
        (Some(Some(_)), 0, 0) if order.calls == 1 => CancelCase::Llm,
        (Some(Some(_)), 0, 0) => CancelCase::LaterLlm,
        (None, 1.., _) => CancelCase::Tool,
        (None, 0, 1..) => CancelCase::Seam,
        (None, 0, 0) if order.calls == 0 => CancelCase::Route,
        (None, 0, 0) => CancelCase::Idle,
        other => return Err(format!("a call and tools were stopped together: {other:?}")),
    };
    let phase = match case {
        CancelCase::Route => Phase::Route,
        CancelCase::Silent | CancelCase::Llm | CancelCase::LaterLlm => Phase::Llm,
        CancelCase::Tool => Phase::Tool,
        CancelCase::Seam | CancelCase::Idle => Phase::Seam,
    };
    let mut receipt: Vec<_> = cancelled
        .receipt
        .iter()
        .map(|line| (line.kind, line.id.clone(), line.outcome))
        .collect();
    let by_text = |line: &(ReceiptKind, String, StopOutcome)| format!("{line:?}");
    receipt.sort_by_key(by_text);
    let mut expected_receipt = after_cancel.receipt;
    expected_receipt.sort_by_key(by_text);
    let actual = (
        cancelled.phase,
        cancelled.partial,
        Some(cancelled.reason),
        receipt,
    );
    let expected = (
        phase,
        after_cancel.partial,
        order.cancel_reason,
        expected_receipt,
    );
    if actual == expected {
        Ok(case)
    } else {
        Err(format!(
            "{case:?} should say {expected:?} and says {actual:?}"
        ))
    }
}

fn check_order(events: &[Event]) -> Result<TurnOrder, String> {
    let mut order = TurnOrder::new();
    for event in events {
        order.apply(event)?;
    }
    Ok(order)
}

/// A summary of the events between the cancel request and the end.
struct CancelTail {
    /// The stopped model call, with the message it had started.
    call_failed: Option<Option<MessageId>>,
    /// Tools that ran and were stopped.
    tools_stopped: u32,
    /// Tools that were never called.
    tools_dropped: u32,
    partial: PartialMessage,
    receipt: Vec<(ReceiptKind, String, StopOutcome)>,
}

impl CancelTail {
    fn of(events: &[Event]) -> Self {
        let mut after_cancel = Self {
            call_failed: None,
            tools_stopped: 0,
            tools_dropped: 0,
            partial: PartialMessage {
                message_id: None,
                bytes: 0,
                kept_until: None,
            },
            receipt: Vec::new(),
        };
        let mut bytes = 0;
        for event in events {
            match &event.body {
                Body::MessageComplete(end) => bytes = end.final_content.iter().map(text_len).sum(),
                Body::LlmCallFailed(call) if call.error_class == LlmErrorClass::Cancelled => {
                    after_cancel.call_failed = Some(call.message_id);
                    after_cancel.partial.message_id = call.message_id;
                    after_cancel.partial.bytes = if call.message_id.is_some() { bytes } else { 0 };
                    after_cancel.push_line(
                        ReceiptKind::Llm,
                        call.call_id.to_string(),
                        StopOutcome::Stopped,
                    );
                }
                // It broke by itself before it could be stopped.
                Body::LlmCallFailed(call) => {
                    after_cancel.push_line(
                        ReceiptKind::Llm,
                        call.call_id.to_string(),
                        StopOutcome::Finished,
                    );
                }
                Body::LlmCallCompleted(call) => {
                    after_cancel.push_line(
                        ReceiptKind::Llm,
                        call.call_id.to_string(),
                        StopOutcome::Finished,
                    );
                }
                Body::ToolCompleted(tool) => {
                    after_cancel.push_line(
                        ReceiptKind::Tool,
                        tool.tool_use_id.to_string(),
                        StopOutcome::Finished,
                    );
                }
                Body::ToolFailed(tool) if !tool.called => after_cancel.tools_dropped += 1,
                Body::ToolFailed(tool) => {
                    let stopped = tool.error_class == ToolErrorClass::Cancelled;
                    after_cancel.tools_stopped += u32::from(stopped);
                    let outcome = if stopped {
                        StopOutcome::Stopped
                    } else {
                        StopOutcome::Finished
                    };
                    after_cancel.push_line(
                        ReceiptKind::Tool,
                        tool.tool_use_id.to_string(),
                        outcome,
                    );
                }
                _ => {}
            }
        }
        after_cancel
    }

    fn push_line(&mut self, kind: ReceiptKind, id: String, outcome: StopOutcome) {
        self.receipt.push((kind, id, outcome));
    }
}

fn text_len(block: &ContentBlock) -> u64 {
    match block {
        ContentBlock::Text { text } | ContentBlock::Thinking { text, .. } => text.len() as u64,
        _ => 0,
    }
}

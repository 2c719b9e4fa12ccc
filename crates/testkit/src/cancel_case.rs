//! Which case of S3 6.2 a cancelled turn is: its events go in, in order and of both lanes, and
//! exactly one case comes out, or what fits none. Turns that were not cancelled are judged by
//! the same course (S3-052).

mod turn_order;
#[cfg(test)]
mod tests;

use turnwire_event::body::turn::Partial;
use turnwire_event::code::{LlmErrorClass, Phase, ReceiptKind, StopOutcome, ToolErrorClass};
use turnwire_event::{Body, ContentBlock, Event, MessageId};

use turn_order::{TurnOrder, TurnStage};

/// The one consistent sequence of a cancelled turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CancelCase {
    /// S3-077: before the first call.
    Route,
    /// S3-077: a call is open that has said nothing.
    Silent,
    /// 6.2.1: the first call streams.
    Llm,
    Tool,
    /// 6.2.3: tools were asked for and none was called.
    Seam,
    /// 6.2.4: a later call streams.
    LaterLlm,
    /// S3-077: between two things, with nothing pending.
    Idle,
}

/// Judges a turn that was not cancelled: the order of S3-052, to its end.
pub fn plain_turn(events: &[Event]) -> Result<(), String> {
    let course = walk(events)?;
    match (&course.stage, &course.cancelled) {
        (TurnStage::Over, None) => Ok(()),
        (TurnStage::Over, Some(_)) => Err("the turn was cancelled".into()),
        (stage, _) => Err(format!("the turn is not over: {stage:?}")),
    }
}

/// Tells the case of a cancelled turn, or why it is none.
pub fn cancel_case(events: &[Event]) -> Result<CancelCase, String> {
    let course = walk(events)?;
    let Some(cancelled) = course.cancelled.filter(|_| course.stage == TurnStage::Over) else {
        return Err(format!("the turn was not cancelled: {:?}", course.stage));
    };
    let asked = events
        .iter()
        .position(|e| matches!(e.body, Body::TurnCancelRequested(_)))
        .ok_or("no one asked")?;
    let tail = CancelTail::of(&events[asked + 1..]);
    let case = match (tail.call_failed, tail.tools_stopped, tail.tools_dropped) {
        (Some(None), 0, 0) => CancelCase::Silent,
        (Some(Some(_)), 0, 0) if course.calls == 1 => CancelCase::Llm,
        (Some(Some(_)), 0, 0) => CancelCase::LaterLlm,
        (None, 1.., _) => CancelCase::Tool,
        (None, 0, 1..) => CancelCase::Seam,
        (None, 0, 0) if course.calls == 0 => CancelCase::Route,
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
    let mut due = tail.receipt;
    due.sort_by_key(by_text);
    let told = (
        cancelled.phase,
        cancelled.partial,
        Some(cancelled.reason),
        receipt,
    );
    let expected = (phase, tail.partial, course.asked, due);
    if told == expected {
        Ok(case)
    } else {
        Err(format!(
            "{case:?} should say {expected:?} and says {told:?}"
        ))
    }
}

fn walk(events: &[Event]) -> Result<TurnOrder, String> {
    let mut course = TurnOrder::new();
    for event in events {
        course.take(event)?;
    }
    Ok(course)
}

/// What came between the cancel and the end.
struct CancelTail {
    /// The call that was stopped, and the message it had begun.
    call_failed: Option<Option<MessageId>>,
    /// Tools that ran and were stopped.
    tools_stopped: u32,
    /// Tools that were never called.
    tools_dropped: u32,
    partial: Partial,
    receipt: Vec<(ReceiptKind, String, StopOutcome)>,
}

impl CancelTail {
    fn of(events: &[Event]) -> Self {
        let mut tail = Self {
            call_failed: None,
            tools_stopped: 0,
            tools_dropped: 0,
            partial: Partial {
                message_id: None,
                bytes: 0,
            },
            receipt: Vec::new(),
        };
        let mut bytes = 0;
        for event in events {
            match &event.body {
                Body::MessageComplete(end) => bytes = end.final_content.iter().map(words).sum(),
                Body::LlmCallFailed(call) if call.error_class == LlmErrorClass::Cancelled => {
                    tail.call_failed = Some(call.message_id);
                    tail.partial.message_id = call.message_id;
                    tail.partial.bytes = if call.message_id.is_some() { bytes } else { 0 };
                    tail.line(
                        ReceiptKind::Llm,
                        call.call_id.to_string(),
                        StopOutcome::Stopped,
                    );
                }
                // It broke by itself before it could be stopped.
                Body::LlmCallFailed(call) => {
                    tail.line(
                        ReceiptKind::Llm,
                        call.call_id.to_string(),
                        StopOutcome::Finished,
                    );
                }
                Body::LlmCallCompleted(call) => {
                    tail.line(
                        ReceiptKind::Llm,
                        call.call_id.to_string(),
                        StopOutcome::Finished,
                    );
                }
                Body::ToolCompleted(tool) => {
                    tail.line(
                        ReceiptKind::Tool,
                        tool.tool_use_id.to_string(),
                        StopOutcome::Finished,
                    );
                }
                Body::ToolFailed(tool) if !tool.called => tail.tools_dropped += 1,
                Body::ToolFailed(tool) => {
                    let stopped = tool.error_class == ToolErrorClass::Cancelled;
                    tail.tools_stopped += u32::from(stopped);
                    let outcome = if stopped {
                        StopOutcome::Stopped
                    } else {
                        StopOutcome::Finished
                    };
                    tail.line(ReceiptKind::Tool, tool.tool_use_id.to_string(), outcome);
                }
                _ => {}
            }
        }
        tail
    }

    fn line(&mut self, kind: ReceiptKind, id: String, outcome: StopOutcome) {
        self.receipt.push((kind, id, outcome));
    }
}

fn words(block: &ContentBlock) -> u64 {
    match block {
        ContentBlock::Text { text } | ContentBlock::Thinking { text, .. } => text.len() as u64,
        _ => 0,
    }
}

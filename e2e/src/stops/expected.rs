//! Checks one stopped turn: its events of both lanes, and its end against the expected one.

use std::collections::BTreeMap;

use turnwire_event::body::turn::{ReceiptLine, TurnCancelled};
use turnwire_event::code::{
    LlmErrorClass, Phase, ReceiptKind, StopOutcome, ToolErrorClass, ToolType,
};
use turnwire_event::{Body, Event, EventType, StopReason};

/// The expected end of a stopped turn.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedEnd {
    /// The phase at the stop.
    pub phase: Phase,
    /// Lines of the receipt by kind, and what became of them; any number of others of that kind
    /// is wrong.
    pub lines: Vec<(ReceiptKind, usize, StopOutcome)>,
}

/// Checks the events of a stopped turn; returns its end.
pub fn stopped(name: &str, events: &[Event]) -> TurnCancelled {
    let names: Vec<&str> = events.iter().map(|e| e.body.kind().name()).collect();
    let terminals = events.iter().filter(|e| e.body.kind().is_terminal());
    assert_eq!(terminals.count(), 1, "{name}: {names:?}");
    let Some(Body::TurnCancelled(end)) = events.last().map(|event| &event.body) else {
        panic!("{name}: {names:?}");
    };
    let cancel_index = events
        .iter()
        .position(|e| e.body.kind() == EventType::TurnCancelRequested);
    let cancel_index = cancel_index.unwrap_or_else(|| panic!("{name}: nobody asked: {names:?}"));
    let (before, after) = events.split_at(cancel_index);
    for event in &after[1..] {
        let kind = event.body.kind();
        assert!(kind.is_closing(), "{name}: {kind} after the cancel");
    }
    // Children before parents, the trace and the terminal last: one sequence.
    let ranks: Vec<u8> = after.iter().filter_map(|event| rank(&event.body)).collect();
    assert!(ranks.is_sorted(), "{name}: {ranks:?} {names:?}");
    pairs(name, events);
    receipt(name, before, after, end);
    end.clone()
}

/// The position of an event in the fixed order of an ending; `None` for other events.
fn rank(body: &Body) -> Option<u8> {
    Some(match body {
        Body::ToolUseEnd(_) => 0,
        Body::MessageComplete(end) if end.stop_reason == StopReason::Cancelled => 1,
        Body::LlmCallFailed(call) if call.error_class == LlmErrorClass::Cancelled => 2,
        Body::DelegateFailed(_) | Body::DelegateCompleted(_) => 3,
        Body::ToolFailed(tool) if tool.error_class == ToolErrorClass::Cancelled => {
            if tool.tool_type == ToolType::SubAgent {
                5
            } else {
                3
            }
        }
        Body::SubagentFailed(_) => 4,
        Body::PlanStepCompleted(_) => 6,
        Body::DispatchTraced(_) => 7,
        Body::TurnCancelled(_) => 8,
        _ => return None,
    })
}

/// I-05: everything that started has ended once.
fn pairs(name: &str, events: &[Event]) {
    let mut open: BTreeMap<String, i32> = BTreeMap::new();
    for event in events {
        let (id, by) = match &event.body {
            Body::LlmCallStarted(call) => (call.call_id.to_string(), 1),
            Body::LlmCallCompleted(call) => (call.call_id.to_string(), -1),
            Body::LlmCallFailed(call) => (call.call_id.to_string(), -1),
            Body::ToolCalled(tool) => (tool.tool_use_id.to_string(), 1),
            Body::ToolCompleted(tool) => (tool.tool_use_id.to_string(), -1),
            Body::ToolFailed(tool) if tool.called => (tool.tool_use_id.to_string(), -1),
            Body::SubagentStarted(agent) => (agent.invocation_id.to_string(), 1),
            Body::SubagentCompleted(agent) => (agent.invocation_id.to_string(), -1),
            Body::SubagentFailed(agent) => (agent.invocation_id.to_string(), -1),
            Body::DelegateStarted(worker) => (worker.worker_session_id.to_string(), 1),
            Body::DelegateCompleted(worker) => (worker.worker_session_id.to_string(), -1),
            Body::DelegateFailed(worker) => (worker.worker_session_id.to_string(), -1),
            _ => continue,
        };
        let count = open.entry(id.clone()).or_default();
        *count += by;
        assert!((0..=1).contains(count), "{name}: {id} is out of order");
    }
    open.retain(|_, count| *count != 0);
    assert!(open.is_empty(), "{name}: {open:?} never ended");
}

/// Everything that ran at the cancel has one receipt line; other lines are for processes only.
fn receipt(name: &str, before: &[Event], after: &[Event], end: &TurnCancelled) {
    let mut due: Vec<(ReceiptKind, String)> = Vec::new();
    for event in after {
        due.push(match &event.body {
            Body::LlmCallFailed(call) => (ReceiptKind::Llm, call.call_id.to_string()),
            Body::LlmCallCompleted(call) => (ReceiptKind::Llm, call.call_id.to_string()),
            Body::ToolFailed(tool) if tool.called => {
                (ReceiptKind::Tool, tool.tool_use_id.to_string())
            }
            Body::ToolCompleted(tool) => (ReceiptKind::Tool, tool.tool_use_id.to_string()),
            Body::SubagentFailed(agent) => (ReceiptKind::Subagent, agent.invocation_id.to_string()),
            Body::SubagentCompleted(agent) => {
                (ReceiptKind::Subagent, agent.invocation_id.to_string())
            }
            Body::DelegateFailed(worker) => {
                (ReceiptKind::Worker, worker.worker_session_id.to_string())
            }
            Body::DelegateCompleted(worker) => {
                (ReceiptKind::Worker, worker.worker_session_id.to_string())
            }
            _ => continue,
        });
    }
    let receipt_lines = end.receipt.iter();
    let mut receipt_lines: Vec<_> = receipt_lines
        .map(|line| (line.kind, line.id.clone()))
        .collect();
    let by_text = |line: &(ReceiptKind, String)| format!("{line:?}");
    receipt_lines.sort_by_key(by_text);
    let all = receipt_lines.len();
    receipt_lines.dedup();
    assert_eq!(
        receipt_lines.len(),
        all,
        "{name}: a line twice: {:?}",
        end.receipt
    );
    receipt_lines.retain(|(kind, _)| *kind != ReceiptKind::Process);
    due.sort_by_key(by_text);
    assert_eq!(receipt_lines, due, "{name}: {} events before", before.len());
}

impl ExpectedEnd {
    /// Compares the end of a turn with the expected one.
    pub fn check_history(&self, name: &str, end: &TurnCancelled) {
        assert_eq!(end.phase, self.phase, "{name}: {end:?}");
        for (kind, count, outcome) in &self.lines {
            let of_kind = |line: &&ReceiptLine| line.kind == *kind && line.outcome == *outcome;
            let actual = end.receipt.iter().filter(of_kind).count();
            assert_eq!(actual, *count, "{name}: {kind:?} {outcome:?}: {end:?}");
        }
    }
}

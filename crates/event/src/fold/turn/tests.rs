//! What a turn has open after its events, and what its receipt will list.

use super::*;
use crate::body::delegate::{DelegateCompleted, DelegateFailed, DelegateStarted};
use crate::body::llm::{CallCompleted, CallFailed, CallStarted};
use crate::body::plan::StepStarted;
use crate::body::stream::{MessageComplete, MessageStart};
use crate::body::tool::{ToolCalled, ToolCompleted};
use crate::code::{CallPurpose, FailureMode, LlmErrorClass};
use crate::id::{ApprovalId, MessageId, Ulid};
use crate::message::Role;
use crate::position::{Epoch, Seq};

const CALL: CallId = CallId(Ulid(1));
const INNER_CALL: CallId = CallId(Ulid(2));
const MESSAGE: MessageId = MessageId(Ulid(3));
const TOOL: ToolUseId = ToolUseId(Ulid(4));
const OTHER_TOOL: ToolUseId = ToolUseId(Ulid(5));
const WORKER: SessionId = SessionId(Ulid(6));
const OTHER_WORKER: SessionId = SessionId(Ulid(7));

fn by_orchestrator(body: Body) -> (Actor, Body) {
    (Actor::ORCHESTRATOR, body)
}

fn by_shop(body: Body) -> (Actor, Body) {
    (Actor::subagent("shop"), body)
}

fn call_started(call_id: CallId) -> Body {
    Body::LlmCallStarted(CallStarted {
        call_id,
        model: format!("model-{}", call_id.0.0),
        purpose: CallPurpose::Orchestrate,
        attempt: 1,
        first: false,
    })
}

fn usage(output_tokens: u64) -> TokenUsage {
    TokenUsage {
        output_tokens,
        ..TokenUsage::default()
    }
}

fn call_completed(call_id: CallId) -> Body {
    Body::LlmCallCompleted(CallCompleted {
        call_id,
        message_id: MESSAGE,
        content_sha256: String::new(),
        stop_reason: StopReason::EndTurn,
        usage: usage(2),
    })
}

fn call_failed(call_id: CallId) -> Body {
    Body::LlmCallFailed(CallFailed {
        call_id,
        message_id: None,
        content_sha256: None,
        error_class: LlmErrorClass::Timeout,
        usage: usage(3),
    })
}

fn message_started() -> Body {
    Body::MessageStart(MessageStart {
        message_id: MESSAGE,
        role: Role::Assistant,
        model: "m".into(),
    })
}

fn message_complete(stop_reason: StopReason) -> Body {
    let tool_use = |id| ContentBlock::ToolUse {
        id,
        name: "clock".into(),
        input: serde_json::json!({}),
    };
    Body::MessageComplete(MessageComplete {
        message_id: MESSAGE,
        stop_reason,
        final_content: vec![
            ContentBlock::text("Let me look."),
            tool_use(TOOL),
            tool_use(OTHER_TOOL),
        ],
        usage: TokenUsage::default(),
    })
}

fn tool_called(tool_use_id: ToolUseId) -> Body {
    Body::ToolCalled(ToolCalled {
        upstream_id: None,
        tool_use_id,
        tool_name: format!("tool-{}", tool_use_id.0.0),
        tool_type: ToolType::Process,
        input_summary: String::new(),
    })
}

fn tool_completed(tool_use_id: ToolUseId) -> Body {
    Body::ToolCompleted(ToolCompleted {
        upstream_id: None,
        tool_use_id,
        tool_name: String::new(),
        tool_type: ToolType::Process,
        duration_ms: 1,
        result_summary: String::new(),
        result_sha256: String::new(),
    })
}

fn worker_started(worker_session_id: SessionId) -> Body {
    Body::DelegateStarted(DelegateStarted {
        worker_session_id,
        tool_use_id: TOOL,
        task_summary: String::new(),
    })
}

fn worker_completed(worker_session_id: SessionId) -> Body {
    Body::DelegateCompleted(DelegateCompleted {
        worker_session_id,
        success: true,
        summary: String::new(),
    })
}

fn worker_failed(worker_session_id: SessionId) -> Body {
    Body::DelegateFailed(DelegateFailed {
        worker_session_id,
        failure_mode: FailureMode::CancelledByUser,
    })
}

fn approval_requested(id: ToolUseId) -> Body {
    Body::ApprovalRequested(ApprovalRequested {
        approval_id: ApprovalId(id.0),
        tool_use_id: id,
        tool_name: "clock".into(),
        input_summary: "{}".into(),
        input_truncated: false,
        input_bytes: None,
        input_sha256: None,
    })
}

fn cancel_requested() -> Body {
    Body::TurnCancelRequested(CancelRequested::new("user", "user"))
}

/// The turn after these events, the first at 10 ms, a millisecond apart.
fn folded(events: impl IntoIterator<Item = (Actor, Body)>) -> OpenTurn {
    let mut open = OpenTurn::new(TurnId(Ulid(9)));
    for (seq, (actor, body)) in (1..).zip(events) {
        let at = Position::persisted(Epoch(1), Seq(seq));
        open.apply(at, Timestamp::from_millis(9 + seq as i64), &actor, &body);
    }
    open
}

fn of_orchestrator(bodies: impl IntoIterator<Item = Body>) -> OpenTurn {
    folded(bodies.into_iter().map(by_orchestrator))
}

// S3-073
#[test]
fn phase_follows_the_open_work() {
    let mut events = Vec::new();
    let mut phase_after = |event: (Actor, Body)| {
        events.push(event);
        folded(events.clone()).phase()
    };
    assert_eq!(folded([]).phase(), Phase::Route);
    assert_eq!(phase_after(by_orchestrator(call_started(CALL))), Phase::Llm);
    let ended = by_orchestrator(call_completed(CALL));
    assert_eq!(phase_after(ended), Phase::Seam);
    // A tool that is requested and not called.
    let requested = by_orchestrator(message_complete(StopReason::ToolUse));
    assert_eq!(phase_after(requested), Phase::Seam);
    let called = by_orchestrator(tool_called(TOOL));
    assert_eq!(phase_after(called), Phase::Tool);
    assert_eq!(phase_after(by_shop(call_started(INNER_CALL))), Phase::Tool);
    let worker = by_orchestrator(worker_started(WORKER));
    assert_eq!(phase_after(worker), Phase::Delegate);
}

#[test]
fn model_calls_are_counted_and_paid_for_when_they_end() {
    let open = folded([
        by_orchestrator(call_started(CALL)),
        by_shop(call_started(INNER_CALL)),
        by_shop(call_failed(INNER_CALL)),
        by_orchestrator(call_completed(CALL)),
    ]);
    assert_eq!(open.calls, 2);
    assert_eq!(open.usage, usage(5));
    assert_eq!(open.in_call, []);
}

#[test]
fn failed_call_of_the_orchestrator_drops_its_message() {
    let events = |failed| {
        folded([
            by_orchestrator(call_started(CALL)),
            by_shop(call_started(INNER_CALL)),
            by_orchestrator(message_started()),
            failed,
        ])
    };
    let open = events(by_orchestrator(call_failed(CALL)));
    assert_eq!(open.message, None);
    let mut open = events(by_shop(call_failed(INNER_CALL)));
    assert!(open.message.is_some());
    assert_eq!(open.in_call.len(), 1);
    open.in_call[0].usage = usage(8);
    assert_eq!(open.speaking_usage(), usage(8));
    open.in_call[0].actor = Actor::subagent("shop");
    assert_eq!(open.speaking_usage(), TokenUsage::default());
}

#[test]
fn finished_message_requests_its_tools() {
    let open = of_orchestrator([message_started(), message_complete(StopReason::ToolUse)]);
    let tool = |id| OpenTool {
        upstream_id: None,
        id,
        name: "clock".into(),
        tool_type: ToolType::Function,
        called: false,
    };
    assert_eq!(open.tools, [tool(TOOL), tool(OTHER_TOOL)]);
    assert_eq!(open.message, None);
    for stop_reason in [StopReason::Cancelled, StopReason::Error] {
        let open = of_orchestrator([message_started(), message_complete(stop_reason)]);
        assert_eq!(open.tools, [], "{stop_reason:?}");
    }
}

// D-79
#[test]
fn work_that_ends_after_a_cancel_is_in_the_receipt() {
    let work = [
        call_started(CALL),
        call_started(INNER_CALL),
        tool_called(TOOL),
        tool_called(OTHER_TOOL),
        worker_started(WORKER),
        worker_started(OTHER_WORKER),
    ];
    let ends = [
        call_completed(INNER_CALL),
        worker_completed(OTHER_WORKER),
        tool_completed(TOOL),
        worker_failed(WORKER),
    ];
    let before = of_orchestrator(work.clone().into_iter().chain(ends.clone()));
    assert_eq!(before.finished, []);
    // The cancel is at 16 ms.
    let events = work.into_iter().chain([cancel_requested()]).chain(ends);
    let open = of_orchestrator(events);
    let line = |kind, id: String, name: &str, outcome, ms| ReceiptLine {
        kind,
        id,
        name: name.into(),
        outcome,
        ms,
    };
    let worker = ReceiptKind::Worker;
    let expected = [
        line(
            ReceiptKind::Llm,
            INNER_CALL.to_string(),
            "model-2",
            StopOutcome::Finished,
            1,
        ),
        line(
            worker,
            OTHER_WORKER.to_string(),
            "tool-4",
            StopOutcome::Finished,
            2,
        ),
        line(
            ReceiptKind::Tool,
            TOOL.to_string(),
            "tool-4",
            StopOutcome::Finished,
            3,
        ),
        // Named by its tool, which has ended already.
        line(
            worker,
            WORKER.to_string(),
            "tool-4",
            StopOutcome::Stopped,
            4,
        ),
    ];
    assert_eq!(open.finished, expected);
    let calls: Vec<_> = open.in_call.iter().map(|call| call.id).collect();
    let tools: Vec<_> = open.tools.iter().map(|tool| tool.id).collect();
    assert_eq!((calls, tools), (vec![CALL], vec![OTHER_TOOL]));
    assert_eq!(open.delegates, []);
    assert_eq!(open.tool_name(OTHER_TOOL), "tool-5");
    assert_eq!(open.tool_name(ToolUseId(Ulid(99))), "");
    // The id of another kind of work names no tool.
    assert_eq!(open.tool_name(ToolUseId(WORKER.0)), "");
}

#[test]
fn turn_is_settled_when_only_approvals_are_open() {
    let step_started = Body::PlanStepStarted(StepStarted {
        plan_step_id: "step".into(),
        expected_subagents: Vec::new(),
        cap: 1,
        dropped: Vec::new(),
        deadline_ms: 1,
    });
    assert!(of_orchestrator([]).is_settled());
    for open in [
        call_started(CALL),
        message_started(),
        tool_called(TOOL),
        worker_started(WORKER),
        step_started,
    ] {
        assert!(!of_orchestrator([open.clone()]).is_settled(), "{open:?}");
    }
    let requested = message_complete(StopReason::ToolUse);
    let one = of_orchestrator([requested.clone(), approval_requested(TOOL)]);
    assert!(!one.is_settled(), "the other tool is open");
    let both = [TOOL, OTHER_TOOL].map(approval_requested);
    let open = of_orchestrator([requested].into_iter().chain(both));
    assert!(open.is_settled());
    assert_eq!(open.approvals.len(), 2);
}

#[test]
fn end_of_a_worker_closes_that_worker() {
    for end in [worker_completed(WORKER), worker_failed(WORKER)] {
        let open = of_orchestrator([worker_started(WORKER), worker_started(OTHER_WORKER), end]);
        let workers = open.delegates.iter();
        let workers: Vec<_> = workers.map(|worker| worker.worker_session_id).collect();
        assert_eq!(workers, [OTHER_WORKER]);
    }
}

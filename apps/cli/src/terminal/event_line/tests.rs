//! Events as lines: words flow, the rest is one line each, and nothing hidden gets through.

use super::*;
use serde_json::json;
use turnwire_event::body::{
    agent, approval, component, data, delegate, dispatch, mcp, plan, status, stream, subagent, turn,
};
use turnwire_event::code::{
    AgentErrorClass, CapBehavior, Decision, DispatchOutcome, ErrorCode, FailureMode, Reason,
    SlotStatus, StepStatus, ToolType, TurnStatus,
};
use turnwire_event::{
    Actor, ApprovalId, Epoch, InvocationId, Position, Role, Seq, SessionId, StopReason, Sub,
    Timestamp, TokenUsage, ToolUseId, TurnId, Ulid,
};

fn event(sub: u32, body: Body) -> Event {
    Event {
        response_id: None,
        id: Position {
            epoch: Epoch(1),
            seq: Seq(3),
            sub: Sub(sub),
        },
        session_id: SessionId(Ulid(1)),
        turn_id: Some(TurnId(Ulid(2))),
        actor: Actor::ORCHESTRATOR,
        timestamp: Timestamp::from_millis(5),
        trace: None,
        render: None,
        sub_agent_id: None,
        body,
    }
}

const ID: MessageId = MessageId(Ulid(4));

fn start() -> Body {
    Body::MessageStart(stream::MessageStart {
        message_id: ID,
        role: Role::Assistant,
        model: "m".into(),
    })
}

fn delta(text: &str) -> Body {
    Body::TextDelta(stream::TextDelta {
        message_id: ID,
        content_block_index: 0,
        text: text.into(),
    })
}

fn complete() -> Body {
    Body::MessageComplete(stream::MessageComplete {
        message_id: ID,
        stop_reason: StopReason::EndTurn,
        final_content: vec![ContentBlock::text("a\u{1b}[2Jb\nc")],
        usage: TokenUsage::default(),
    })
}

// S3-099
#[test]
fn text_streams_and_the_next_event_begins_a_line() {
    let mut printer = EventLinePrinter::new(ColorMode::Plain);
    let bodies = [start(), delta("a\u{1b}["), delta("2Jb\nc"), complete()];
    let out: String = bodies
        .into_iter()
        .zip(1..)
        .map(|(body, sub)| printer.event(&event(sub, body)))
        .collect();
    assert_eq!(
        out,
        "evt_00010000000003.000001 00:00:00.005 message.start orchestrator m\n  \
         ab\n  c\n\
         evt_00010000000003.000004 00:00:00.005 message.complete orchestrator end_turn\n"
    );
}

// S3-067, S3-099
#[test]
fn finished_message_is_printed_at_its_end() {
    let mut printer = EventLinePrinter::new(ColorMode::Plain);
    printer.event(&event(1, start()));
    assert_eq!(
        printer.event(&event(9, complete())),
        "evt_00010000000003.000009 00:00:00.005 message.complete orchestrator end_turn\n  \
         ab\n  c\n"
    );
}

#[test]
fn failed_turn_line_is_sanitized() {
    let mut printer = EventLinePrinter::new(ColorMode::Plain);
    let body = Body::TurnCompleted(turn::TurnCompleted {
        status: TurnStatus::Failed,
        usage: TokenUsage::default(),
        error: Some(ErrorCode::InternalError.into()),
        reason: Some("server\u{1b}]0;x\u{7}_restart".into()),
        partial: None,
        paused: None,
    });
    assert_eq!(
        printer.event(&event(0, body)),
        "evt_00010000000003 00:00:00.005 turn.completed orchestrator \
         failed INTERNAL_ERROR server_restart 0 tokens\n"
    );
}

/// What stands behind the actor.
fn summary_of(body: Body) -> String {
    let told = EventLinePrinter::new(ColorMode::Plain).event(&event(0, body));
    let (_, gist) = told.split_once(" orchestrator").expect("an actor");
    gist.trim().to_owned()
}

#[test]
fn sub_agent_events_are_one_line_each() {
    let ended = subagent::SubagentFailed {
        invocation_id: InvocationId(Ulid(7)),
        sub_agent_id: "shop".into(),
        tool_use_id: ToolUseId(Ulid(8)),
        latency_ms: 500,
        error_class: AgentErrorClass::Timeout,
        status_events: 0,
    };
    let step = plan::StepStarted {
        plan_step_id: "turn-x-1".into(),
        expected_subagents: vec!["shop".into(), "rewards".into()],
        cap: 2,
        dropped: vec!["support".into()],
        deadline_ms: 20_000,
    };
    let done = plan::StepCompleted {
        plan_step_id: "turn-x-1".into(),
        status: StepStatus::PartialFailure,
        slots: vec![plan::SlotEnd {
            subagent: "shop".into(),
            result_key: "tu_8".into(),
            status: SlotStatus::Timeout,
        }],
    };
    let mut traced = dispatch::DispatchTraced {
        cap_behavior: CapBehavior::Over,
        ..dispatch::DispatchTraced::default()
    };
    assert_eq!(
        summary_of(Body::DispatchTraced(traced.clone())),
        "no sub-agents"
    );
    traced.intent_count = 3;
    traced.dropped = vec!["support".into()];
    traced.outcomes = vec![dispatch::AgentOutcome {
        sub_agent_id: "shop".into(),
        outcome: DispatchOutcome::Success,
        latency_ms: 84,
    }];
    for (body, told) in [
        (Body::SubagentFailed(ended), "shop timeout 500 ms"),
        (
            Body::PlanStepStarted(step),
            "shop, rewards (cap 2); left out: support",
        ),
        (
            Body::PlanStepCompleted(done),
            "partial_failure: shop timeout",
        ),
        (
            Body::DispatchTraced(traced),
            "shop success 84 ms; left out: support",
        ),
        (
            Body::AgentErrorEmit(agent::ErrorEmit {
                sub_agent_id: Some("shop".into()),
                axis: 1,
                is_final: false,
            }),
            "axis 1 shop not final",
        ),
    ] {
        assert_eq!(summary_of(body), told);
    }
}

#[test]
fn components_and_failures_are_sanitized_lines() {
    let failed = turn::TurnError::fan_out(vec![
        turn::TurnError::sub_agent("rewards"),
        turn::TurnError::envelope("offer_search", Reason::UpstreamTimeout),
    ]);
    let loaded = data::DataLoaded {
        id: "data_1".into(),
        data_type: "offer_list".into(),
        key: data::CollectionKey { ids: Vec::new() },
        items: vec![
            json!({"title": "Oat\u{1b}[2J milk"}),
            json!({"name": "Granola"}),
        ],
    };
    let card = component::ComponentRendered {
        component: json!({"label": "Oat milk"}),
        tool_call: component::RenderingToolCall {
            upstream_id: None,
            id: ToolUseId(Ulid(8)),
            name: "render_card".into(),
            tool_type: ToolType::Render,
        },
    };
    let status = status::StatusEmitted {
        event_id: "searching_offers".into(),
        message: "Searching\u{7} for offers...".into(),
        invocation_id: None,
    };
    let progress = mcp::McpCallProgressed {
        server: "files".into(),
        progress: 1.0,
        total: Some(2.5),
    };
    for (body, told) in [
        (
            Body::ErrorReported(failed),
            "PARTIAL_FAN_OUT (SUB_AGENT_FAILED rewards, \
             CCS_ENVELOPE_ERROR offer_search upstream_timeout)",
        ),
        (
            Body::DataLoaded(loaded),
            "data_1 ▪ offer_list: Oat milk, Granola",
        ),
        (Body::ComponentRendered(card), "▪ card: Oat milk"),
        (
            Body::StatusEmitted(status),
            "searching_offers Searching for offers...",
        ),
        (Body::McpSessionProgressed(progress), "files 1 of 2.5"),
    ] {
        assert_eq!(summary_of(body), told);
    }
}

#[test]
fn workers_and_approvals_are_one_line_each() {
    let worker_session_id = SessionId(Ulid(9));
    let (approval_id, tool_use_id) = (ApprovalId(Ulid(8)), ToolUseId(Ulid(5)));
    let bodies = [
        (
            Body::DelegateStarted(delegate::DelegateStarted {
                worker_session_id,
                tool_use_id,
                task_summary: "tea\u{1b}[2J".into(),
            }),
            format!("delegate.started orchestrator {worker_session_id} tea"),
        ),
        (
            Body::DelegateCompleted(delegate::DelegateCompleted {
                worker_session_id,
                success: false,
                summary: "no".into(),
            }),
            format!("delegate.completed orchestrator {worker_session_id} not done: no"),
        ),
        (
            Body::DelegateFailed(delegate::DelegateFailed {
                worker_session_id,
                failure_mode: FailureMode::Timeout,
            }),
            format!("delegate.failed orchestrator {worker_session_id} timeout"),
        ),
        (
            Body::ApprovalRequested(approval::ApprovalRequested {
                approval_id,
                tool_use_id,
                tool_name: "note".into(),
                input_summary: "{}".into(),
                input_truncated: false,
                input_bytes: None,
                input_sha256: None,
            }),
            format!("approval.requested orchestrator {approval_id} note {{}}"),
        ),
        (
            Body::ApprovalResolved(approval::ApprovalResolved {
                approval_id,
                decision: Decision::Reject,
                by: "user".into(),
                comment: None,
            }),
            format!("approval.resolved orchestrator {approval_id} reject by user"),
        ),
    ];
    for (body, told) in bodies {
        let line = EventLinePrinter::new(ColorMode::Plain).event(&event(0, body));
        assert!(line.ends_with(&format!(" {told}\n")), "{line:?}");
    }
}

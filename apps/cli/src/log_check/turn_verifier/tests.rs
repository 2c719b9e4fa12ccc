//! Turns with sub-agents: parallel work is valid, unfinished work is a violation.

use turnwire_event::body::dispatch::DispatchTraced;
use turnwire_event::body::llm::{CallFailed, CallStarted};
use turnwire_event::body::plan::{StepCompleted, StepStarted};
use turnwire_event::body::subagent::{SubagentContext, SubagentFailed, SubagentStarted};
use turnwire_event::body::turn::{
    self, BoundVersions, CancelRequested, PartialMessage, TurnCancelled, TurnCompleted,
};
use turnwire_event::code::{
    AgentErrorClass, CancelCode, LlmErrorClass, StepStatus, TurnKind, TurnStatus,
};
use turnwire_event::{EpisodeId, MessageId, TokenUsage, Ulid};

use super::*;

const TURN: TurnId = TurnId(Ulid(2));
const STEP: &str = "turn-x-1";

fn started() -> Body {
    Body::TurnStarted(turn::TurnStarted {
        relayed_to: None,
        answers: Vec::new(),
        resumes: None,
        user_message_id: MessageId(Ulid(3)),
        input: Vec::new(),
        kind: TurnKind::Chat,
        origin: None,
        dm_type: None,
        episode_id: EpisodeId(Ulid(4)),
        locale: "en".into(),
        wire_version: None,
        history_omitted: 0,
        versions: BoundVersions::default(),
    })
}

fn completed() -> Body {
    Body::TurnCompleted(TurnCompleted {
        status: TurnStatus::Ok,
        usage: TokenUsage::default(),
        error: None,
        reason: None,
        partial: None,
        paused: None,
    })
}

fn call(id: u128, purpose: CallPurpose) -> Body {
    Body::LlmCallStarted(CallStarted {
        call_id: CallId(Ulid(id)),
        model: "m".into(),
        purpose,
        attempt: 1,
        first: false,
    })
}

fn call_failed(id: u128) -> Body {
    Body::LlmCallFailed(CallFailed {
        call_id: CallId(Ulid(id)),
        message_id: None,
        content_sha256: None,
        error_class: LlmErrorClass::Transport,
        usage: TokenUsage::default(),
    })
}

fn agent(id: u128) -> Body {
    Body::SubagentStarted(SubagentStarted {
        invocation_id: InvocationId(Ulid(id)),
        sub_agent_id: "shop".into(),
        tool_use_id: ToolUseId(Ulid(id)),
        plan_step_id: STEP.into(),
        context: SubagentContext {
            principal: "local".into(),
            user_id: "local".into(),
            episode_id: EpisodeId(Ulid(4)),
            locale: "en".into(),
            location: None,
            prior_context: None,
        },
    })
}

fn agent_failed(id: u128) -> Body {
    Body::SubagentFailed(SubagentFailed {
        invocation_id: InvocationId(Ulid(id)),
        sub_agent_id: "shop".into(),
        tool_use_id: ToolUseId(Ulid(id)),
        latency_ms: 1,
        error_class: AgentErrorClass::Model,
        status_events: 0,
    })
}

fn step() -> Body {
    Body::PlanStepStarted(StepStarted {
        plan_step_id: STEP.into(),
        expected_subagents: vec!["shop".into(), "rewards".into()],
        cap: 3,
        dropped: Vec::new(),
        deadline_ms: 1,
    })
}

fn step_done() -> Body {
    Body::PlanStepCompleted(StepCompleted {
        plan_step_id: STEP.into(),
        status: StepStatus::Failed,
        slots: Vec::new(),
    })
}

fn traced() -> Body {
    Body::DispatchTraced(DispatchTraced::default())
}

fn fan_out() -> Vec<Body> {
    vec![
        started(),
        step(),
        agent(1),
        agent(2),
        call(1, CallPurpose::Subagent),
        call(2, CallPurpose::Subagent),
        call_failed(1),
        call_failed(2),
        agent_failed(2),
        agent_failed(1),
        step_done(),
        traced(),
        completed(),
    ]
}

fn violations(bodies: &[Body]) -> Vec<String> {
    let mut verifier = TurnVerifier::default();
    let violations = bodies
        .iter()
        .flat_map(|body| verifier.check(Some(TURN), body));
    violations.collect()
}

#[test]
fn only_sub_agents_may_call_models_in_parallel() {
    assert_eq!(violations(&fan_out()), Vec::<String>::new());
    let two = [
        started(),
        call(1, CallPurpose::Orchestrate),
        call(2, CallPurpose::Compose),
    ];
    assert_eq!(violations(&two).len(), 1);
}

#[test]
fn open_work_and_events_after_the_trace_are_violations() {
    for (omitted, expected) in [
        (6, "has not ended"),
        (8, "sub-agent inv_00000000000000000000000002 has not ended"),
        (10, "step turn-x-1 has not ended"),
        (2, "was not running"),
        (1, "step turn-x-1 was not open"),
    ] {
        let mut bodies = fan_out();
        bodies.remove(omitted);
        let found = violations(&bodies);
        let has_expected = found.iter().any(|text| text.contains(expected));
        assert!(has_expected, "{found:?}");
    }
    let mut late = fan_out();
    late.swap(10, 11);
    assert_eq!(
        violations(&late),
        ["plan.step_completed after the turn's dispatch was traced"]
    );
}

#[test]
fn log_without_dispatch_traces_is_valid() {
    assert_eq!(violations(&[started(), completed()]), Vec::<String>::new());
}

#[test]
fn withdrawn_turn_may_be_traced_beside_another() {
    let mut verifier = TurnVerifier::default();
    verifier.check(Some(TurnId(Ulid(9))), &started());
    let requested = Body::TurnCancelRequested(CancelRequested::new("user", "user_cancel"));
    let end = Body::TurnCancelled(TurnCancelled {
        reason: "user_cancel".into(),
        code: CancelCode::RequestCancelled,
        phase: Phase::Queued,
        partial: PartialMessage {
            message_id: None,
            bytes: 0,
            kept_until: None,
        },
        receipt: Vec::new(),
    });
    for body in [started(), requested, traced(), end] {
        assert_eq!(verifier.check(Some(TURN), &body), Vec::<String>::new());
    }
}

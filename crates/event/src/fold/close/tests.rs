//! Endings of turns that have dispatched: children before parents, each once, one trace.

use super::*;
use crate::body::llm::CallStarted;
use crate::body::plan::StepStarted;
use crate::body::route::{RelayedResponse, RouteDecided};
use crate::body::status::StatusEmitted;
use crate::body::subagent::{self, SubagentContext, SubagentStarted};
use crate::body::tool::ToolCalled;
use crate::body::turn::{BoundVersions, CancelRequested, TurnStarted};
use crate::code::{
    AgentErrorClass, CallPurpose, CapBehavior, DispatchOutcome, ErrorCode, SlotStatus, StepStatus,
    TurnKind,
};
use crate::id::{CallId, EpisodeId, InvocationId, MessageId, ToolUseId, TurnId, Ulid};
use crate::position::{Epoch, Position, Seq};

mod message;
mod receipt;

const ASK_SHOP: ToolUseId = ToolUseId(Ulid(11));
const ASK_REWARDS: ToolUseId = ToolUseId(Ulid(12));
const SEARCH: ToolUseId = ToolUseId(Ulid(13));
const CALL: CallId = CallId(Ulid(21));

fn time(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn called(tool_use_id: ToolUseId, name: &str, tool_type: ToolType) -> Body {
    Body::ToolCalled(ToolCalled {
        upstream_id: None,
        tool_use_id,
        tool_name: name.into(),
        tool_type,
        input_summary: String::new(),
    })
}

fn started(id: &str, tool_use_id: ToolUseId) -> Body {
    Body::SubagentStarted(SubagentStarted {
        invocation_id: InvocationId(tool_use_id.0),
        sub_agent_id: id.into(),
        tool_use_id,
        plan_step_id: "step".into(),
        context: SubagentContext {
            principal: "local".into(),
            user_id: "local".into(),
            episode_id: EpisodeId(Ulid(1)),
            locale: "en".into(),
            location: None,
            prior_context: None,
        },
    })
}

fn completed(id: &str, tool_use_id: ToolUseId) -> Body {
    Body::SubagentCompleted(subagent::SubagentCompleted {
        invocation_id: InvocationId(tool_use_id.0),
        sub_agent_id: id.into(),
        tool_use_id,
        outcome: DispatchOutcome::Success,
        latency_ms: 70,
        status_events: 0,
    })
}

fn opening() -> Body {
    Body::TurnStarted(TurnStarted {
        relayed_to: None,
        answers: Vec::new(),
        resumes: None,
        user_message_id: MessageId(Ulid(1)),
        input: Vec::new(),
        kind: TurnKind::Chat,
        origin: None,
        dm_type: None,
        episode_id: EpisodeId(Ulid(1)),
        locale: "en".into(),
        wire_version: None,
        history_omitted: 0,
        versions: BoundVersions {
            agent_definition: "7".into(),
            prompt: "3".into(),
            ..BoundVersions::default()
        },
    })
}

// S1-034, S1-022
#[test]
fn relayed_turn_ends_with_the_frames_of_its_start() {
    let Body::TurnStarted(mut start) = opening() else {
        unreachable!("a start")
    };
    start.relayed_to = Some("relay:desk".into());
    let episode_id = start.episode_id;
    let at = |seq| Position::persisted(Epoch(1), Seq(seq));
    let mut open = OpenTurn::new(TurnId(Ulid(1)));
    open.apply(at(1), time(0), &Actor::USER, &Body::TurnStarted(start));
    assert!(!open.is_settled(), "its frames have not begun");
    let ending = closing(&open, &failed(), &[], time(1));
    let response = RelayedResponse {
        response_id: None,
        episode_id,
        unanswered: true,
    };
    let route = RouteDecided::relayed("relay:desk".into(), response.clone());
    assert_eq!(ending[0].body, Body::RouteDecided(route));
    // Once it is routed, its frames have begun.
    let given = RelayedResponse {
        response_id: Some("resp_abc".parse().expect("an id")),
        ..response
    };
    let route = Body::RouteDecided(RouteDecided::relayed("relay:desk".into(), given.clone()));
    open.apply(at(2), time(1), &Actor::ORCHESTRATOR, &route);
    assert!(open.is_settled());
    assert_eq!(open.response_id, given.response_id);
    let ending = closing(&open, &failed(), &[], time(2));
    let routes = |event: &&ClosingEvent| matches!(event.body, Body::RouteDecided(_));
    assert_eq!(ending.iter().find(routes), None);
}

/// Three were asked for and two may run: rewards is done, shop waits for a data service while a
/// second model call of it is under way.
fn fan_out() -> OpenTurn {
    let step = Body::PlanStepStarted(StepStarted {
        plan_step_id: "step".into(),
        expected_subagents: vec!["shop".into(), "rewards".into()],
        cap: 2,
        dropped: vec!["receipts".into()],
        deadline_ms: 1_000,
    });
    let call = Body::LlmCallStarted(CallStarted {
        call_id: CALL,
        model: "m".into(),
        purpose: CallPurpose::Orchestrate,
        attempt: 1,
        first: false,
    });
    let status = Body::StatusEmitted(StatusEmitted {
        event_id: "searching".into(),
        message: String::new(),
        invocation_id: None,
    });
    let shop = Actor::subagent("shop");
    let events = [
        (0, Actor::USER, opening()),
        (10, Actor::ORCHESTRATOR, step),
        (
            11,
            Actor::ORCHESTRATOR,
            called(ASK_SHOP, "ask_shop", ToolType::SubAgent),
        ),
        (12, Actor::ORCHESTRATOR, started("shop", ASK_SHOP)),
        (
            13,
            Actor::ORCHESTRATOR,
            called(ASK_REWARDS, "ask_rewards", ToolType::SubAgent),
        ),
        (14, Actor::ORCHESTRATOR, started("rewards", ASK_REWARDS)),
        (15, shop.clone(), status),
        (16, shop.clone(), called(SEARCH, "search", ToolType::Ccs)),
        (17, shop, call),
        (
            90,
            Actor::subagent("rewards"),
            completed("rewards", ASK_REWARDS),
        ),
    ];
    let mut open = OpenTurn::new(TurnId(Ulid(1)));
    for (seq, (ms, actor, body)) in (1..).zip(events) {
        let at = Position::persisted(Epoch(1), Seq(seq));
        open.apply(at, time(ms), &actor, &body);
    }
    open
}

fn names(ending: &[ClosingEvent]) -> Vec<(&'static str, String)> {
    let name = |c: &ClosingEvent| (c.body.kind().name(), c.actor.to_string());
    ending.iter().map(name).collect()
}

fn failed() -> CloseCause {
    CloseCause::Failed {
        error: ErrorCode::InternalError.into(),
        reason: Some("server_restart".into()),
    }
}

fn cancelled() -> (OpenTurn, CloseCause) {
    let mut open = fan_out();
    let request = CancelRequested::new("user", "enough");
    let at = Position::persisted(Epoch(1), Seq(20));
    open.apply(
        at,
        time(100),
        &Actor::USER,
        &Body::TurnCancelRequested(request),
    );
    let end = CloseCause::Cancelled {
        code: CancelCode::RequestCancelled,
        stops: None,
        reason: "enough".into(),
        asked: time(100),
    };
    (open, end)
}

// S1-046
#[test]
fn fan_out_closes_children_before_parents() {
    let (open, end) = cancelled();
    for (open, end) in [(fan_out(), failed()), (open, end)] {
        let ending = closing(&open, &end, &[], time(130));
        let names = names(&ending);
        let names: Vec<_> = names
            .iter()
            .map(|(name, by)| (*name, by.as_str()))
            .collect();
        let terminal = names.last().expect("a terminal").0;
        assert_eq!(
            names,
            [
                ("llm.call_failed", "subagent:shop"),
                ("tool.failed", "tool:search"),
                ("subagent.failed", "subagent:shop"),
                ("tool.failed", "tool:ask_shop"),
                ("tool.failed", "tool:ask_rewards"),
                ("plan.step_completed", "orchestrator"),
                ("dispatch.traced", "orchestrator"),
                (terminal, "system"),
            ]
        );
    }
}

// S2-064
#[test]
fn trace_reports_every_outcome() {
    let (open, end) = cancelled();
    let cases = [
        (
            fan_out(),
            failed(),
            AgentErrorClass::Internal,
            DispatchOutcome::Failure,
        ),
        (
            open,
            end,
            AgentErrorClass::Cancelled,
            DispatchOutcome::Discarded,
        ),
    ];
    for (open, end, class, outcome) in cases {
        let ending = closing(&open, &end, &[], time(130));
        let Body::SubagentFailed(agent) = &ending[2].body else {
            panic!("{ending:?}");
        };
        assert_eq!(
            (agent.error_class, agent.latency_ms, agent.status_events),
            (class, 118, 1)
        );
        let Body::PlanStepCompleted(step) = &ending[5].body else {
            panic!("{ending:?}");
        };
        let slots: Vec<_> = step
            .slots
            .iter()
            .map(|s| (s.subagent.as_str(), s.status))
            .collect();
        assert_eq!(step.status, StepStatus::Terminated);
        assert_eq!(
            slots,
            [
                ("shop", SlotStatus::Error),
                ("rewards", SlotStatus::Success)
            ]
        );
        let Body::DispatchTraced(traced) = &ending[6].body else {
            panic!("{ending:?}");
        };
        assert_eq!(traced.sub_agents_invoked, ["shop", "rewards"]);
        assert_eq!((traced.intent_count, traced.cap), (3, 2));
        assert_eq!(traced.cap_behavior, CapBehavior::Over);
        assert_eq!(traced.dropped, ["receipts"]);
        let told = traced.outcomes.iter();
        let told: Vec<_> = told
            .map(|o| (o.sub_agent_id.as_str(), o.outcome, o.latency_ms))
            .collect();
        assert_eq!(
            told,
            [
                ("rewards", DispatchOutcome::Success, 70),
                ("shop", outcome, 118)
            ]
        );
        let bound = (&traced.agent_definition_version, &traced.prompt_version);
        assert_eq!(bound, (&"7".to_owned(), &"3".to_owned()));
    }
}

// S1-110
#[test]
fn receipt_lists_stopped_and_discarded_work() {
    let (open, end) = cancelled();
    let ending = closing(&open, &end, &[], time(130));
    let Some(Body::TurnCancelled(cancelled)) = ending.last().map(|c| &c.body) else {
        panic!("{ending:?}");
    };
    let lines: Vec<_> = cancelled
        .receipt
        .iter()
        .map(|line| (line.kind, line.id.clone(), line.outcome, line.ms))
        .collect();
    let names: Vec<_> = cancelled.receipt.iter().map(|line| &*line.name).collect();
    assert_eq!(names, ["m", "ask_shop", "ask_rewards", "search", "shop"]);
    let stopped = StopOutcome::Stopped;
    assert_eq!(
        lines,
        [
            (ReceiptKind::Llm, CALL.to_string(), stopped, 30),
            (ReceiptKind::Tool, ASK_SHOP.to_string(), stopped, 30),
            (ReceiptKind::Tool, ASK_REWARDS.to_string(), stopped, 30),
            (
                ReceiptKind::Tool,
                SEARCH.to_string(),
                StopOutcome::Discarded,
                30
            ),
            (
                ReceiptKind::Subagent,
                InvocationId(ASK_SHOP.0).to_string(),
                stopped,
                30
            ),
        ]
    );
}

#[test]
fn trace_is_emitted_exactly_once() {
    let mut open = OpenTurn::new(TurnId(Ulid(1)));
    let at = Position::persisted(Epoch(1), Seq(1));
    open.apply(at, time(0), &Actor::USER, &opening());
    let ending = closing(&open, &failed(), &[], time(1));
    let kinds: Vec<_> = names(&ending).into_iter().map(|(name, _)| name).collect();
    assert_eq!(kinds, ["dispatch.traced", "turn.completed"]);
    open.apply(at, time(1), &Actor::ORCHESTRATOR, &ending[0].body);
    let ending = closing(&open, &failed(), &[], time(2));
    let kinds: Vec<_> = names(&ending).into_iter().map(|(name, _)| name).collect();
    assert_eq!(kinds, ["turn.completed"]);
}

// C-03, D-44
#[test]
fn code_of_the_terminal_is_that_of_the_request() {
    for (by, reason, code, phase) in [
        (
            "system",
            "turn_timeout",
            CancelCode::IdleTimeout,
            Phase::Llm,
        ),
        (
            "system",
            "idle_timeout",
            CancelCode::IdleTimeout,
            Phase::Idle,
        ),
        (
            "system",
            "delegate_timeout",
            CancelCode::IdleTimeout,
            Phase::Llm,
        ),
        (
            "system",
            "parent_cancelled",
            CancelCode::RequestCancelled,
            Phase::Llm,
        ),
        (
            "system",
            "client_disconnected",
            CancelCode::RequestCancelled,
            Phase::Llm,
        ),
        // The requester decides, not the text.
        (
            "user",
            "idle_timeout",
            CancelCode::RequestCancelled,
            Phase::Llm,
        ),
    ] {
        let request = CancelRequested::new(by, reason);
        let end = CloseCause::Cancelled {
            code: request.code,
            stops: None,
            reason: request.reason,
            asked: time(100),
        };
        let mut open = OpenTurn::new(TurnId(Ulid(2)));
        let call = Body::LlmCallStarted(CallStarted {
            call_id: CallId(Ulid(9)),
            model: "m".into(),
            purpose: CallPurpose::Orchestrate,
            attempt: 1,
            first: true,
        });
        open.apply(
            Position::persisted(Epoch(1), Seq(3)),
            time(90),
            &Actor::ORCHESTRATOR,
            &call,
        );
        let ending = closing(&open, &end, &[], time(130));
        let Some(Body::TurnCancelled(end)) = ending.last().map(|closing| &closing.body) else {
            panic!("{ending:?}")
        };
        assert_eq!((end.code, end.phase), (code, phase), "{by} {reason}");
    }
    // Requests of older versions have no code.
    let old: CancelRequested =
        serde_json::from_str(r#"{"by":"system","reason":"turn_timeout"}"#).expect("JSON");
    assert_eq!(old.code, CancelCode::RequestCancelled);
}

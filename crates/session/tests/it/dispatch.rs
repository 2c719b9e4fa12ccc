//! Turns with sub-agents: however they end, everything they opened is closed, children before
//! parents, and one `dispatch.traced` precedes the terminal.

use std::sync::Arc;

use tokio::sync::Notify;
use turnwire_event::body::plan::StepStarted;
use turnwire_event::body::subagent::{SubagentCompleted, SubagentContext, SubagentStarted};
use turnwire_event::body::{llm, tool};
use turnwire_event::code::{
    CallPurpose, CapBehavior, DispatchOutcome, ReceiptKind, StopOutcome, ToolType,
};
use turnwire_event::port::{Emission, TurnContext, TurnOutcome};
use turnwire_event::row::{MessageScope, NewMessage};
use turnwire_event::{
    Actor, Body, ContentBlock, Event, IdGenerator as _, InvocationId, MessageId, Role, SessionId,
    StopReason, TokenUsage, ToolUseId,
};
use turnwire_session::{Options, SessionService, SystemIdGenerator};

use crate::stage::*;

fn put(turn: &TurnContext, by: &Actor, body: Body) {
    let accepted = turn.emitter.emit(Emission::new(by.clone(), body));
    accepted.expect("accepted");
}

fn called(name: &str, tool_type: ToolType) -> (ToolUseId, Body) {
    let (.., tool_use_id) = ids();
    let body = Body::ToolCalled(tool::ToolCalled {
        upstream_id: None,
        tool_use_id,
        tool_name: name.into(),
        tool_type,
        input_summary: "2 bytes".into(),
    });
    (tool_use_id, body)
}

fn done(tool_use_id: ToolUseId, name: &str, tool_type: ToolType) -> Body {
    Body::ToolCompleted(tool::ToolCompleted {
        upstream_id: None,
        tool_use_id,
        tool_name: name.into(),
        tool_type,
        duration_ms: 1,
        result_summary: "2 bytes".into(),
        result_sha256: String::new(),
    })
}

/// Starts a sub-agent and its model call.
fn request_approvals(turn: &TurnContext, id: &str) -> (ToolUseId, InvocationId) {
    let (tool_use_id, call) = called(&format!("ask_{id}"), ToolType::SubAgent);
    put(turn, &Actor::ORCHESTRATOR, call);
    let invocation_id = InvocationId(SystemIdGenerator.ulid());
    let input = &turn.input;
    let started = SubagentStarted {
        invocation_id,
        sub_agent_id: id.into(),
        tool_use_id,
        plan_step_id: "step".into(),
        context: SubagentContext {
            principal: input.owner.principal.as_str().into(),
            user_id: input.owner.principal.as_str().into(),
            episode_id: input.episode_id,
            locale: input.locale.clone(),
            location: None,
            prior_context: None,
        },
    };
    put(turn, &Actor::ORCHESTRATOR, Body::SubagentStarted(started));
    let (call_id, message_id, _) = ids();
    let by = Actor::subagent(id);
    let call = llm::CallStarted {
        call_id,
        model: "m".into(),
        purpose: CallPurpose::Subagent,
        attempt: 1,
        first: false,
    };
    put(turn, &by, Body::LlmCallStarted(call));
    let body = Body::LlmCallCompleted(llm::CallCompleted {
        call_id,
        message_id,
        content_sha256: String::new(),
        stop_reason: StopReason::ToolUse,
        usage: TokenUsage::default(),
    });
    let mut answer = Emission::new(by, body);
    answer.message = Some(NewMessage {
        provider_state: turnwire_event::ProviderState::default(),
        id: MessageId(SystemIdGenerator.ulid()),
        role: Role::Assistant,
        content: vec![ContentBlock::text("inner")],
        metadata: turnwire_event::JsonObject::default(),
        scope: MessageScope::Agent(id.into()),
    });
    turn.emitter.emit(answer).expect("accepted");
    (tool_use_id, invocation_id)
}

/// Two of three sub-agents have started: rewards has ended, shop waits for a data service.
fn fan_out(turn: &TurnContext) {
    let step = StepStarted {
        plan_step_id: "step".into(),
        expected_subagents: vec!["shop".into(), "rewards".into()],
        cap: 2,
        dropped: vec!["receipts".into()],
        deadline_ms: 1_000,
    };
    put(turn, &Actor::ORCHESTRATOR, Body::PlanStepStarted(step));
    request_approvals(turn, "shop");
    let (tool_use_id, invocation_id) = request_approvals(turn, "rewards");
    let (shop, rewards) = (Actor::subagent("shop"), Actor::subagent("rewards"));
    put(turn, &shop, status("searching"));
    put(turn, &shop, called("search", ToolType::Ccs).1);
    let completed = SubagentCompleted {
        invocation_id,
        sub_agent_id: "rewards".into(),
        tool_use_id,
        outcome: DispatchOutcome::Success,
        latency_ms: 7,
        status_events: 0,
    };
    put(turn, &rewards, Body::SubagentCompleted(completed));
    let done = done(tool_use_id, "ask_rewards", ToolType::SubAgent);
    put(turn, &Actor::ORCHESTRATOR, done);
}

/// The events that close everything open, however the turn ends.
const CLOSED: [&str; 5] = [
    "tool.failed tool:search",
    "subagent.failed subagent:shop",
    "tool.failed tool:ask_shop",
    "plan.step_completed orchestrator",
    "dispatch.traced orchestrator",
];

fn report_worker_end(events: &[Event]) -> Vec<String> {
    let of_turn = events.iter().filter(|event| event.turn_id.is_some());
    of_turn
        .map(|event| format!("{} {}", event.body.kind().name(), event.actor))
        .collect()
}

/// Law 6: every called tool has one end before the terminal.
fn assert_each_tool_ends_once(events: &[Event]) {
    let mut open = std::collections::HashSet::new();
    for event in events {
        match &event.body {
            Body::ToolCalled(tool) => assert!(open.insert(tool.tool_use_id)),
            Body::ToolCompleted(tool) => assert!(open.remove(&tool.tool_use_id)),
            Body::ToolFailed(tool) => {
                assert_eq!(open.remove(&tool.tool_use_id), tool.called);
            }
            body if body.kind().is_terminal() => assert!(open.is_empty(), "{open:?}"),
            _ => {}
        }
    }
}

fn assert_closed(events: &[Event], terminal: &str, shop: DispatchOutcome) {
    assert_each_ends_once(events);
    assert_each_tool_ends_once(events);
    let outcomes = report_worker_end(events);
    let mut expected: Vec<&str> = CLOSED.to_vec();
    expected.push(terminal);
    assert_eq!(outcomes[outcomes.len() - 6..], expected);
    let traces: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.body {
            Body::DispatchTraced(trace) => Some(trace),
            _ => None,
        })
        .collect();
    let [trace] = traces[..] else {
        panic!("{traces:?}")
    };
    assert_eq!(trace.sub_agents_invoked, ["shop", "rewards"]);
    assert_eq!(
        (trace.intent_count, trace.cap, trace.cap_behavior),
        (3, 2, CapBehavior::Over)
    );
    let outcomes = trace.outcomes.iter();
    let outcomes: Vec<_> = outcomes
        .map(|end| (end.sub_agent_id.as_str(), end.outcome))
        .collect();
    assert_eq!(
        outcomes,
        [("rewards", DispatchOutcome::Success), ("shop", shop)]
    );
    assert_eq!(
        (&trace.agent_definition_version, &trace.prompt_version),
        (&"7".to_owned(), &"3".to_owned()),
        "as the start said"
    );
}

/// A turn that starts a fan-out, notifies the test, and continues with `then`.
fn fanning(then: Option<TurnOutcome>) -> (WorkFn, Arc<Notify>) {
    let out = Arc::new(Notify::new());
    let outcomes = out.clone();
    let act = producer_fn(move |turn| {
        let (outcomes, then) = (outcomes.clone(), then.clone());
        async move {
            fan_out(&turn);
            let at = turn.emitter.emit(Emission::new(
                Actor::subagent("shop"),
                status("still searching"),
            ));
            let durable = turn.emitter.committed(at.expect("accepted")).await;
            durable.expect("durable");
            outcomes.notify_one();
            match then {
                Some(outcome) => outcome,
                None => std::future::pending().await,
            }
        }
    });
    (act, out)
}

async fn fanned(dir: &std::path::Path, then: Option<TurnOutcome>) -> (SessionService, SessionId) {
    let (act, out) = fanning(then);
    let sessions = start_service(dir, Options::default(), act).await;
    let id = new_session(&sessions).await;
    let accepted = submit(&sessions, &owner("local"), id, text_request("hi")).await;
    accepted.expect("accepted");
    out.notified().await;
    (sessions, id)
}

// S2-064
#[tokio::test]
async fn law_6_cancel_in_a_fan_out_closes_and_reports_all_slots() {
    let dir = tempfile::tempdir().expect("a folder");
    let (sessions, id) = fanned(dir.path(), None).await;
    let me = owner("local");
    let live = sessions
        .live_sessions()
        .open(&me, id)
        .await
        .expect("a session");
    let turn = live.current_turn().expect("a turn");
    let asked = sessions.canceller().cancel(&me, turn, None).await;
    asked.expect("accepted");
    let events = wait_for_end(&sessions, id).await;
    assert_closed(&events, "turn.cancelled system", DispatchOutcome::Discarded);
    let Body::TurnCancelled(end) = terminal_of(&events, turn) else {
        panic!("a cancel")
    };
    let lines = end.receipt.iter().map(|line| (line.kind, line.outcome));
    assert_eq!(
        lines.collect::<Vec<_>>(),
        [
            (ReceiptKind::Tool, StopOutcome::Stopped),
            (ReceiptKind::Tool, StopOutcome::Discarded),
            (ReceiptKind::Subagent, StopOutcome::Stopped),
        ],
        "ask_shop, its data service, and shop itself"
    );
}

// S2-064
#[tokio::test]
async fn law_6_recovery_closes_a_fan_out_once() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_sessions, id) = fanned(dir.path(), None).await;
    let image = copy_store(dir.path());
    let (act, _) = fanning(None);
    let swept = start_service(image.path(), Options::default(), act.clone()).await;
    let events = wait_for_end(&swept, id).await;
    assert_closed(&events, "turn.completed system", DispatchOutcome::Failure);
    // A second recovery finds nothing to do.
    let again = copy_store(image.path());
    let twice = start_service(again.path(), Options::default(), act).await;
    assert_eq!(
        report_worker_end(&read_log(&twice, id).await),
        report_worker_end(&events)
    );
}

// S2-064
#[tokio::test]
async fn law_6_shutdown_and_early_end_close_a_fan_out() {
    let dir = tempfile::tempdir().expect("a folder");
    let (sessions, id) = fanned(dir.path(), None).await;
    sessions.drain(std::time::Duration::ZERO).await;
    let events = wait_for_end(&sessions, id).await;
    assert_closed(&events, "turn.completed system", DispatchOutcome::Failure);
    let dir = tempfile::tempdir().expect("a folder");
    let (sessions, id) = fanned(dir.path(), Some(OK)).await;
    let events = wait_for_end(&sessions, id).await;
    assert_closed(&events, "turn.completed system", DispatchOutcome::Failure);
}

// S2-064
#[tokio::test]
async fn every_turn_has_one_dispatch_trace() {
    let dir = tempfile::tempdir().expect("a folder");
    let (sessions, gate) = turnstile_service(dir.path()).await;
    let id = new_session(&sessions).await;
    let first = enqueue(&sessions, id, "1").await;
    let withdrawn = enqueue(&sessions, id, "2").await;
    enqueue(&sessions, id, "3").await;
    for turn in [withdrawn.turn_id, first.turn_id] {
        let cancelled = sessions
            .canceller()
            .cancel(&owner("local"), turn, None)
            .await;
        cancelled.expect("accepted");
    }
    gate.open(2);
    let events = wait_for_terminals(&sessions, id, 3).await;
    assert_each_ends_once(&events);
    let mut of_turns = std::collections::HashMap::new();
    for event in &events {
        let Some(turn) = event.turn_id else { continue };
        let kinds: &mut Vec<_> = of_turns.entry(turn).or_default();
        kinds.push(event.body.kind().name());
    }
    assert_eq!(of_turns.len(), 3);
    for kinds in of_turns.values() {
        let traces = kinds.iter().filter(|kind| **kind == "dispatch.traced");
        assert_eq!(traces.count(), 1, "{kinds:?}");
        assert_eq!(kinds[kinds.len() - 2], "dispatch.traced");
    }
}

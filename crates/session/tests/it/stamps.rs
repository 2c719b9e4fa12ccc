//! The fields that the emitter sets: rendering, span, turn, and what wires would otherwise have to
//! remember.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Notify;
use turnwire_event::body::feedback::FeedbackRecorded;
use turnwire_event::body::llm::{CallCompleted, CallStarted};
use turnwire_event::code::CallPurpose;
use turnwire_event::port::{Emission, EventGate, GateOutput};
use turnwire_event::row::MessageScope;
use turnwire_event::{
    Actor, Body, EventType, RenderPolicy, Role, StopReason, TokenUsage, TraceContext,
};

use crate::stage::*;

fn recorded() -> Body {
    Body::FeedbackRecorded(FeedbackRecorded {
        message_id: None,
        turn_id: None,
        rating: "1".into(),
        comment: None,
    })
}

/// A gate that suppresses `tool.called` only.
struct Hiding;

impl EventGate for Hiding {
    fn take(&mut self, emission: Emission, _: Instant, out: GateOutput<'_>) {
        let hides = emission.body.kind() == EventType::ToolCalled;
        out(emission, hides.then(|| RenderPolicy::Suppress.into()));
    }
    fn due(&self) -> Option<Instant> {
        None
    }
    fn flush(&mut self, _: GateOutput<'_>) {}
}

// S1-046
#[tokio::test]
async fn hidden_tool_is_closed_hidden_live_and_after_a_crash() {
    let dir = tempfile::tempdir().expect("a folder");
    let called = Arc::new(Notify::new());
    let stamped = called.clone();
    let act = producer_fn(move |turn| {
        let stamped = stamped.clone();
        async move {
            let (.., tool) = ids();
            let at = turn.emitter.emit(Emission::new(
                Actor::ORCHESTRATOR,
                Body::ToolCalled(turnwire_event::body::tool::ToolCalled {
                    upstream_id: None,
                    tool_use_id: tool,
                    tool_name: "search".into(),
                    tool_type: turnwire_event::code::ToolType::Ccs,
                    input_summary: String::new(),
                }),
            ));
            let durable = turn.emitter.committed(at.expect("accepted")).await;
            durable.expect("durable");
            stamped.notify_one();
            std::future::pending().await
        }
    });
    let sessions = service_with_gates(dir.path(), Arc::new(|| Box::new(Hiding)), act.clone()).await;
    let id = new_session(&sessions).await;
    let accepted = submit(&sessions, &owner("local"), id, text_request("hi")).await;
    let turn = accepted.expect("accepted").turn_id;
    called.notified().await;
    let image = copy_store(dir.path());
    let stopped = sessions
        .canceller()
        .cancel(&owner("local"), turn, None)
        .await;
    stopped.expect("accepted");
    let live = wait_for_end(&sessions, id).await;
    let after = service_with_gates(image.path(), pass_through_gates(), act).await;
    let swept = wait_for_end(&after, id).await;
    for events in [live, swept] {
        let mut failed = events.iter();
        let failed = failed.find(|event| matches!(event.body, Body::ToolFailed(_)));
        let render = failed.and_then(|event| event.render.clone());
        assert_eq!(render.map(|r| r.policy), Some(RenderPolicy::Suppress));
    }
}

// S1-046
#[tokio::test]
async fn tool_end_is_hidden_exactly_if_its_call_is() {
    let gates: [(GateFactory, _); 2] = [
        (Arc::new(|| Box::new(Hiding)), Some(RenderPolicy::Suppress)),
        (pass_through_gates(), None),
    ];
    for (gates, expected) in gates {
        let dir = tempfile::tempdir().expect("a folder");
        let act = producer_fn(move |turn| async move {
            run_tool(
                &turn,
                new_message(Role::Tool, "found", MessageScope::Private),
            );
            OK
        });
        let sessions = service_with_gates(dir.path(), gates, act).await;
        let id = new_session(&sessions).await;
        let accepted = submit(&sessions, &owner("local"), id, text_request("hi")).await;
        accepted.expect("accepted");
        let events = wait_for_end(&sessions, id).await;
        let tools = events.iter().filter_map(|event| match &event.body {
            Body::ToolCalled(_) | Body::ToolCompleted(_) => {
                Some(event.render.as_ref().map(|render| render.policy))
            }
            _ => None,
        });
        assert_eq!(tools.collect::<Vec<_>>(), [expected, expected]);
    }
}

#[tokio::test]
async fn event_has_its_span_and_feedback_has_no_turn() {
    let dir = tempfile::tempdir().expect("a folder");
    let trace = |span: &str| TraceContext {
        trace_id: "a".repeat(32),
        span_id: span.repeat(16),
        parent_span_id: None,
    };
    let inner = Arc::new(trace("b"));
    let shared = inner.clone();
    let act = producer_fn(move |turn| {
        let inner = shared.clone();
        async move {
            let mut emission = Emission::new(Actor::subagent("shop"), status("one"));
            emission.trace = Some(inner);
            turn.emitter.emit(emission).expect("accepted");
            emit(&turn, status("two"));
            emit(&turn, recorded());
            assert_eq!(
                turn.input.trace.map(|t| t.span_id.clone()),
                Some("c".repeat(16))
            );
            OK
        }
    });
    let sessions = service_with_gates(dir.path(), pass_through_gates(), act).await;
    let id = new_session(&sessions).await;
    let mut texts = text_request("hi");
    texts.trace = Some(trace("c"));
    let accepted = submit(&sessions, &owner("local"), id, texts).await;
    accepted.expect("accepted");
    let events = wait_for_end(&sessions, id).await;
    let spans: Vec<_> = events
        .iter()
        .filter(|event| event.turn_id.is_some())
        .map(|event| event.trace.as_ref().map(|t| t.span_id[..1].to_owned()))
        .collect();
    let (own, inner) = (Some("c".to_owned()), Some("b".to_owned()));
    let [ref start, ref one, ref two, ref traced, ref end] = spans[..] else {
        panic!("{spans:?}")
    };
    assert_eq!(
        [start, one, two, traced, end],
        [&own, &inner, &own, &own, &own]
    );
    let feedback = events
        .iter()
        .find(|event| matches!(event.body, Body::FeedbackRecorded(_)));
    assert_eq!(feedback.expect("feedback").turn_id, None);
    assert_eq!(
        terminal_of(&events, events[1].turn_id.expect("a turn"))
            .kind()
            .name(),
        "turn.completed"
    );
}

#[tokio::test]
async fn only_the_first_orchestrator_call_is_marked_first() {
    let dir = tempfile::tempdir().expect("a folder");
    let act = producer_fn(move |turn| async move {
        for (actor, purpose) in [
            (Actor::subagent("early"), CallPurpose::Subagent),
            (Actor::ORCHESTRATOR, CallPurpose::Orchestrate),
            (Actor::subagent("shop"), CallPurpose::Subagent),
            (Actor::ORCHESTRATOR, CallPurpose::Compose),
        ] {
            let (call_id, message_id, _) = ids();
            let started = Body::LlmCallStarted(CallStarted {
                call_id,
                model: "m".into(),
                purpose,
                attempt: 1,
                first: true,
            });
            let completed = Body::LlmCallCompleted(CallCompleted {
                call_id,
                message_id,
                content_sha256: String::new(),
                stop_reason: StopReason::EndTurn,
                usage: TokenUsage::default(),
            });
            for body in [started, completed] {
                let accepted = turn.emitter.emit(Emission::new(actor.clone(), body));
                accepted.expect("accepted");
            }
        }
        OK
    });
    let sessions = service_with_gates(dir.path(), pass_through_gates(), act).await;
    let id = new_session(&sessions).await;
    let accepted = submit(&sessions, &owner("local"), id, text_request("hi")).await;
    accepted.expect("accepted");
    let events = wait_for_end(&sessions, id).await;
    let first = events.iter().filter_map(|event| match &event.body {
        Body::LlmCallStarted(call) => Some(call.first),
        _ => None,
    });
    assert_eq!(first.collect::<Vec<_>>(), [false, true, false, false]);
}
